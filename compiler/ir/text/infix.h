// The operators that are written between their operands: sign, precedence and name, once for reader, printer and
// formatter. All associate to the left.
#pragma once

#include <string_view>

namespace tenon::compiler {

struct Infix {
  std::string_view sign;
  int precedence;  // the higher one binds first
  std::string_view op;
};

inline constexpr int kNoPrecedence = 0, kHighestPrecedence = 10;
inline constexpr Infix kInfixes[] = {
    {"==", 1, "equal"},   {"!=", 1, "not_equal"},     {"<", 2, "less"}, {"<=", 2, "less_equal"},
    {">", 2, "greater"},  {">=", 2, "greater_equal"}, {"+", 3, "add"},  {"-", 3, "subtract"},
    {"*", 4, "multiply"}, {"/", 4, "divide"},
};

inline constexpr std::string_view kNegation = "negate";  // -x

inline const Infix* find_infix(std::string_view sign) {
  for (const Infix& infix : kInfixes) {
    if (infix.sign == sign) return &infix;
  }
  return nullptr;
}
inline const Infix* infix_of(std::string_view op) {
  for (const Infix& infix : kInfixes) {
    if (infix.op == op) return &infix;
  }
  return nullptr;
}

}  // namespace tenon::compiler
