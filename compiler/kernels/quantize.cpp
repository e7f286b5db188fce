// Between real and integer values. Requantization is hw/spec/requantize.h's, operation by operation, in 64 bits.
#include <algorithm>
#include <cmath>

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

Expr integer(int64_t value) { return loop::integer_literal(DType::kI64, value); }
Expr wide(const Expr& x) { return loop::convert(DType::kI64, x); }
Expr narrow(const Expr& x) { return loop::convert(DType::kI32, x); }
Expr clamped(const Expr& x, int64_t lo, int64_t hi) {
  const auto number = [&](int64_t value) { return loop::integer_literal(x->dtype, value); };
  return loop::binary(BinaryOp::kMin, loop::binary(BinaryOp::kMax, x, number(lo)), number(hi));
}
Expr shifted(const Expr& x, const Expr& distance) { return loop::binary(BinaryOp::kShiftRight, x, distance); }

// scale and zero point of the channel of an element.
struct Scales {
  Value scale, zero;
  size_t axis = 0;
  bool one = false;

  std::pair<Expr, Expr> of(const Dims& at) const {
    const Dims channel = one ? Dims{} : Dims{at[axis]};
    return {scale.at(channel), zero.at(channel)};
  }
};
Scales read_scales(const Operation& op) {
  std::vector<float> scale;
  for (const double value : op.reals("scale")) scale.push_back(static_cast<float>(value));
  std::vector<int64_t> zero = op.integers("zero_point");
  if (zero.size() == 1) zero.resize(scale.size(), zero[0]);
  const bool one = scale.size() == 1;
  const runtime::Shape shape = one ? runtime::Shape{} : runtime::Shape{static_cast<int64_t>(scale.size())};
  return {op.emit.constant(Tensor::of<float>(shape, scale)), op.emit.constant(Tensor::of<int64_t>(shape, zero)),
          one ? 0 : op.axis("axis", op.arg(0).rank()), one};
}

Values quantize(const Operation& op) {
  const double lo = op.dtype() == DType::kI8 ? -128 : 0, hi = op.dtype() == DType::kI8 ? 127 : 255;
  return op.expression([=, scales = read_scales(op), x = op.arg(0), dtype = op.dtype()](const Dims& at) {
    const auto [scale, zero] = scales.of(at);
    const Expr q = loop::unary(UnaryOp::kRound, x.at(at) / scale) + loop::convert(DType::kF32, zero);
    const Expr inside = smaller(larger(q, like(q, lo)), like(q, hi));
    return loop::convert(dtype, choose(same(q, q), inside, like(q, 0)));
  });
}

Values dequantize(const Operation& op) {
  const bool centered = std::ranges::all_of(op.integers("zero_point"), [](int64_t zero) { return zero == 0; });
  return op.expression([=, scales = read_scales(op), x = op.arg(0)](const Dims& at) {
    const auto [scale, zero] = scales.of(at);
    // 64 bits only where 32 do not hold the difference: hardly any processor makes floats of them.
    if (centered) return loop::convert(DType::kF32, x.at(at)) * scale;
    if (x.dtype != DType::kI32) return loop::convert(DType::kF32, narrow(x.at(at)) - narrow(zero)) * scale;
    return loop::convert(DType::kF32, wide(x.at(at)) - zero) * scale;
  });
}

