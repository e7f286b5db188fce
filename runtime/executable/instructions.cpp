#include "runtime/executable/instructions.h"

#include <array>
#include <iterator>
#include <utility>

namespace tenon::runtime {
namespace {

constexpr auto kFactsByOpcode = []<size_t... i>(std::index_sequence<i...>) {
  return std::array{std::variant_alternative_t<i, Operation>::kFacts...};
}
(std::make_index_sequence<kOpcodes>());

constexpr bool is_in_order() {
  for (size_t i = 0; i < kOpcodes; ++i) {
    if (static_cast<size_t>(kFactsByOpcode[i].opcode) != i) return false;
  }
  return true;
}
static_assert(is_in_order(), "Opcode and Operation list the instructions in one order");

}  // namespace

std::span<const InstructionFacts> instruction_facts() { return kFactsByOpcode; }

std::string_view name(ScalarOp op) {
  constexpr std::string_view kNames[] = {"add",           "subtract", "multiply",  "divide", "floor_divide", "minimum",
                                         "maximum",       "equal",    "not_equal", "less",   "less_equal",   "greater",
                                         "greater_equal", "and",      "or",        "xor"};
  static_assert(std::size(kNames) == kScalarOps);
  return kNames[static_cast<size_t>(op)];
}

bool is_defined(ScalarOp op, DType dtype) {
  if (kStorageTypes.contains(dtype)) return false;
  const bool real = dtype == DType::kF32 || dtype == DType::kF64;
  switch (op) {
    case ScalarOp::kAnd:
    case ScalarOp::kOr:
    case ScalarOp::kXor: return !real;
    case ScalarOp::kEqual:
    case ScalarOp::kNotEqual: return true;
    case ScalarOp::kAdd:
    case ScalarOp::kSubtract:
    case ScalarOp::kMultiply:
    case ScalarOp::kDivide:
    case ScalarOp::kFloorDivide:
    case ScalarOp::kMinimum:
    case ScalarOp::kMaximum:
    case ScalarOp::kLess:
    case ScalarOp::kLessEqual:
    case ScalarOp::kGreater:
    case ScalarOp::kGreaterEqual: break;
  }
  return dtype != DType::kBool;
}

}  // namespace tenon::runtime
