// Arithmetic, comparisons and logic of two tensors that broadcast: sizes are equal, or one of them is 1.
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

Operator binary(std::string name, std::string documentation, DTypes dtypes = runtime::kNumbers,
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
// An operator that integers may fail at.
Operator partial(std::string name, std::string documentation, MayFail may_fail, DTypes dtypes = runtime::kNumbers) {
  return binary(std::move(name), std::move(documentation), dtypes, arithmetic, may_fail);
}

}  // namespace

std::vector<Operator> binary_operators() {
  return {
      binary("add", "a + b with broadcasting; integers wrap."),
      binary("subtract", "a - b with broadcasting; integers wrap."),
      binary("multiply", "a * b with broadcasting; integers wrap."),
      partial("divide", "a / b with broadcasting; integers truncate, and their division by zero is an error.",
              may_divide_by_zero),
      partial("floor_divide", "floor(a / b) with broadcasting; the division of integers by zero is an error.",
              may_divide_by_zero),
      partial("remainder",
              "a - trunc(a / b) * b with broadcasting, the sign is a's; of integers by zero it is an error.",
              may_divide_by_zero),
      partial("modulo", "a - floor(a / b) * b with broadcasting, the sign is b's; of integers by zero it is an error.",
              may_divide_by_zero),
      partial("power", "a to the power of b with broadcasting; integers wrap, and their negative powers are an error.",
              may_have_negative),
      binary("maximum", "The larger of a and b with broadcasting; not a number where one is."),
      binary("minimum", "The smaller of a and b with broadcasting; not a number where one is."),
      binary("equal", "a = b with broadcasting; bool.", runtime::kAnyDType, comparison),
      binary("not_equal", "a != b with broadcasting; bool.", runtime::kAnyDType, comparison),
      binary("less", "a < b with broadcasting; bool.", runtime::kNumbers, comparison),
      binary("less_equal", "a <= b with broadcasting; bool.", runtime::kNumbers, comparison),
      binary("greater", "a > b with broadcasting; bool.", runtime::kNumbers, comparison),
      binary("greater_equal", "a >= b with broadcasting; bool.", runtime::kNumbers, comparison),
      binary("logical_and", "Whether both a and b are true, with broadcasting.", runtime::kBoolean),
      binary("logical_or", "Whether a or b is true, with broadcasting.", runtime::kBoolean),
      binary("logical_xor", "Whether one of a and b is true, with broadcasting.", runtime::kBoolean),
      binary("bitwise_and", "The bits that a and b share, with broadcasting.", runtime::kIntegers),
      binary("bitwise_or", "The bits of a or b, with broadcasting.", runtime::kIntegers),
      binary("bitwise_xor", "The bits that a and b do not share, with broadcasting.", runtime::kIntegers),
      partial("shift_left", "a shifted by b >= 0 bits towards the higher, zeros following; with broadcasting.",
              may_have_negative, runtime::kIntegers),
      partial("shift_right",
              "a shifted by b >= 0 bits towards the lower, copies of the sign following; with broadcasting.",
              may_have_negative, runtime::kIntegers),
  };
}

}  // namespace tenon::compiler
