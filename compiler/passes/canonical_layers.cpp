// Products of tensors with constant weights and convolutions of one axis, as the layers that an accelerator has: dense
// layers of rows and two-dimensional convolutions. The reshape after such a layer moves below its bias and activation,
// so that these stay next to it. The sizes of convolutions must be constants.
#include <algorithm>
#include <string>
#include <utility>

#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;
using Outcome = Expected<std::optional<Atom>>;

class CanonicalLayer {
 public:
  CanonicalLayer(Builder& builder, const Apply& apply, std::string_view name)
      : builder_(builder), apply_(apply), name_(name) {}

  // The atom that replaces the application, if one does.
  Outcome run() {
    if (!apply_.computed.empty()) return std::nullopt;
    if (apply_.op->is(ops::kMatmul)) return product();
    if (apply_.op->is(ops::kConv1d)) return convolution();
    if (apply_.op->is_one_of({ops::kRelu, ops::kClip})) return below(0, {});
    if (apply_.op->is(ops::kBiasAdd)) return biased_maps();
    if (apply_.op->is(ops::kAdd)) return biased_rows();
    return std::nullopt;
  }

 private:
  std::optional<runtime::Shape> shape_of(const Atom& atom) const {
    const TensorType* type = builder_.tensor_type(atom);
    return type ? type->shape() : std::nullopt;
  }
  // The sizes of a tensor, all of which have a name or a value.
  std::optional<Dims> dims_of(const Atom& atom) const {
    const TensorType* type = builder_.tensor_type(atom);
    const bool known = type && std::ranges::none_of(type->dims, [](Dim dim) { return dim.erased(); });
    return known ? std::optional(type->dims) : std::nullopt;
  }
  Dims constant_dims(const Ints& sizes) const {
    Dims dims;
    for (const int64_t size : sizes) dims.push_back(builder_.context().dim(size));
    return dims;
  }
  Expected<Atom> reshaped(const Atom& atom, Dims shape, std::string_view name = {}) {
    return builder_.apply(builder_.context().op(ops::kReshape), {atom}, {{"zero", int64_t{1}}}, name,
                          {{"shape", std::move(shape)}});
  }

  // x [..., K] times w [K, N]: the rows of x through a dense layer.
  Outcome product() {
    const runtime::Tensor* weights = constant_of(builder_.module(), apply_.args[1]);
    const auto shape = dims_of(apply_.args[0]);
    if (!weights || weights->shape().size() != 2 || !shape || shape->size() < 3) return std::nullopt;
    Context& context = builder_.context();
    const Dim rows_of_all = context.product(std::span(*shape).first(shape->size() - 1));
    if (weights->shape()[0] == 0 || rows_of_all.constant() == 0) return std::nullopt;
    auto transposed = context.op(ops::kTranspose).reference({{"axes", Ints{1, 0}}}, std::span(weights, 1));
    if (!transposed) return std::nullopt;
    Dims result = *shape;
    result.back() = context.dim(weights->shape()[1]);
    TENON_TRY_ASSIGN(rows, reshaped(apply_.args[0], {rows_of_all, shape->back()}));
    TENON_TRY_ASSIGN(
        dense, builder_.apply(ops::kDense, {*rows, builder_.constant(std::move(transposed->front()))}, {}, name_));
    return reshaped(*dense, std::move(result), name_);
  }

  // x [N, C, W] as maps of height 1.
  Outcome convolution() {
    const runtime::Tensor* weights = constant_of(builder_.module(), apply_.args[1]);
    const auto shape = shape_of(apply_.args[0]);
    const Expected<Type> type = infer_value(builder_.context(), builder_.module(), builder_.function(), apply_);
    const auto result = type && type->tensor() ? type->tensor()->shape() : std::nullopt;
    if (!weights || !shape || !result) return std::nullopt;
    Attrs attrs = apply_.attrs;
    attrs["strides"] = Ints{1, ints_attr(apply_.attrs, "strides")[0]};
    attrs["dilation"] = Ints{1, ints_attr(apply_.attrs, "dilation")[0]};
    const Ints& padding = ints_attr(apply_.attrs, "padding");
    attrs["padding"] = Ints{0, padding[0], 0, padding[1]};
    const runtime::Shape& w = weights->shape();
    const Atom kernel = builder_.constant(weights->reshaped({w[0], w[1], 1, w[2]}));
    TENON_TRY_ASSIGN(maps, reshaped(apply_.args[0], constant_dims({(*shape)[0], (*shape)[1], 1, (*shape)[2]})));
    TENON_TRY_ASSIGN(layer, builder_.apply(ops::kConv2d, {*maps, kernel}, std::move(attrs), name_));
    return reshaped(*layer, constant_dims(*result), name_);
  }

