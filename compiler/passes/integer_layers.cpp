// Turns layers on dequantized values, as in models that come quantized, into layers on the integers: the sums are
// exact, and one dequantization follows them. A bias of the same scale as the sums is added to the integers. Maxima of
// dequantized bytes, and operators that move them, become those of the bytes; where a quantization by the same scale
// follows, no float is left between two layers.
#include <algorithm>
#include <cmath>

#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

// The operand of a dequantize that has a single zero point.
struct Quantized {
  Atom integers;
  TensorType type;
  Floats scale;
  int64_t zero = 0, axis = 0;
};
std::optional<Quantized> quantized(const Builder& builder, const Atom& atom) {
  const Apply* apply = builder.application(atom, ops::kDequantize);
  if (!apply) return std::nullopt;
  const TensorType& type = *builder.tensor_type(apply->args[0]);
  const Ints& zeros = ints_attr(apply->attrs, "zero_point");
  if (std::ranges::any_of(zeros, [&](int64_t zero) { return zero != zeros[0]; })) return std::nullopt;
  const int64_t axis = int_attr(apply->attrs, "axis");
  return Quantized{apply->args[0], type, floats_attr(apply->attrs, "scale"), zeros[0],
                   axis < 0 ? axis + type.rank() : axis};
}
bool is_byte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }

// Whether each result is one of the operand's elements, the same one whatever increasing function is applied to them.
bool selects_elements(const Apply& apply) {
  return apply.args.size() == 1 && apply.computed.empty() &&
         apply.op->has({Elements::kSame, Elements::kMoved, Elements::kSelected});
}

// Whether the values are bytes, or bytes minus their zero point: at most 255 in magnitude.
bool is_small(const Builder& builder, Atom atom) {
  if (const Apply* difference = builder.application(atom, ops::kSubtract)) {
    if (!constant_of(builder.module(), difference->args[1])) return false;
    atom = difference->args[0];
  }
  if (const Apply* cast = builder.application(atom, ops::kCast)) atom = cast->args[0];
  if (const runtime::Tensor* constant = constant_of(builder.module(), atom);
      constant && constant->dtype() == DType::kI32)
    return std::ranges::all_of(constant->data<int32_t>(), [](int32_t x) { return x >= -255 && x <= 255; });
  const TensorType* type = builder.tensor_type(atom);
  return type && is_byte(type->dtype);
}

// The axis of the output channels in a layer's weights and in its result, and the number of products of a sum.
struct IntegerLayer {
  int64_t weight_axis = 0, axis = 1, products = 0;
};
std::optional<IntegerLayer> layer(const Apply& apply, const TensorType& x, const TensorType& w) {
  IntegerLayer found;
  const Operator& op = *apply.op;
  const bool convolution = op.is(ops::kConv1d) || op.is(ops::kConv2d) || op.is(ops::kConv3d);
  if (convolution && int_attr(apply.attrs, "pad_value") != 0) return std::nullopt;
  if (op.is(ops::kMatmul)) {
    if (w.rank() != 2 || x.rank() < 2) return std::nullopt;
    found = {1, x.rank() - 1, 0};
  } else if (!convolution && !op.is(ops::kDense)) {
    return std::nullopt;
  }
  int64_t products = 1;
  for (int64_t i = 0; i < w.rank(); ++i) {
    const auto size = w.dims[i].constant();
    if (i == found.weight_axis) continue;
    if (!size || *size > 1 << 20 || products > 1 << 20) return std::nullopt;
    products *= *size;
  }
  found.products = products;
  // Half of the range is reserved for a bias.
  return products <= (int64_t{1} << 30) / (255 * 255) ? std::optional(found) : std::nullopt;
}

class Integers {
 public:
  Integers(Context& context, Builder& builder, Binding& binding)
      : context_(context), builder_(builder), binding_(binding), apply_(std::get<Apply>(binding.value)) {}

  // Returns what replaces the binding, where it becomes superfluous.
  Expected<std::optional<Atom>> run() {
    if (apply_.op->is(ops::kQuantize)) return requantized_integers(builder_, apply_);
    TENON_TRY(selects_elements(apply_) ? selection() : apply_.op->is(ops::kBiasAdd) ? bias() : layer_of_integers());
    return std::nullopt;
  }

 private:
  Status selection() {
    const auto from = quantized(builder_, apply_.args[0]);
    if (!from || !is_byte(from->type.dtype) || from->scale.size() != 1 || !(from->scale[0] > 0)) return {};
    TENON_TRY_ASSIGN(selected, builder_.apply(*apply_.op, {from->integers}, apply_.attrs));
    return dequantize(*selected, from->scale, 0, from->zero);
  }

