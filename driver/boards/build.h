// From a configuration to a board's bitstream.
//
// Semantics: everything is written into one directory: the RTL, the netlist, logs, the bitstream and bitstream.json
// (bitstream.h). A bitstream that misses its clock is made all the same and says so. For Vivado and Vitis the directory
// is a project with a build.sh, which is run where the vendor's tools are in PATH.
#pragma once

#include <filesystem>
#include <optional>

#include "driver/boards/bitstream.h"
#include "driver/boards/tools.h"
#include "hw/generator/boards.h"
#include "hw/spec/config.h"

namespace tenon::driver::boards {

// By yosys, nextpnr and the packer.
Expected<Bitstream> build(const spec::Config& config, const generator::Board& board,
                          const std::filesystem::path& directory, const Progress& progress);

// By the vendor's tools; nothing where they are missing: the project is written and was not built.
Expected<std::optional<Bitstream>> build_by_vendor(const spec::Config& config, const generator::Board& board,
                                                   const std::filesystem::path& directory, const Progress& progress);

}  // namespace tenon::driver::boards
