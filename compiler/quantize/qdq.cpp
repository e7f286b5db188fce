#include "compiler/quantize/qdq.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "compiler/ir/rewrite.h"
#include "compiler/quantize/chains.h"
#include "compiler/quantize/parameters.h"
#include "compiler/quantize/requantization.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Shape;
using runtime::Tensor;
using Ints = std::vector<int64_t>;
using Outcome = Expected<std::optional<Atom>>;

// A value of i8 and what it stands for.
struct Quantized {
  Atom integers;
  Scale scale;
};

// An integer layer: acc * steps, plus the residual, clamped. It can be requantized again with the clamp after it.
struct IntegerLayer {
  Atom accumulators;
  std::vector<double> steps;  // by channel
  std::vector<int32_t> bias;
  std::optional<Quantized> residual;
  Clamp after;
  Scale scale;      // of the result
  Dims shape;       // of the value in the model
  size_t axis = 1;  // of the channels
};

// Weights in i8 with their zero points subtracted, the output channels first. Where a difference is outside of i8, it
// is the sum of two weights, and the input channel that it multiplies is an operand twice.
struct LayerWeights {
  Tensor values;  // [output channels][input channels, then the repeated ones]...
  std::vector<double> scales = {};
  Ints repeated = {};  // input channels
  Ints sums = {};
  int64_t products = 1;  // of one sum
};

// factor * f + bias, by channel of f, a layer with constant weights.
struct Linear {
  Apply anchor;
  SpanId span{};
  std::vector<double> factor = {}, bias = {};  // empty: 1 and 0
};

constexpr int32_t kUnsignedShift = 128;
bool moves_elements(const Apply& apply) {
  // Sizes may be those of the operands; whatever is an operand itself is not.
  const auto is_size = [](const auto& attr) { return std::holds_alternative<Dims>(attr.second); };
  if (!std::ranges::all_of(apply.computed, is_size)) return false;
  return apply.op->has({Elements::kSame, Elements::kMoved, Elements::kPadded, Elements::kSelected}) &&
         !apply.computed.contains("value");
}

// The value of constants, and of a few operators that scale, round or move one: what hangs on a dequantize is not
// folded.
std::optional<Tensor> constant_value(const Builder& builder, const Atom& atom, int operators = 8) {
  if (const Tensor* tensor = constant_of(builder.module(), atom)) return *tensor;
  const Apply* apply = builder.application(atom);
  if (!apply || !apply->computed.empty() || !apply->op->reference || operators == 0) return std::nullopt;
  if (apply->op->pattern > OpPattern::kBroadcast && !apply->op->is_one_of({ops::kQuantize, ops::kDequantize}) &&
      !moves_elements(*apply))
    return std::nullopt;
  // Of several operands all but one are stored constants, and none grows much in a broadcast.
  std::vector<Tensor> operands;
  int64_t bytes = 1 << 16;
  bool computed = false;
  for (const Atom& arg : apply->args) {
    const bool stored = constant_of(builder.module(), arg) != nullptr;
    if (!stored && computed) return std::nullopt;
    computed |= !stored;
    auto operand = constant_value(builder, arg, operators - 1);
    if (!operand) return std::nullopt;
    bytes += 4 * static_cast<int64_t>(operand->bytes().size());
    operands.push_back(std::move(*operand));
  }
  const TensorType* type = builder.tensor_type(atom);
  const auto shape = type ? type->shape() : std::nullopt;
  if (!shape || runtime::element_count(*shape) > bytes / runtime::bytes(type->dtype)) return std::nullopt;
  auto value = apply->op->reference(apply->attrs, operands);
  return value ? std::optional(std::move(value->front())) : std::nullopt;
}

// A constant that varies at most along `axis` of a value of `type`, by index.
std::optional<std::vector<double>> along_axis(const Tensor& tensor, const Dims& shape, size_t axis) {
  const auto count = shape[axis].constant();
  if (tensor.dtype() != DType::kF32 || tensor.shape().size() > shape.size() || !count) return std::nullopt;
  const size_t missing = shape.size() - tensor.shape().size();
  for (size_t i = 0; i < tensor.shape().size(); ++i) {
    const int64_t size = tensor.shape()[i];
    if (size != 1 && !(i + missing == axis && size == *count)) return std::nullopt;
  }
  const auto data = tensor.data<float>();
  std::vector<double> values(data.begin(), data.end());
  if (values.size() == 1) values.resize(static_cast<size_t>(*count), values[0]);
  return values;
}

class LayerRewriting {
 public:
  LayerRewriting(Context& context, const Function& function, ValueScales* scales)
      : context_(context),
        function_(function),
        scales_(scales),
        uses_(use_counts(function)),
        old_values_(function.vars.size()) {
    for_each_binding(function.body, [&](const Binding& binding) { old_values_[index(binding.var)] = &binding.value; });
  }

