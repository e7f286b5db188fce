// The accelerator of one configuration as a kernel for Vitis: RTL, kernel.xml, and the scripts that build an xclbin
// file from them. Equal inputs give equal files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hw/generator/boards.h"
#include "hw/spec/config.h"

namespace tenon::generator {

struct VitisOptions {
  int units = 1;
  int clock_mhz = 0;  // 0: the board's own
};

std::string kernel_xml(const spec::Config& config);

// Tcl for Vivado: packages the RTL in rtl/ beside the script into build/tenon_kernel.xo.
std::string package_xo_tcl(const spec::Config& config, const Board& board,
                           const std::vector<std::filesystem::path>& sources);

// v++'s configuration file for linking.
std::string link_configuration(const Board& board, const VitisOptions& options);

// Writes rtl/, kernel.xml, package_xo.tcl, link.cfg and build.sh, which runs them all. Returns the files.
Expected<std::vector<std::filesystem::path>> package_for_vitis(const spec::Config& config, const Board& board,
                                                               const VitisOptions& options,
                                                               const std::filesystem::path& directory);

}  // namespace tenon::generator