  Status layer_of_integers() {
    if (apply_.args.size() != 2) return {};
    const auto x = quantized(builder_, apply_.args[0]), w = quantized(builder_, apply_.args[1]);
    if (!x || !w || !is_byte(x->type.dtype) || !is_byte(w->type.dtype) || x->scale.size() != 1) return {};
    const auto found = layer(apply_, x->type, w->type);
    if (!found || (w->scale.size() != 1 && w->axis != found->weight_axis)) return {};
    const bool wide = x->type.dtype == DType::kU8 || w->type.dtype == DType::kU8 || x->zero != 0 || w->zero != 0;
    TENON_TRY_ASSIGN(a, centered(*x, wide));
    TENON_TRY_ASSIGN(b, centered(*w, wide));
    TENON_TRY_ASSIGN(sums, builder_.apply(*apply_.op, {*a, *b}, apply_.attrs));
    Floats scale;  // in f32, as ONNX defines the product
    for (double step : w->scale) scale.push_back(static_cast<float>(x->scale[0]) * static_cast<float>(step));
    return dequantize(*sums, std::move(scale), found->axis);
  }

  Expected<Atom> centered(const Quantized& x, bool wide) {
    if (!wide) return x.integers;
    if (const runtime::Tensor* constant = constant_of(builder_.module(), x.integers)) {  // weights
      runtime::Tensor integers(DType::kI32, constant->shape());
      const auto center = [&](auto from) {
        std::ranges::transform(from, integers.data<int32_t>().begin(),
                               [&](auto value) { return static_cast<int32_t>(value - x.zero); });
      };
      if (constant->dtype() == DType::kU8) center(constant->data<uint8_t>());
      else center(constant->data<int8_t>());
      return builder_.constant(std::move(integers));
    }
    TENON_TRY_ASSIGN(integers, builder_.apply(ops::kCast, {x.integers}, {{"dtype", std::string("i32")}}));
    if (x.zero == 0) return *integers;
    return builder_.apply(ops::kSubtract, {*integers, builder_.constant<int32_t>({}, {static_cast<int32_t>(x.zero)})});
  }
  Status dequantize(Atom integers, Floats scale, int64_t axis, int64_t zero = 0) {
    const Operator* op = &context_.op(ops::kDequantize);
    TENON_TRY_ASSIGN(attrs,
                     complete_attrs(*op, {{"scale", std::move(scale)}, {"zero_point", Ints{zero}}, {"axis", axis}}));
    binding_.value = Apply{op, std::move(*attrs), {integers}};
    return {};
  }

  // bias_add(dequantize(sums), dequantize(b)) with equal scales
  Status bias() {
    const auto sums = quantized(builder_, apply_.args[0]), b = quantized(builder_, apply_.args[1]);
    if (!sums || !b || sums->type.dtype != DType::kI32 || b->type.dtype != DType::kI32) return {};
    const Apply* producer = builder_.application(sums->integers);
    const runtime::Tensor* constant = constant_of(builder_.module(), b->integers);
    if (!producer || producer->args.size() != 2 || !constant || sums->zero != 0 || b->zero != 0) return {};
    if (!is_small(builder_, producer->args[0]) || !is_small(builder_, producer->args[1]) ||
        !layer(*producer, *builder_.tensor_type(producer->args[0]), *builder_.tensor_type(producer->args[1]))) {
      return {};
    }
    int64_t axis = int_attr(apply_.attrs, "axis");
    if (axis < 0) axis += sums->type.rank();
    const bool same = std::ranges::equal(
        sums->scale, b->scale, [](double x, double y) { return static_cast<float>(x) == static_cast<float>(y); });
    const bool small =
        std::ranges::all_of(constant->data<int32_t>(), [](int64_t x) { return std::abs(x) < int64_t{1} << 30; });
    if (!same || !small || (sums->scale.size() != 1 && sums->axis != axis)) return {};
    TENON_TRY_ASSIGN(biased, builder_.apply(ops::kBiasAdd, {sums->integers, b->integers}, {{"axis", axis}}));
    return dequantize(*biased, sums->scale, sums->axis);
  }

  Context& context_;
  Builder& builder_;
  Binding& binding_;
  const Apply apply_;
};

}  // namespace

Expected<Module> integer_layers(Context& context, Module module) {
  const auto step = [&](Builder& builder, Binding& binding) -> Expected<std::optional<Atom>> {
    if (!std::holds_alternative<Apply>(binding.value)) return std::nullopt;
    return Integers(context, builder, binding).run();
  };
  TENON_TRY_ASSIGN(integers, rewrite(context, std::move(module), step));
  return dead_code(context, std::move(*integers));
}

Pass integer_layers_pass() {
  return {"integer_layers",
          "Turns layers on dequantized values, of models that come quantized, into layers on integers.",
          integer_layers};
}

}  // namespace tenon::compiler