  Expected<Function> run(Module& module) {
    return rewrite(context_, module, function_, [&](Builder& builder, Binding& binding) -> Outcome {
      builder_ = &builder;
      learn_uses(binding);
      const auto* apply = std::get_if<Apply>(&binding.value);
      if (!apply) return std::nullopt;
      name_ = context_.name(function_.info(binding.var).name);
      if (apply->op->is(ops::kDequantize)) return dequantize(std::get<Apply>(binding.value));
      if (apply->op->is(ops::kQuantize)) return quantize(std::get<Apply>(binding.value), binding.var);
      if (moves_elements(*apply)) return move_unsigned(*apply, binding.var);
      return std::nullopt;
    });
  }

 private:
  // Operands of the new function stand for variables of the old one, whose uses are counted.
  void learn_uses(const Binding& binding) {
    Atoms before;
    for_each_operand(*old_values_[index(binding.var)], [&](const Atom& atom) { before.push_back(atom); });
    size_t i = 0;
    for_each_operand(binding.value, [&](const Atom& atom) {
      const Atom& old = before[i++];
      const auto *from = std::get_if<VarId>(&old), *to = std::get_if<VarId>(&atom);
      if (from && to) stands_for_.insert_or_assign(*to, *from);
    });
  }
  bool used_once(const Atom& atom) const {
    const auto* var = std::get_if<VarId>(&atom);
    const auto old = var ? stands_for_.find(*var) : stands_for_.end();
    return old == stands_for_.end() || uses_[index(old->second)] == 1;
  }

  // The sizes, each of which has a value or a name.
  std::optional<Dims> shape_of(const Atom& atom) const {
    const TensorType* type = builder_->tensor_type(atom);
    const bool known = type && std::ranges::none_of(type->dims, [](Dim dim) { return dim.erased(); });
    return known ? std::optional(type->dims) : std::nullopt;
  }
  Expected<Atom> apply(OperatorId op, Atoms args, Attrs attrs = {}, ComputedAttrs computed = {}) const {
    return builder_->apply(op, std::move(args), std::move(attrs), name_, std::move(computed));
  }
  Expected<Atom> cast(Atom x, DType dtype) const {
    return apply(ops::kCast, {x}, {{"dtype", std::string(runtime::name(dtype))}});
  }

  // A value of u8 minus 128, in i8.
  Expected<Atom> to_signed(Atom atom) const {
    if (const auto* var = std::get_if<VarId>(&atom)) {
      if (const auto known = signed_.find(*var); known != signed_.end()) return known->second;
    }
    TENON_TRY_ASSIGN(wide, cast(atom, DType::kI32));
    TENON_TRY_ASSIGN(shifted, apply(ops::kSubtract, {*wide, builder_->constant<int32_t>({}, {kUnsignedShift})}));
    return cast(*shifted, DType::kI8);
  }
  // The same value in u8, for users that are not rewritten.
  Expected<Atom> to_unsigned(Atom atom) {
    TENON_TRY_ASSIGN(wide, cast(atom, DType::kI32));
    TENON_TRY_ASSIGN(shifted, apply(ops::kAdd, {*wide, builder_->constant<int32_t>({}, {kUnsignedShift})}));
    TENON_TRY_ASSIGN(bytes, cast(*shifted, DType::kU8));
    signed_.insert_or_assign(std::get<VarId>(*bytes), atom);
    return *bytes;
  }
  static void shift_zeros(Attrs& attrs) {
    for (int64_t& zero : std::get<Ints>(attrs.find("zero_point")->second)) zero -= kUnsignedShift;
  }

  Outcome dequantize(Apply& apply) const {
    const Atom x = apply.args[0];
    const TensorType* type = builder_->tensor_type(x);
    if (!std::holds_alternative<VarId>(x) || !type || type->dtype != DType::kU8) return std::nullopt;
    TENON_TRY_ASSIGN(integers, to_signed(x));
    shift_zeros(apply.attrs);
    apply.args[0] = *integers;
    return std::nullopt;
  }

  // An operator that moves elements in u8 moves them in i8.
  Outcome move_unsigned(Apply move, VarId old) {
    if (move.op->is(ops::kPad)) move.attrs["value"] = float_attr(move.attrs, "value") - kUnsignedShift;
    Atoms args;
    for (const Atom& arg : move.args) {
      const auto* var = std::get_if<VarId>(&arg);
      if (!var || !signed_.contains(*var)) return std::nullopt;
      args.push_back(signed_.at(*var));
    }
    TENON_TRY_ASSIGN(moved, builder_->apply(*move.op, std::move(args), move.attrs, name_, move.computed));
    stands_for_.insert_or_assign(std::get<VarId>(*moved), old);
    TENON_TRY_ASSIGN(bytes, to_unsigned(*moved));
    return *bytes;
  }

  Outcome quantize(Apply& apply, VarId old) {
    const bool is_unsigned = string_attr(apply.attrs, "dtype") == "u8";
    if (is_unsigned) {
      shift_zeros(apply.attrs);
      apply.attrs["dtype"] = std::string("i8");
    }
    const auto& scales = floats_attr(apply.attrs, "scale");
    const Ints& zeros = ints_attr(apply.attrs, "zero_point");
    const size_t vars_before = builder_->function().vars.size();
    std::optional<Atom> integers;
    if (scales.size() == 1) {
      TENON_TRY_ASSIGN(found, integer_form(apply.args[0], Scale{scales[0], static_cast<int8_t>(zeros[0])}));
      integers = *found;
      if (scales_) {
        scales_->insert_or_assign(std::string(name_), Scale{scales[0], static_cast<int8_t>(zeros[0])});
      }
    }
    if (!integers) {
      if (!is_unsigned) return std::nullopt;
      TENON_TRY_ASSIGN(made, builder_->apply(*apply.op, apply.args, apply.attrs, name_));
      integers = *made;
    }
    const VarId var = std::get<VarId>(*integers);
    if (index(var) >= vars_before) stands_for_.insert_or_assign(var, old);
    if (!is_unsigned) return *integers;
    TENON_TRY_ASSIGN(bytes, to_unsigned(*integers));
    return *bytes;
  }

