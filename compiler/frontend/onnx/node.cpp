#include "compiler/frontend/onnx/node.h"

#include "compiler/ir/term.h"

#include <fmt/format.h>

#include "compiler/frontend/onnx/sizes.h"
#include "compiler/ir/rewrite.h"

namespace tenon::compiler::onnx {
namespace {

constexpr int64_t kMaxFolded = 1 << 16;  // elements: shapes, not weights

bool is_shape_arithmetic(const TensorType& type) {
  return type.dtype == DType::kI64 || type.dtype == DType::kI32 || type.dtype == DType::kBool;
}

}  // namespace

std::unexpected<Diagnostic> NodeImport::fail(std::string what, std::string help) const {
  return error(std::move(what), builder_.module().span(builder_.span()).str(), std::move(help));
}

Expected<Atom> NodeImport::input(size_t i) const {
  if (!has_input(i)) return fail(fmt::format("input {} is missing", i));
  return names_.at(node_.inputs[i]);  // the importer has checked that it exists
}

Expected<TensorType> NodeImport::type(size_t i) const {
  TENON_TRY_ASSIGN(atom, input(i));
  const TensorType* type = builder_.tensor_type(*atom);
  if (!type) return fail(fmt::format("input {} is not a tensor", i));
  return *type;
}

const runtime::Tensor* NodeImport::constant_tensor(const Atom& atom) const {
  return constant_of(builder_.module(), atom);
}

namespace {

// Of a model that comes quantized, constants are dequantized ones, which may be quantized in the model.
std::optional<runtime::Tensor> quantized_constant(const Builder& builder, const Atom& atom) {
  if (const runtime::Tensor* tensor = constant_of(builder.module(), atom)) return *tensor;
  const Apply* apply = builder.application(atom);
  if (!apply || !apply->op->is_one_of({ops::kQuantize, ops::kDequantize})) return std::nullopt;
  const auto operand = quantized_constant(builder, apply->args[0]);
  if (!operand) return std::nullopt;
  auto value = apply->op->reference(apply->attrs, std::span(&*operand, 1));
  return value ? std::optional(std::move(value->front())) : std::nullopt;
}

}  // namespace

Expected<runtime::Tensor> NodeImport::constant(size_t i, std::string_view what) const {
  TENON_TRY_ASSIGN(atom, input(i));
  const runtime::Tensor* tensor = constant_tensor(*atom);
  if (!tensor) {
    if (auto value = quantized_constant(builder_, *atom)) return *std::move(value);
    return fail(fmt::format("{} ('{}') must be a constant", what, node_.inputs[i]),
                "run the model through a constant folder, or export it with fixed shapes");
  }
  return *tensor;
}

Expected<std::vector<int64_t>> NodeImport::integers(size_t i, std::string_view what) const {
  TENON_TRY_ASSIGN(tensor, constant(i, what));
  if (tensor->dtype() == DType::kI64) {
    return std::vector<int64_t>(tensor->data<int64_t>().begin(), tensor->data<int64_t>().end());
  }
  if (tensor->dtype() == DType::kI32) {
    return std::vector<int64_t>(tensor->data<int32_t>().begin(), tensor->data<int32_t>().end());
  }
  return fail(fmt::format("{} must be integers, found {}", what, runtime::name(tensor->dtype())));
}

Expected<int64_t> NodeImport::integer(const std::string& attr, std::optional<int64_t> fallback) const {
  auto found = find(attr);
  if (found == node_.attrs.end() && fallback) return *fallback;
  if (found == node_.attrs.end()) return fail(fmt::format("the attribute '{}' is missing", attr));
  if (auto* value = std::get_if<int64_t>(&found->second)) return *value;
  return fail(fmt::format("the attribute '{}' must be an integer", attr));
}

Expected<double> NodeImport::real(const std::string& attr, std::optional<double> fallback) const {
  auto found = find(attr);
  if (found == node_.attrs.end() && fallback) return *fallback;
  if (found == node_.attrs.end()) return fail(fmt::format("the attribute '{}' is missing", attr));
  if (auto* value = std::get_if<double>(&found->second)) return *value;
  return fail(fmt::format("the attribute '{}' must be a float", attr));
}

Expected<std::string> NodeImport::string(const std::string& attr, const std::string& fallback) const {
  auto found = find(attr);
  if (found == node_.attrs.end()) return fallback;
  if (auto* value = std::get_if<std::string>(&found->second)) return *value;
  return fail(fmt::format("the attribute '{}' must be a string", attr));
}

Expected<std::vector<int64_t>> NodeImport::list(const std::string& attr,
                                                std::optional<std::vector<int64_t>> fallback) const {
  auto found = find(attr);
  if (found == node_.attrs.end() && fallback) return *fallback;
  if (found == node_.attrs.end()) return fail(fmt::format("the attribute '{}' is missing", attr));
  if (auto* value = std::get_if<std::vector<int64_t>>(&found->second)) return *value;
  return fail(fmt::format("the attribute '{}' must be a list of integers", attr));
}

Expected<std::vector<double>> NodeImport::reals(const std::string& attr, std::vector<double> fallback) const {
  auto found = find(attr);
  if (found == node_.attrs.end()) return fallback;
  if (auto* value = std::get_if<std::vector<double>>(&found->second)) return *value;
  return fail(fmt::format("the attribute '{}' must be a list of floats", attr));
}

Expected<std::vector<std::string>> NodeImport::strings(const std::string& attr) const {
  auto found = find(attr);
  if (found == node_.attrs.end()) return std::vector<std::string>();
  if (auto* value = std::get_if<std::vector<std::string>>(&found->second)) return *value;
  return fail(fmt::format("the attribute '{}' must be a list of strings", attr));
}

Expected<const Graph*> NodeImport::graph(const std::string& attr) const {
  auto found = find(attr);
  if (found == node_.attrs.end()) return fail(fmt::format("the attribute '{}' is missing", attr));
  if (auto* value = std::get_if<std::vector<Graph>>(&found->second)) return &value->front();
  return fail(fmt::format("the attribute '{}' must be a graph", attr));
}

const ValueType* NodeImport::type_attr(const std::string& attr) const {
  auto found = find(attr);
  return found == node_.attrs.end() ? nullptr : std::get_if<ValueType>(&found->second);
}

Expected<Attrs> NodeImport::reals_given(std::initializer_list<const char*> names) const {
  Attrs attrs;
  for (const char* name : names) {
    if (!has(name)) continue;
    TENON_TRY_ASSIGN(value, real(name));
    attrs.emplace(name, *value);
  }
  return attrs;
}

Expected<Atoms> NodeImport::all_inputs() const {
  Atoms args;
  for (size_t i = 0; i < inputs(); ++i) {
    TENON_TRY_ASSIGN(arg, input(i));
    args.push_back(*arg);
  }
  return args;
}

Status NodeImport::no_other_attributes() const {
  // These attributes concern training or outputs that are not imported, or are implied by other attributes.
  static const std::set<std::string> kHarmless = {"consumed_inputs", "is_test", "momentum",     "ratio",
                                                  "saturate",        "seed",    "storage_order"};
  for (const auto& [name, value] : node_.attrs) {
    if (read_attrs_.contains(name) || kHarmless.contains(name)) continue;
    return fail(fmt::format("the attribute '{}' is not supported in opset {}", name, opset_),
                "export the model with another opset, or without it");
  }
  return {};
}

Expected<Atom> GraphImport::open_sizes(Atom value, std::string_view name) {
  TENON_TRY_ASSIGN(type, builder_.type_of(value));
  const bool has_fixed_parts = type->tensor() || type->tuple();  // the elements of a list differ in their sizes
  if (!has_erased(*type) || !has_fixed_parts) return value;
  Cast cast{value, {}, {}};
  cast.type = context().map_sizes(*type, [&](Dim dim) {
    if (!dim.erased()) return dim;
    cast.fresh.push_back(context().fresh_dim(dims_));
    return context().dim(cast.fresh.back());
  });
  return builder_.bind(std::move(cast), context().symbol(name));
}

std::optional<Dims> GraphImport::sizes(const Atom& atom) const {
  if (auto* var = std::get_if<VarId>(&atom)) {
    const auto found = sizes_.find(*var);
    return found == sizes_.end() ? std::nullopt : std::optional(found->second);
  }
  const runtime::Tensor* constant = constant_of(builder_.module(), atom);
  return constant ? constant_sizes(builder_.context(), *constant) : std::nullopt;
}
void GraphImport::set_sizes(const Atom& atom, Dims sizes) {
  if (auto* var = std::get_if<VarId>(&atom)) sizes_.insert_or_assign(*var, std::move(sizes));
}
void GraphImport::forget(size_t variables) {
  sizes_.erase(sizes_.lower_bound(static_cast<VarId>(variables)), sizes_.end());
}

Expected<Atom> NodeImport::apply(OperatorId op, const Atoms& args, Attrs attrs, ComputedAttrs computed) {
  const std::string name = node_.outputs.empty() ? "" : node_.outputs[0];
  TENON_TRY_ASSIGN(atom, builder_.apply(op, args, std::move(attrs), name, std::move(computed)));
  const Apply& apply = *builder_.application(*atom);
  const TensorType* type = builder_.tensor_type(*atom);
  std::vector<runtime::Tensor> inputs;
  for (const Atom& arg : args) {
    if (const runtime::Tensor* tensor = constant_tensor(arg)) inputs.push_back(*tensor);
  }
  if (inputs.size() == args.size() && apply.computed.empty()) {
    const auto shape = type ? type->shape() : std::nullopt;
    if (!type || !is_shape_arithmetic(*type) || !shape || !has_at_most(*shape, kMaxFolded)) return atom;
    auto result = apply.op->reference(apply.attrs, inputs);
    if (!result) return fail(result.error().what);
    builder_.remove_last();
    return builder_.constant(std::move(result->front()));
  }
  const auto sizes = type ? known_sizes(apply, *type) : std::nullopt;
  TENON_TRY_ASSIGN(open, import_.open_sizes(*atom, name));
  if (sizes) import_.set_sizes(*open, *sizes);
  return open;
}

std::optional<Dims> NodeImport::known_sizes(const Apply& apply, const TensorType& result) const {
  std::vector<TensorType> types;
  std::vector<std::optional<Dims>> args;
  for (const Atom& arg : apply.args) {
    const TensorType* type = builder_.tensor_type(arg);
    if (!type) return std::nullopt;
    types.push_back(*type);
    args.push_back(import_.sizes(arg));
  }
  return fold_sizes(builder_.context(), apply, types, args, result);
}

Expected<Atom> NodeImport::apply(OperatorId op, std::initializer_list<size_t> inputs, Attrs attrs) {
  Atoms args;
  for (size_t i : inputs) {
    TENON_TRY_ASSIGN(arg, input(i));
    args.push_back(*arg);
  }
  return apply(op, std::move(args), std::move(attrs));
}

Atom NodeImport::scalar(double value, DType dtype) { return scalar_constant(builder_, value, dtype); }

Expected<Atom> NodeImport::zeros(DType dtype, const std::vector<int64_t>& shape) {
  constexpr int64_t kMostElements = 1 << 16;
  if (has_at_most(shape, kMostElements)) return constant(runtime::Tensor(dtype, shape));
  return apply(ops::kBroadcastTo, Atoms{scalar(0, dtype)}, {{"shape", shape}});
}

Status NodeImport::results(Expected<Atom> tuple) {
  if (!tuple) return std::unexpected(std::move(tuple.error()));
  TENON_TRY_ASSIGN(type, builder_.type_of(*tuple));
  for (uint32_t i = 0; i < type->tuple()->fields.size() && i < node_.outputs.size(); ++i) {
    if (node_.outputs[i].empty()) continue;
    TENON_TRY_ASSIGN(field, builder_.project(*tuple, i, node_.outputs[i]));
    TENON_TRY_ASSIGN(open, import_.open_sizes(*field, node_.outputs[i]));
    TENON_TRY(result(i, *open));
  }
  return {};
}

Status NodeImport::result(size_t output, Atom atom) {
  if (output >= node_.outputs.size() || node_.outputs[output].empty()) return {};
  if (!names_.emplace(node_.outputs[output], atom).second) {
    return fail(fmt::format("output '{}' has the name of another tensor", node_.outputs[output]));
  }
  return {};
}

Status NodeImport::result(Expected<Atom> atom) {
  if (!atom) return std::unexpected(std::move(atom.error()));
  return result(0, *atom);
}

}  // namespace tenon::compiler::onnx
