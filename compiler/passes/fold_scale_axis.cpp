// Folds constant factors per channel into the weights of convolutions and dense layers, through the operators that
// commute with the factor: backward, where a layer produces the factor's operand, and forward, where all users of its
// result lead to layers (Relay's FoldScaleAxis). ReLU and maximum commute only with positive factors. The factor of a
// batch norm before its layer is folded this way.
#include <algorithm>
#include <cmath>

#include "compiler/passes/passes.h"
#include "support/function_ref.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

constexpr int kMaxSteps = 64;  // operators that one factor may pass

// One factor for each index along an axis.
struct Scale {
  int64_t axis = 0;
  std::vector<double> factors;

  bool positive() const {
    return std::ranges::all_of(factors, [](double f) { return f > 0; });
  }
};

bool is_float(const Tensor* tensor) {
  return tensor && (tensor->dtype() == DType::kF32 || tensor->dtype() == DType::kF64);
}

// The tensor with each element replaced; nothing where an element becomes infinite. `change` gets the flat index.
std::optional<Tensor> mapped(const Tensor& tensor, FunctionRef<double(size_t, double)> change) {
  Tensor result = tensor.clone();
  const auto map_elements = [&]<class T>(std::span<T> data) {
    for (size_t i = 0; i < data.size(); ++i) {
      data[i] = static_cast<T>(change(i, static_cast<double>(data[i])));
      if (!std::isfinite(data[i])) return false;
    }
    return true;
  };
  const bool finite =
      tensor.dtype() == DType::kF32 ? map_elements(result.data<float>()) : map_elements(result.data<double>());
  return finite ? std::optional(std::move(result)) : std::nullopt;
}

double element(const Tensor& tensor, size_t i) {
  return tensor.dtype() == DType::kF32 ? static_cast<double>(tensor.data<float>()[i]) : tensor.data<double>()[i];
}

