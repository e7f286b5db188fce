// Loads bitstreams by the kernel's FPGA manager.
#pragma once

#include <filesystem>

#include "driver/uio/files.h"

namespace tenon::driver::uio {

// Copies the file to the kernel's firmware directory, unless it is there, requests the load from the manager, and
// checks the manager's state. The load replaces the design of the FPGA; with `partial` only the region of the
// bitstream.
Status load_bitstream(const Files& files, const std::filesystem::path& bitstream, bool partial);

}  // namespace tenon::driver::uio
