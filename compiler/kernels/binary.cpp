// Arithmetic, comparisons and logic of tensors that broadcast.
#include "compiler/kernels/lowerings.h"
#include "runtime/reference/dtypes.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

// f(a, b) for each pair; F captures nothing.
template <class F>
constexpr Lower pairs(F) {
  return [](const Operation& op) -> Values {
    return op.expression([a = op.arg(0), b = op.arg(1), &context = op.context()](const Dims& at) {
      return F{}(broadcast(context, a, at), broadcast(context, b, at));
    });
  };
}
template <BinaryOp binary>
constexpr Lower plain() {
  return pairs([](const Expr& a, const Expr& b) { return loop::binary(binary, a, b); });
}
// Whether a division that truncates went up: it does where something remains whose sign is not the divisor's.
Expr rounds_up(const Expr& rest, const Expr& b) {
  return both(differs(rest, like(rest, 0)), differs(below(rest, 0), below(b, 0)));
}
Expr floor_divide(const Expr& a, const Expr& b) {
  if (loop::is_float(a->dtype)) return loop::unary(UnaryOp::kFloor, a / b);
  if (!runtime::kSignedNumbers.contains(a->dtype)) return a / b;
  return choose(rounds_up(loop::binary(BinaryOp::kRemainder, a, b), b), a / b - 1.0, a / b);
}
Expr modulo(const Expr& a, const Expr& b) {
  const Expr rest = loop::binary(BinaryOp::kRemainder, a, b);
  if (!runtime::kSignedNumbers.contains(a->dtype)) return rest;
  return choose(rounds_up(rest, b), rest + b, rest);
}

// A shift is an index, as is the exponent of an integer: one below 0 is an error.
template <BinaryOp binary>
constexpr Lower counted() {
  return [](const Operation& op) -> Values {
    Emitter& emit = op.emit;
    return op.expression([&emit, a = op.arg(0), b = op.arg(1)](const Dims& at) {
      const Expr x = broadcast(emit.context(), a, at), distance = broadcast(emit.context(), b, at);
      if (!runtime::kSignedIntegers.contains(x->dtype)) return loop::binary(binary, x, distance);
      const Symbol var = emit.fresh_index();
      return loop::let_index(
          var, emit.dim(INT64_MAX), distance,
          loop::binary(binary, x, loop::convert(x->dtype, loop::index_value(emit.context().dim(var)))));
    });
  };
}

Values select(const Operation& op) {
  return op.expression([c = op.arg(0), a = op.arg(1), b = op.arg(2), &context = op.context()](const Dims& at) {
    return choose(broadcast(context, c, at), broadcast(context, a, at), broadcast(context, b, at));
  });
}

Values bias_add(const Operation& op) {
  return op.expression([x = op.arg(0), b = op.arg(1), axis = op.axis("axis", op.arg(0).rank())](const Dims& at) {
    return x.at(at) + b.at({at[axis]});
  });
}

}  // namespace

std::span<const Lowering> binary_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {"add", plain<BinaryOp::kAdd>()},
      {"subtract", plain<BinaryOp::kSubtract>()},
      {"multiply", plain<BinaryOp::kMultiply>()},
      {"divide", plain<BinaryOp::kDivide>()},
      {"floor_divide", pairs([](const Expr& a, const Expr& b) { return floor_divide(a, b); })},
      {"remainder", plain<BinaryOp::kRemainder>()},
      {"modulo", pairs([](const Expr& a, const Expr& b) { return modulo(a, b); })},
      {"power", counted<BinaryOp::kPower>()},
      {"maximum", plain<BinaryOp::kMax>()},
      {"minimum", plain<BinaryOp::kMin>()},
      {"equal", plain<BinaryOp::kEqual>()},
      {"not_equal", pairs([](const Expr& a, const Expr& b) { return differs(a, b); })},
      {"less", plain<BinaryOp::kLess>()},
      {"less_equal", plain<BinaryOp::kLessEqual>()},
      {"greater", pairs([](const Expr& a, const Expr& b) { return less(b, a); })},
      {"greater_equal", pairs([](const Expr& a, const Expr& b) { return less_equal(b, a); })},
      {"logical_and", plain<BinaryOp::kAnd>()},
      {"logical_or", plain<BinaryOp::kOr>()},
      {"logical_xor", pairs([](const Expr& a, const Expr& b) { return differs(a, b); })},
      {"bitwise_and", plain<BinaryOp::kBitAnd>()},
      {"bitwise_or", plain<BinaryOp::kBitOr>()},
      {"bitwise_xor", plain<BinaryOp::kBitXor>()},
      {"shift_left", counted<BinaryOp::kShiftLeft>()},
      {"shift_right", counted<BinaryOp::kShiftRight>()},
      {"select", select},
      {"bias_add", bias_add},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
