// Where Tenon's data files are (configurations, RTL, simulation harness), in a source tree and in an installation.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace tenon::spec {

// The candidates for `what`, a path in the source tree as "hw/rtl", best first: share/tenon beside the running
// program's bin (an installation may have been moved), the source tree it was built from, the configured installation
// prefix. They need not exist.
std::vector<std::filesystem::path> data_path(std::string_view what);

}  // namespace tenon::spec
