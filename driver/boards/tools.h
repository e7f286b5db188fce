// The programs that turn RTL into a bitstream for iCE40 and ECP5.
//
// Semantics: the system's programs are used where PATH has all of a flow and each prints its version; else those of an
// environment of Python's in Tenon's cache, in which pip installs YoWASP's packages at the first use. TENON_FPGA_TOOLS
// names a directory with programs that are used instead.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hw/generator/boards.h"
#include "support/diagnostic.h"

namespace tenon::driver::boards {

using Progress = std::function<void(const std::string& line)>;

struct Tool {
  std::string program;  // a path
  std::string version;  // the first line that it prints
};

struct Tools {
  Tool yosys, nextpnr, pack;
};

// Of a flow that is open. `progress` may be empty.
Expected<Tools> find_tools(generator::Flow flow, const Progress& progress);

}  // namespace tenon::driver::boards
