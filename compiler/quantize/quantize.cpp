#include "compiler/quantize/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "compiler/ir/builder.h"
#include "compiler/ir/rewrite.h"
#include "compiler/quantize/chains.h"
#include "compiler/quantize/parameters.h"
#include "compiler/quantize/requantization.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

// A value of the float function in the quantized function: in one form or in both.
struct Forms {
  std::optional<Atom> real;
  std::optional<Atom> integer;
  Scale scale;  // of `integer`
};

class Quantizer {
 public:
  Quantizer(Context& context, const Module& from, const Function& function, const Ranges& ranges,
            const QuantizeOptions& options, ValueScales* scales)
      : context_(context),
        from_(from),
        function_(function),
        ranges_(ranges),
        options_(options),
        scales_(scales),
        values_(function.vars.size()) {
    to_.spans = from.spans;
    result_.dims = function.dims;
    result_.bounds = function.bounds;
  }

  Expected<Module> run(Symbol entry) {
    for (const VarId param : function_.params) {
      const VarInfo& info = function_.info(param);
      builder_.at(info.span);
      values_[index(param)].real = builder_.param(info.type, context_.name(info.name));
    }
    for (const auto& [name, global] : from_.globals) {
      if (std::holds_alternative<loop::Function>(global)) to_.globals.emplace(name, global);
    }
    const Chains chains = find_chains(from_, function_);
    for (size_t i = 0; i < function_.body.bindings.size(); ++i) {
      const Binding& binding = function_.body.bindings[i];
      if (chains.inner[i]) continue;  // computed with its chain's root
      builder_.at(function_.info(binding.var).span);
      TENON_TRY(chains.at_root[i] ? emit_chain(*chains.at_root[i], binding.var) : emit(binding));
    }
    TENON_TRY_ASSIGN(result, real(function_.body.result));
    builder_.finish(*result);
    to_.globals.emplace(entry, std::move(result_));
    return std::move(to_);
  }

 private:
  std::string_view name(VarId var) const { return context_.name(function_.info(var).name); }
  Scale scale_of(VarId var) const { return scale_for(ranges_[index(var)], options_.symmetric); }
  static Attrs scale_attrs(const Scale& scale) {
    return {{"scale", std::vector<double>{scale.scale}}, {"zero_point", std::vector<int64_t>{scale.zero}}};
  }

  // The float form.
  Expected<Atom> real(const Atom& atom) {
    if (const auto* constant = std::get_if<ConstId>(&atom)) return builder_.constant(from_.constant(*constant));
    const auto* var = std::get_if<VarId>(&atom);
    if (!var) return error("a function used as a value is not supported", {}, {}, Fault::kInternal);
    Forms& forms = values_[index(*var)];
    if (!forms.real) {
      TENON_TRY_ASSIGN(made, builder_.apply(ops::kDequantize, {*forms.integer}, scale_attrs(forms.scale), name(*var)));
      forms.real = *made;
    }
    return *forms.real;
  }

  // The int8 form.
  Expected<Atom> integer(VarId var) {
    Forms& forms = values_[index(var)];
    if (!forms.integer) {
      forms.scale = scale_of(var);
      const SpanId user = builder_.span();
      builder_.at(function_.info(var).span);
      auto made = builder_.apply(ops::kQuantize, {*forms.real}, scale_attrs(forms.scale), name(var));
      builder_.at(user);
      if (!made) return made;
      forms.integer = *made;
      if (scales_) scales_->insert_or_assign(std::string(name(var)), forms.scale);
    }
    return *forms.integer;
  }
  const Scale& scale(VarId var) const { return values_[index(var)].scale; }

  bool has_integer(const Atom& atom) const {
    const auto* var = std::get_if<VarId>(&atom);
    return var && values_[index(*var)].integer;
  }

  // Operators that keep the representation of their operand are applied to int8; all others run in float.
  Status emit(const Binding& binding) {
    const auto* apply = std::get_if<Apply>(&binding.value);
    const auto* input = apply && !apply->args.empty() ? std::get_if<VarId>(&apply->args[0]) : nullptr;
    if (apply && input && values_[index(*input)].integer) {
      const Operator& op = *apply->op;
      if (op.is(ops::kFlatten) || op.is(ops::kReshape) || op.is(ops::kTranspose) || op.is(ops::kIdentity) ||
          op.is(ops::kMaxPool2d)) {
        return keep(binding.var, builder_.apply(op, {*values_[index(*input)].integer}, apply->attrs, name(binding.var)),
                    scale(*input));
      }
      if (op.is(ops::kRelu) || op.is(ops::kClip)) return emit_clip(binding.var, *apply, *input);
      if (op.is(ops::kGlobalAvgPool)) return emit_average(binding.var, *input);
    }
    if (apply && apply->op->is(ops::kAdd) &&
        std::ranges::all_of(apply->args, [&](const Atom& a) { return has_integer(a); }) &&
        function_.type(std::get<VarId>(apply->args[0])) == function_.type(std::get<VarId>(apply->args[1]))) {
      return emit_add({.anchor = nullptr,
                       .span = builder_.span(),
                       .weights = {},
                       .bias = {},
                       .before = {},
                       .residual = std::get<VarId>(apply->args[1]),
                       .after = {}},
                      binding.var, std::get<VarId>(apply->args[0]));
    }
    Value value = binding.value;
    Status status;
    for_each_operand(value, [&](Atom& atom) {
      auto form = real(atom);
      if (form) atom = *form;
      else if (status) status = std::unexpected(form.error());
    });
    if (!status) return status;
    TENON_TRY_ASSIGN(made, builder_.bind(std::move(value), function_.info(binding.var).name));
    values_[index(binding.var)].real = *made;
    return {};
  }

