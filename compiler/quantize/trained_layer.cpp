#include "compiler/quantize/trained_layer.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include "compiler/ir/operator.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/term.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// The three functions of a layer.
class LayerFunctions {
 public:
  LayerFunctions(Builder& caller, const TrainedLayer& layer)
      : caller_(caller), context_(caller.context()), module_(caller.module()), layer_(layer) {}

  Expected<Atom> call(std::string_view name) {
    TENON_TRY(operand_types());
    for (size_t i = 0;; ++i) {
      name_ = context_.symbol(fmt::format("layer.{}", i));
      if (!module_.globals.contains(name_)) break;
    }
    TENON_TRY(forward());
    TENON_TRY(product());
    TENON_TRY(adjoint());
    Atoms args;
    for (const GridValue& operand : layer_.operands) args.push_back(operand.value);
    if (layer_.weights) {
      args.push_back(layer_.weights->values);
      if (layer_.weights->bias) args.push_back(*layer_.weights->bias);
    }
    return caller_.call(name_, std::move(args), name);
  }

 private:
  Symbol part(std::string_view which) const {
    return context_.symbol(fmt::format("{}.{}", context_.name(name_), which));
  }

  // The types of the arguments, in which each size of the caller that is no constant is a dim of the function.
  Status operand_types() {
    std::map<Dim, Dim> own;
    const auto add = [&](const Atom& atom) -> Status {
      TENON_TRY_ASSIGN(type, caller_.type_of(atom));
      types_.push_back(context_.map_sizes(*type, [&](Dim dim) {
        if (dim.constant()) return dim;
        const auto [known, is_new] = own.try_emplace(dim, dim);
        if (is_new) {
          dims_.push_back(context_.symbol(fmt::format("d{}", dims_.size())));
          known->second = context_.dim(dims_.back());
        }
        return known->second;
      }));
      return {};
    };
    for (const GridValue& operand : layer_.operands) TENON_TRY(add(operand.value));
    if (!layer_.weights) return {};
    TENON_TRY(add(layer_.weights->values));
    if (layer_.weights->bias) TENON_TRY(add(*layer_.weights->bias));
    return {};
  }

  // Declares the parameters of one of the functions: operands, weights and bias.
  Atoms params(Builder& builder, Function& function) const {
    function.dims = dims_;
    builder.at(caller_.span());
    Atoms atoms;
    for (size_t i = 0; i < types_.size(); ++i) {
      const size_t operands = layer_.operands.size();
      atoms.push_back(builder.param(types_[i], i < operands ? fmt::format("x{}", i) : i == operands ? "w" : "b"));
    }
    return atoms;
  }
  TrainedLayer::Values split(const Atoms& atoms) const {
    TrainedLayer::Values values;
    const auto operands = static_cast<std::ptrdiff_t>(layer_.operands.size());
    values.operands.assign(atoms.begin(), atoms.begin() + operands);
    if (layer_.weights) values.weights = atoms[layer_.operands.size()];
    if (layer_.weights && layer_.weights->bias) values.bias = atoms[layer_.operands.size() + 1];
    return values;
  }
  size_t weights_at() const { return layer_.operands.size(); }

  static Attrs scale_attrs(const std::vector<double>& scales, int64_t zero) {
    return {{"scale", scales}, {"zero_point", std::vector<int64_t>(scales.size(), zero)}, {"axis", int64_t{0}}};
  }
  // A vector of values by output channel, as it broadcasts with the weights.
  Term by_channel(Formula& f, const std::vector<double>& values) const {
    runtime::Shape shape(types_[weights_at()].tensor()->rank(), 1);
    shape[0] = static_cast<int64_t>(values.size());
    return f.real_constant(std::move(shape), values, DType::kF32);
  }

  Expected<Atom> integer_weights(Builder& builder, const Atom& weights) const {
    TENON_TRY_ASSIGN(rounded, builder.apply(ops::kQuantize, {weights}, scale_attrs(layer_.weights->steps, 0)));
    return builder.apply(ops::kClip, {*rounded}, {{"min", -layer_.weights->limit}, {"max", layer_.weights->limit}});
  }