  // The operand of a dequantize with a single scale.
  std::optional<Quantized> quantized(const Atom& atom) const {
    const Apply* apply = builder_->application(atom, ops::kDequantize);
    if (!apply || !std::holds_alternative<VarId>(apply->args[0])) return std::nullopt;
    const auto& scales = floats_attr(apply->attrs, "scale");
    const TensorType* type = builder_->tensor_type(apply->args[0]);
    if (scales.size() != 1 || !type || type->dtype != DType::kI8) return std::nullopt;
    return Quantized{apply->args[0], {scales[0], static_cast<int8_t>(ints_attr(apply->attrs, "zero_point")[0])}};
  }

  // The i8 form of a float value by the scale `out`, clamped; none where it is not an integer layer.
  Outcome integer_form(Atom value, const Scale& out, Clamp clamp = {}) {
    const Apply* bounded = builder_->application(value);
    if (bounded && (bounded->op->is(ops::kRelu) || bounded->op->is(ops::kClip)) && used_once(value)) {
      const Clamp inner = clamp_of(*bounded);
      clamp = {.lo = std::clamp(inner.lo, clamp.lo, clamp.hi), .hi = std::clamp(inner.hi, clamp.lo, clamp.hi)};
      value = bounded->args[0];
    }
    // The model's node is that of the layer, not that of its quantize.
    if (const auto* var = std::get_if<VarId>(&value)) builder_->at(builder_->function().info(*var).span);
    if (const auto x = quantized(value)) return clamped(*x, used_once(value), clamp, out);
    const Apply* found = builder_->application(value);
    if (!found || !used_once(value)) return std::nullopt;
    if (moves_elements(*found)) return moved(*found, out, clamp);
    const auto shape = shape_of(value);
    if (!shape) return std::nullopt;
    const Apply producer = *found;
    const bool leaky = producer.op->is_one_of({ops::kLeakyRelu, ops::kPrelu});
    const Apply* inner = leaky ? builder_->application(producer.args[0]) : &producer;
    if (!inner || (leaky && !used_once(producer.args[0]))) return std::nullopt;
    TENON_TRY_ASSIGN(layer, sums_of(Apply(*inner), *shape, out));
    if (!*layer) return std::nullopt;
    (*layer)->after = clamp;
    (*layer)->shape = *shape;
    return leaky ? emit_leaky(std::move(**layer), producer, out) : emit(std::move(**layer), out);
  }

  Expected<std::optional<IntegerLayer>> sums_of(const Apply& producer, const Dims& shape, const Scale& out) {
    if (producer.op->is(ops::kGlobalAvgPool)) return average(producer);
    if (producer.op->is(ops::kAdd)) return sum(producer, shape, out);
    if (is_product_of_values(producer)) {
      TENON_TRY_ASSIGN(layer, product_of_values(producer, shape));
      if (*layer) return *std::move(layer);
    }
    return product(producer, shape, out);
  }

  // A product of two quantized values without zero points, which would add sums of the other operand.
  Expected<std::optional<IntegerLayer>> product_of_values(const Apply& matmul, const Dims& shape) {
    const auto axis = product_axis(*shape_of(matmul.args[0]), shape, function_.bounds);
    if (!axis) return std::nullopt;
    const auto channels = static_cast<size_t>(*shape[*axis].constant());
    Atoms operands;
    double step = 1;
    for (const Atom& arg : matmul.args) {
      const auto scale = moved_scale(arg);
      if (!scale || scale->zero != 0) return std::nullopt;
      step *= scale->scale;
    }
    for (const Atom& arg : matmul.args) {
      TENON_TRY_ASSIGN(x, operand_of(arg));
      if (!*x) return std::nullopt;
      operands.push_back((*x)->integers);
    }
    TENON_TRY_ASSIGN(accumulators, apply(ops::kMatmul, std::move(operands)));
    IntegerLayer layer{.accumulators = *accumulators,
                       .steps = std::vector<double>(channels, step),
                       .bias = std::vector<int32_t>(channels),
                       .residual = {},
                       .after = {},
                       .scale = {},
                       .shape = shape,
                       .axis = *axis};
    return layer;
  }