// The constant, which broadcasts to `rank` axes, times the scale, or divided by it.
std::optional<Tensor> scaled(const Tensor& constant, int64_t rank, const Scale& scale, bool divide) {
  runtime::Shape shape = constant.shape();
  shape.insert(shape.begin(), static_cast<size_t>(rank) - shape.size(), 1);
  const auto channels = static_cast<int64_t>(scale.factors.size());
  int64_t &extent = shape[static_cast<size_t>(scale.axis)], inner = 1;
  for (size_t i = static_cast<size_t>(scale.axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  const bool repeat = extent != channels;
  if (repeat && extent != 1) return std::nullopt;
  extent = channels;
  auto result = mapped(Tensor(constant.dtype(), shape), [&](size_t i, double) {
    const size_t block = i / static_cast<size_t>(inner), channel = block % scale.factors.size();
    const size_t from =
        repeat ? block / scale.factors.size() * static_cast<size_t>(inner) + i % static_cast<size_t>(inner) : i;
    const double factor = scale.factors[channel];
    return divide ? element(constant, from) / factor : element(constant, from) * factor;
  });
  // The rank of the constant is kept where it includes the scale's axis.
  while (result && shape.size() > constant.shape().size() && shape.front() == 1) shape.erase(shape.begin());
  return result ? std::optional(result->reshaped(shape)) : std::nullopt;
}

class Folding {
 public:
  Folding(Context& context, Module& module, Function& function)
      : context_(context), module_(module), function_(function), values_(function.vars.size()) {
    block(function.body);
  }

  bool run() {
    bool changed = false;
    for (Binding* binding : factors_) {
      Atom base;
      const std::optional<Scale> scale = factor_of(*binding, base);
      if (!scale) continue;
      edits_.clear();
      steps_left_ = kMaxSteps;
      bool folded = fold_up(base, *scale);
      if (!folded) {
        edits_.clear();
        steps_left_ = kMaxSteps;
        folded = fold_down(binding->var, *scale);
      }
      if (!folded) continue;
      for (auto& [operand, tensor] : edits_) *operand = module_.add_constant(std::move(tensor));
      forward(binding->var, base);
      changed = true;
    }
    if (changed) {
      for_each_use(function_.body, [&](Atom& atom) { atom = resolved(atom); });
    }
    return changed;
  }

 private:
  struct Uses {
    Binding* producer = nullptr;
    std::vector<Binding*> users;      // an operator once per operand
    bool elsewhere = false;           // used by a value other than an operator's application
    std::optional<Atom> replacement;  // of a folded factor
  };
  struct Edit {
    Atom* operand;
    Tensor tensor;
  };

  void block(Block& block) {
    const auto elsewhere = [&](const Atom& atom) {
      if (auto* var = std::get_if<VarId>(&atom)) values_[index(*var)].elsewhere = true;
    };
    for (Binding& binding : block.bindings) {
      context_.visit();
      values_[index(binding.var)].producer = &binding;
      if (auto* apply = std::get_if<Apply>(&binding.value)) {
        for (const Atom& atom : apply->args) {
          if (auto* var = std::get_if<VarId>(&atom)) values_[index(*var)].users.push_back(&binding);
        }
        if (apply->op->is(ops::kMultiply)) factors_.push_back(&binding);
      } else {
        for_each_operand(std::as_const(binding.value), elsewhere);
        for_each_block(binding.value, [&](Block& inner) { this->block(inner); });
      }
    }
    elsewhere(block.result);
  }

  Atom resolved(Atom atom) const {
    for (auto* var = std::get_if<VarId>(&atom); var && values_[index(*var)].replacement;
         var = std::get_if<VarId>(&atom)) {
      atom = *values_[index(*var)].replacement;
    }
    return atom;
  }
  // Replaces the factor's result by `base`.
  void forward(VarId factor, Atom base) {
    Uses &from = values_[index(factor)], &to = values_[index(std::get<VarId>(base))];
    std::erase(to.users, from.producer);
    to.users.insert(to.users.end(), from.users.begin(), from.users.end());
    to.elsewhere |= from.elsewhere;
    from.replacement = base;
  }

  const TensorType* type_of(const Atom& atom) const {
    auto* var = std::get_if<VarId>(&atom);
    return var ? function_.type(*var).tensor() : nullptr;
  }
  const Tensor* constant(const Atom& atom) const {
    const Tensor* tensor = constant_of(module_, atom);
    return is_float(tensor) ? tensor : nullptr;
  }
  // The index of the variable operand of a binary operator whose other operand is a constant that does not broadcast
  // it.
  std::optional<size_t> variable(const Binding& binding) const {
    auto& apply = std::get<Apply>(binding.value);
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const Atom operand = resolved(apply.args[i]);
      auto* var = std::get_if<VarId>(&operand);
      if (var && constant(apply.args[1 - i]) && function_.type(*var) == function_.type(binding.var)) return i;
    }
    return std::nullopt;
  }

  // multiply(base, constant) with one factor for each index along one axis.
  std::optional<Scale> factor_of(const Binding& binding, Atom& base) const {
    const auto at = variable(binding);
    if (!at) return std::nullopt;
    auto& apply = std::get<Apply>(binding.value);
    base = resolved(apply.args[*at]);
    const Tensor& factor = *constant(apply.args[1 - *at]);
    const TensorType& type = *type_of(base);
    Scale scale{.axis = type.rank() > 1 ? 1 : 0, .factors = {}};
    if (factor.size() != 1) {
      for (size_t i = 0; i < factor.shape().size(); ++i) {
        if (factor.shape()[i] == factor.size())
          scale.axis = type.rank() - static_cast<int64_t>(factor.shape().size() - i);
      }
    }
    if (scale.axis >= type.rank()) return std::nullopt;
    const auto channels = type.dims[static_cast<size_t>(scale.axis)].constant();
    if (!channels || *channels == 0 || (factor.size() != 1 && factor.size() != *channels)) return std::nullopt;
    if (factor.size() != 1 && std::ranges::max(factor.shape()) != factor.size()) return std::nullopt;
    for (int64_t i = 0; i < *channels; ++i) {
      scale.factors.push_back(element(factor, factor.size() == 1 ? 0 : static_cast<size_t>(i)));
    }
    if (!std::ranges::all_of(scale.factors, [](double f) { return std::isfinite(f); })) return std::nullopt;
    return scale;
  }

  bool edit(Atom& operand, std::optional<Tensor> tensor) {
    if (!tensor) return false;
    // A constant that this factor meets twice would need both scales; this is not supported.
    if (std::ranges::any_of(edits_, [&](const Edit& e) { return e.operand == &operand; })) return false;
    edits_.push_back({&operand, std::move(*tensor)});
    return true;
  }
  // Scales the weights of a layer along axis 0 (outputs) or 1 (the inputs of an output's group).
  bool weights(Apply& layer, const Scale& scale, bool outputs) {
    const Tensor* weights = constant(layer.args[1]);
    if (!weights || scale.axis != 1) return false;
    const auto& shape = weights->shape();
    const auto outs = static_cast<size_t>(shape[0]), ins = static_cast<size_t>(shape[1]);
    const size_t kernel_size = outs > 0 && ins > 0 ? static_cast<size_t>(weights->size()) / (outs * ins) : 0;
    const auto groups = layer.op->is(ops::kConv2d) ? static_cast<size_t>(int_attr(layer.attrs, "groups")) : 1;
    if (scale.factors.size() != (outputs ? outs : ins * groups) || kernel_size == 0) return false;
    return edit(layer.args[1], mapped(*weights, [&](size_t i, double w) {
                  const size_t out = i / (ins * kernel_size), in = i / kernel_size % ins;
                  return w * scale.factors[outputs ? out : out / (outs / groups) * ins + in];
                }));
  }
  bool is_layer(const Apply& apply) const { return apply.op->is(ops::kConv2d) || apply.op->is(ops::kDense); }

  // Whether a factor commutes with an operator of one operand; `axis` is mapped to the axis on the other side.
  bool passes(const Apply& apply, const Scale& scale, int64_t& axis, bool upward) const {
    const Operator& op = *apply.op;
    if (op.is(ops::kIdentity)) return true;
    if (op.is(ops::kRelu)) return scale.positive();
    if (op.is(ops::kMaxPool2d)) return axis == 1 && scale.positive();
    if (op.is(ops::kAvgPool2d) || op.is(ops::kGlobalAvgPool) || op.is(ops::kGlobalSumPool)) return axis == 1;
    if (op.is(ops::kPad)) {
      if (!apply.computed.empty()) return false;
      const auto at = static_cast<size_t>(axis);
      return float_attr(apply.attrs, "value") == 0 && ints_attr(apply.attrs, "before")[at] == 0 &&
             ints_attr(apply.attrs, "after")[at] == 0;
    }
    if (!op.is(ops::kTranspose)) return false;
    const auto& axes = ints_attr(apply.attrs, "axes");
    axis = upward ? axes[static_cast<size_t>(axis)] : std::ranges::find(axes, axis) - axes.begin();
    return true;
  }
  bool along(const Apply& bias, const Scale& scale, int64_t rank) const {
    const int64_t axis = int_attr(bias.attrs, "axis");
    return (axis < 0 ? axis + rank : axis) == scale.axis;
  }

  // Whether the scale can be folded into the producers of the value, which must have a single user.
  bool fold_up(const Atom& atom, const Scale& scale) {
    const Atom value = resolved(atom);
    auto* var = std::get_if<VarId>(&value);
    if (!var || --steps_left_ < 0) return false;
    context_.visit();
    const Uses& uses = values_[index(*var)];
    auto* apply = uses.producer ? std::get_if<Apply>(&uses.producer->value) : nullptr;
    const TensorType* type = type_of(value);
    if (!apply || !type || uses.elsewhere || uses.users.size() != 1) return false;
    if (type->dtype != DType::kF32 && type->dtype != DType::kF64) return false;
    if (is_layer(*apply)) return weights(*apply, scale, true);
    if (apply->op->is(ops::kBiasAdd)) {
      const Tensor* bias = constant(apply->args[1]);
      return bias && along(*apply, scale, type->rank()) &&
             edit(apply->args[1], scaled(*bias, 1, {0, scale.factors}, false)) && fold_up(apply->args[0], scale);
    }
    const bool sum = apply->op->is(ops::kAdd) || apply->op->is(ops::kSubtract);
    if (sum || apply->op->is(ops::kMultiply)) {
      if (const auto at = variable(*uses.producer)) {
        Atom& other = apply->args[1 - *at];
        return edit(other, scaled(*constant(other), type->rank(), scale, false)) &&
               (!sum || fold_up(apply->args[*at], scale));
      }
      const auto same = [&](const Atom& operand) {
        const TensorType* found = type_of(resolved(operand));
        return found && *found == *type;
      };
      return sum && same(apply->args[0]) && same(apply->args[1]) && fold_up(apply->args[0], scale) &&
             fold_up(apply->args[1], scale);
    }
    Scale operand_scale = scale;
    return passes(*apply, scale, operand_scale.axis, true) && fold_up(apply->args[0], operand_scale);
  }

  // Whether the scale can be folded into all users of the value.
  bool fold_down(VarId var, const Scale& scale) {
    const Uses& uses = values_[index(var)];
    const TensorType* type = function_.type(var).tensor();
    if (!type || uses.elsewhere || uses.users.empty()) return false;
    return std::ranges::all_of(uses.users, [&](Binding* user) { return use(var, *user, scale); });
  }
  bool use(VarId var, Binding& user, const Scale& scale) {
    if (--steps_left_ < 0) return false;
    context_.visit();
    auto& apply = std::get<Apply>(user.value);
    const TensorType* type = function_.type(var).tensor();
    const auto is_var = [&](const Atom& atom) { return resolved(atom) == Atom(var); };
    if (std::ranges::count_if(apply.args, is_var) != 1) return false;
    const bool first = is_var(apply.args[0]);
    const Operator& op = *apply.op;
    if (is_layer(apply)) {
      const bool padded = op.is(ops::kConv2d) && int_attr(apply.attrs, "pad_value") != 0;
      return first && !padded && weights(apply, scale, false);
    }
    if (op.is(ops::kBiasAdd)) {
      const Tensor* bias = first ? constant(apply.args[1]) : nullptr;
      return bias && along(apply, scale, type->rank()) &&
             edit(apply.args[1], scaled(*bias, 1, {0, scale.factors}, true)) && fold_down(user.var, scale);
    }
    const bool sum = op.is_one_of({ops::kAdd, ops::kSubtract});
    if (sum || op.is(ops::kMultiply)) {
      const auto at = variable(user);
      if (!at) return false;
      Atom& other = apply.args[1 - *at];
      return edit(other, scaled(*constant(other), type->rank(), scale, sum)) && (!sum || fold_down(user.var, scale));
    }
    if (op.is(ops::kFlatten)) return flattened(apply, user.var, *type, scale);
    Scale result_scale = scale;
    return passes(apply, scale, result_scale.axis, false) && fold_down(user.var, result_scale);
  }
  // After a flatten each factor is repeated for each element of its channel.
  bool flattened(const Apply& apply, VarId result, const TensorType& type, const Scale& scale) {
    if (int_attr(apply.attrs, "axis") != 1 || scale.axis != 1) return false;
    int64_t inner = 1;
    for (size_t i = 2; i < type.dims.size(); ++i) {
      const auto extent = type.dims[i].constant();
      if (!extent) return false;
      inner *= *extent;
    }
    Scale flat{.axis = 1, .factors = {}};
    for (const double factor : scale.factors)
      flat.factors.insert(flat.factors.end(), static_cast<size_t>(inner), factor);
    return fold_down(result, flat);
  }

  Context& context_;
  Module& module_;
  Function& function_;
  std::vector<Uses> values_;  // by variable
  std::vector<Binding*> factors_;
  std::vector<Edit> edits_;  // the new constants if the current factor folds
  int steps_left_ = 0;
};

}  // namespace

Expected<Module> fold_scale_axis(Context& context, Module module) {
  bool changed = false;
  for_each_function(module, [&](Symbol, Function& function) { changed |= Folding(context, module, function).run(); });
  return changed ? dead_code(context, std::move(module)) : std::move(module);
}

Pass fold_scale_axis_pass() {
  return {"fold_scale_axis",
          "Folds constant factors per channel through other operators, in both directions, into a layer's weights.",
          fold_scale_axis};
}

}  // namespace tenon::compiler
