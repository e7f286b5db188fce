// The infix operators: sign, precedence and operator, for parser, printer and formatter. All are left-associative.
#pragma once

#include <string_view>

#include "compiler/ir/operator_id.h"

namespace tenon::compiler {

struct Infix {
  std::string_view sign;
  int precedence;  // a higher precedence binds tighter
  OperatorId op;
};

inline constexpr int kNoPrecedence = 0, kHighestPrecedence = 10;
inline constexpr Infix kInfixes[] = {
    {"==", 1, ops::kEqual},   {"!=", 1, ops::kNotEqual},     {"<", 2, ops::kLess}, {"<=", 2, ops::kLessEqual},
    {">", 2, ops::kGreater},  {">=", 2, ops::kGreaterEqual}, {"+", 3, ops::kAdd},  {"-", 3, ops::kSubtract},
    {"*", 4, ops::kMultiply}, {"/", 4, ops::kDivide},
};

inline constexpr OperatorId kNegation = ops::kNegate;  // -x

inline const Infix* find_infix(std::string_view sign) {
  for (const Infix& infix : kInfixes) {
    if (infix.sign == sign) return &infix;
  }
  return nullptr;
}
inline const Infix* infix_of(OperatorId op) {
  for (const Infix& infix : kInfixes) {
    if (infix.op == op) return &infix;
  }
  return nullptr;
}

}  // namespace tenon::compiler