  // operands, weights, bias -> the result of the integer layer, as floats
  Status forward() {
    Function function;
    Builder builder(context_, module_, function);
    TrainedLayer::Values values = split(params(builder, function));
    for (size_t i = 0; i < values.operands.size(); ++i) {
      const Scale& scale = layer_.operands[i].scale;
      TENON_TRY_ASSIGN(integer,
                       builder.apply(ops::kQuantize, {values.operands[i]}, scale_attrs({scale.scale}, scale.zero)));
      values.operands[i] = *integer;
    }
    if (values.weights) {
      TENON_TRY_ASSIGN(rounded, integer_weights(builder, *values.weights));
      values.weights = *rounded;
    }
    if (values.bias) {
      Formula f(builder);
      const auto channels = static_cast<int64_t>(layer_.weights->bias_steps.size());
      // In double, as constant biases are rounded.
      const Term steps = Term(f, *values.bias).cast(DType::kF64) /
                         f.real_constant({channels}, layer_.weights->bias_steps, DType::kF64);
      constexpr double kLimit = std::numeric_limits<int32_t>::max();
      const Term rounded =
          f.apply(ops::kClip, {f.apply(ops::kRound, {steps})}, {{"min", -kLimit - 1}, {"max", kLimit}});
      values.bias = rounded.cast(DType::kI32).atom();
      TENON_TRY(f.status());
    }
    TENON_TRY_ASSIGN(integer, layer_.integers(builder, values));
    TENON_TRY_ASSIGN(result,
                     builder.apply(ops::kDequantize, {*integer}, scale_attrs({layer_.scale.scale}, layer_.scale.zero)));
    builder.finish(*result);
    function.gradient = part("adjoint");
    result_ = function.result;
    module_.globals.emplace(name_, std::move(function));
    return {};
  }

  // The real layer's inner product with d, whose derivative by the arguments is the adjoint that belongs to d.
  Status product() {
    Function function;
    Builder builder(context_, module_, function);
    const Atoms atoms = params(builder, function);
    const Atom d = builder.param(result_, "d");
    TENON_TRY_ASSIGN(result, layer_.reals(builder, split(atoms)));
    Formula f(builder);
    const Term sum = (Term(f, *result) * Term(f, d)).reduce(ops::kSum, {});
    TENON_TRY(f.status());
    builder.finish(sum.atom());
    module_.globals.emplace(part("product"), std::move(function));
    return {};
  }

  // arguments, result, adjoint of the result -> adjoints of the arguments
  Status adjoint() {
    Function function;
    Builder builder(context_, module_, function);
    Atoms atoms = params(builder, function);
    const Atoms given = atoms;
    Formula f(builder);
    const Term y(f, builder.param(result_, "y")), dy(f, builder.param(result_, "dy"));
    const auto real = [&](int8_t q) { return f.scalar(layer_.scale.scale * (q - layer_.scale.zero), DType::kF32); };
    // Between the ends by half a step, so that the rounding of the bounds does not matter.
    const double half = layer_.scale.scale / 2;
    const Term inside = both(less(real(layer_.lo) + half, y), less(y, real(layer_.hi) - half));
    const Term cut = select(inside, dy, f.scalar(0, DType::kF32));
    if (layer_.weights) {
      TENON_TRY(f.status());
      TENON_TRY_ASSIGN(rounded, integer_weights(builder, atoms[weights_at()]));
      TENON_TRY_ASSIGN(on_grid, builder.apply(ops::kDequantize, {*rounded}, scale_attrs(layer_.weights->steps, 0)));
      atoms[weights_at()] = *on_grid;
    }
    std::vector<uint32_t> wrt(atoms.size());
    for (uint32_t i = 0; i < wrt.size(); ++i) wrt[i] = i;
    atoms.push_back(cut.atom());
    TENON_TRY(f.status());
    TENON_TRY_ASSIGN(both_parts, builder.bind(Gradient{Call{part("product"), std::move(atoms), {}}, wrt}, Symbol{}));
    TENON_TRY_ASSIGN(all, builder.project(*both_parts, 1));
    Atoms adjoints;
    for (const uint32_t i : wrt) {
      TENON_TRY_ASSIGN(adjoint, builder.project(*all, i));
      adjoints.push_back(*adjoint);
    }
    if (layer_.weights) {
      std::vector<double> ends;
      for (const double step : layer_.weights->steps) ends.push_back(step * (layer_.weights->limit + 0.5));
      const Term weights(f, given[weights_at()]);
      const Term kept = select(less_equal(abs(weights), by_channel(f, ends)), Term(f, adjoints[weights_at()]),
                               f.scalar(0, DType::kF32));
      adjoints[weights_at()] = kept.atom();
      TENON_TRY(f.status());
    }
    TENON_TRY_ASSIGN(tuple, builder.tuple(std::move(adjoints)));
    builder.finish(*tuple);
    module_.globals.emplace(part("adjoint"), std::move(function));
    return {};
  }

