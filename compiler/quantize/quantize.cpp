#include "compiler/quantize/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "compiler/ir/builder.h"
#include "compiler/ir/dependencies.h"
#include "compiler/ir/solver.h"
#include "compiler/ir/term.h"
#include "compiler/quantize/chains.h"
#include "compiler/quantize/parameters.h"
#include "compiler/quantize/requantization.h"
#include "compiler/quantize/trained_layer.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

// A value of the float function in the quantized function: in one form or in both. Where the function is trained, the
// int8 form is a tensor of floats on the grid of its scale (trained_layer.h).
struct Forms {
  std::optional<Atom> real;
  std::optional<Atom> integer;
  Scale scale;  // of `integer`
};

using LayerValues = TrainedLayer::Values;

// The constants of the quantized module that the float module has too.
using Constants = std::map<ConstId, ConstId>;

// Quantizes one function, block by block. A form that is made in an inner block is used there alone; values that cross
// calls, and fields of constructed values, are real.
class Quantizer {
 public:
  Quantizer(Context& context, const Module& from, Module& to, Constants& constants, Symbol self,
            const std::vector<Range>& ranges, const QuantizeOptions& options, ValueScales* scales)
      : context_(context),
        from_(from),
        to_(to),
        constants_(constants),
        self_(self),
        function_(*from.function(self)),
        ranges_(ranges),
        options_(options),
        scales_(scales),
        uses_(use_counts(function_)),
        values_(function_.vars.size()),
        joined_(function_.vars.size()) {
    for_each_binding(function_.body, [&](const Binding& binding) {
      const auto* apply = std::get_if<Apply>(&binding.value);
      if (!apply || !apply->op->is(ops::kConcat)) return;
      for (const Atom& arg : apply->args) {
        const auto* operand = std::get_if<VarId>(&arg);
        if (operand && uses_[index(*operand)] == 1) joined_[index(*operand)] = binding.var;
      }
    });
    const auto is_integer = [&](const Binding& binding) { return can_multiply(binding); };
    feeds_ = feeding_integers(function_, is_integer);
    without_zero_ = without_zero_point(function_, is_integer);
    result_.dims = function_.dims;
    result_.bounds = function_.bounds;
    result_.types = function_.types;
    result_.target = function_.target;
    result_.composite = function_.composite;
  }

  Expected<Function> run() {
    declare_parameters();
    TENON_TRY(bindings(function_.body));
    TENON_TRY_ASSIGN(result, real(function_.body.result));
    builder_.finish(*result);
    // The declared result stays: it may be less specific than the type of the value.
    if (Solver(context_, function_.bounds).fit(function_.result, result_.result) == Answer::kYes)
      result_.result = function_.result;
    return std::move(result_);
  }

  // The function of isolated_errors(); `roots` receives the roots of its layers.
  Expected<Function> run_isolated(std::vector<VarId>& roots) {
    declare_parameters();
    const Chains chains = calibrated_chains(function_.body);
    Atoms errors;
    for (size_t i = 0; i < function_.body.bindings.size(); ++i) {
      if (chains.inner[i]) continue;
      const VarId var = function_.body.bindings[i].var;
      builder_.at(function_.info(var).span);
      TENON_TRY_ASSIGN(quantized, isolated_layer(i, chains.at_root[i]));
      const std::vector<size_t> alone{i};
      for (const size_t member : chains.at_root[i] ? chains.at_root[i]->members : alone)
        TENON_TRY(emit_real(function_.body.bindings[member]));
      if (!*quantized) continue;
      TENON_TRY_ASSIGN(difference, builder_.apply(ops::kSubtract, {**quantized, *values_[index(var)].real}));
      errors.push_back(*difference);
      roots.push_back(var);
    }
    TENON_TRY_ASSIGN(result, builder_.tuple(std::move(errors)));
    builder_.finish(*result);
    return std::move(result_);
  }

 private:
  void declare_parameters() {
    for (const VarId param : function_.params) {
      const VarInfo& info = function_.info(param);
      builder_.at(info.span);
      values_[index(param)].real = builder_.param(info.type, context_.name(info.name));
    }
  }