  // The factors of a leaky ReLU below zero, by channel, where they are within (0, 1].
  std::optional<std::vector<double>> slopes_of(const Apply& activation, const Dims& shape, size_t axis) const {
    std::optional<std::vector<double>> slopes;
    if (activation.op->is(ops::kLeakyRelu)) {
      const auto channels = static_cast<size_t>(shape[axis].constant().value_or(0));
      slopes.emplace(channels, float_attr(activation.attrs, "alpha"));
    } else if (const auto constant = constant_value(*builder_, activation.args[1])) {
      slopes = along_axis(*constant, shape, axis);
    }
    const auto is_slope = [](double slope) { return slope > 0 && slope <= 1; };
    return slopes && std::ranges::all_of(*slopes, is_slope) ? slopes : std::nullopt;
  }

  // A leaky ReLU of a layer is the larger of x and slope * x, both of them requantizations of the same sums: one
  // contraction with each output channel twice, since the accelerator's results are bytes.
  Outcome emit_leaky(IntegerLayer layer, const Apply& activation, const Scale& out) {
    const Apply* found = builder_->application(layer.accumulators);
    const auto sums = shape_of(layer.accumulators);
    if (!found || !sums || !found->op->is_one_of({ops::kConv2d, ops::kDense})) return std::nullopt;
    const bool convolution = found->op->is(ops::kConv2d);
    if (convolution && int_attr(found->attrs, "groups") != 1) return std::nullopt;
    const auto slopes = slopes_of(activation, layer.shape, convolution ? 1 : layer.shape.size() - 1);
    const auto weights = constant_value(*builder_, found->args[1]);
    if (!slopes || !weights) return std::nullopt;
    Apply anchor = *found;
    Shape twice = weights->shape();
    twice[0] *= 2;
    Tensor both(DType::kI8, twice);
    const auto data = weights->data<int8_t>();
    std::ranges::copy(data, both.data<int8_t>().begin());
    std::ranges::copy(data, both.data<int8_t>().begin() + static_cast<ptrdiff_t>(data.size()));
    TENON_TRY_ASSIGN(accumulators, builder_->apply(*anchor.op, {anchor.args[0], builder_->constant(std::move(both))},
                                                   anchor.attrs, name_));
    const size_t channels = layer.steps.size();
    for (size_t c = 0; c < channels; ++c) {
      layer.steps.push_back(layer.steps[c] * (*slopes)[c]);
      layer.bias.push_back(layer.bias[c]);
    }
    layer.accumulators = *accumulators;
    layer.scale = out;
    TENON_TRY_ASSIGN(made, requantized(layer));
    const auto half = [&](bool second) {
      Ints begin(sums->size()), step(sums->size(), 1), end(sums->size(), std::numeric_limits<int64_t>::max());
      (second ? begin : end)[1] = static_cast<int64_t>(channels);
      return apply(ops::kSlice, {*made}, {{"begin", begin}, {"end", end}, {"step", step}});
    };
    TENON_TRY_ASSIGN(above, half(false));
    TENON_TRY_ASSIGN(below, half(true));
    TENON_TRY_ASSIGN(larger, apply(ops::kMaximum, {*above, *below}));
    TENON_TRY_ASSIGN(reshaped, in_shape(*larger, layer.shape));
    return *reshaped;
  }

  // The sums of the layer, in the shape that they have, by its scale.
  Expected<Atom> requantized(const IntegerLayer& layer) {
    const Scale& out = layer.scale;
    std::vector<spec::ChannelParameters> channels;
    for (size_t c = 0; c < layer.steps.size(); ++c) {
      channels.push_back(requantize_ratio(layer.steps[c] / out.scale));
      channels.back().bias = layer.bias[c];
    }
    spec::LayerParameters parameters{.zero = out.zero};
    std::tie(parameters.lo, parameters.hi) = integer_bounds(layer.after, out);
    if (layer.residual) {
      set_residual(parameters, layer.residual->scale.scale / out.scale, layer.residual->scale.zero);
    }
    const auto residual = layer.residual ? std::optional(layer.residual->integers) : std::nullopt;
    return requantize(*builder_, layer.accumulators, channels, parameters, residual, name_, std::nullopt, layer.axis);
  }

  Outcome emit(IntegerLayer layer, const Scale& out) {
    layer.scale = out;
    TENON_TRY_ASSIGN(made, requantized(layer));
    const Dims shape = layer.shape;
    layers_.insert_or_assign(std::get<VarId>(*made), std::move(layer));
    TENON_TRY_ASSIGN(reshaped, in_shape(*made, shape));
    return *reshaped;
  }

