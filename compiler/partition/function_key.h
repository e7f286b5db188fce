// A text that is equal for functions that a target cannot distinguish: the key of what it said of one of them.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "compiler/partition/costs.h"
#include "support/diagnostic.h"

namespace tenon::compiler {

// Constants of at most this size are compared by their elements, larger ones by their types.
inline constexpr size_t kComparedBytes = size_t{64} << 10;

// Operators with attributes, operands by position, types, and constants; nullopt where the function does more than
// apply operators, which targets are asked about each time.
std::optional<std::string> function_key(const Context& context, const Module& module, const Function& function);

// What targets said of functions; the keys begin with the row's address.
struct TargetAnswers {
  std::map<std::string, Status> accepted;
  std::map<std::string, Expected<Price>> prices;
};

}  // namespace tenon::compiler
