// Elementwise arithmetic, comparisons and logic with broadcasting.
#include "compiler/kernels/lowerings.h"
#include "runtime/dtype.h"

namespace tenon::compiler::kernels {
namespace {

// f(a, b) for each pair of elements, where F captures nothing.
template <class F>
constexpr Lower broadcast_binary(F) {
  return [](const OperatorCall& op) -> LoweredResults {
    return op.expression([a = op.arg(0), b = op.arg(1), &context = op.context()](const Dims& at) {
      return F{}(broadcast(context, a, at), broadcast(context, b, at));
    });
  };
}
template <BinaryOp binary>
constexpr Lower plain_binary() {
  return broadcast_binary([](const Expr& a, const Expr& b) { return loop::binary(binary, a, b); });
}
// Whether a truncating division rounded up: this is so where the remainder is not 0 and its sign differs from the
// divisor's.
Expr rounds_up(const Expr& remainder, const Expr& b) {
  return logical_and(is_not_equal(remainder, like(remainder, 0)), is_not_equal(below(remainder, 0), below(b, 0)));
}
Expr floor_divide(const Expr& a, const Expr& b) {
  if (loop::is_float(a->dtype)) return loop::unary(UnaryOp::kFloor, a / b);
  if (!runtime::kSignedNumericTypes.contains(a->dtype)) return a / b;
  return select(rounds_up(loop::binary(BinaryOp::kRemainder, a, b), b), a / b - 1.0, a / b);
}
Expr modulo(const Expr& a, const Expr& b) {
  const Expr remainder = loop::binary(BinaryOp::kRemainder, a, b);
  if (!runtime::kSignedNumericTypes.contains(a->dtype)) return remainder;
  return select(rounds_up(remainder, b), remainder + b, remainder);
}

// The distance of a shift and the exponent of an integer are checked like indices: a negative one is an error.
template <BinaryOp binary>
constexpr Lower with_checked_count() {
  return [](const OperatorCall& op) -> LoweredResults {
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

LoweredResults select_operator(const OperatorCall& op) {
  return op.expression([c = op.arg(0), a = op.arg(1), b = op.arg(2), &context = op.context()](const Dims& at) {
    return select(broadcast(context, c, at), broadcast(context, a, at), broadcast(context, b, at));
  });
}

LoweredResults bias_add(const OperatorCall& op) {
  return op.expression([x = op.arg(0), b = op.arg(1), axis = op.axis("axis", op.arg(0).rank())](const Dims& at) {
    return x.at(at) + b.at({at[axis]});
  });
}

}  // namespace

std::span<const Lowering> binary_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {ops::kAdd, plain_binary<BinaryOp::kAdd>()},
      {ops::kSubtract, plain_binary<BinaryOp::kSubtract>()},
      {ops::kMultiply, plain_binary<BinaryOp::kMultiply>()},
      {ops::kDivide, plain_binary<BinaryOp::kDivide>()},
      {ops::kFloorDivide, broadcast_binary([](const Expr& a, const Expr& b) { return floor_divide(a, b); })},
      {ops::kRemainder, plain_binary<BinaryOp::kRemainder>()},
      {ops::kModulo, broadcast_binary([](const Expr& a, const Expr& b) { return modulo(a, b); })},
      {ops::kPower, with_checked_count<BinaryOp::kPower>()},
      {ops::kMaximum, plain_binary<BinaryOp::kMax>()},
      {ops::kMinimum, plain_binary<BinaryOp::kMin>()},
      {ops::kEqual, plain_binary<BinaryOp::kEqual>()},
      {ops::kNotEqual, broadcast_binary([](const Expr& a, const Expr& b) { return is_not_equal(a, b); })},
      {ops::kLess, plain_binary<BinaryOp::kLess>()},
      {ops::kLessEqual, plain_binary<BinaryOp::kLessEqual>()},
      {ops::kGreater, broadcast_binary([](const Expr& a, const Expr& b) { return less(b, a); })},
      {ops::kGreaterEqual, broadcast_binary([](const Expr& a, const Expr& b) { return less_equal(b, a); })},
      {ops::kLogicalAnd, plain_binary<BinaryOp::kAnd>()},
      {ops::kLogicalOr, plain_binary<BinaryOp::kOr>()},
      {ops::kLogicalXor, broadcast_binary([](const Expr& a, const Expr& b) { return is_not_equal(a, b); })},
      {ops::kBitwiseAnd, plain_binary<BinaryOp::kBitAnd>()},
      {ops::kBitwiseOr, plain_binary<BinaryOp::kBitOr>()},
      {ops::kBitwiseXor, plain_binary<BinaryOp::kBitXor>()},
      {ops::kShiftLeft, with_checked_count<BinaryOp::kShiftLeft>()},
      {ops::kShiftRight, with_checked_count<BinaryOp::kShiftRight>()},
      {ops::kSelect, select_operator},
      {ops::kBiasAdd, bias_add},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