  // The value in this shape; of reshaped values the first.
  Expected<Atom> in_shape(Atom atom, const Dims& shape) const {
    if (shape_of(atom) == shape) return atom;
    const Apply* reshape = builder_->application(atom, ops::kReshape);
    if (reshape && shape_of(reshape->args[0]) == shape) return reshape->args[0];
    return apply(ops::kReshape, {atom}, {{"zero", int64_t{1}}}, {{"shape", shape}});
  }
  // The shape in which channels are axis 1: matrices and maps as they are, others as a matrix of their last axis.
  Dims layer_shape(const Dims& shape) const {
    if (shape.size() == 2 || shape.size() == 4) return shape;
    return {context_.product(std::span(shape).first(shape.size() - 1)), shape.back()};
  }
  static size_t channel_axis(const Dims& shape) { return shape.size() == 4 ? 1 : shape.size() - 1; }
  // The channels of a layer of this shape; none where their number is not constant.
  std::optional<int64_t> channels_of(const Dims& shape) const {
    return shape.size() < 2 ? std::nullopt : layer_shape(shape)[1].constant();
  }
  // The integer layer of a value, where the value has no other user.
  const IntegerLayer* layer_of(const Quantized& x, bool dequantized_once) const {
    Atom atom = x.integers;
    if (!dequantized_once || !used_once(atom)) return nullptr;
    if (const Apply* reshape = builder_->application(atom, ops::kReshape)) atom = reshape->args[0];
    const auto found = layers_.find(std::get<VarId>(atom));
    return found == layers_.end() ? nullptr : &found->second;
  }
  bool is_layer(const Quantized& x) const {
    Atom atom = x.integers;
    if (const Apply* reshape = builder_->application(atom, ops::kReshape)) atom = reshape->args[0];
    const auto* var = std::get_if<VarId>(&atom);
    return var && layers_.contains(*var);
  }
  // The real range of the format, within the clamp.
  static Clamp range_of(const IntegerLayer& layer) {
    const auto [lo, hi] = integer_bounds(layer.after, layer.scale);
    return {.lo = (lo - layer.scale.zero) * layer.scale.scale, .hi = (hi - layer.scale.zero) * layer.scale.scale};
  }

  // A clamp of a quantized value, by the same scale or another one.
  Outcome clamped(const Quantized& x, bool dequantized_once, const Clamp& clamp, const Scale& out) {
    const bool same = x.scale == out;
    if (const IntegerLayer* before = same ? layer_of(x, dequantized_once) : nullptr) {
      IntegerLayer layer = *before;
      const Clamp range = range_of(layer);
      layer.after = {.lo = std::max(range.lo, clamp.lo), .hi = std::min(range.hi, clamp.hi)};
      return emit(std::move(layer), out);
    }
    const auto [lo, hi] = integer_bounds(clamp, out);
    if (same && lo == -128 && hi == 127) return x.integers;
    if (same) {
      TENON_TRY_ASSIGN(
          clip, apply(ops::kClip, {x.integers}, {{"min", static_cast<double>(lo)}, {"max", static_cast<double>(hi)}}));
      return *clip;
    }
    const auto shape = shape_of(x.integers);
    if (!shape || !channels_of(*shape) || !is_layer(x)) return std::nullopt;
    TENON_TRY_ASSIGN(layer, converted(x, *shape));
    layer->after = clamp;
    return emit(std::move(*layer), out);
  }

  // A value, of constant channels, as accumulators.
  Expected<IntegerLayer> converted(const Quantized& x, const Dims& shape) const {
    const Dims matrix = layer_shape(shape);
    TENON_TRY_ASSIGN(integers, in_shape(x.integers, matrix));
    TENON_TRY_ASSIGN(accumulators, cast(*integers, DType::kI32));
    const auto channels = static_cast<size_t>(*matrix[1].constant());
    IntegerLayer layer{.accumulators = *accumulators,
                       .steps = std::vector<double>(channels, x.scale.scale),
                       .bias = std::vector<int32_t>(channels, -x.scale.zero),
                       .residual = {},
                       .after = {},
                       .scale = {},
                       .shape = shape};
    return layer;
  }

  // An operator that moves or selects elements, of operands by the scale of its result: it may follow the rounding that
  // the model has after it, since rounding and clamps never decrease.
  Outcome moved(Apply move, const Scale& out, const Clamp& clamp = {}) {
    if (move.op->is(ops::kPad)) {
      if (float_attr(move.attrs, "value") != 0 || clamp.lo > 0 || clamp.hi < 0) return std::nullopt;
      move.attrs["value"] = static_cast<double>(out.zero);
    }
    Atoms args;
    const SpanId span = builder_->span();
    for (const Atom& arg : move.args) {
      const bool free = std::isinf(clamp.lo) && std::isinf(clamp.hi);
      const auto x = quantized(arg);
      if (x && x->scale == out && free) {
        args.push_back(x->integers);
        continue;
      }
      TENON_TRY_ASSIGN(inner, integer_form(arg, out, clamp));
      if (!*inner) return std::nullopt;
      args.push_back(**inner);
    }
    builder_->at(span);
    TENON_TRY_ASSIGN(made, builder_->apply(*move.op, std::move(args), move.attrs, name_, move.computed));
    return *made;
  }

  // The scale of all dequantized values whose elements a value consists of.
  std::optional<Scale> moved_scale(const Atom& atom) const {
    if (const auto x = quantized(atom)) return x->scale;
    const Apply* apply = builder_->application(atom);
    if (!apply || !moves_elements(*apply) || !used_once(atom)) return std::nullopt;
    std::optional<Scale> common;
    for (const Atom& arg : apply->args) {
      const auto scale = moved_scale(arg);
      if (!scale || (common && !(*common == *scale))) return std::nullopt;
      common = scale;
    }
    return common;
  }
  // An operand in i8: dequantized, and perhaps moved.
  Expected<std::optional<Quantized>> operand_of(const Atom& atom) {
    if (auto x = quantized(atom)) return x;
    const auto scale = moved_scale(atom);
    if (!scale) return std::nullopt;
    TENON_TRY_ASSIGN(integers, integer_form(atom, *scale));
    return *integers ? std::optional(Quantized{**integers, *scale}) : std::nullopt;
  }