  Builder& caller_;
  Context& context_;
  Module& module_;
  const TrainedLayer& layer_;
  Symbol name_{};
  std::vector<Symbol> dims_;
  std::vector<Type> types_;  // of the arguments
  Type result_;
};

}  // namespace

Expected<Atom> call_trained_layer(Builder& caller, const TrainedLayer& layer, std::string_view name) {
  return LayerFunctions(caller, layer).call(name);
}

namespace {

// Makes integers of the operators on floats that stand for integers.
class IntegerForm {
 public:
  IntegerForm(Builder& builder, const Binding& binding) : builder_(builder), binding_(binding) {}

  // The atom that replaces the binding, or nothing.
  Expected<std::optional<Atom>> run() {
    const auto* apply = std::get_if<Apply>(&binding_.value);
    if (!apply || apply->args.empty()) return std::nullopt;
    if (apply->op->is(ops::kQuantize)) return rounded(*apply);
    const bool joins = apply->op->is(ops::kConcat), clips = apply->op->is(ops::kClip);
    if (!joins && !clips && !keeps_scale(*apply)) return std::nullopt;
    Attrs scale;
    Atoms integers;
    for (const Atom& arg : apply->args) {
      const Apply* real = builder_.application(arg, ops::kDequantize);
      const bool fits = real && floats_attr(real->attrs, "scale").size() == 1 &&
                        (integers.empty() || real->attrs.at("scale") == scale.at("scale")) &&
                        (integers.empty() || real->attrs.at("zero_point") == scale.at("zero_point"));
      if (!fits) return std::nullopt;
      const TensorType* type = builder_.tensor_type(real->args[0]);
      if (!type || type->dtype != DType::kI8) return std::nullopt;
      scale = real->attrs;
      integers.push_back(real->args[0]);
    }
    Attrs attrs = apply->attrs;
    if (clips) {
      const double step = floats_attr(scale, "scale")[0];
      const auto zero = static_cast<double>(ints_attr(scale, "zero_point")[0]);
      for (const char* bound : {"min", "max"}) {
        const double exact = float_attr(attrs, bound) / step + zero, rounded = std::nearbyint(exact);
        if (!(std::abs(exact - rounded) < 1e-3)) return std::nullopt;  // no bound of a layer
        attrs[bound] = rounded;
      }
    }
    TENON_TRY_ASSIGN(integer, builder_.apply(*apply->op, std::move(integers), std::move(attrs), {}, apply->computed));
    TENON_TRY_ASSIGN(real, builder_.apply(ops::kDequantize, {*integer}, std::move(scale)));
    return *real;
  }

 private:
  Expected<std::optional<Atom>> rounded(const Apply& quantize) {
    const auto* weights = std::get_if<ConstId>(&quantize.args[0]);
    if (!weights) return std::nullopt;
    TENON_TRY_ASSIGN(integers,
                     quantize.op->reference(quantize.attrs, std::vector{builder_.module().constant(*weights)}));
    return builder_.constant(std::move(integers->front()));
  }

  Builder& builder_;
  const Binding& binding_;
};

}  // namespace

Expected<Module> integer_form(Context& context, Module module) {
  return rewrite(context, std::move(module),
                 [](Builder& builder, Binding& binding) { return IntegerForm(builder, binding).run(); });
}

}  // namespace tenon::compiler
