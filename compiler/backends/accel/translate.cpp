#include "compiler/backends/accel/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>

#include "compiler/ir/operator.h"
#include "support/try.h"

namespace tenon::compiler::accel {
namespace {

Expected<RegionTensor> region_tensor(Context& context, const Function& function, const Atom& atom) {
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
  RegionTensor tensor;
  tensor.name = context.name(function.info(*var).name);
  if (shape->size() == 4) {
    tensor.n = (*shape)[0], tensor.c = (*shape)[1], tensor.h = (*shape)[2], tensor.w = (*shape)[3];
  } else if (shape->size() == 2) {  // the rows of a matrix share the weights: they are the positions of one map
    tensor.w = (*shape)[0], tensor.c = (*shape)[1];
    tensor.rank = 2;
  } else {
    return error(fmt::format("a tensor has {} dims, must have 4 (N, C, H, W) or 2 (N, C)", shape->size()));
  }
  return tensor;
}

// The operators of a group.
struct Parts {
  const Apply* product = nullptr;     // conv2d, dense, cast, global_sum_pool, or alone max_pool2d
  const Apply* requantize = nullptr;  // none of max_pool2d
  const Apply* flatten = nullptr;
  VarId result{};
  SpanId span{};
};

Parts find_parts(const Function& function, std::span<const size_t> bindings) {
  Parts parts;
  for (const size_t i : bindings) {
    const Binding& binding = function.body.bindings[i];
    const auto* apply = std::get_if<Apply>(&binding.value);
    assert(apply);
    const Operator& op = *apply->op;
    if (op.is(ops::kRequantize) || op.is(ops::kRequantizeAdd)) {
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

Status fill_requantization(const Module& module, const Apply& requantize, Layer& layer) {
  const Attrs& attrs = requantize.attrs;
  if (int_attr(attrs, "axis") != 1) {
    return error(fmt::format("requantize is along axis {}, must be 1, the channels", int_attr(attrs, "axis")));
  }
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

}  // namespace

Expected<TranslatedLayer> translate_layer(Context& context, const Module& module, const Function& function,
                                          std::span<const size_t> bindings) {
  const Parts parts = find_parts(function, bindings);
  TranslatedLayer t;
  t.layer.name = module.span(parts.span).node;
  if (t.layer.name.empty()) t.layer.name = context.name(function.info(parts.result).name);
  t.input_atom = parts.flatten ? parts.flatten->args[0] : parts.product->args[0];
  TENON_TRY_ASSIGN(input, region_tensor(context, function, t.input_atom));
  t.input = *input;
  TENON_TRY_ASSIGN(output, region_tensor(context, function, parts.result));
  t.output = *output;
  if (parts.requantize) {
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
  // By variable: its tensor of the region, of its plain type. A stored parameter gets its tensor at its transform.
  std::vector<int> tensors(function.vars.size(), -1);
  const auto is_param = [&](VarId var) { return std::ranges::find(function.params, var) != function.params.end(); };
  const auto tensor_of = [&](VarId var) -> Expected<int> {
    if (tensors[index(var)] == -1) {
      TENON_TRY_ASSIGN(tensor, region_tensor(context, function, var));
      tensors[index(var)] = static_cast<int>(region.tensors.size());
      region.tensors.push_back(std::move(*tensor));
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
        TENON_TRY_ASSIGN(tensor, tensor_of(binding.var));
        tensors[index(from)] = *tensor;
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
    const auto argument = [&](const Atom& inner) -> Expected<int> {
      const auto at = std::ranges::find(composite->params, std::get<VarId>(inner)) - composite->params.begin();
      return tensor_of(std::get<VarId>(call.args[at]));
    };
    Layer layer = std::move(translated->layer);
    layer.op = composite->composite;
    TENON_TRY_ASSIGN(input, argument(translated->input_atom));
    layer.input = *input;
    if (layer.parameters.residual) {
      TENON_TRY_ASSIGN(residual, argument(translated->residual_atom));
      layer.residual = *residual;
    }
    TENON_TRY_ASSIGN(output, tensor_of(binding.var));
    layer.output = *output;
    region.layers.push_back(std::move(layer));
  }
  for (const VarId param : function.params) region.inputs.push_back(tensors[index(param)]);
  for (const Atom& result : results) region.outputs.push_back(tensors[index(std::get<VarId>(result))]);
  for (const auto& boundary : {region.inputs, region.outputs}) {
    if (std::ranges::find(boundary, -1) == boundary.end()) continue;
    return error(fmt::format("region {} has a parameter or result that no layer reads or writes", name));
  }
  return region;
}

}  // namespace tenon::compiler::accel
