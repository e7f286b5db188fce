#include "sim/verilator/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "hw/generator/generator.h"
#include "sim/verilator/process.h"
#include "support/try.h"

namespace tenon::sim {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFilesOfAMerge = 32;  // bounds the disk space of a long campaign

Status run_tool(std::vector<std::string> arguments, const fs::path& work, const fs::path& log) {
  arguments.insert(arguments.begin(), "verilator_coverage");
  const int status = run_program(arguments, work, log);
  if (status == 0) return {};
  return error(fmt::format("verilator_coverage ends with status {}", status), log.string(),
               "install verilator, and see what the tool printed", Fault::kInternal);
}

// A file that verilator_coverage has annotated. A point's count stands in front of its line, after '%' where that is
// less than what suffices, else after a blank; lines without a point begin with a tab or with the text itself. Further
// points of a line follow as lines of their own, with an empty one after each.
FileCoverage read_annotated(const fs::path& file) {
  FileCoverage coverage{.file = file.filename().string()};
  std::ifstream stream(file);
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    if (line.find("// verilator_coverage annotation") != std::string::npos) continue;
    const bool further = line.find("verilator_coverage: (next point on previous line)") != std::string::npos;
    if (further) stream.ignore(1);  // the empty line after it
    else ++number;
    const bool counts = line.size() > 1 && line[1] >= '0' && line[1] <= '9' && (line[0] == ' ' || line[0] == '%');
    if (!counts) continue;
    ++coverage.points;
    if (line[0] != '%') ++coverage.reached;
    else if (coverage.missing.empty() || coverage.missing.back() != number) coverage.missing.push_back(number);
  }
  return coverage;
}

}  // namespace

fs::path LineCoverage::next() {
  if (files_.size() == kFilesOfAMerge && merged_) merged_ = merge();

  files_.push_back(directory_ / fmt::format("run-{}.dat", files_.size()));
  return files_.back();
}

Status LineCoverage::merge() {
  const fs::path total = directory_ / "total.dat";
  std::error_code fault;
  std::vector<std::string> command = {"--write", (directory_ / "sum.dat").string()};
  if (fs::is_regular_file(total, fault)) command.push_back(total.string());
  for (const fs::path& file : files_) {
    if (!fs::is_regular_file(file, fault)) {
      return error("a model has not written its counts", file.string(), "is there space in this directory?");
    }
    command.push_back(file.string());
  }
  TENON_TRY(run_tool(std::move(command), directory_, directory_ / "log.txt"));
  for (const fs::path& file : files_) fs::remove(file, fault);
  files_.clear();
  fs::rename(directory_ / "sum.dat", total, fault);
  if (fault) return error(fmt::format("cannot write the counts: {}", fault.message()), total.string());
  return {};
}

Expected<std::vector<FileCoverage>> LineCoverage::annotate() {
  if (merged_) merged_ = merge();
  TENON_TRY(merged_);
  // The counts name the files of the RTL without a folder, so the tool looks for them in its own.
  TENON_TRY_ASSIGN(rtl, generator::rtl_directory());
  const fs::path annotated = directory_ / "annotated";
  TENON_TRY(run_tool(
      {"--annotate", annotated.string(), "--annotate-all", "--annotate-min", "1", (directory_ / "total.dat").string()},
      *rtl, directory_ / "log.txt"));
  std::vector<FileCoverage> files;
  std::error_code fault;
  for (fs::directory_iterator file(annotated, fault), end; !fault && file != end; file.increment(fault)) {
    if (file->path().extension() == ".sv") files.push_back(read_annotated(file->path()));
  }
  if (fault || files.empty()) {
    return error("verilator_coverage has annotated no file of the RTL", annotated.string(),
                 fmt::format("see what it printed in {}", (directory_ / "log.txt").string()), Fault::kInternal);
  }
  std::ranges::sort(files, {}, &FileCoverage::file);
  return files;
}

}  // namespace tenon::sim