  Status keep(VarId var, const Expected<Atom>& made, const Scale& scale) {
    if (!made) return std::unexpected(made.error());
    values_[index(var)].integer = *made;
    values_[index(var)].scale = scale;
    if (scales_) scales_->insert_or_assign(std::string(name(var)), scale);
    return {};
  }

  Status emit_clip(VarId var, const Apply& apply, VarId input) {
    const Scale& s = scale(input);
    const auto [lo, hi] = integer_bounds(clamp_of(apply), s);
    return keep(var,
                builder_.apply(ops::kClip, {*values_[index(input)].integer},
                               {{"min", static_cast<double>(lo)}, {"max", static_cast<double>(hi)}}, name(var)),
                s);
  }

  // The sum over the map, then a requantization that divides by its area.
  Status emit_average(VarId var, VarId input) {
    const Dims& dims = function_.type(input).tensor()->dims;
    const auto channels = dims[1].constant(), height = dims[2].constant(), width = dims[3].constant();
    if (!channels || !height || !width) {
      return error("global_avg_pool requires a map of known size to be quantized", from_.span(builder_.span()).str(),
                   "bind the variables of the shape, as --shapes H=224");
    }
    const Scale in = scale(input), out = scale_of(var);
    TENON_TRY_ASSIGN(sum, builder_.apply(ops::kGlobalSumPool, {*values_[index(input)].integer}, {}, name(var)));
    const int64_t area = *height * *width;
    std::vector<spec::ChannelParameters> parameters(
        static_cast<size_t>(*channels), requantize_ratio(in.scale / (out.scale * static_cast<double>(area))));
    for (auto& p : parameters) p.bias = static_cast<int32_t>(-in.zero * area);
    return requantize(var, *sum, parameters, spec::LayerParameters{.zero = out.zero}, out, std::nullopt);
  }

  Status emit_chain(const Chain& chain, VarId root) {
    const auto* input = std::get_if<VarId>(&chain.anchor->args[0]);
    assert(input);
    TENON_TRY_ASSIGN(x, integer(*input));
    builder_.at(chain.span);
    const Scale in = scale(*input), out = scale_of(root);
    const Tensor& weights = from_.constant(chain.weights);
    const auto channels = static_cast<size_t>(weights.shape()[0]);
    const Tensor* bias = chain.bias ? &from_.constant(*chain.bias) : nullptr;
    const std::span<const float> bias_values = bias ? bias->data<float>() : std::span<const float>();
    const QuantizedWeights q = quantize_weights(weights.data<float>(), channels, bias_values, in.scale);

    Attrs attrs = chain.anchor->attrs;
    if (chain.anchor->op->is(ops::kConv2d)) attrs["pad_value"] = int64_t{in.zero};
    TENON_TRY_ASSIGN(
        acc, builder_.apply(*chain.anchor->op, {*x, builder_.constant(Tensor::of<int8_t>(weights.shape(), q.values))},
                            std::move(attrs), name(root)));
    std::vector<spec::ChannelParameters> parameters(channels);
    for (size_t c = 0; c < channels; ++c) {
      const double step = in.scale * q.scales[c];
      parameters[c] = requantize_ratio(step / out.scale);
      const double real_bias = bias ? static_cast<double>(bias_values[c]) / step : 0;
      const double total = std::nearbyint(real_bias) - static_cast<double>(in.zero) * static_cast<double>(q.sums[c]);
      constexpr double kLimit = std::numeric_limits<int32_t>::max();
      parameters[c].bias = static_cast<int32_t>(std::clamp(total, -kLimit - 1, kLimit));
    }
    return finish_chain(chain, root, *acc, parameters, out);
  }

