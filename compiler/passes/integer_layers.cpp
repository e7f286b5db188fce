// Layers on dequantized values, as models that come quantized have them, become layers on the integers: the sums are
// exact, and one dequantization stands behind them. A bias in the units of the sums is added to them.
#include <algorithm>
#include <cmath>

#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

// What is behind a dequantize, with one zero point for all.
struct Quantized {
  Atom integers;
  TensorType type;
  Floats scale;
  int64_t zero = 0, axis = 0;
};
std::optional<Quantized> quantized(const Builder& builder, const Atom& atom) {
  const Apply* apply = builder.application(atom, "dequantize");
  if (!apply) return std::nullopt;
  const TensorType& type = *builder.tensor_type(apply->args[0]);
  const Ints& zeros = ints_attr(apply->attrs, "zero_point");
  if (std::ranges::any_of(zeros, [&](int64_t zero) { return zero != zeros[0]; })) return std::nullopt;
  const int64_t axis = int_attr(apply->attrs, "axis");
  return Quantized{apply->args[0], type, floats_attr(apply->attrs, "scale"), zeros[0],
                   axis < 0 ? axis + type.rank() : axis};
}
bool is_byte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }

// A byte, or one less its zero point: at most 255 either way.
bool is_small(const Builder& builder, Atom atom) {
  if (const Apply* less = builder.application(atom, "subtract")) {
    if (!constant_of(builder.module(), less->args[1])) return false;
    atom = less->args[0];
  }
  if (const Apply* cast = builder.application(atom, "cast")) atom = cast->args[0];
  if (const runtime::Tensor* constant = constant_of(builder.module(), atom);
      constant && constant->dtype() == DType::kI32)
    return std::ranges::all_of(constant->data<int32_t>(), [](int32_t x) { return x >= -255 && x <= 255; });
  const TensorType* type = builder.tensor_type(atom);
  return type && is_byte(type->dtype);
}

// Of a layer's weights the axis of the results' channels, of its result that axis, and how many products a sum has.
struct Layer {
  int64_t weight_axis = 0, axis = 1, products = 0;
};
std::optional<Layer> layer(const Apply& apply, const TensorType& x, const TensorType& w) {
  Layer found;
  const std::string& op = apply.op->name;
  const bool convolution = op == "conv1d" || op == "conv2d" || op == "conv3d";
  if (convolution && int_attr(apply.attrs, "pad_value") != 0) return std::nullopt;
  if (op == "matmul") {
    if (w.rank() != 2 || x.rank() < 2) return std::nullopt;
    found = {1, x.rank() - 1, 0};
  } else if (!convolution && op != "dense") {
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
  // Half of the range is left to a bias.
  return products <= (int64_t{1} << 30) / (255 * 255) ? std::optional(found) : std::nullopt;
}

class Integers {
 public:
  Integers(Context& context, Builder& builder, Binding& binding)
      : context_(context), builder_(builder), binding_(binding), apply_(std::get<Apply>(binding.value)) {}

  Status run() {
    if (apply_.op->name == "bias_add") return bias();
    if (apply_.args.size() != 2) return {};
    const auto x = quantized(builder_, apply_.args[0]), w = quantized(builder_, apply_.args[1]);
    if (!x || !w || !is_byte(x->type.dtype) || !is_byte(w->type.dtype) || x->scale.size() != 1) return {};
    const auto found = layer(apply_, x->type, w->type);
    if (!found || (w->scale.size() != 1 && w->axis != found->weight_axis)) return {};
    const bool wide = x->type.dtype == DType::kU8 || w->type.dtype == DType::kU8 || x->zero != 0 || w->zero != 0;
    TENON_TRY_ASSIGN(a, centered(*x, wide));
    TENON_TRY_ASSIGN(b, centered(*w, wide));
    TENON_TRY_ASSIGN(sums, builder_.apply(apply_.op->name, {*a, *b}, apply_.attrs));
    Floats scale;  // in f32, as ONNX multiplies them
    for (double step : w->scale) scale.push_back(static_cast<float>(x->scale[0]) * static_cast<float>(step));
    return dequantize(*sums, std::move(scale), found->axis);
  }

 private:
  Expected<Atom> centered(const Quantized& x, bool wide) {
    if (!wide) return x.integers;
    if (const runtime::Tensor* constant = constant_of(builder_.module(), x.integers)) {  // weights
      runtime::Tensor integers(DType::kI32, constant->shape());
      const auto center = [&](auto from) {
        std::ranges::transform(from, integers.data<int32_t>().begin(),
                               [&](auto one) { return static_cast<int32_t>(one - x.zero); });
      };
      if (constant->dtype() == DType::kU8) center(constant->data<uint8_t>());
      else center(constant->data<int8_t>());
      return builder_.constant(std::move(integers));
    }
    TENON_TRY_ASSIGN(integers, builder_.apply("cast", {x.integers}, {{"dtype", std::string("i32")}}));
    if (x.zero == 0) return *integers;
    return builder_.apply("subtract", {*integers, builder_.constant<int32_t>({}, {static_cast<int32_t>(x.zero)})});
  }
  Status dequantize(Atom sums, Floats scale, int64_t axis) {
    const Operator* op = context_.find_operator("dequantize");
    TENON_TRY_ASSIGN(attrs,
                     complete_attrs(*op, {{"scale", std::move(scale)}, {"zero_point", Ints{0}}, {"axis", axis}}));
    binding_.value = Apply{op, std::move(*attrs), {sums}};
    return {};
  }

  // bias_add(dequantize(sums), dequantize(b)), of one scale
  Status bias() {
    const auto sums = quantized(builder_, apply_.args[0]), b = quantized(builder_, apply_.args[1]);
    if (!sums || !b || sums->type.dtype != DType::kI32 || b->type.dtype != DType::kI32) return {};
    const Apply* made = builder_.application(sums->integers);
    const runtime::Tensor* constant = constant_of(builder_.module(), b->integers);
    if (!made || made->args.size() != 2 || !constant || sums->zero != 0 || b->zero != 0) return {};
    if (!is_small(builder_, made->args[0]) || !is_small(builder_, made->args[1]) ||
        !layer(*made, *builder_.tensor_type(made->args[0]), *builder_.tensor_type(made->args[1]))) {
      return {};
    }
    int64_t axis = int_attr(apply_.attrs, "axis");
    if (axis < 0) axis += sums->type.rank();
    const bool same = std::ranges::equal(
        sums->scale, b->scale, [](double x, double y) { return static_cast<float>(x) == static_cast<float>(y); });
    const bool small =
        std::ranges::all_of(constant->data<int32_t>(), [](int64_t x) { return std::abs(x) < int64_t{1} << 30; });
    if (!same || !small || (sums->scale.size() != 1 && sums->axis != axis)) return {};
    TENON_TRY_ASSIGN(all, builder_.apply("bias_add", {sums->integers, b->integers}, {{"axis", axis}}));
    return dequantize(*all, sums->scale, sums->axis);
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
    TENON_TRY(Integers(context, builder, binding).run());
    return std::nullopt;
  };
  TENON_TRY_ASSIGN(integers, rewrite(context, std::move(module), step));
  return dead_code(context, std::move(*integers));
}

Pass integer_layers_pass() {
  return {"integer_layers", "Layers on dequantized values become layers on integers, of models that come quantized.",
          integer_layers};
}

}  // namespace tenon::compiler
