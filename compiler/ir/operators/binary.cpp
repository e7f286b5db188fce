// Arithmetic, comparisons and logic of two tensors with broadcasting: sizes are equal, or one of them is 1.
#include "compiler/ir/operators/rules.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::DTypes;

Expected<Type> arithmetic(const RuleInput& in) {
  TENON_TRY_ASSIGN(dims, broadcast(in, in.arg(0).dims, in.arg(1).dims));
  return in.context.tensor(std::move(*dims), in.arg(0).dtype);
}

Expected<Type> comparison(const RuleInput& in) {
  TENON_TRY_ASSIGN(dims, broadcast(in, in.arg(0).dims, in.arg(1).dims));
  return in.context.tensor(std::move(*dims), DType::kBool);
}

Operator binary(std::string name, std::string documentation, DTypes dtypes = runtime::kNumericTypes,
                TypeRule rule = arithmetic, MayFail may_fail = nullptr) {
  return {std::move(name),
          std::move(documentation),
          {{"a", dtypes}, Input::same("b")},
          {},
          rule,
          OpPattern::kBroadcast,
          may_fail,
          with_scalar};
}
// An operator that may fail for integers.
Operator partial(std::string name, std::string documentation, MayFail may_fail,
                 DTypes dtypes = runtime::kNumericTypes) {
  return binary(std::move(name), std::move(documentation), dtypes, arithmetic, may_fail);
}

}  // namespace

std::vector<Operator> binary_operators() {
  return {
      continuous(binary("add", "a + b with broadcasting; integers wrap.")),
      continuous(binary("subtract", "a - b with broadcasting; integers wrap.")),
      continuous(binary("multiply", "a * b with broadcasting; integers wrap.")),
      continuous(
          partial("divide", "a / b with broadcasting; integers truncate, and their division by zero is an error.",
                  may_divide_by_zero),
          SampleArguments::divisor()),
      sampled(partial("floor_divide", "floor(a / b) with broadcasting; the division of integers by zero is an error.",
                      may_divide_by_zero),
              SampleArguments::divisor()),
      sampled(partial("remainder",
                      "a - trunc(a / b) * b with broadcasting, the sign is a's; of integers by zero it is an error.",
                      may_divide_by_zero),
              SampleArguments::divisor()),
      sampled(partial("modulo",
                      "a - floor(a / b) * b with broadcasting, the sign is b's; of integers by zero it is an error.",
                      may_divide_by_zero),
              SampleArguments::divisor()),
      sampled(partial("power",
                      "a to the power of b with broadcasting; integers wrap, and their negative powers are an error.",
                      may_have_negative),
              SampleArguments::above_one()),
      continuous(binary("maximum", "The larger of a and b with broadcasting; NaN where either is NaN.")),
      continuous(binary("minimum", "The smaller of a and b with broadcasting; NaN where either is NaN.")),
      binary("equal", "a = b with broadcasting; bool.", runtime::kAnyDType, comparison),
      binary("not_equal", "a != b with broadcasting; bool.", runtime::kAnyDType, comparison),
      binary("less", "a < b with broadcasting; bool.", runtime::kNumericTypes, comparison),
      binary("less_equal", "a <= b with broadcasting; bool.", runtime::kNumericTypes, comparison),
      binary("greater", "a > b with broadcasting; bool.", runtime::kNumericTypes, comparison),
      binary("greater_equal", "a >= b with broadcasting; bool.", runtime::kNumericTypes, comparison),
      binary("logical_and", "Whether both a and b are true, with broadcasting.", runtime::kBoolean),
      binary("logical_or", "Whether a or b is true, with broadcasting.", runtime::kBoolean),
      binary("logical_xor", "Whether one of a and b is true, with broadcasting.", runtime::kBoolean),
      binary("bitwise_and", "The bits that a and b share, with broadcasting.", runtime::kIntegers),
      binary("bitwise_or", "The bits of a or b, with broadcasting.", runtime::kIntegers),
      binary("bitwise_xor", "The bits that a and b do not share, with broadcasting.", runtime::kIntegers),
      sampled(partial("shift_left", "a shifted left by b >= 0 bits, filled with zeros; with broadcasting.",
                      may_have_negative, runtime::kIntegers),
              SampleArguments::shift()),
      sampled(
          partial("shift_right", "a shifted right by b >= 0 bits, filled with copies of the sign; with broadcasting.",
                  may_have_negative, runtime::kIntegers),
          SampleArguments::shift()),
  };
}

}  // namespace tenon::compiler