  // An addition that is not fused with a convolution: the first operand is the accumulator.
  Status emit_add(const Chain& chain, VarId root, VarId operand) {
    TENON_TRY_ASSIGN(x, integer(operand));
    const Scale in = scale(operand), out = scale_of(root);
    const auto channels = function_.type(operand).tensor()->rank() > 1
                              ? function_.type(operand).tensor()->dims[1].constant()
                              : std::nullopt;
    if (!channels) {
      return error("an addition requires a known number of channels (axis 1) to be quantized",
                   from_.span(builder_.span()).str(), "bind the variables of the shape, as --shapes C=16");
    }
    TENON_TRY_ASSIGN(acc, builder_.apply(ops::kCast, {*x}, {{"dtype", std::string("i32")}}, name(root)));
    std::vector<spec::ChannelParameters> parameters(static_cast<size_t>(*channels),
                                                    requantize_ratio(in.scale / out.scale));
    for (auto& p : parameters) p.bias = -in.zero;
    return finish_chain(chain, root, *acc, parameters, out);
  }

  Status finish_chain(const Chain& chain, VarId root, Atom acc, const std::vector<spec::ChannelParameters>& parameters,
                      const Scale& out) {
    spec::LayerParameters layer{.zero = out.zero};
    std::tie(layer.lo, layer.hi) = integer_bounds(chain.after, out);
    if (!chain.residual) return requantize(root, acc, parameters, layer, out, std::nullopt);
    TENON_TRY_ASSIGN(residual, integer(*chain.residual));
    std::tie(layer.v_lo, layer.v_hi) = step_bounds(chain.before, out);
    set_residual(layer, scale(*chain.residual).scale / out.scale, scale(*chain.residual).zero);
    return requantize(root, acc, parameters, layer, out, *residual);
  }

  Status requantize(VarId var, Atom acc, const std::vector<spec::ChannelParameters>& parameters,
                    const spec::LayerParameters& layer, const Scale& out, std::optional<Atom> residual) {
    return keep(var, compiler::requantize(builder_, acc, parameters, layer, residual, name(var)), out);
  }

  Context& context_;
  const Module& from_;
  const Function& function_;
  const Ranges& ranges_;
  const QuantizeOptions& options_;
  ValueScales* scales_;
  std::vector<Forms> values_;
  Module to_;
  Function result_;
  Builder builder_{context_, to_, result_};
};

// What a value is that quantization does not support; nullptr where it does.
const char* unsupported(const Value& value) {
  struct Visitor {
    const char* operator()(const Apply&) const { return nullptr; }
    const char* operator()(const Tuple&) const { return nullptr; }
    const char* operator()(const Project&) const { return nullptr; }
    const char* operator()(const DimValue&) const { return "a size as a value"; }
    const char* operator()(const Call& call) const {
      return std::holds_alternative<Symbol>(call.callee) ? nullptr : "the call of a closure";
    }
    const char* operator()(const Construct&) const { return "a constructor"; }
    const char* operator()(const Lambda&) const { return "a closure"; }
    const char* operator()(const If&) const { return "an if"; }
    const char* operator()(const Case&) const { return "a match"; }
    const char* operator()(const Cast&) const { return "a match_cast"; }
    const char* operator()(const MakeReference&) const { return "a reference"; }
    const char* operator()(const ReadReference&) const { return "a reference"; }
    const char* operator()(const WriteReference&) const { return "a reference"; }
  };
  return std::visit(Visitor{}, value);
}

// Names the first binding that quantization does not support, in the function or in one that it calls.
Diagnostic not_first_order(const Context& context, const Module& module, Symbol entry) {
  std::vector<Symbol> open{entry}, seen{entry};
  while (!open.empty()) {
    const Symbol name = open.back();
    const Function& function = *module.function(name);
    open.pop_back();
    for (const Binding& binding : function.body.bindings) {
      if (const char* what = unsupported(binding.value)) {
        return error(fmt::format("@{} has {}, which quantization does not support", context.name(name), what),
                     module.span(function.info(binding.var).span).str(), "run the model in float, without --calibrate")
            .error();
      }
      auto* call = std::get_if<Call>(&binding.value);
      auto* callee = call ? std::get_if<Symbol>(&call->callee) : nullptr;
      if (!callee || !module.function(*callee) || std::ranges::find(seen, *callee) != seen.end()) continue;
      open.push_back(*callee), seen.push_back(*callee);
    }
  }
  return error(fmt::format("@{} is recursive, or has values other than tensors, which quantization does not support",
                           context.name(entry)),
               {}, "run the model in float, without --calibrate")
      .error();
}

}  // namespace

Expected<Module> quantize(Context& context, const Module& module, Symbol entry, const Ranges& ranges,
                          const QuantizeOptions& options, ValueScales* scales) {
  const Function* function = module.function(entry);
  if (!function)
    return error(fmt::format("the module has no function @{}", context.name(entry)), {}, {}, Fault::kInternal);
  if (ranges.size() != function->vars.size()) {
    return error("the ranges were calibrated on another function", {}, "calibrate again after the last pass",
                 Fault::kInternal);
  }
  if (!first_order(module, *function)) return std::unexpected(not_first_order(context, module, entry));
  return Quantizer(context, module, *function, ranges, options, scales).run(entry);
}

}  // namespace tenon::compiler
