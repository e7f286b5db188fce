// Quantization, dequantization and requantization. Requantization follows hw/spec/requantize.h operation by operation,
// in 64 bits.
#include <algorithm>
#include <cmath>

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {
namespace {

Expr integer(int64_t value) { return loop::integer_literal(DType::kI64, value); }
Expr wide(const Expr& x) { return loop::convert(DType::kI64, x); }
Expr narrow(const Expr& x) { return loop::convert(DType::kI32, x); }
Expr clamped(const Expr& x, int64_t lo, int64_t hi) {
  const auto constant = [&](int64_t value) { return loop::integer_literal(x->dtype, value); };
  return loop::binary(BinaryOp::kMin, loop::binary(BinaryOp::kMax, x, constant(lo)), constant(hi));
}
Expr shifted(const Expr& x, const Expr& distance) { return loop::binary(BinaryOp::kShiftRight, x, distance); }

// Scales and zero points, of the whole tensor or by channel.
struct Scales {
  LazyTensor scale, zero;
  size_t axis = 0;
  bool is_scalar = false;

  std::pair<Expr, Expr> of_element(const Dims& at) const {
    const Dims channel = is_scalar ? Dims{} : Dims{at[axis]};
    return {scale.at(channel), zero.at(channel)};
  }
};
Scales read_scales(const OperatorCall& op) {
  std::vector<float> scale;
  for (const double value : op.reals("scale")) scale.push_back(static_cast<float>(value));
  std::vector<int64_t> zero = op.integers("zero_point");
  if (zero.size() == 1) zero.resize(scale.size(), zero[0]);
  const bool is_scalar = scale.size() == 1;
  const runtime::Shape shape = is_scalar ? runtime::Shape{} : runtime::Shape{static_cast<int64_t>(scale.size())};
  return {op.emit.constant(Tensor::of<float>(shape, scale)), op.emit.constant(Tensor::of<int64_t>(shape, zero)),
          is_scalar ? 0 : op.axis("axis", op.arg(0).rank()), is_scalar};
}

LoweredResults quantize(const OperatorCall& op) {
  const double lo = op.dtype() == DType::kI8 ? -128 : 0, hi = op.dtype() == DType::kI8 ? 127 : 255;
  return op.expression([=, scales = read_scales(op), x = op.arg(0), dtype = op.dtype()](const Dims& at) {
    const auto [scale, zero] = scales.of_element(at);
    const Expr q = loop::unary(UnaryOp::kRound, x.at(at) / scale) + loop::convert(DType::kF32, zero);
    const Expr inside = loop::binary(BinaryOp::kMin, loop::binary(BinaryOp::kMax, q, like(q, lo)), like(q, hi));
    return loop::convert(dtype, select(is_equal(q, q), inside, like(q, 0)));
  });
}

LoweredResults dequantize(const OperatorCall& op) {
  const bool centered = std::ranges::all_of(op.integers("zero_point"), [](int64_t zero) { return zero == 0; });
  return op.expression([=, scales = read_scales(op), x = op.arg(0)](const Dims& at) {
    const auto [scale, zero] = scales.of_element(at);
    // 64 bits only where 32 bits do not hold the difference: few processors convert 64-bit integers to floats fast.
    if (centered) return loop::convert(DType::kF32, x.at(at)) * scale;
    if (x.dtype != DType::kI32) return loop::convert(DType::kF32, narrow(x.at(at)) - narrow(zero)) * scale;
    return loop::convert(DType::kF32, wide(x.at(at)) - zero) * scale;
  });
}

// The minimum and the maximum propagate NaN: there is no zero point then, which is an error at run time.
LoweredResults dynamic_quantize(const OperatorCall& op) {
  Emitter& emit = op.emit;
  const LazyTensor x = emit.stored("x", op.arg(0));
  const Expr init = loop::literal(DType::kF32, 0);
  // Reduces all dims as one where their sizes are constant, so that short rows are vectorized too.
  Context& context = op.context();
  const bool is_scalar = std::all_of(x.dims.begin() + std::min<ptrdiff_t>(1, std::ssize(x.dims)), x.dims.end(),
                                     [](Dim size) { return size.constant().value_or(0) > 0; });
  const auto extreme = [&](std::string_view name, BinaryOp best) {
    const auto term = [=, &context](const Dims& at) {
      if (!is_scalar) return x.at(at);
      Dims from(x.rank());
      Dim offset = at[0];
      for (size_t d = from.size(); d-- > 0; offset = context.floor_divide(offset, x.dims[d]))
        from[d] = d == 0 ? offset : context.modulo(offset, x.dims[d]);
      return x.at(from);
    };
    const Dims over = is_scalar ? Dims{context.product(x.dims)} : x.dims;
    return emit.reduce(name, {.dims = {}, .over = over, .op = best, .term = term, .init = init});
  };
  const LazyTensor lowest = extreme("least", BinaryOp::kMin), highest = extreme("most", BinaryOp::kMax);
  const LazyTensor scale = emit.stored("scale", emit.expression({}, DType::kF32, [=](const Dims& at) {
    const Expr range = (highest.at(at) - lowest.at(at)) / 255.0;
    return select(above(range, 0), range, like(range, 1));  // 1 where all elements are 0
  }));
  const auto step = [scale] { return scale.at({}); };
  const LazyTensor zero = emit.stored("zero", emit.expression({}, DType::kU8, [=](const Dims& at) {
    const Expr lo = lowest.at(at), hi = highest.at(at), finite = logical_and(below(hi, HUGE_VAL), above(lo, -HUGE_VAL));
    const Expr point = loop::unary(UnaryOp::kRound, minimum(maximum(-lo / step(), like(lo, 0)), like(lo, 255)));
    return loop::convert(DType::kU8, select(finite, point, like(lo, NAN)));
  }));
  const LazyTensor q = emit.expression(x.dims, DType::kU8, [=](const Dims& at) {
    const Expr sum = loop::unary(UnaryOp::kRound, x.at(at) / step()) + loop::convert(DType::kF32, zero.at({}));
    return loop::convert(DType::kU8, minimum(maximum(sum, like(sum, 0)), like(sum, 255)));
  });
  return std::vector{q, scale, zero};
}

LoweredResults requantize(const OperatorCall& op, bool residual) {
  const int64_t v_lo = op.integer("v_lo"), v_hi = op.integer("v_hi"), zero = op.integer("zero"), lo = op.integer("lo"),
                hi = op.integer("hi");
  const int64_t r_zero = residual ? op.integer("r_zero") : 0, r_multiplier = residual ? op.integer("r_multiplier") : 0,
                r_shift = residual ? op.integer("r_shift") : 0;
  const size_t axis = op.axis("axis", op.arg(0).rank());
  // After clamping, 32 bits hold all following values for the usual parameters.
  const auto fits = [](int64_t value) { return value > -(1 << 21) && value < 1 << 21; };
  const DType narrow_dtype = fits(v_lo) && fits(v_hi) && fits(zero) && fits(lo) && fits(hi) ? DType::kI32 : DType::kI64;
  return op.expression([=, args = op.args](const Dims& at) {
    const Dims channel{at[axis]};
    const Expr t = args[0].at(at) + args[1].at(channel);  // wraps in 32 bits
    const Expr p = wide(t) * wide(args[2].at(channel));
    Expr sum = loop::convert(narrow_dtype, clamped(shifted(p, wide(args[3].at(channel))), 256 * v_lo, 256 * v_hi));
    if (residual) {
      const Expr scaled = (wide(args[4].at(at)) - integer(r_zero)) * integer(r_multiplier);
      sum = sum + loop::convert(narrow_dtype, clamped(shifted(scaled, integer(r_shift)), -(1 << 19), (1 << 19) - 1));
    }
    const Expr out = like(sum, static_cast<double>(zero)) + shifted(sum + like(sum, 128), like(sum, 8));
    return loop::convert(DType::kI8, clamped(out, lo, hi));
  });
}

}  // namespace

std::span<const Lowering> quantize_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {ops::kQuantize, quantize},
      {ops::kDequantize, dequantize},
      {ops::kDynamicQuantize, dynamic_quantize},
      {ops::kRequantize, [](const OperatorCall& op) { return requantize(op, false); }},
      {ops::kRequantizeAdd, [](const OperatorCall& op) { return requantize(op, true); }},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