// Smallest and largest keep what is no number: then there is no zero point, which is an error of the program.
Values dynamic_quantize(const Operation& op) {
  Emitter& emit = op.emit;
  const Value x = emit.stored("x", op.arg(0));
  const Expr none = loop::literal(DType::kF32, 0);
  // All dims as one, where that is a step through memory: short rows are taken in lanes too.
  Context& context = op.context();
  const bool one = std::all_of(x.dims.begin() + std::min<ptrdiff_t>(1, std::ssize(x.dims)), x.dims.end(),
                               [](Dim size) { return size.constant().value_or(0) > 0; });
  const auto extreme = [&](std::string_view name, BinaryOp best) {
    const auto term = [=, &context](const Dims& at) {
      if (!one) return x.at(at);
      Dims from(x.rank());
      Dim rest = at[0];
      for (size_t d = from.size(); d-- > 0; rest = context.floor_divide(rest, x.dims[d]))
        from[d] = d == 0 ? rest : context.modulo(rest, x.dims[d]);
      return x.at(from);
    };
    const Dims over = one ? Dims{context.product(x.dims)} : x.dims;
    return emit.reduce(name, {.dims = {}, .over = over, .op = best, .term = term, .init = none});
  };
  const Value least = extreme("least", BinaryOp::kMin), most = extreme("most", BinaryOp::kMax);
  const Value scale = emit.stored(
      "scale", emit.expression({}, DType::kF32, [=](const Dims& at) { return (most.at(at) - least.at(at)) / 255.0; }));
  const auto step = [scale] { return choose(above(scale.at({}), 0), scale.at({}), like(scale.at({}), 1)); };
  const Value zero = emit.stored("zero", emit.expression({}, DType::kU8, [=](const Dims& at) {
    const Expr lo = least.at(at), hi = most.at(at), finite = both(below(hi, HUGE_VAL), above(lo, -HUGE_VAL));
    const Expr place = loop::unary(UnaryOp::kRound, smaller(larger(-lo / step(), like(lo, 0)), like(lo, 255)));
    return loop::convert(DType::kU8, choose(finite, place, like(lo, NAN)));
  }));
  const Value q = emit.expression(x.dims, DType::kU8, [=](const Dims& at) {
    const Expr sum = loop::unary(UnaryOp::kRound, x.at(at) / step()) + loop::convert(DType::kF32, zero.at({}));
    return loop::convert(DType::kU8, smaller(larger(sum, like(sum, 0)), like(sum, 255)));
  });
  return std::vector{q, scale, zero};
}

Values requantize(const Operation& op, bool residual) {
  const int64_t v_lo = op.integer("v_lo"), v_hi = op.integer("v_hi"), zero = op.integer("zero"), lo = op.integer("lo"),
                hi = op.integer("hi");
  const int64_t r_zero = residual ? op.integer("r_zero") : 0, r_multiplier = residual ? op.integer("r_multiplier") : 0,
                r_shift = residual ? op.integer("r_shift") : 0;
  const size_t axis = op.axis("axis", op.arg(0).rank());
  // Once clamped, 32 bits hold all that follows, as a rule.
  const auto small = [](int64_t value) { return value > -(1 << 21) && value < 1 << 21; };
  const DType rest = small(v_lo) && small(v_hi) && small(zero) && small(lo) && small(hi) ? DType::kI32 : DType::kI64;
  return op.expression([=, args = op.args](const Dims& at) {
    const Dims channel{at[axis]};
    const Expr t = args[0].at(at) + args[1].at(channel);  // wraps in 32 bits
    const Expr p = wide(t) * wide(args[2].at(channel));
    Expr sum = loop::convert(rest, clamped(shifted(p, wide(args[3].at(channel))), 256 * v_lo, 256 * v_hi));
    if (residual) {
      const Expr scaled = (wide(args[4].at(at)) - integer(r_zero)) * integer(r_multiplier);
      sum = sum + loop::convert(rest, clamped(shifted(scaled, integer(r_shift)), -(1 << 19), (1 << 19) - 1));
    }
    const Expr out = like(sum, static_cast<double>(zero)) + shifted(sum + like(sum, 128), like(sum, 8));
    return loop::convert(DType::kI8, clamped(out, lo, hi));
  });
}

}  // namespace

std::span<const Lowering> quantize_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {"quantize", quantize},
      {"dequantize", dequantize},
      {"dynamic_quantize", dynamic_quantize},
      {"requantize", [](const Operation& op) { return requantize(op, false); }},
      {"requantize_add", [](const Operation& op) { return requantize(op, true); }},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
