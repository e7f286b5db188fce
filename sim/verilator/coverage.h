// Line coverage of the RTL: the counts of many models, added up by verilator_coverage and written beside the lines.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::sim {

// The points of one file at which Verilator counts: each block of statements and each branch.
struct FileCoverage {
  std::string file;  // "gemm.sv"
  int points = 0, reached = 0;
  std::vector<int> missing;  // numbers of the lines, from 1, with a point that was not reached, ascending
};

class LineCoverage {
 public:
  // The files are made in `directory`, which exists and has none of an earlier run.
  explicit LineCoverage(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // The file into which the next model writes its counts (VerilatedOptions::coverage).
  std::filesystem::path next();
  // Writes `directory`/annotated, the RTL with the count of each line, and returns the coverage by file, in the order
  // of names. An error where verilator_coverage is missing or fails.
  Expected<std::vector<FileCoverage>> annotate();

 private:
  Status merge();

  std::filesystem::path directory_;
  std::vector<std::filesystem::path> files_;  // written since the last merge
  Status merged_;
};

}  // namespace tenon::sim