  // The quantized result of a layer on float operands, as floats; nothing where the binding is no layer.
  Expected<std::optional<Atom>> isolated_layer(size_t at, const std::optional<Chain>& chain) {
    const Binding& binding = function_.body.bindings[at];
    const auto* apply = std::get_if<Apply>(&binding.value);
    if (chain) {
      TENON_TRY(emit_chain(*chain, binding.var));
    } else if (apply && (apply->op->is_one_of({ops::kAdd, ops::kGlobalAvgPool}) || is_product_of_values(*apply))) {
      for (const Atom& arg : apply->args) {
        const auto* operand = std::get_if<VarId>(&arg);
        if (operand && is_calibrated(*operand)) TENON_TRY(integer(*operand));
      }
      TENON_TRY(emit_integer(binding));
    }
    if (!values_[index(binding.var)].integer) return std::nullopt;
    TENON_TRY_ASSIGN(result, real(binding.var));
    values_[index(binding.var)] = {};
    return *result;
  }

  Status bindings(const Block& block) {
    const Chains chains = calibrated_chains(block);
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      const Binding& binding = block.bindings[i];
      if (chains.inner[i]) continue;  // computed with its chain's root
      builder_.at(function_.info(binding.var).span);
      TENON_TRY(chains.at_root[i] ? emit_chain(*chains.at_root[i], binding.var) : emit(binding));
    }
    return {};
  }

  // The chains that become integers: layers that are kept, and code that no sample reached, stay in float.
  Chains calibrated_chains(const Block& block) const {
    Chains chains = find_chains(from_, function_, block, uses_, feeds_);
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      std::optional<Chain>& chain = chains.at_root[i];
      if (!chain || (is_quantized(block.bindings[i].var) && is_calibrated(std::get<VarId>(chain->anchor->args[0])) &&
                     (!chain->residual || is_calibrated(*chain->residual))))
        continue;
      for (const size_t member : chain->members) chains.inner[member] = false;
      chain.reset();
    }
    return chains;
  }

  Status inner(Block& block) {
    builder_.open();
    const size_t outside = changes_.size();
    TENON_TRY(bindings(block));
    TENON_TRY_ASSIGN(result, real(block.result));
    block = builder_.close(*result);
    for (; changes_.size() > outside; changes_.pop_back())
      values_[index(changes_.back().first)] = std::move(changes_.back().second);
    return {};
  }

  // Declares a variable of a pattern or of a lambda.
  VarId declare(VarId var) {
    const VarInfo& info = function_.info(var);
    builder_.at(info.span);
    const VarId declared = builder_.declare(info.type, context_.name(info.name));
    values_[index(var)].real = declared;
    return declared;
  }

  // The forms of a value, which are those before again at the end of the current block.
  Forms& change(VarId var) {
    changes_.emplace_back(var, values_[index(var)]);
    return values_[index(var)];
  }

  std::string_view name(VarId var) const { return context_.name(function_.info(var).name); }
  bool is_calibrated(VarId var) const { return ranges_[index(var)].observed; }
  // Of the result of a layer.
  bool is_quantized(VarId root) const { return is_calibrated(root) && !options_.keep.contains({self_, root}); }
  // A value that a concatenation alone reads has its scale, so that it needs no other rounding.
  Scale scale_of(VarId var) const {
    while (joined_[index(var)] && is_quantized(*joined_[index(var)])) var = *joined_[index(var)];
    return scale_for(ranges_[index(var)], options_.symmetric || without_zero_[index(var)]);
  }
  static Attrs scale_attrs(const Scale& scale) {
    return {{"scale", std::vector<double>{scale.scale}}, {"zero_point", std::vector<int64_t>{scale.zero}}};
  }

  // The float form.
  Expected<Atom> real(const Atom& atom) {
    if (const auto* constant = std::get_if<ConstId>(&atom)) {
      const auto known = constants_.find(*constant);
      if (known != constants_.end()) return known->second;
      return constants_.emplace(*constant, to_.add_constant(from_.constant(*constant))).first->second;
    }
    const auto* var = std::get_if<VarId>(&atom);
    if (!var) return atom;
    const Forms& forms = values_[index(*var)];
    if (!forms.real) {
      if (options_.trained) return *forms.integer;
      TENON_TRY_ASSIGN(made, builder_.apply(ops::kDequantize, {*forms.integer}, scale_attrs(forms.scale), name(*var)));
      change(*var).real = *made;
    }
    return *values_[index(*var)].real;
  }

  // The int8 form.
  Expected<Atom> integer(VarId var) {
    if (!values_[index(var)].integer) {
      const Scale scale = scale_of(var);
      const SpanId user = builder_.span();
      builder_.at(function_.info(var).span);
      auto made = options_.trained
                      ? on_grid(*values_[index(var)].real, scale, name(var))
                      : builder_.apply(ops::kQuantize, {*values_[index(var)].real}, scale_attrs(scale), name(var));
      builder_.at(user);
      if (!made) return made;
      Forms& forms = change(var);
      forms.integer = *made;
      forms.scale = scale;
      note_scale(var, scale);
    }
    return *values_[index(var)].integer;
  }
  // The values rounded to the scale, as floats: a layer without arithmetic.
  Expected<Atom> on_grid(const Atom& value, const Scale& scale, std::string_view name) {
    return call_trained_layer(
        builder_,
        {.operands = {{value, scale}},
         .weights = {},
         .scale = scale,
         .integers = [](Builder&, const LayerValues& layer) -> Expected<Atom> { return layer.operands[0]; },
         .reals = [](Builder&, const LayerValues& layer) -> Expected<Atom> { return layer.operands[0]; }},
        name);
  }
  void note_scale(VarId var, const Scale& scale) const {
    if (scales_ && !name(var).empty()) scales_->insert_or_assign(std::string(name(var)), scale);
  }
  const Scale& scale(VarId var) const { return values_[index(var)].scale; }

  bool has_integer(const Atom& atom) const {
    const auto* var = std::get_if<VarId>(&atom);
    return var && values_[index(*var)].integer;
  }

  // Operators that keep the representation of their operand are applied to int8; all others run in float.
  Status emit(const Binding& binding) {
    TENON_TRY_ASSIGN(is_integer, emit_integer(binding));
    return *is_integer ? Status() : emit_real(binding);
  }

  // False where the binding has no integer form.
  Expected<bool> emit_integer(const Binding& binding) {
    const auto done = [](const Status& status) -> Expected<bool> {
      if (!status) return std::unexpected(status.error());
      return true;
    };
    const auto* apply = std::get_if<Apply>(&binding.value);
    const auto* input = apply && !apply->args.empty() ? std::get_if<VarId>(&apply->args[0]) : nullptr;
    if (apply && input && values_[index(*input)].integer) {
      const Operator& op = *apply->op;
      if (keeps_scale(*apply)) {
        return done(keep(
            binding.var,
            builder_.apply(op, {*values_[index(*input)].integer}, apply->attrs, name(binding.var), apply->computed),
            scale(*input)));
      }
      if (op.is(ops::kRelu) || op.is(ops::kClip)) return done(emit_clip(binding.var, *apply, *input));
      if (op.is(ops::kGlobalAvgPool) && is_quantized(binding.var)) return done(emit_average(binding.var, *input));
    }
    if (can_multiply(binding)) return emit_product(binding.var, *apply);
    if (apply && apply->op->is(ops::kConcat) && is_quantized(binding.var) && can_concatenate(binding.var, *apply))
      return done(emit_concat(binding.var, *apply));
    if (apply && apply->op->is(ops::kAdd) && is_quantized(binding.var) && feeds_[index(binding.var)] &&
        std::ranges::all_of(apply->args, [&](const Atom& a) { return has_integer(a); }) &&
        function_.type(std::get<VarId>(apply->args[0])) == function_.type(std::get<VarId>(apply->args[1]))) {
      return done(emit_add({.anchor = nullptr,
                            .span = builder_.span(),
                            .weights = {},
                            .bias = {},
                            .before = {},
                            .residual = std::get<VarId>(apply->args[1]),
                            .after = {},
                            .members = {}},
                           binding.var, std::get<VarId>(apply->args[0])));
    }
    return false;
  }

  Status emit_real(const Binding& binding) {
    Value value = binding.value;
    Status status;
    for_each_operand(value, [&](Atom& atom) {
      auto form = real(atom);
      if (form) atom = *form;
      else if (status) status = std::unexpected(form.error());
    });
    TENON_TRY(status);
    std::optional<VarId> self;
    if (auto* lambda = std::get_if<Lambda>(&value)) {
      self = declare(binding.var);
      for (VarId& param : lambda->params) param = declare(param);
    }
    if (auto* match = std::get_if<Case>(&value)) {
      for (Arm& arm : match->arms) for_each_variable(arm.pattern, [&](VarId& var) { var = declare(var); });
    }
    for_each_block(value, [&](Block& block) {
      if (status) status = inner(block);
    });
    TENON_TRY(status);
    const VarInfo& info = function_.info(binding.var);
    builder_.at(info.span);
    TENON_TRY_ASSIGN(made,
                     self ? builder_.bind_to(*self, std::move(value)) : builder_.bind(std::move(value), info.name));
    change(binding.var).real = *made;
    return {};
  }

  Status keep(VarId var, const Expected<Atom>& made, const Scale& scale) {
    if (!made) return std::unexpected(made.error());
    Forms& forms = change(var);
    forms.integer = *made;
    forms.scale = scale;
    note_scale(var, scale);
    return {};
  }

  Status emit_clip(VarId var, const Apply& apply, VarId input) {
    const Scale& s = scale(input);
    const auto [lo, hi] = integer_bounds(clamp_of(apply), s);
    const auto bound = [&](int8_t q) { return options_.trained ? s.scale * (q - s.zero) : static_cast<double>(q); };
    return keep(var,
                builder_.apply(ops::kClip, {*values_[index(input)].integer}, {{"min", bound(lo)}, {"max", bound(hi)}},
                               name(var)),
                s);
  }

  // The number of channels, where it is known.
  std::optional<int64_t> channels_of(VarId var) const {
    const TensorType& type = *function_.type(var).tensor();
    return type.rank() > 1 ? type.dims[1].constant() : std::nullopt;
  }
  bool can_concatenate(VarId var, const Apply& apply) const {
    return std::ranges::all_of(apply.args, [&](const Atom& arg) {
      if (!has_integer(arg)) return false;
      const VarId operand = std::get<VarId>(arg);
      return scale(operand) == scale_of(var) || channels_of(operand);
    });
  }
  // The concatenation of integers of one scale, to which operands of other scales are requantized.
  Status emit_concat(VarId var, const Apply& apply) {
    const Scale out = scale_of(var);
    Atoms args;
    for (const Atom& arg : apply.args) {
      const VarId operand = std::get<VarId>(arg);
      args.push_back(*values_[index(operand)].integer);
      if (scale(operand) == out) continue;
      std::vector<spec::ChannelParameters> parameters(static_cast<size_t>(*channels_of(operand)),
                                                      requantize_ratio(scale(operand).scale / out.scale));
      for (auto& p : parameters) p.bias = -scale(operand).zero;
      const auto integers = [&](Builder& builder, const LayerValues& x) -> Expected<Atom> {
        TENON_TRY_ASSIGN(acc,
                         builder.apply(ops::kCast, {x.operands[0]}, {{"dtype", std::string("i32")}}, name(operand)));
        return requantize(builder, *acc, parameters, {.zero = out.zero}, std::nullopt, {});
      };
      const auto same = [](Builder&, const LayerValues& x) -> Expected<Atom> { return x.operands[0]; };
      TENON_TRY_ASSIGN(made, layer({operand}, {.zero = out.zero}, out, integers, same, {}));
      args.back() = *made;
    }
    return keep(var, builder_.apply(*apply.op, std::move(args), apply.attrs, name(var)), out);
  }

  // Whether the binding is a product of two activations that integers compute.
  bool can_multiply(const Binding& binding) const {
    if (!is_integer_product(function_, binding) || !is_quantized(binding.var)) return false;
    return std::ranges::all_of(std::get<Apply>(binding.value).args,
                               [&](const Atom& arg) { return is_calibrated(std::get<VarId>(arg)); });
  }
  // False where an operand has an int8 form with a zero point.
  Expected<bool> emit_product(VarId var, const Apply& apply) {
    std::vector<VarId> operands;
    double step = 1;
    for (const Atom& arg : apply.args) {
      operands.push_back(std::get<VarId>(arg));
      TENON_TRY(integer(operands.back()));
      if (scale(operands.back()).zero != 0) return false;
      step *= scale(operands.back()).scale;
    }
    const Scale out = scale_of(var);
    const Dims& dims = function_.type(var).tensor()->dims;
    const size_t axis = *product_axis(function_.type(operands[0]).tensor()->dims, dims, function_.bounds);
    const std::vector<spec::ChannelParameters> parameters(static_cast<size_t>(*dims[axis].constant()),
                                                          requantize_ratio(step / out.scale));
    const spec::LayerParameters fields{.zero = out.zero};
    const auto integers = [&](Builder& builder, const LayerValues& x) -> Expected<Atom> {
      TENON_TRY_ASSIGN(acc, builder.apply(ops::kMatmul, x.operands, {}, name(var)));
      return requantize(builder, *acc, parameters, fields, std::nullopt, name(var), std::nullopt, axis);
    };
    const auto product = [](Builder& builder, const LayerValues& x) { return builder.apply(ops::kMatmul, x.operands); };
    TENON_TRY(keep(var, layer(operands, fields, out, integers, product, name(var)), out));
    return true;
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
    const int64_t area = *height * *width;
    std::vector<spec::ChannelParameters> parameters(
        static_cast<size_t>(*channels), requantize_ratio(in.scale / (out.scale * static_cast<double>(area))));
    for (auto& p : parameters) p.bias = static_cast<int32_t>(-in.zero * area);
    const spec::LayerParameters fields{.zero = out.zero};
    const auto integers = [&](Builder& builder, const LayerValues& x) -> Expected<Atom> {
      TENON_TRY_ASSIGN(sum, builder.apply(ops::kGlobalSumPool, {x.operands[0]}, {}, name(var)));
      return requantize(builder, *sum, parameters, fields, std::nullopt, name(var));
    };
    const auto average = [](Builder& builder, const LayerValues& x) {
      return builder.apply(ops::kGlobalAvgPool, {x.operands[0]});
    };
    return keep(var, layer({input}, fields, out, integers, average, name(var)), out);
  }

  Status emit_chain(const Chain& chain, VarId root) {
    const auto* input = std::get_if<VarId>(&chain.anchor->args[0]);
    assert(input);
    TENON_TRY(integer(*input));
    builder_.at(chain.span);
    const Scale in = scale(*input), out = scale_of(root);
    const Tensor& weights = from_.constant(chain.weights);
    const auto channels = static_cast<size_t>(weights.shape()[0]);
    const Tensor* bias = chain.bias ? &from_.constant(*chain.bias) : nullptr;
    const std::span<const float> bias_values = bias ? bias->data<float>() : std::span<const float>();
    const QuantizedWeights q =
        quantize_weights(weights.data<float>(), channels, bias_values, in.scale, options_.weight_limit);

    const auto means = options_.means.find({self_, *input});
    const std::vector<double> added =
        means == options_.means.end()
            ? std::vector<double>(channels)
            : mean_errors(weights, q, chain.anchor->op->is(ops::kConv2d) ? int_attr(chain.anchor->attrs, "groups") : 1,
                          means->second);
    std::vector<spec::ChannelParameters> parameters(channels);
    std::vector<double> steps(channels);
    for (size_t c = 0; c < channels; ++c) {
      const double step = steps[c] = in.scale * q.scales[c];
      parameters[c] = requantize_ratio(step / out.scale);
      const double real_bias = ((bias ? static_cast<double>(bias_values[c]) : 0) - added[c]) / step;
      const double total = std::nearbyint(real_bias) - static_cast<double>(in.zero) * static_cast<double>(q.sums[c]);
      constexpr double kLimit = std::numeric_limits<int32_t>::max();
      parameters[c].bias = static_cast<int32_t>(std::clamp(total, -kLimit - 1, kLimit));
    }
    TENON_TRY_ASSIGN(fields, chain_fields(chain, out));
    const auto integers = [&](Builder& builder, const LayerValues& x) -> Expected<Atom> {
      Attrs attrs = chain.anchor->attrs;
      if (chain.anchor->op->is(ops::kConv2d)) attrs["pad_value"] = int64_t{in.zero};
      const Atom w = x.weights ? *x.weights : builder.constant(Tensor::of<int8_t>(weights.shape(), q.values));
      TENON_TRY_ASSIGN(acc, builder.apply(*chain.anchor->op, {x.operands[0], w}, std::move(attrs), name(root)));
      const auto residual = chain.residual ? std::optional(x.operands[1]) : std::nullopt;
      if (!x.weights) return requantize(builder, *acc, parameters, *fields, residual, name(root));
      TENON_TRY_ASSIGN(computed, computed_bias(builder, x, in.zero));
      return requantize(builder, *acc, parameters, *fields, residual, name(root), *computed);
    };
    const auto real = [&](Builder& builder, const LayerValues& x) { return real_chain(builder, chain, x); };
    std::vector<VarId> operands{*input};
    if (chain.residual) operands.push_back(*chain.residual);
    std::optional<TrainedWeights> trained;
    if (options_.trained) {
      TENON_TRY_ASSIGN(values, this->real(chain.weights));
      trained = TrainedWeights{*values, {}, q.scales, steps, options_.weight_limit};
      if (means != options_.means.end()) {
        std::vector<float> corrected(channels);
        for (size_t c = 0; c < channels; ++c)
          corrected[c] = static_cast<float>((bias ? static_cast<double>(bias_values[c]) : 0) - added[c]);
        trained->bias = builder_.constant(Tensor::of<float>({static_cast<int64_t>(channels)}, corrected));
      } else if (chain.bias) {
        TENON_TRY_ASSIGN(first, this->real(*chain.bias));
        trained->bias = *first;
      }
    }
    return keep(root, layer(operands, *fields, out, integers, real, name(root), trained), out);
  }

  // The bias of a layer with computed weights: what the input's zero point adds to each channel is subtracted.
  static Expected<Atom> computed_bias(Builder& builder, const LayerValues& layer, int8_t zero) {
    Formula f(builder);
    const Term weights = Term(f, *layer.weights).cast(DType::kI32);
    std::vector<int64_t> axes;
    for (int64_t axis = 1; axis < weights.rank(); ++axis) axes.push_back(axis);
    const Term sums = weights.reduce(ops::kSum, std::move(axes));
    const int32_t factor = -zero;
    const Term subtracted = sums * f.constant(Tensor::of<int32_t>({}, std::span(&factor, 1)));
    const Term bias = layer.bias ? Term(f, *layer.bias) + subtracted : subtracted;
    TENON_TRY(f.status());
    return bias.atom();
  }

  // The chain's own operators but for its last clamp, whose derivative the result tells.
  static Expected<Atom> real_chain(Builder& builder, const Chain& chain, const LayerValues& x) {
    TENON_TRY_ASSIGN(value, builder.apply(*chain.anchor->op, {x.operands[0], *x.weights}, chain.anchor->attrs));
    if (x.bias) {
      TENON_TRY_ASSIGN(biased, builder.apply(ops::kBiasAdd, {*value, *x.bias}, {{"axis", int64_t{1}}}));
      value = *biased;
    }
    if (!chain.residual) return *value;
    if (!std::isinf(chain.before.lo) || !std::isinf(chain.before.hi)) {
      TENON_TRY_ASSIGN(clamped,
                       builder.apply(ops::kClip, {*value}, {{"min", chain.before.lo}, {"max", chain.before.hi}}));
      value = *clamped;
    }
    return builder.apply(ops::kAdd, {*value, x.operands[1]});
  }

  // An addition that is not fused with a convolution: the first operand is the accumulator.
  Status emit_add(const Chain& chain, VarId root, VarId operand) {
    TENON_TRY(integer(operand));
    const Scale in = scale(operand), out = scale_of(root);
    const auto channels = function_.type(operand).tensor()->rank() > 1
                              ? function_.type(operand).tensor()->dims[1].constant()
                              : std::nullopt;
    if (!channels) {
      return error("an addition requires a known number of channels (axis 1) to be quantized",
                   from_.span(builder_.span()).str(), "bind the variables of the shape, as --shapes C=16");
    }
    std::vector<spec::ChannelParameters> parameters(static_cast<size_t>(*channels),
                                                    requantize_ratio(in.scale / out.scale));
    for (auto& p : parameters) p.bias = -in.zero;
    TENON_TRY_ASSIGN(fields, chain_fields(chain, out));
    const auto integers = [&](Builder& builder, const LayerValues& x) -> Expected<Atom> {
      TENON_TRY_ASSIGN(acc, builder.apply(ops::kCast, {x.operands[0]}, {{"dtype", std::string("i32")}}, name(root)));
      return requantize(builder, *acc, parameters, *fields, x.operands[1], name(root));
    };
    const auto sum = [](Builder& builder, const LayerValues& x) { return builder.apply(ops::kAdd, x.operands); };
    return keep(root, layer({operand, *chain.residual}, *fields, out, integers, sum, name(root)), out);
  }

  // The fields of the requantization of a chain.
  Expected<spec::LayerParameters> chain_fields(const Chain& chain, const Scale& out) {
    spec::LayerParameters layer{.zero = out.zero};
    std::tie(layer.lo, layer.hi) = integer_bounds(chain.after, out);
    if (!chain.residual) return layer;
    TENON_TRY(integer(*chain.residual));
    std::tie(layer.v_lo, layer.v_hi) = step_bounds(chain.before, out);
    set_residual(layer, scale(*chain.residual).scale / out.scale, scale(*chain.residual).zero);
    return layer;
  }

  // The int8 result of a layer of operands that have an int8 form.
  Expected<Atom> layer(const std::vector<VarId>& operands, const spec::LayerParameters& fields, const Scale& out,
                       FunctionRef<Expected<Atom>(Builder&, const LayerValues&)> integers,
                       FunctionRef<Expected<Atom>(Builder&, const LayerValues&)> reals, std::string_view name,
                       std::optional<TrainedWeights> weights = std::nullopt) {
    if (!options_.trained) {
      LayerValues values;
      for (const VarId operand : operands) values.operands.push_back(*values_[index(operand)].integer);
      return integers(builder_, values);
    }
    std::vector<GridValue> values;
    for (const VarId operand : operands) values.push_back({*values_[index(operand)].integer, scale(operand)});
    return call_trained_layer(builder_,
                              {.operands = std::move(values),
                               .weights = std::move(weights),
                               .scale = out,
                               .lo = fields.lo,
                               .hi = fields.hi,
                               .integers = integers,
                               .reals = reals},
                              name);
  }

  Context& context_;
  const Module& from_;
  Module& to_;
  Constants& constants_;
  Symbol self_;
  const Function& function_;
  const std::vector<Range>& ranges_;
  const QuantizeOptions& options_;
  ValueScales* scales_;
  std::vector<uint32_t> uses_;
  std::vector<bool> feeds_;         // feeding_integers()
  std::vector<bool> without_zero_;  // without_zero_point()
  std::vector<Forms> values_;
  std::vector<std::optional<VarId>> joined_;      // the concatenation that is the only user
  std::vector<std::pair<VarId, Forms>> changes_;  // values with their forms before, since the beginning
  Function result_;
  Builder builder_{context_, to_, result_};
};

