#include "compiler/backends/accel/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler/ir/operator.h"
#include "support/try.h"

namespace tenon::compiler::accel {
namespace {

// The name and the static shape of an activation.
Expected<std::pair<RegionTensor, runtime::Shape>> static_tensor(Context& context, const Function& function,
                                                                const Atom& atom) {
  const auto* var = std::get_if<VarId>(&atom);
  if (!var) return error("an activation is a constant: constants are supported only as weights");
  const TensorType* type = function.type(*var).tensor();
  if (!type) return error("an operand is not a tensor");
  if (type->dtype != DType::kI8) return error(fmt::format("a tensor is {}, must be i8", runtime::name(type->dtype)));
  const auto shape = type->shape();
  if (!shape) {
    return error(fmt::format("shape {} is not static", context.str(type->dims)), {},
                 "bind its variables with --shapes");
  }
  return std::pair{RegionTensor{.name = std::string(context.name(function.info(*var).name))}, *shape};
}

Expected<RegionTensor> region_tensor(Context& context, const Function& function, const Atom& atom) {
  TENON_TRY_ASSIGN(known, static_tensor(context, function, atom));
  auto& [tensor, shape] = *known;
  if (shape.size() == 4) {
    tensor.n = shape[0], tensor.c = shape[1], tensor.h = shape[2], tensor.w = shape[3];
  } else if (shape.size() == 2) {  // the rows of a matrix share the weights: they are the positions of one map
    tensor.w = shape[0], tensor.c = shape[1];
    tensor.rank = 2;
  } else {
    return error(fmt::format("a tensor has {} dims, must have 4 (N, C, H, W) or 2 (N, C)", shape.size()));
  }
  return tensor;
}

// Of any tensor.
Expected<runtime::Shape> static_shape(Context& context, const Function& function, const Atom& atom) {
  const TensorType& type = *function.type(std::get<VarId>(atom)).tensor();
  if (const auto shape = type.shape()) return *shape;
  return error(fmt::format("shape {} is not static", context.str(type.dims)), {}, "bind its variables with --shapes");
}

// The matrices of the last two dims. Transposed: their rows are the channels.
Expected<RegionTensor> matrices(Context& context, const Function& function, const Atom& atom, bool transposed) {
  TENON_TRY_ASSIGN(known, static_tensor(context, function, atom));
  auto& [tensor, shape] = *known;
  if (shape.size() < 2 || shape.size() > 4)
    return error(fmt::format("an operand of a product has {} dims, must have 2, 3 or 4", shape.size()));
  tensor.w = shape[shape.size() - 2], tensor.c = shape.back();
  if (transposed) std::swap(tensor.w, tensor.c);
  tensor.rank = shape.size() == 2 ? 2 : 3;
  tensor.transposed = transposed;
  if (shape.size() > 2) tensor.n = shape[0];
  if (shape.size() > 3) tensor.n *= shape[1], tensor.outer = shape[0];
  return tensor;
}

// The operators of a group.
struct Parts {
  const Apply* product = nullptr;     // conv2d, dense, cast, global_sum_pool, or alone max_pool2d
  const Apply* requantize = nullptr;  // none of max_pool2d
  const Apply* flatten = nullptr;
  VarId result{};
  std::map<VarId, const Apply*> moves;  // of a matmul: reshape and transpose, by their results
  SpanId span{};
};

Parts find_parts(const Function& function, std::span<const size_t> bindings) {
  Parts parts;
  const auto is_matmul = [&](size_t i) {
    const auto* apply = std::get_if<Apply>(&function.body.bindings[i].value);
    return apply && apply->op->is(ops::kMatmul);
  };
  const bool matmul = std::ranges::any_of(bindings, is_matmul);
  for (const size_t i : bindings) {
    const Binding& binding = function.body.bindings[i];
    const auto* apply = std::get_if<Apply>(&binding.value);
    assert(apply);
    const Operator& op = *apply->op;
    if (matmul && (op.is(ops::kTranspose) || op.is(ops::kReshape))) {
      parts.moves.emplace(binding.var, apply);
      if (parts.requantize) parts.result = binding.var;
    } else if (op.is(ops::kRequantize) || op.is(ops::kRequantizeAdd)) {
      parts.requantize = apply;
      parts.result = binding.var;
    } else if (op.is(ops::kFlatten) || op.is(ops::kReshape)) {
      parts.flatten = apply;
    } else {
      parts.product = apply;
      parts.span = function.info(binding.var).span;
      if (op.is(ops::kMaxPool2d)) parts.result = binding.var;
    }
  }
  assert(parts.product && (parts.requantize || parts.product->op->is(ops::kMaxPool2d)));
  return parts;
}

const runtime::Tensor& constant(const Module& module, const Atom& atom) {
  return module.constant(std::get<ConstId>(atom));
}

// The axis of the parameters of a requantization of this rank, counted from the first.
int64_t parameter_axis(const Apply& requantize, int64_t rank) {
  const int64_t axis = int_attr(requantize.attrs, "axis");
  return axis < 0 ? axis + rank : axis;
}

Status fill_requantization(const Module& module, const Apply& requantize, Layer& layer) {
  const Attrs& attrs = requantize.attrs;
  const auto bias = constant(module, requantize.args[1]).data<int32_t>();
  const auto multiplier = constant(module, requantize.args[2]).data<uint16_t>();
  const auto shift = constant(module, requantize.args[3]).data<uint8_t>();
  for (size_t i = 0; i < bias.size(); ++i) {
    constexpr uint8_t kHardwareShifts = 64;
    if (shift[i] >= kHardwareShifts) return error(fmt::format("shift {} of channel {} is over 63", shift[i], i));
    layer.channels.push_back({bias[i], multiplier[i], shift[i]});
  }
  const auto get = [&](std::string_view name) { return int_attr(attrs, name); };
  spec::LayerParameters& p = layer.parameters;
  p.v_lo = static_cast<int16_t>(get("v_lo"));
  p.v_hi = static_cast<int16_t>(get("v_hi"));
  p.zero = static_cast<int8_t>(get("zero"));
  p.lo = static_cast<int8_t>(get("lo"));
  p.hi = static_cast<int8_t>(get("hi"));
  p.residual = requantize.op->is(ops::kRequantizeAdd);
  if (p.residual) {
    p.r_zero = static_cast<int8_t>(get("r_zero"));
    p.r_multiplier = static_cast<uint16_t>(get("r_multiplier"));
    p.r_shift = static_cast<uint8_t>(get("r_shift"));
  }
  return {};
}

void fill_windows(const Attrs& attrs, Layer& layer) {
  const auto pair = [&](std::string_view name, int64_t& y, int64_t& x) {
    y = ints_attr(attrs, name)[0];
    x = ints_attr(attrs, name)[1];
  };
  pair("strides", layer.stride_y, layer.stride_x);
  pair("dilation", layer.dilation_y, layer.dilation_x);
  const auto& padding = ints_attr(attrs, "padding");
  layer.pad_top = padding[0], layer.pad_left = padding[1], layer.pad_bottom = padding[2], layer.pad_right = padding[3];
}

Status fill_convolution(const Module& module, const Apply& conv, Layer& layer) {
  fill_windows(conv.attrs, layer);
  layer.groups = int_attr(conv.attrs, "groups");
  layer.pad_value = static_cast<int8_t>(int_attr(conv.attrs, "pad_value"));
  const runtime::Tensor& weights = constant(module, conv.args[1]);
  if (weights.dtype() != DType::kI8)
    return error(fmt::format("weights are {}, must be i8", runtime::name(weights.dtype())));
  layer.kernel_h = weights.shape()[2];
  layer.kernel_w = weights.shape()[3];
  layer.weights.assign(weights.data<int8_t>().begin(), weights.data<int8_t>().end());
  return {};
}

// A dense layer is a convolution whose kernel is the whole map: w [M, C * H * W] is [M, C, H, W].
Status fill_dense(const Module& module, const Apply& dense, const RegionTensor& input, Layer& layer) {
  const runtime::Tensor& weights = constant(module, dense.args[1]);
  if (weights.dtype() != DType::kI8)
    return error(fmt::format("weights are {}, must be i8", runtime::name(weights.dtype())));
  if (input.rank == 4) {
    layer.kernel_h = input.h;
    layer.kernel_w = input.w;
  }
  if (weights.shape()[1] != input.c * layer.kernel_h * layer.kernel_w) {
    return error(fmt::format("the reshape before it changes the batch: {} features for a map of {}", weights.shape()[1],
                             input.c * layer.kernel_h * layer.kernel_w));
  }
  layer.weights.assign(weights.data<int8_t>().begin(), weights.data<int8_t>().end());
  return {};
}

// An operand of a product, or its result: the value outside of the group, as matrices.
struct Matrices {
  Atom atom;
  RegionTensor tensor;
  int64_t heads = 1;  // that are groups of the matrices' columns
};

const std::vector<int64_t>* axes_of(const Apply* move) {
  return move && move->op->is(ops::kTranspose) ? &ints_attr(move->attrs, "axes") : nullptr;
}

// Heads are parts of the channels of `joined` [T, H * D] or [N, T, H * D], which `split` [N, T, H, D] divides.
Expected<Matrices> heads(Context& context, const Function& function, const Atom& joined, const Atom& split,
                         bool transposed) {
  TENON_TRY_ASSIGN(tensor, matrices(context, function, joined, transposed));
  TENON_TRY_ASSIGN(parts, static_tensor(context, function, split));
  const runtime::Shape& shape = parts->second;
  const int64_t rows = transposed ? tensor->c : tensor->w, columns = transposed ? tensor->w : tensor->c;
  if (tensor->outer == 0 && shape.size() == 4 && shape[0] == tensor->n && shape[1] == rows &&
      shape[2] * shape[3] == columns)
    return Matrices{joined, *std::move(tensor), shape[2]};
  return error(fmt::format("a reshape from {} to {} does not divide the columns of a matrix into heads",
                           context.str(function.type(std::get<VarId>(joined))), runtime::to_string(shape)));
}

// `weights`: the second operand, whose columns are the channels of the result.
Expected<Matrices> operand_of_product(Context& context, const Function& function, const Parts& parts, const Atom& atom,
                                      bool weights) {
  const auto move_of = [&](const Atom& value) -> const Apply* {
    const auto* var = std::get_if<VarId>(&value);
    const auto found = var ? parts.moves.find(*var) : parts.moves.end();
    return found == parts.moves.end() ? nullptr : found->second;
  };
  const Apply* move = move_of(atom);
  if (!move) {
    TENON_TRY_ASSIGN(tensor, matrices(context, function, atom, weights));
    return Matrices{atom, *std::move(tensor)};
  }
  const std::vector<int64_t>* axes = axes_of(move);
  if (!axes) return error("an operand of the product is a reshape of a value, not a transpose");
  const Atom& inner = move->args[0];
  const Apply* split = move_of(inner);
  if (!split) {
    std::vector<int64_t> swapped(axes->size());
    std::iota(swapped.begin(), swapped.end(), int64_t{0});
    std::swap(swapped[swapped.size() - 2], swapped.back());
    if (!weights || *axes != swapped)
      return error("a transpose of an operand of the product is not that of the second operand's last two dims");
    TENON_TRY_ASSIGN(tensor, matrices(context, function, inner, false));
    return Matrices{inner, *std::move(tensor)};
  }
  const std::vector<int64_t> rows{0, 2, 1, 3}, columns{0, 2, 3, 1};
  if (*axes != rows && !(weights && *axes == columns))
    return error("a transpose of an operand does not divide it into heads");
  return heads(context, function, split->args[0], inner, weights && *axes == rows);
}

Expected<Matrices> result_of_product(Context& context, const Function& function, const Parts& parts) {
  const auto joined = parts.moves.find(parts.result);
  if (joined == parts.moves.end()) {
    TENON_TRY_ASSIGN(tensor, matrices(context, function, parts.result, false));
    return Matrices{parts.result, *std::move(tensor)};
  }
  const Atom& split = joined->second->args[0];
  const auto moved = parts.moves.find(std::get<VarId>(split));
  const std::vector<int64_t>* axes = moved == parts.moves.end() ? nullptr : axes_of(moved->second);
  if (!axes || *axes != std::vector<int64_t>{0, 2, 1, 3}) return error("what follows the product does not join heads");
  return heads(context, function, parts.result, split, false);
}

// The parameters of the channels of a product, the last axis of its requantization; along another axis they must be
// equal.
Status fill_product_requantization(Context& context, const Module& module, const Function& function, const Parts& parts,
                                   Layer& layer) {
  TENON_TRY(fill_requantization(module, *parts.requantize, layer));
  TENON_TRY_ASSIGN(product, static_shape(context, function, parts.requantize->args[0]));
  const auto rank = static_cast<int64_t>(product->size());
  const int64_t axis = parameter_axis(*parts.requantize, rank);
  if (axis == rank - 1) return {};
  if (layer.channels.empty()) return error("a product has no rows or no columns, every dimension must be at least 1");
  const auto differs = [&](const spec::ChannelParameters& p) { return p != layer.channels[0]; };
  if (std::ranges::any_of(layer.channels, differs)) {
    return error(
        fmt::format("the parameters of requantize differ along axis {}, must be equal or along the last one", axis));
  }
  layer.channels.assign(static_cast<size_t>(product->back()), spec::ChannelParameters(layer.channels[0]));
  return {};
}

Expected<TranslatedLayer> translate_product(Context& context, const Module& module, const Function& function,
                                            const Parts& parts) {
  TranslatedLayer t;
  t.layer.kind = LayerKind::kMatmul;
  TENON_TRY_ASSIGN(input, operand_of_product(context, function, parts, parts.product->args[0], false));
  TENON_TRY_ASSIGN(weights, operand_of_product(context, function, parts, parts.product->args[1], true));
  TENON_TRY_ASSIGN(output, result_of_product(context, function, parts));
  TENON_TRY_ASSIGN(product, static_shape(context, function, parts.requantize->args[0]));
  t.layer.batch = std::accumulate(product->begin(), product->end() - 2, int64_t{1}, std::multiplies<>());
  // Equal sizes of images, or of groups of channels: not those that are broadcast.
  for (const auto& [atom, inside] :
       {std::pair{parts.product->args[0], &input->tensor}, {parts.product->args[1], &weights->tensor}}) {
    TENON_TRY_ASSIGN(shape, static_shape(context, function, atom));
    const int64_t batch = std::accumulate(shape->begin(), shape->end() - 2, int64_t{1}, std::multiplies<>());
    if (batch == t.layer.batch) continue;
    return error(
        fmt::format("operand {} of the product is broadcast: {} matrices of {}", inside->name, batch, t.layer.batch));
  }
  TENON_TRY(fill_product_requantization(context, module, function, parts, t.layer));
  if (t.layer.parameters.residual) return error("an addition is not fused with a product of two activations");
  t.input = std::move(input->tensor);
  t.weights = std::move(weights->tensor);
  t.output = std::move(output->tensor);
  // Columns of the transposed matrices are positions.
  if (t.weights->transposed) t.layer.weight_groups = weights->heads;
  t.input_atom = input->atom;
  t.weights_atom = weights->atom;
  if (t.input_atom == t.weights_atom && t.input != *t.weights)
    return error("one value is both operands of the product, by its rows and by its columns");
  return t;
}

}  // namespace

Expected<TranslatedLayer> translate_layer(Context& context, const Module& module, const Function& function,
                                          std::span<const size_t> bindings) {
  const Parts parts = find_parts(function, bindings);
  std::string name = module.span(parts.span).node;
  if (name.empty()) name = context.name(function.info(parts.result).name);
  if (parts.product->op->is(ops::kMatmul)) {
    auto product = translate_product(context, module, function, parts);
    if (product && product->output.name.empty()) product->output.name = name;
    if (product) product->layer.name = std::move(name);
    return product;
  }
  TranslatedLayer t;
  t.layer.name = std::move(name);
  t.input_atom = parts.flatten ? parts.flatten->args[0] : parts.product->args[0];
  TENON_TRY_ASSIGN(input, region_tensor(context, function, t.input_atom));
  t.input = *input;
  TENON_TRY_ASSIGN(output, region_tensor(context, function, parts.result));
  t.output = *output;
  if (parts.requantize) {
    const int64_t axis = parameter_axis(*parts.requantize, t.output.rank);
    if (axis != 1) return error(fmt::format("requantize is along axis {}, must be 1, the channels", axis));
    TENON_TRY(fill_requantization(module, *parts.requantize, t.layer));
  }
  if (t.layer.parameters.residual) {
    t.residual_atom = parts.requantize->args[4];
    TENON_TRY(region_tensor(context, function, t.residual_atom));
  }

  const Operator& op = *parts.product->op;
  if (op.is(ops::kConv2d)) {
    TENON_TRY(fill_convolution(module, *parts.product, t.layer));
  } else if (op.is(ops::kDense)) {
    TENON_TRY(fill_dense(module, *parts.product, t.input, t.layer));
  } else if (op.is(ops::kGlobalSumPool)) {
    t.layer.kind = LayerKind::kGlobalSumPool;
  } else if (op.is(ops::kMaxPool2d)) {
    t.layer.kind = LayerKind::kMaxPool2d;
    fill_windows(parts.product->attrs, t.layer);
    t.layer.kernel_h = ints_attr(parts.product->attrs, "kernel")[0];
    t.layer.kernel_w = ints_attr(parts.product->attrs, "kernel")[1];
  } else {
    assert(op.is(ops::kCast));
    t.layer.kind = LayerKind::kAdd;
  }
  return t;
}

Expected<Region> translate_region(Context& context, const Module& module, std::string_view name,
                                  const Function& function) {
  Region region;
  region.name = name;
  // By variable: its tensor of the region, of its plain type.
  std::vector<int> tensors(function.vars.size(), -1);
  std::vector<std::pair<VarId, VarId>> stored;  // parameters and what they are transformed to, the same tensors
  const auto is_param = [&](VarId var) { return std::ranges::find(function.params, var) != function.params.end(); };
  // The tensor as a layer reads or writes it.
  const auto tensor_of = [&](VarId var, RegionTensor as) -> Expected<int> {
    as.name = context.name(function.info(var).name);
    if (tensors[index(var)] == -1) {
      tensors[index(var)] = static_cast<int>(region.tensors.size());
      region.tensors.push_back(std::move(as));
    } else if (region.tensors[tensors[index(var)]] != as) {
      return error(fmt::format("value {} is in two layouts, of a map, of matrices or of transposed ones", as.name), {},
                   "split the region");
    }
    return tensors[index(var)];
  };

  Atoms results{function.body.result};
  for (const Binding& binding : function.body.bindings) {
    if (const auto* tuple = std::get_if<Tuple>(&binding.value)) {
      results = tuple->fields;
      continue;
    }
    if (const auto* apply = std::get_if<Apply>(&binding.value)) {  // a transform at the boundary: the same tensor
      assert(apply->op->is(ops::kLayoutTransform));
      const VarId from = std::get<VarId>(apply->args[0]);
      if (is_param(from)) {
        stored.emplace_back(from, binding.var);
      } else {
        tensors[index(binding.var)] = tensors[index(from)];  // -1 where no layer writes it: found below
      }
      continue;
    }
    const auto& call = std::get<Call>(binding.value);
    const Function* composite = module.function(std::get<Symbol>(call.callee));
    assert(composite && !composite->composite.empty());
    std::vector<size_t> bindings(composite->body.bindings.size());
    for (size_t i = 0; i < bindings.size(); ++i) bindings[i] = i;
    TENON_TRY_ASSIGN(translated, translate_layer(context, module, *composite, bindings));
    const auto argument = [&](const Atom& inner, const RegionTensor& as) -> Expected<int> {
      const auto at = std::ranges::find(composite->params, std::get<VarId>(inner)) - composite->params.begin();
      return tensor_of(std::get<VarId>(call.args[at]), as);
    };
    Layer layer = std::move(translated->layer);
    layer.op = composite->composite;
    TENON_TRY_ASSIGN(input, argument(translated->input_atom, translated->input));
    layer.input = *input;
    if (layer.parameters.residual) {
      TENON_TRY_ASSIGN(residual, argument(translated->residual_atom, translated->output));
      layer.residual = *residual;
    }
    if (translated->weights) {
      TENON_TRY_ASSIGN(weights, argument(translated->weights_atom, *translated->weights));
      layer.computed_weights = *weights;
    }
    TENON_TRY_ASSIGN(output, tensor_of(binding.var, translated->output));
    layer.output = *output;
    region.layers.push_back(std::move(layer));
  }
  for (const auto& [param, plain] : stored) tensors[index(param)] = tensors[index(plain)];
  for (const VarId param : function.params) region.inputs.push_back(tensors[index(param)]);
  for (const Atom& result : results) region.outputs.push_back(tensors[index(std::get<VarId>(result))]);
  for (const auto& boundary : {region.inputs, region.outputs}) {
    if (std::ranges::find(boundary, -1) == boundary.end()) continue;
    return error(fmt::format("region {} has a parameter or result that no layer reads or writes", name));
  }
  return region;
}

}  // namespace tenon::compiler::accel
