// Locations of Tenon's data files (configurations, RTL, simulation harness), in a source tree and in an installation.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace tenon::spec {

// The candidate locations of `relative`, a path in the source tree such as "hw/rtl", best first: share/tenon beside the
// folders of the program or library that this is part of (an installation may have been moved), the source tree of the
// build, the configured installation prefix. They need not exist.
std::vector<std::filesystem::path> data_path(std::string_view relative);

}  // namespace tenon::spec