  // The sum over the map; the requantization divides by its area.
  Expected<std::optional<IntegerLayer>> average(const Apply& pool) const {
    const auto x = quantized(pool.args[0]);
    const auto shape = shape_of(pool.args[0]);
    if (!x || !shape || shape->size() != 4) return std::nullopt;
    const int64_t area = context_.multiply((*shape)[2], (*shape)[3]).constant().value_or(0);
    constexpr int64_t kLargestArea = 1 << 23;  // the sum fits i32
    if (!channels_of(*shape) || area < 1 || area > kLargestArea) return std::nullopt;
    TENON_TRY_ASSIGN(total, apply(ops::kGlobalSumPool, {x->integers}));
    const auto channels = static_cast<size_t>(*channels_of(*shape));
    IntegerLayer layer{.accumulators = *total,
                       .steps = std::vector<double>(channels, x->scale.scale / static_cast<double>(area)),
                       .bias = std::vector<int32_t>(channels, static_cast<int32_t>(-x->scale.zero * area)),
                       .residual = {},
                       .after = {},
                       .scale = {},
                       .shape = {}};
    return layer;
  }

  // An addition: of a bias to a product, of two quantized values, or of a constant per channel to a quantized value.
  Expected<std::optional<IntegerLayer>> sum(const Apply& add, const Dims& shape, const Scale& out) {
    const auto a = quantized(add.args[0]), b = quantized(add.args[1]);
    if (a && b) return sum_of_two(*a, *b, shape, out);
    if (shape.size() < 2) return std::nullopt;
    for (const size_t i : {0, 1}) {
      const auto x = quantized(add.args[i]);
      const auto constant =
          x && shape_of(add.args[i]) == shape ? constant_value(*builder_, add.args[1 - i]) : std::nullopt;
      const auto bias = constant ? along_axis(*constant, shape, channel_axis(shape)) : std::nullopt;
      if (bias) return sum_with_constant(*x, *bias, shape, out);
    }
    return product(add, shape, out);
  }

  Expected<std::optional<IntegerLayer>> sum_with_constant(const Quantized& x, const std::vector<double>& constant,
                                                          const Dims& shape, const Scale& out) const {
    // The constant is rounded to steps of x, the same way in every row: an error of at most a tenth of a step of the
    // result, otherwise the addition stays in float.
    constexpr double kCoarsest = 0.2;
    if (!is_layer(x) || x.scale.scale > kCoarsest * out.scale) return std::nullopt;
    TENON_TRY_ASSIGN(layer, converted(x, shape));
    for (size_t c = 0; c < constant.size(); ++c) {
      const double steps = std::nearbyint(constant[c] / x.scale.scale);
      constexpr double kLargest = 1 << 24;
      if (!(std::abs(steps) < kLargest)) return std::nullopt;
      layer->bias[c] += static_cast<int32_t>(steps);
    }
    return *layer;
  }

  Expected<std::optional<IntegerLayer>> sum_of_two(const Quantized& a, const Quantized& b, const Dims& shape,
                                                   const Scale& out) const {
    if (shape_of(a.integers) != shape || shape_of(b.integers) != shape || !channels_of(shape)) return std::nullopt;
    // Either operand has at most 255 steps, of which the requantization holds 2047 in steps of the result.
    constexpr double kLargestRatio = 8;
    for (const Quantized& x : {a, b}) {
      if (x.scale.scale > kLargestRatio * out.scale) return std::nullopt;
    }
    TENON_TRY_ASSIGN(layer, converted(a, shape));
    TENON_TRY_ASSIGN(residual, in_shape(b.integers, layer_shape(shape)));
    layer->residual = Quantized{*residual, b.scale};
    return *layer;
  }

