#include "compiler/backends/dnnl/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "support/try.h"

namespace tenon::compiler::dnnl {
namespace {

// A layer in the order of its operators; what is not there is nullptr.
struct Layer {
  const Apply* product = nullptr;  // conv2d, dense, matmul
  const Apply *bias = nullptr, *add = nullptr, *activation = nullptr;
  VarId before_add{};
};

// The operators of a match, or of a composite's body. The patterns leave one way only in which they can follow.
Layer read_layer(const Function& function, std::span<const size_t> bindings) {
  Layer layer;
  for (const size_t number : bindings) {
    const Binding& binding = function.body.bindings[number];
    const auto& apply = std::get<Apply>(binding.value);
    const Operator& name = *apply.op;
    if (name.is(ops::kBiasAdd)) layer.bias = &apply;
    else if (name.is(ops::kAdd)) layer.add = &apply;
    else if (name.is(ops::kRelu) || name.is(ops::kClip)) layer.activation = &apply;
    else layer.product = &apply;
    if (!layer.add) layer.before_add = binding.var;
  }
  return layer;
}

// The residual: the operand of the addition that is not the layer's result.
const Atom& other_of(const Layer& layer) {
  return layer.add->args[layer.add->args[0] == Atom(layer.before_add) ? 1 : 0];
}

const TensorType* type_of(Context& context, const Module& module, const Function& function, const Atom& atom) {
  if (const auto* var = std::get_if<VarId>(&atom)) return function.type(*var).tensor();
  return context.type_of(module.constant(std::get<ConstId>(atom))).tensor();
}

Status accepts(Context& context, const Module& module, const Function& function, const Match& match) {
  const Layer layer = read_layer(function, match.bindings);
  const auto type = [&](const Atom& atom) { return type_of(context, module, function, atom); };
  const Apply& product = *layer.product;
  std::vector<Atom> operands = product.args;
  if (layer.add) operands.push_back(other_of(layer));
  for (const Atom& atom : operands) {
    const TensorType* tensor = type(atom);
    if (tensor->dtype != DType::kF32) return error("only f32 is left to oneDNN");
    const auto shape = tensor->shape();
    if (!shape) return error(fmt::format("the shape {} is not static", context.str(tensor->dims)));
    if (std::ranges::find(*shape, 0) != shape->end()) return error("a tensor is empty");
  }
  const TensorType* result = function.type(layer.before_add).tensor();
  const size_t rank = result->dims.size();
  if (product.op->is(ops::kConv2d) && int_attr(product.attrs, "pad_value") != 0)
    return error("its padding is not of zeros");
  if (product.op->is(ops::kMatmul)) {
    const Dims &a = type(product.args[0])->dims, &b = type(product.args[1])->dims;
    const bool same = a.size() == b.size() && a.size() <= 6 && std::equal(a.begin(), a.end() - 2, b.begin());
    if (!same) return error("its operands have different batches");
  }
  if (layer.bias) {
    const int64_t axis = int_attr(layer.bias->attrs, "axis"),
                  wanted = product.op->is(ops::kConv2d) ? 1 : static_cast<int64_t>(rank) - 1;
    if (axis != wanted && axis != wanted - static_cast<int64_t>(rank)) return error("its bias lies along another axis");
  }
  if (layer.add && (type(other_of(layer))->dims != result->dims || layer.add->args[0] == layer.add->args[1]))
    return error("what is added is not of the result's shape");
  return {};
}

std::vector<TargetPattern> patterns() {
  const auto activated = [](const GraphPattern& x) { return either({op(ops::kRelu, {x}), op(ops::kClip, {x}), x}); };
  std::vector<TargetPattern> rows;
  for (const auto& [name, product] : {std::pair{"conv2d", op(ops::kConv2d, {any(), constant()})},
                                      std::pair{"dense", op(ops::kDense, {any(), constant()})},
                                      std::pair{"matmul", op(ops::kMatmul, {any(), any()})}}) {
    const GraphPattern layer = optional(ops::kBiasAdd, {product, constant()});
    const std::string composite = fmt::format("dnnl.{}", name);
    rows.push_back({composite + "_add", activated(commutative(ops::kAdd, {layer, any()})), accepts});
    rows.push_back({composite, activated(layer), accepts});
  }
  return rows;
}

size_t calls(const Function& region) {
  return static_cast<size_t>(std::ranges::count_if(
      region.body.bindings, [](const Binding& binding) { return std::holds_alternative<Call>(binding.value); }));
}

// The region's one layer as a call.
Expected<RegionKernel> generate(Context&, const Module& module, Symbol, const Function& region) {
  const auto found = std::ranges::find_if(
      region.body.bindings, [](const Binding& binding) { return std::holds_alternative<Call>(binding.value); });
  const Call& call = std::get<Call>(found->value);
  const Function& composite = *module.function(std::get<Symbol>(call.callee));
  std::vector<size_t> all(composite.body.bindings.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  const Layer layer = read_layer(composite, all);

  LibraryCall made{.kernel = fmt::format("dnnl.{}", layer.product->op->name), .attrs = {}, .operands = {}};
  // A parameter of the composite is an argument of its call, which is a parameter of the region.
  const auto operand = [&](const Atom& atom) -> std::variant<size_t, runtime::Tensor> {
    if (const auto* constant = std::get_if<ConstId>(&atom)) return module.constant(*constant);
    const auto inner = std::ranges::find(composite.params, std::get<VarId>(atom)) - composite.params.begin();
    const Atom& arg = call.args[static_cast<size_t>(inner)];
    if (const auto* constant = std::get_if<ConstId>(&arg)) return module.constant(*constant);
    return static_cast<size_t>(std::ranges::find(region.params, std::get<VarId>(arg)) - region.params.begin());
  };
  for (const Atom& atom : layer.product->args) made.operands.push_back(operand(atom));
  if (layer.bias) made.operands.push_back(operand(layer.bias->args[1]));
  if (layer.add) made.operands.push_back(operand(other_of(layer)));
  if (layer.product->op->is(ops::kConv2d)) {
    for (const char* name : {"strides", "padding", "dilation", "groups"})
      made.attrs.emplace(name, layer.product->attrs.find(name)->second);
  }
  made.attrs.emplace("bias", int64_t{layer.bias ? 1 : 0});
  made.attrs.emplace("add", int64_t{layer.add ? 1 : 0});
  made.attrs.emplace("activation", layer.activation ? layer.activation->op->name : std::string());
  if (layer.activation && layer.activation->op->is(ops::kClip)) {
    made.attrs.emplace("low", float_attr(layer.activation->attrs, "min"));
    made.attrs.emplace("high", float_attr(layer.activation->attrs, "max"));
  }
  return made;
}

}  // namespace

Target make_target() {
  Target target;
  target.name = "dnnl";
  target.documentation = "oneDNN: convolutions and matrix products in f32, with what follows them";
  target.patterns = patterns();
  target.fits = [](Context&, const Module&, const Function& region) -> Status {
    if (calls(region) <= 1) return {};
    return error("a call of oneDNN is one layer");
  };
  target.generate = generate;
  return target;
}

std::vector<TargetRecord> records() {
  return {{.name = "dnnl", .documentation = "oneDNN; f32", .make = [](const TargetOptions&) { return make_target(); }}};
}

}  // namespace tenon::compiler::dnnl