  // The value that operand `i` is a reshape of, if it is a layer with its bias and activation.
  std::optional<Atom> reshaped_layer(size_t i) const {
    const Apply* reshape = builder_.application(apply_.args[i], ops::kReshape);
    const Apply* layer = reshape && dims_of(apply_.args[i]) ? builder_.application(reshape->args[0]) : nullptr;
    const bool is_layer =
        layer && layer->op->is_one_of({ops::kDense, ops::kConv2d, ops::kBiasAdd, ops::kRelu, ops::kClip});
    return is_layer && dims_of(reshape->args[0]) ? std::optional(reshape->args[0]) : std::nullopt;
  }

  // The application, or `instead` with its other operand, to the layer that operand `i` is a reshape of; its result is
  // reshaped.
  Outcome below(size_t i, std::optional<std::pair<OperatorId, Atom>> instead) {
    const auto layer = reshaped_layer(i);
    const auto result = dims_of(apply_.args[i]);
    if (!layer || !result) return std::nullopt;
    Atoms args = apply_.args;
    args[i] = *layer;
    TENON_TRY_ASSIGN(moved, instead ? builder_.apply(instead->first, {*layer, instead->second}, {}, name_)
                                    : builder_.apply(*apply_.op, std::move(args), apply_.attrs, name_));
    return reshaped(*moved, *result, name_);
  }

  // The channels of the maps that it is a reshape of are on the same axis.
  Outcome biased_maps() {
    const auto layer = reshaped_layer(0);
    const auto shape = shape_of(apply_.args[0]), maps = layer ? shape_of(*layer) : std::nullopt;
    const bool is_row_of_maps = maps && maps->size() == 4 && (*maps)[2] == 1 && shape && shape->size() == 3 &&
                                (*shape)[1] == (*maps)[1] && int_attr(apply_.attrs, "axis") == 1;
    return is_row_of_maps ? below(0, {}) : Outcome(std::nullopt);
  }

  // A constant for each column of the rows that the other operand is a reshape of.
  Outcome biased_rows() {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const runtime::Tensor* bias = constant_of(builder_.module(), apply_.args[1 - i]);
      const auto layer = reshaped_layer(i);
      const auto shape = dims_of(apply_.args[i]), rows = layer ? dims_of(*layer) : std::nullopt;
      if (!bias || !rows || rows->size() != 2 || !shape || shape->back() != rows->back()) continue;
      const auto columns = rows->back().constant();
      if (bias->shape().empty() || bias->shape().size() > shape->size() || bias->size() != columns ||
          bias->shape().back() != columns)
        continue;
      return below(i, std::pair(ops::kBiasAdd, builder_.constant(bias->reshaped({*columns}))));
    }
    return std::nullopt;
  }

  Builder& builder_;
  const Apply apply_;
  const std::string name_;
};

}  // namespace

Expected<Module> canonical_layers(Context& context, Module module) {
  for (auto& [name, global] : module.globals) {
    auto* function = std::get_if<Function>(&global);
    if (!function) continue;
    const auto step = [&](Builder& builder, Binding& binding) -> Outcome {
      const auto* apply = std::get_if<Apply>(&binding.value);
      if (!apply) return std::nullopt;
      return CanonicalLayer(builder, *apply, context.name(function->info(binding.var).name)).run();
    };
    TENON_TRY_ASSIGN(layers, rewrite(context, module, *function, step));
    *function = std::move(*layers);
  }
  return simplify(context, std::move(module));
}

Pass canonical_layers_pass() {
  return {"canonical_layers", "Writes products with weights as dense layers of rows, and 1-D convolutions as 2-D ones.",
          canonical_layers};
}

}  // namespace tenon::compiler
