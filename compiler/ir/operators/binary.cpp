// Arithmetic, comparisons and logic of two tensors with broadcasting: sizes are equal, or one of them is 1.
#include "compiler/ir/operators/rules.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::DTypes, runtime::ScalarOp;

Expected<Type> arithmetic(const RuleInput& in) {
  TENON_TRY_ASSIGN(dims, broadcast(in, in.arg(0).dims, in.arg(1).dims));
  return in.context.tensor(std::move(*dims), in.arg(0).dtype);
}

Expected<Type> comparison(const RuleInput& in) {
  TENON_TRY_ASSIGN(dims, broadcast(in, in.arg(0).dims, in.arg(1).dims));
  return in.context.tensor(std::move(*dims), DType::kBool);
}

std::vector<Input> operands(DTypes dtypes) { return {{"a", dtypes}, Input::same("b")}; }

Operator binary(Operator op) {
  if (op.inputs.empty()) op.inputs = operands(runtime::kNumericTypes);
  if (!op.rule) op.rule = arithmetic;
  op.pattern = OpPattern::kBroadcast;
  op.scheme = with_scalar;
  return op;
}

}  // namespace

std::vector<Operator> binary_operators() {
  return {
      binary({.name = "add",
              .documentation = "a + b with broadcasting; integers wrap.",
              .continuous = true,
              .scalar = ScalarOp::kAdd}),
      binary({.name = "subtract",
              .documentation = "a - b with broadcasting; integers wrap.",
              .continuous = true,
              .scalar = ScalarOp::kSubtract}),
      binary({.name = "multiply",
              .documentation = "a * b with broadcasting; integers wrap.",
              .continuous = true,
              .scalar = ScalarOp::kMultiply}),
      binary({.name = "divide",
              .documentation = "a / b with broadcasting; integers truncate, and their division by zero is an error.",
              .may_fail = may_divide_by_zero,
              .continuous = true,
              .samples = SampleArguments::divisor(),
              .scalar = ScalarOp::kDivide}),
      binary({.name = "floor_divide",
              .documentation = "floor(a / b) with broadcasting; the division of integers by zero is an error.",
              .may_fail = may_divide_by_zero,
              .samples = SampleArguments::divisor(),
              .scalar = ScalarOp::kFloorDivide}),
      binary({.name = "remainder",
              .documentation =
                  "a - trunc(a / b) * b with broadcasting, the sign is a's; of integers by zero it is an error.",
              .may_fail = may_divide_by_zero,
              .samples = SampleArguments::divisor()}),
      binary({.name = "modulo",
              .documentation =
                  "a - floor(a / b) * b with broadcasting, the sign is b's; of integers by zero it is an error.",
              .may_fail = may_divide_by_zero,
              .samples = SampleArguments::divisor()}),
      binary({.name = "power",
              .documentation =
                  "a to the power of b with broadcasting; integers wrap, and their negative powers are an error.",
              .may_fail = may_have_negative,
              .samples = SampleArguments::above_one()}),
      binary({.name = "maximum",
              .documentation = "The larger of a and b with broadcasting; NaN where either is NaN.",
              .continuous = true,
              .scalar = ScalarOp::kMaximum}),
      binary({.name = "minimum",
              .documentation = "The smaller of a and b with broadcasting; NaN where either is NaN.",
              .continuous = true,
              .scalar = ScalarOp::kMinimum}),
      binary({.name = "equal",
              .documentation = "a = b with broadcasting; bool.",
              .inputs = operands(runtime::kAnyDType),
              .rule = comparison,
              .scalar = ScalarOp::kEqual}),
      binary({.name = "not_equal",
              .documentation = "a != b with broadcasting; bool.",
              .inputs = operands(runtime::kAnyDType),
              .rule = comparison,
              .scalar = ScalarOp::kNotEqual}),
      binary({.name = "less",
              .documentation = "a < b with broadcasting; bool.",
              .inputs = operands(runtime::kNumericTypes),
              .rule = comparison,
              .scalar = ScalarOp::kLess}),
      binary({.name = "less_equal",
              .documentation = "a <= b with broadcasting; bool.",
              .inputs = operands(runtime::kNumericTypes),
              .rule = comparison,
              .scalar = ScalarOp::kLessEqual}),
      binary({.name = "greater",
              .documentation = "a > b with broadcasting; bool.",
              .inputs = operands(runtime::kNumericTypes),
              .rule = comparison,
              .scalar = ScalarOp::kGreater}),
      binary({.name = "greater_equal",
              .documentation = "a >= b with broadcasting; bool.",
              .inputs = operands(runtime::kNumericTypes),
              .rule = comparison,
              .scalar = ScalarOp::kGreaterEqual}),
      binary({.name = "logical_and",
              .documentation = "Whether both a and b are true, with broadcasting.",
              .inputs = operands(runtime::kBoolean),
              .scalar = ScalarOp::kAnd}),
      binary({.name = "logical_or",
              .documentation = "Whether a or b is true, with broadcasting.",
              .inputs = operands(runtime::kBoolean),
              .scalar = ScalarOp::kOr}),
      binary({.name = "logical_xor",
              .documentation = "Whether one of a and b is true, with broadcasting.",
              .inputs = operands(runtime::kBoolean),
              .scalar = ScalarOp::kXor}),
      binary({.name = "bitwise_and",
              .documentation = "The bits that a and b share, with broadcasting.",
              .inputs = operands(runtime::kIntegers),
              .scalar = ScalarOp::kAnd}),
      binary({.name = "bitwise_or",
              .documentation = "The bits of a or b, with broadcasting.",
              .inputs = operands(runtime::kIntegers),
              .scalar = ScalarOp::kOr}),
      binary({.name = "bitwise_xor",
              .documentation = "The bits that a and b do not share, with broadcasting.",
              .inputs = operands(runtime::kIntegers),
              .scalar = ScalarOp::kXor}),
      binary({.name = "shift_left",
              .documentation = "a shifted left by b >= 0 bits, filled with zeros; with broadcasting.",
              .inputs = operands(runtime::kIntegers),
              .may_fail = may_have_negative,
              .samples = SampleArguments::shift()}),
      binary({.name = "shift_right",
              .documentation = "a shifted right by b >= 0 bits, filled with copies of the sign; with broadcasting.",
              .inputs = operands(runtime::kIntegers),
              .may_fail = may_have_negative,
              .samples = SampleArguments::shift()}),
  };
}

}  // namespace tenon::compiler
