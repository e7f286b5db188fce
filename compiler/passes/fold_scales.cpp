// Folds batch norms and constant factors into the layer before them: s * (conv(x, w) + b) + t is conv(x, s w) + (s b +
// t), with s and t per output channel.
#include <algorithm>
#include <cmath>

#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

// s and t of a batch norm or of a factor, where they are constant.
struct Affine {
  std::vector<double> scale, shift;
};

bool is_f32(const Tensor* tensor) { return tensor && tensor->dtype() == DType::kF32; }

// The values per channel of a constant that varies only along the channels of a tensor of this rank.
std::optional<std::vector<double>> per_channel(const Tensor& tensor, int64_t channels, int64_t rank) {
  const auto& shape = tensor.shape();
  if (static_cast<int64_t>(shape.size()) > rank) return std::nullopt;
  for (size_t back = 1; back <= shape.size(); ++back) {
    const bool is_channel = static_cast<int64_t>(back) == rank - 1;
    if (shape[shape.size() - back] != 1 && !(is_channel && shape[shape.size() - back] == channels)) return std::nullopt;
  }
  auto data = tensor.data<float>();
  std::vector<double> values(data.begin(), data.end());
  if (values.size() == 1) values.resize(channels, values[0]);
  return values;
}

std::optional<Affine> affine_of(const Module& module, const Function& function, const Apply& apply, Atom& base) {
  if (apply.op->is(ops::kBatchNorm)) {
    std::vector<std::span<const float>> values;
    for (size_t i = 1; i < 5; ++i) {
      const Tensor* tensor = constant_of(module, apply.args[i]);
      if (!is_f32(tensor)) return std::nullopt;
      values.push_back(tensor->data<float>());
    }
    Affine affine;
    for (size_t c = 0; c < values[0].size(); ++c) {
      const double scale = values[0][c] / std::sqrt(double{values[3][c]} + float_attr(apply.attrs, "epsilon"));
      affine.scale.push_back(scale);
      affine.shift.push_back(values[1][c] - scale * values[2][c]);
    }
    base = apply.args[0];
    return affine;
  }
  if (!apply.op->is(ops::kMultiply)) return std::nullopt;
  for (size_t i : {0, 1}) {
    const Tensor* factor = constant_of(module, apply.args[1 - i]);
    auto* var = std::get_if<VarId>(&apply.args[i]);
    if (!is_f32(factor) || !var) continue;
    const TensorType* type = function.type(*var).tensor();
    const auto channels = type && type->rank() >= 2 ? type->dims[1].constant() : std::nullopt;
    if (!channels) continue;
    auto scale = per_channel(*factor, *channels, type->rank());
    if (!scale) continue;
    base = apply.args[i];
    return Affine{std::move(*scale), std::vector<double>(static_cast<size_t>(*channels), 0.0)};
  }
  return std::nullopt;
}

// The anchor before an optional bias, with constant weights and bias.
struct ScaledLayer {
  const Apply* anchor = nullptr;
  const Tensor* weights = nullptr;
  const Tensor* bias = nullptr;
};
std::optional<ScaledLayer> layer_of(const Builder& builder, const Atom& atom) {
  const Module& module = builder.module();
  ScaledLayer layer;
  Atom anchor = atom;
  if (const Apply* bias = builder.application(atom, ops::kBiasAdd)) {
    if (int_attr(bias->attrs, "axis") != 1) return std::nullopt;
    layer.bias = constant_of(module, bias->args[1]);
    if (!is_f32(layer.bias)) return std::nullopt;
    anchor = bias->args[0];
  }
  layer.anchor = builder.application(anchor);
  if (!layer.anchor || (!layer.anchor->op->is(ops::kConv2d) && !layer.anchor->op->is(ops::kDense))) return std::nullopt;
  layer.weights = constant_of(module, layer.anchor->args[1]);
  if (!is_f32(layer.weights)) return std::nullopt;
  return layer;
}

// By variable: whether the values from the layer to this variable have no other user. Where a layer has further users,
// or is outside of a closure, folding would compute it more often: then the norm becomes a scale and a shift.
class SingleUse {
 public:
  explicit SingleUse(const Function& function)
      : uses_(use_counts(function)), single_use_(uses_.size(), false), closure_(uses_.size(), 0) {
    block(function.body, 0);
  }
  std::vector<bool> take() { return std::move(single_use_); }

