// The accelerator of one configuration beside the processor of a Zynq-7000: a Vivado project, the scripts that make a
// bitstream for Linux's FPGA manager, and the device tree overlay with which the transport uio: drives it. Equal inputs
// give equal files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hw/generator/boards.h"
#include "hw/generator/kernel_ip.h"
#include "hw/spec/config.h"

namespace tenon::generator {

// Tcl for Vivado: packages the RTL, connects it to the processor (registers at GP0, memory at HP0, interrupt line 0),
// implements the design and writes build/tenon.bit, build/slack.txt (nanoseconds) and build/utilization.txt.
std::string project_tcl(const spec::Config& config, const Board& board,
                        const std::vector<std::filesystem::path>& sources);

// Writes rtl/, project.tcl, the constraints, tenon.dtso and build.sh, which runs them all. Returns the files.
Expected<std::vector<std::filesystem::path>> package_for_vivado(const spec::Config& config, const Board& board,
                                                                const std::filesystem::path& directory);

}  // namespace tenon::generator
