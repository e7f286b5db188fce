// What is known of a bitstream: the file bitstream.json beside it, and a line inside it.
//
// Semantics: the line ("tenon BOARD CONFIGURATION HASH") stands in the bitstream's own comment, so that a file from
// another build is not taken for the one that is described. A bitstream of a vendor's tool has no such line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "support/diagnostic.h"

namespace tenon::driver::boards {

struct Bitstream {
  std::string board, config;
  uint64_t hash = 0;                         // of the configuration
  std::string file;                          // in the directory of bitstream.json
  std::map<std::string, std::string> tools;  // versions by name
  double requested_mhz = 0, achieved_mhz = 0;
  // Cells by kind: used and available.
  std::map<std::string, std::pair<int64_t, int64_t>> cells;

  bool timing_met() const { return achieved_mhz >= requested_mhz; }
  std::string line() const;
};

Status save(const Bitstream& bitstream, const std::filesystem::path& directory);

// Reads and checks bitstream.json and the file it names; `board` is the board it must be for.
Expected<Bitstream> load_bitstream(const std::filesystem::path& directory, const std::string& board);

}  // namespace tenon::driver::boards