  // The constant weights of a layer.
  std::optional<LayerWeights> weights_of(const Apply& anchor) const {
    Atom atom = anchor.args[1];
    bool transposed = anchor.op->is(ops::kMatmul);
    if (const Apply* transpose = builder_->application(atom, ops::kTranspose)) {
      if (ints_attr(transpose->attrs, "axes") != Ints{1, 0}) return std::nullopt;
      transposed = !transposed;
      atom = transpose->args[0];
    }
    const Apply* apply = builder_->application(atom, ops::kDequantize);
    const auto bytes = apply ? constant_value(*builder_, apply->args[0]) : std::nullopt;
    if (!bytes || (bytes->dtype() != DType::kI8 && bytes->dtype() != DType::kU8)) return std::nullopt;
    const Shape& shape = bytes->shape();
    const size_t channel_axis = transposed ? 1 : 0;
    if (shape.size() < 2 || (transposed && shape.size() != 2)) return std::nullopt;
    LayerWeights weights{.values = Tensor(DType::kI8, transposed ? Shape{shape[1], shape[0]} : shape),
                         .scales = floats_attr(apply->attrs, "scale")};
    Ints zeros = ints_attr(apply->attrs, "zero_point");
    const auto channels = static_cast<size_t>(shape[channel_axis]);
    int64_t axis = int_attr(apply->attrs, "axis");
    if (axis < 0) axis += static_cast<int64_t>(shape.size());
    if (weights.scales.size() != 1 && axis != static_cast<int64_t>(channel_axis)) return std::nullopt;
    if (weights.scales.size() == 1) weights.scales.resize(channels, weights.scales[0]);
    if (zeros.size() == 1) zeros.resize(channels, zeros[0]);
    if (zeros.size() != channels || weights.scales.size() != channels || bytes->size() == 0) return std::nullopt;
    const size_t products = static_cast<size_t>(bytes->size()) / channels;
    weights.products = static_cast<int64_t>(products);
    weights.sums.resize(channels);
    Tensor remainders(DType::kI8, weights.values.shape());
    const auto inputs = static_cast<size_t>(weights.values.shape()[1]);
    const size_t kernel_positions = products / inputs;
    std::vector<bool> repeated(inputs);
    const auto out = weights.values.data<int8_t>(), more = remainders.data<int8_t>();
    const auto fill = [&](auto in) {
      for (size_t c = 0; c < channels; ++c) {
        for (size_t k = 0; k < products; ++k) {
          const int64_t value = in[transposed ? k * channels + c : c * products + k] - zeros[c];
          const int64_t first = std::clamp<int64_t>(value, -128, 127), second = value - first;
          if (second < -128 || second > 127) return false;
          out[c * products + k] = static_cast<int8_t>(first);
          more[c * products + k] = static_cast<int8_t>(second);
          if (second != 0) repeated[k / kernel_positions] = true;
          weights.sums[c] += value;
        }
      }
      return true;
    };
    const bool fits = bytes->dtype() == DType::kI8 ? fill(bytes->data<int8_t>()) : fill(bytes->data<uint8_t>());
    if (!fits) return std::nullopt;
    for (size_t i = 0; i < inputs; ++i) {
      if (repeated[i]) weights.repeated.push_back(static_cast<int64_t>(i));
    }
    if (weights.repeated.empty()) return weights;
    weights.products += static_cast<int64_t>(weights.repeated.size() * kernel_positions);
    Shape extended = weights.values.shape();
    extended[1] += static_cast<int64_t>(weights.repeated.size());
    Tensor all(DType::kI8, extended);
    auto to = all.data<int8_t>().begin();
    for (size_t c = 0; c < channels; ++c) {
      to = std::ranges::copy(out.subspan(c * products, products), to).out;
      for (const int64_t i : weights.repeated)
        to = std::ranges::copy(more.subspan(c * products + static_cast<size_t>(i) * kernel_positions, kernel_positions),
                               to)
                 .out;
    }
    weights.values = std::move(all);
    return weights;
  }

  static void halve_weights(LayerWeights& weights, size_t channel) {
    const auto products = static_cast<size_t>(weights.products);
    weights.sums[channel] = 0;
    for (int8_t& value : weights.values.data<int8_t>().subspan(channel * products, products)) {
      value = static_cast<int8_t>(std::nearbyint(value / 2.0));
      weights.sums[channel] += value;
    }
  }

  // A layer with constant weights, and the constants that are added to it or multiply it.
  std::optional<Linear> linear_of(const Apply& outermost, const Dims& shape) const {
    std::vector<std::pair<const Apply*, Tensor>> steps;  // from the outside, with the constant operand
    const Apply* apply = &outermost;
    SpanId span = builder_->span();
    while (apply->op->is_one_of({ops::kBiasAdd, ops::kAdd, ops::kMultiply})) {
      auto constant = apply->op->is(ops::kBiasAdd) ? std::nullopt : constant_value(*builder_, apply->args[0]);
      const Atom& inner = apply->args[constant ? 1 : 0];
      if (!constant) constant = constant_value(*builder_, apply->args[1]);
      if (!constant) return std::nullopt;
      steps.emplace_back(apply, *std::move(constant));
      apply = builder_->application(inner);
      if (!apply || !used_once(inner) || shape_of(inner) != shape) return std::nullopt;
      if (const auto* var = std::get_if<VarId>(&inner)) span = builder_->function().info(*var).span;
    }
    if (!apply->op->is_one_of({ops::kConv2d, ops::kMatmul, ops::kDense})) return std::nullopt;
    const size_t axis = apply->op->is(ops::kMatmul) ? shape.size() - 1 : 1;
    Linear linear{.anchor = *apply, .span = span};
    if (steps.empty()) return linear;
    const auto channels = static_cast<size_t>(shape[axis].constant().value_or(0));
    linear.factor.resize(channels, 1);
    linear.bias.resize(channels, 0);
    for (const auto& [step, constant] : steps) {
      std::optional<std::vector<double>> values;
      if (!step->op->is(ops::kBiasAdd)) {
        values = along_axis(constant, shape, axis);
      } else if (int64_t at = int_attr(step->attrs, "axis"); constant.dtype() == DType::kF32) {
        if (at < 0) at += static_cast<int64_t>(shape.size());
        if (at == static_cast<int64_t>(axis))
          values.emplace(constant.data<float>().begin(), constant.data<float>().end());
      }
      if (!values || values->size() != channels) return std::nullopt;
      for (size_t c = 0; c < channels; ++c) {
        if (step->op->is(ops::kMultiply)) {
          linear.factor[c] *= (*values)[c];
        } else {
          linear.bias[c] += linear.factor[c] * (*values)[c];
        }
      }
    }
    const auto is_factor = [](double factor) { return factor > 0 && std::isfinite(factor); };
    return std::ranges::all_of(linear.factor, is_factor) ? std::optional(std::move(linear)) : std::nullopt;
  }

