// Attributes of an operator: named values that are known at compile time; the IR, the executable and the reference
// kernels share this type.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tenon::runtime {

using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;
using Attrs = std::map<std::string, Attr, std::less<>>;

}  // namespace tenon::runtime