// The ranges of the function; an error where they are those of another one.
Expected<const std::vector<Range>*> ranges_of(const Context& context, const Module& module, Symbol name,
                                              const Ranges& ranges) {
  const auto found = ranges.find(name);
  if (found != ranges.end() && found->second.size() == module.function(name)->vars.size()) return &found->second;
  return error(fmt::format("the ranges of @{} were calibrated on another function", context.name(name)), {},
               "calibrate again after the last pass", Fault::kInternal);
}

}  // namespace

Expected<Module> isolated_errors(Context& context, const Module& module, Symbol entry, const Ranges& ranges,
                                 const QuantizeOptions& options, std::vector<Layer>& layers) {
  Module isolated{.globals = {}, .adts = module.adts, .constants = {}, .spans = module.spans};
  for (const Symbol name : reachable_globals(module, entry)) isolated.globals.emplace(name, module.globals.at(name));
  TENON_TRY_ASSIGN(found, ranges_of(context, module, entry, ranges));
  Constants constants;
  std::vector<VarId> roots;
  TENON_TRY_ASSIGN(
      made, Quantizer(context, module, isolated, constants, entry, **found, options, nullptr).run_isolated(roots));
  *isolated.function(entry) = std::move(*made);
  for (const Layer& layer : find_layers(context, module, entry)) {
    if (layer.function == entry && std::ranges::find(roots, layer.root) != roots.end()) layers.push_back(layer);
  }
  return isolated;
}

Expected<Module> quantize(Context& context, const Module& module, Symbol entry, const Ranges& ranges,
                          const QuantizeOptions& options, ValueScales* scales) {
  if (!module.function(entry))
    return error(fmt::format("the module has no function @{}", context.name(entry)), {}, {}, Fault::kInternal);
  Module quantized{.globals = {}, .adts = module.adts, .constants = {}, .spans = module.spans};
  std::vector<Symbol> functions;
  for (const Symbol name : reachable_globals(module, entry)) {
    quantized.globals.emplace(name, module.globals.at(name));
    if (module.function(name)) functions.push_back(name);
  }
  Constants constants;
  for (const Symbol name : functions) {
    TENON_TRY_ASSIGN(found, ranges_of(context, module, name, ranges));
    TENON_TRY_ASSIGN(made, Quantizer(context, module, quantized, constants, name, **found, options, scales).run());
    *quantized.function(name) = std::move(*made);
  }
  return quantized;
}

}  // namespace tenon::compiler
