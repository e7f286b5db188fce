// Loading a bitstream by the kernel's FPGA manager.
#pragma once

#include <filesystem>

#include "driver/uio/files.h"

namespace tenon::driver::uio {

// Puts the file where the kernel looks for firmware, unless it lies there, has the manager load it, and reads the
// manager's state back. Whatever ran in the FPGA is gone; with `partial` only in the region of the bitstream.
Status load_bitstream(const Files& files, const std::filesystem::path& bitstream, bool partial);

}  // namespace tenon::driver::uio