 private:
  void block(const Block& block, uint32_t closure) {
    for (const Binding& binding : block.bindings) {
      closure_[index(binding.var)] = closure;
      if (auto* apply = std::get_if<Apply>(&binding.value))
        single_use_[index(binding.var)] = is_single_use(*apply, closure);
      const uint32_t inner = std::holds_alternative<Lambda>(binding.value) ? ++closures_ : closure;
      for_each_block(binding.value, [&](const Block& next) { this->block(next, inner); });
    }
  }
  bool is_single_use(const Apply& apply, uint32_t closure) const {
    const Operator& op = *apply.op;
    if (op.is(ops::kConv2d) || op.is(ops::kDense)) return true;
    if (!op.is(ops::kMultiply) && !op.is(ops::kBiasAdd) && !op.is(ops::kBatchNorm)) return false;
    auto* var = std::get_if<VarId>(&apply.args[0]);
    if (op.is(ops::kMultiply) && !var) var = std::get_if<VarId>(&apply.args[1]);
    return var && uses_[index(*var)] == 1 && closure_[index(*var)] == closure && single_use_[index(*var)];
  }

  std::vector<uint32_t> uses_;
  std::vector<bool> single_use_;
  std::vector<uint32_t> closure_;
  uint32_t closures_ = 0;
};

bool finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

}  // namespace

Expected<Module> fold_scales(Context& context, Module module) {
  for (auto& [name, global] : module.globals) {
    auto* function_at = std::get_if<Function>(&global);
    if (!function_at) continue;
    const Function& old = *function_at;
    const std::vector<bool> single = SingleUse(old).take();
    auto step = [&](Builder& builder, Binding& binding) -> Expected<std::optional<Atom>> {
      auto* apply = std::get_if<Apply>(&binding.value);
      Atom base;
      const auto affine = apply ? affine_of(builder.module(), builder.function(), *apply, base) : std::nullopt;
      if (!affine) return std::nullopt;
      const std::string text(context.name(old.info(binding.var).name));
      const auto layer = single[index(binding.var)] ? layer_of(builder, base) : std::nullopt;
      const auto channels = static_cast<int64_t>(affine->scale.size());
      if (!layer) {
        if (apply->op->is(ops::kMultiply)) return std::nullopt;
        const TensorType* type = builder.tensor_type(base);
        runtime::Shape shape(static_cast<size_t>(type->rank()) - 1, 1);
        shape[0] = channels;
        const Atom scale = builder.constant(shape, std::vector<float>(affine->scale.begin(), affine->scale.end()));
        const Atom shift = builder.constant(shape, std::vector<float>(affine->shift.begin(), affine->shift.end()));
        TENON_TRY_ASSIGN(scaled, builder.apply(ops::kMultiply, {base, scale}, {}, text));
        TENON_TRY_ASSIGN(shifted, builder.apply(ops::kAdd, {*scaled, shift}, {}, text));
        return *shifted;
      }
      Tensor weights = layer->weights->clone(), bias(DType::kF32, {channels});
      auto w = weights.data<float>(), b = bias.data<float>();
      const size_t kernel_size = channels ? w.size() / static_cast<size_t>(channels) : 0;
      for (size_t c = 0; c < affine->scale.size(); ++c) {
        for (size_t k = 0; k < kernel_size; ++k)
          w[c * kernel_size + k] = static_cast<float>(affine->scale[c] * w[c * kernel_size + k]);
        const double old_bias = layer->bias ? layer->bias->data<float>()[c] : 0.0;
        b[c] = static_cast<float>(affine->scale[c] * old_bias + affine->shift[c]);
      }
      if (!finite(w) || !finite(b)) return std::nullopt;
      Apply anchor = *layer->anchor;
      const Atom x = anchor.args[0];
      TENON_TRY_ASSIGN(
          product, builder.apply(*anchor.op, {x, builder.constant(std::move(weights))}, std::move(anchor.attrs), text));
      TENON_TRY_ASSIGN(sum, builder.apply(ops::kBiasAdd, {*product, builder.constant(std::move(bias))}, {}, text));
      return *sum;
    };
    TENON_TRY_ASSIGN(function, rewrite(context, module, old, step));
    global = std::move(*function);
  }
  return dead_code(context, std::move(module));
}

Pass fold_scales_pass() {
  return {"fold_scales", "Folds batch norms and constant factors after a convolution or dense layer into its weights.",
          fold_scales};
}

}  // namespace tenon::compiler
