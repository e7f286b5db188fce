// The sections that describe a design to XRT: memories, units, connections, clock, and the kernel's arguments as XML.
#pragma once

#include <vector>

#include "driver/xrt/xclbin.h"

namespace tenon::driver {

inline constexpr uint64_t kUnitBase = 0x1400000, kUnitBytes = 0x10000;

std::vector<XclbinSection> metadata_sections(const spec::Config& config, const XclbinOptions& options);

}  // namespace tenon::driver
