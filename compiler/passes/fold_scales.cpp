// y = s * (conv(x, w) + b) + t is conv(x, s w) + (s b + t), with s and t per output channel.
#include <algorithm>
#include <cmath>

#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

// s and t of a batch norm or of a factor, where they are known.
struct Affine {
  std::vector<double> scale, shift;
};

bool is_float(const Tensor* tensor) { return tensor && tensor->dtype() == DType::kF32; }

// The value per channel of a constant that broadcasts along the channels of a tensor of that rank, and no other axis.
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
  if (apply.op->name == "batch_norm") {
    std::vector<std::span<const float>> values;
    for (size_t i = 1; i < 5; ++i) {
      const Tensor* tensor = constant_of(module, apply.args[i]);
      if (!is_float(tensor)) return std::nullopt;
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
  if (apply.op->name != "multiply") return std::nullopt;
  for (size_t i : {0, 1}) {
    const Tensor* factor = constant_of(module, apply.args[1 - i]);
    auto* var = std::get_if<VarId>(&apply.args[i]);
    if (!is_float(factor) || !var) continue;
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

// The anchor below an optional bias, all of constants.
struct Layer {
  const Apply* anchor = nullptr;
  const Tensor* weights = nullptr;
  const Tensor* bias = nullptr;
};
std::optional<Layer> layer_of(const Builder& builder, const Atom& atom) {
  const Module& module = builder.module();
  Layer layer;
  Atom below = atom;
  if (const Apply* bias = builder.application(atom, "bias_add")) {
    if (int_attr(bias->attrs, "axis") != 1) return std::nullopt;
    layer.bias = constant_of(module, bias->args[1]);
    if (!is_float(layer.bias)) return std::nullopt;
    below = bias->args[0];
  }
  layer.anchor = builder.application(below);
  if (!layer.anchor || (layer.anchor->op->name != "conv2d" && layer.anchor->op->name != "dense")) return std::nullopt;
  layer.weights = constant_of(module, layer.anchor->args[1]);
  if (!is_float(layer.weights)) return std::nullopt;
  return layer;
}

// By variable: whether nothing else sees the values from the layer to here. Where a layer has further users, or stands
// outside of a closure, folding would compute it more often: then the norm becomes a scale and a shift.
class Alone {
 public:
  explicit Alone(const Function& function)
      : uses_(use_counts(function)), alone_(uses_.size(), false), closure_(uses_.size(), 0) {
    block(function.body, 0);
  }
  std::vector<bool> take() { return std::move(alone_); }

 private:
  void block(const Block& block, uint32_t closure) {
    for (const Binding& binding : block.bindings) {
      closure_[index(binding.var)] = closure;
      if (auto* apply = std::get_if<Apply>(&binding.value)) alone_[index(binding.var)] = one(*apply, closure);
      const uint32_t inner = std::holds_alternative<Lambda>(binding.value) ? ++closures_ : closure;
      for_each_block(binding.value, [&](const Block& next) { this->block(next, inner); });
    }
  }
  bool one(const Apply& apply, uint32_t closure) const {
    const std::string& op = apply.op->name;
    if (op == "conv2d" || op == "dense") return true;
    if (op != "multiply" && op != "bias_add" && op != "batch_norm") return false;
    auto* var = std::get_if<VarId>(&apply.args[0]);
    if (op == "multiply" && !var) var = std::get_if<VarId>(&apply.args[1]);
    return var && uses_[index(*var)] == 1 && closure_[index(*var)] == closure && alone_[index(*var)];
  }

  std::vector<uint32_t> uses_;
  std::vector<bool> alone_;
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
    const std::vector<bool> single = Alone(old).take();
    auto step = [&](Builder& builder, Binding& binding) -> Expected<std::optional<Atom>> {
      auto* apply = std::get_if<Apply>(&binding.value);
      Atom base;
      const auto affine = apply ? affine_of(builder.module(), builder.function(), *apply, base) : std::nullopt;
      if (!affine) return std::nullopt;
      const std::string text(context.name(old.info(binding.var).name));
      const auto layer = single[index(binding.var)] ? layer_of(builder, base) : std::nullopt;
      const auto channels = static_cast<int64_t>(affine->scale.size());
      if (!layer) {
        if (apply->op->name == "multiply") return std::nullopt;
        const TensorType* type = builder.tensor_type(base);
        runtime::Shape shape(static_cast<size_t>(type->rank()) - 1, 1);
        shape[0] = channels;
        const Atom scale = builder.constant(shape, std::vector<float>(affine->scale.begin(), affine->scale.end()));
        const Atom shift = builder.constant(shape, std::vector<float>(affine->shift.begin(), affine->shift.end()));
        TENON_TRY_ASSIGN(scaled, builder.apply("multiply", {base, scale}, {}, text));
        TENON_TRY_ASSIGN(shifted, builder.apply("add", {*scaled, shift}, {}, text));
        return *shifted;
      }
      Tensor weights = layer->weights->clone(), bias(DType::kF32, {channels});
      auto w = weights.data<float>(), b = bias.data<float>();
      const size_t taps = channels ? w.size() / static_cast<size_t>(channels) : 0;
      for (size_t c = 0; c < affine->scale.size(); ++c) {
        for (size_t k = 0; k < taps; ++k) w[c * taps + k] = static_cast<float>(affine->scale[c] * w[c * taps + k]);
        const double below = layer->bias ? layer->bias->data<float>()[c] : 0.0;
        b[c] = static_cast<float>(affine->scale[c] * below + affine->shift[c]);
      }
      if (!finite(w) || !finite(b)) return std::nullopt;
      Apply anchor = *layer->anchor;
      const Atom x = anchor.args[0];
      const std::string op = anchor.op->name;
      TENON_TRY_ASSIGN(product,
                       builder.apply(op, {x, builder.constant(std::move(weights))}, std::move(anchor.attrs), text));
      TENON_TRY_ASSIGN(sum, builder.apply("bias_add", {*product, builder.constant(std::move(bias))}, {}, text));
      return *sum;
    };
    TENON_TRY_ASSIGN(function, rewrite(context, module, old, step));
    global = std::move(*function);
  }
  return dead_code(context, std::move(module));
}

Pass fold_scales_pass() {
  return {"fold_scales", "Batch norms and constant factors behind a convolution or dense layer go into its weights.",
          fold_scales};
}

}  // namespace tenon::compiler