  Expected<std::optional<IntegerLayer>> product(const Apply& outermost, const Dims& result, const Scale& out) {
    const auto linear = linear_of(outermost, result);
    if (!linear) return std::nullopt;
    builder_->at(linear->span);
    Apply anchor = linear->anchor;
    const bool convolution = anchor.op->is(ops::kConv2d);
    if (convolution && int_attr(anchor.attrs, "pad_value") != 0) return std::nullopt;
    auto weights = weights_of(anchor);
    if (!weights || (convolution && int_attr(anchor.attrs, "groups") != 1 && !weights->repeated.empty()))
      return std::nullopt;
    TENON_TRY_ASSIGN(x, operand_of(anchor.args[0]));
    builder_->at(linear->span);
    const auto shape = *x ? shape_of((*x)->integers) : std::nullopt;
    if (!shape || (!convolution && (shape->size() < 2 || shape->back().constant().value_or(0) < 1)))
      return std::nullopt;
    return sums_by_weights(std::move(anchor), **x, std::move(*weights), *linear, out);
  }

  Expected<std::optional<IntegerLayer>> sums_by_weights(Apply anchor, const Quantized& x, LayerWeights weights,
                                                        const Linear& linear, const Scale& out) {
    const bool convolution = anchor.op->is(ops::kConv2d);
    IntegerLayer layer;
    for (size_t c = 0; c < weights.scales.size(); ++c) {
      double step = x.scale.scale * weights.scales[c] * (linear.factor.empty() ? 1 : linear.factor[c]);
      if (!std::isnormal(step)) return std::nullopt;
      const auto total = [&] {
        const double offset = linear.bias.empty() ? 0 : std::nearbyint(linear.bias[c] / step);
        return offset - static_cast<double>(x.scale.zero) * static_cast<double>(weights.sums[c]);
      };
      // The sum with its bias must fit i32, which wraps. Quantizers give channels of tiny weights a tiny scale, and
      // with it a bias of all 32 bits: coarser weights are then as good, while their rounding stays far below a step.
      const auto products = static_cast<double>(weights.products);
      const auto fits = [&] {
        return std::abs(total()) + 128.0 * 128.0 * products < std::numeric_limits<int32_t>::max();
      };
      constexpr double kLargestError = 0.25;
      while (!fits()) {
        step *= 2;
        if (!(products * 128 * step < kLargestError * out.scale)) return std::nullopt;
        halve_weights(weights, c);
      }
      const double bias_steps = total();
      layer.steps.push_back(step);
      layer.bias.push_back(static_cast<int32_t>(bias_steps));
    }
    Atom operand = x.integers;
    const Dims shape = *shape_of(operand);
    if (convolution) {
      anchor.attrs["pad_value"] = int64_t{x.scale.zero};
    } else if (shape.size() != 2) {
      TENON_TRY_ASSIGN(matrix,
                       in_shape(operand, {context_.product(std::span(shape).first(shape.size() - 1)), shape.back()}));
      operand = *matrix;
    }
    if (const auto count = static_cast<int64_t>(weights.repeated.size()); count > 0) {
      const Attrs axis{{"axis", int64_t{1}}};
      TENON_TRY_ASSIGN(again, apply(ops::kGather, {operand, builder_->constant({count}, weights.repeated)}, axis));
      TENON_TRY_ASSIGN(all, apply(ops::kConcat, {operand, *again}, axis));
      operand = *all;
    }
    TENON_TRY_ASSIGN(sums,
                     apply(convolution ? ops::kConv2d : ops::kDense, {operand, builder_->constant(weights.values)},
                           convolution ? std::move(anchor.attrs) : Attrs{}));
    layer.accumulators = *sums;
    return layer;
  }

  Context& context_;
  const Function& function_;
  ValueScales* scales_;
  std::vector<uint32_t> uses_;            // by variable of the old function
  std::vector<const Value*> old_values_;  // likewise
  std::map<VarId, VarId> stands_for_;     // a variable of the new function: the old one
  std::map<VarId, Atom> signed_;          // a value in u8: the same in i8, minus 128
  std::map<VarId, IntegerLayer> layers_;  // by the result of their requantization
  Builder* builder_ = nullptr;            // of the current step
  std::string_view name_;                 // of the current binding
};

}  // namespace

Expected<Module> requantize_layers(Context& context, Module module, ValueScales* scales) {
  for (auto& [name, global] : module.globals) {
    auto* function = std::get_if<Function>(&global);
    if (!function) continue;
    TENON_TRY_ASSIGN(rewritten, LayerRewriting(context, *function, scales).run(module));
    *function = std::move(*rewritten);
  }
  return module;
}

}  // namespace tenon::compiler
