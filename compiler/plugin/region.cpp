#include "compiler/plugin/region.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "compiler/ir/context.h"
#include "compiler/ir/literal.h"
#include "compiler/ir/operator.h"
#include "compiler/partition/function_key.h"
#include "runtime/native/operator_kernel.h"
#include "support/try.h"

namespace tenon::compiler::plugin {

class Flattener {
 public:
  Flattener(const Context& context, const Module& module) : context_(context), module_(module) {}

  Expected<FlatRegion> composite(const Function& function, uint32_t row) {
    std::map<VarId, Values> vars;
    TENON_TRY(add_layer(function, row, add_params(function, vars), vars));
    return finish(vars, function.body.result);
  }

  Expected<FlatRegion> region(const Function& function, std::span<const std::string> rows) {
    std::map<VarId, Values> vars;
    TENON_TRY(add_region(function, rows, vars));
    return finish(vars, function.body.result);
  }

 private:
  using Values = std::vector<uint32_t>;  // a tensor, or the fields of a tuple

  // The first error is the result of run().
  uint32_t add_value(Type type, const runtime::Tensor* constant) {
    const TensorType* tensor = type.tensor();
    const auto shape = tensor ? tensor->shape() : std::nullopt;
    const auto bytes = shape ? runtime::checked_bytes(tensor->dtype, *shape) : std::nullopt;
    if (!bytes && !failed_) failed_ = error(fmt::format("{} is no tensor of known sizes", context_.str(type))).error();
    made_.sizes_.push_back(shape.value_or(runtime::Shape()));
    const auto& sizes = made_.sizes_.back();
    made_.value_.push_back({.dtype = static_cast<uint32_t>(tensor ? tensor->dtype : DType::kF32),
                            .rank = static_cast<uint32_t>(sizes.size()),
                            .sizes = sizes.data(),
                            .data = constant ? constant->bytes().data() : nullptr,
                            .bytes = static_cast<uint64_t>(bytes.value_or(0))});
    made_.constants_.push_back(constant);
    return static_cast<uint32_t>(made_.value_.size() - 1);
  }

  // Params of a region whose layout is transformed first have their plain sizes.
  std::vector<Values> add_params(const Function& function, std::map<VarId, Values>& vars, bool is_region = false) {
    std::vector<Values> params;
    for (const VarId param : function.params) {
      Type type = function.type(param);
      std::string layout;
      for (const Binding& binding : function.body.bindings) {
        const auto* apply = is_region ? std::get_if<Apply>(&binding.value) : nullptr;
        if (!apply || !apply->op->is(ops::kLayoutTransform) || apply->args[0] != Atom(param)) continue;
        type = function.type(binding.var);
        layout = string_attr(apply->attrs, "from");
      }
      made_.layouts_.push_back(std::move(layout));
      made_.param_.push_back(add_value(type, nullptr));
      vars[param] = {made_.param_.back()};
      params.push_back(vars[param]);
    }
    return params;
  }

  Expected<Values> values_of(const std::map<VarId, Values>& vars, const Atom& atom) {
    if (const auto* constant = std::get_if<ConstId>(&atom)) {
      const auto known = constants_.find(*constant);
      if (known != constants_.end()) return Values{known->second};
      const runtime::Tensor& tensor = module_.constant(*constant);
      made_.sizes_.push_back(tensor.shape());
      made_.value_.push_back({.dtype = static_cast<uint32_t>(tensor.dtype()),
                              .rank = static_cast<uint32_t>(tensor.shape().size()),
                              .sizes = made_.sizes_.back().data(),
                              .data = tensor.bytes().data(),
                              .bytes = tensor.bytes().size()});
      made_.constants_.push_back(&tensor);
      const auto value = static_cast<uint32_t>(made_.value_.size() - 1);
      constants_.emplace(*constant, value);
      return Values{value};
    }
    const auto* var = std::get_if<VarId>(&atom);
    const auto found = var ? vars.find(*var) : vars.end();
    if (found == vars.end()) return error("an operand is a function");
    return found->second;
  }

  // Tuples and their fields, which are no nodes; nothing for other values. The tensors of a field that is a tuple stand
  // among those of the tuple.
  Expected<std::optional<Values>> fields_of(const Function& function, const std::map<VarId, Values>& vars,
                                            const Value& value) {
    if (const auto* tuple = std::get_if<Tuple>(&value)) {
      Values fields;
      for (const Atom& field : tuple->fields) {
        TENON_TRY_ASSIGN(values, values_of(vars, field));
        fields.insert(fields.end(), values->begin(), values->end());
      }
      return fields;
    }
    if (const auto* project = std::get_if<Project>(&value)) {
      TENON_TRY_ASSIGN(values, values_of(vars, project->tuple));
      const std::vector<Type> fields = function.type(std::get<VarId>(project->tuple)).parts();
      auto first = values->begin();
      for (uint32_t i = 0; i < project->index; ++i) first += tensors_in(fields[i]);
      return Values(first, first + tensors_in(fields[project->index]));
    }
    return std::nullopt;
  }

  static std::ptrdiff_t tensors_in(Type type) {
    if (!type.tuple()) return 1;
    std::ptrdiff_t count = 0;
    for (const Type part : type.parts()) count += tensors_in(part);
    return count;
  }

  // The nodes of a composite, called with these arguments; `vars` receives its values.
  Status add_layer(const Function& composite, uint32_t row, const std::vector<Values>& args,
                   std::map<VarId, Values>& vars) {
    const auto layer = static_cast<uint32_t>(made_.row_.size());
    made_.row_.push_back(row);
    for (size_t i = 0; i < args.size(); ++i) vars[composite.params[i]] = args[i];
    for (const Binding& binding : composite.body.bindings) {
      TENON_TRY_ASSIGN(fields, fields_of(composite, vars, binding.value));
      if (*fields) {
        vars[binding.var] = std::move(**fields);
        continue;
      }
      const auto* apply = std::get_if<Apply>(&binding.value);
      if (!apply || !apply->computed.empty())
        return error("it has a call, a branch, or an attribute that is computed; plugins get operators alone");
      FlatRegion::Node& node = made_.nodes_.emplace_back();
      node.op = apply->op->name;
      node.origin = module_.span(composite.info(binding.var).span).node;
      node.attrs = apply->attrs;
      for (const Atom& arg : apply->args) {
        TENON_TRY_ASSIGN(values, values_of(vars, arg));
        node.inputs.insert(node.inputs.end(), values->begin(), values->end());
      }
      for (const Type type : composite.type(binding.var).parts()) node.outputs.push_back(add_value(type, nullptr));
      vars[binding.var] = node.outputs;
      made_.node_.push_back({.op = nullptr,
                             .origin = nullptr,
                             .layer = layer,
                             .inputs = 0,
                             .outputs = 0,
                             .attributes = 0,
                             .input = nullptr,
                             .output = nullptr,
                             .attribute = nullptr});
    }
    return {};
  }

  Status add_region(const Function& region, std::span<const std::string> rows, std::map<VarId, Values>& vars) {
    add_params(region, vars, true);
    for (const Binding& binding : region.body.bindings) {
      TENON_TRY_ASSIGN(fields, fields_of(region, vars, binding.value));
      if (*fields) {
        vars[binding.var] = std::move(**fields);
        continue;
      }
      if (const auto* apply = std::get_if<Apply>(&binding.value); apply && apply->op->is(ops::kLayoutTransform)) {
        TENON_TRY_ASSIGN(values, values_of(vars, apply->args[0]));
        if (std::ranges::find(region.params, apply->args[0], [](VarId param) { return Atom(param); }) ==
            region.params.end()) {
          stored_as_[values->front()] = string_attr(apply->attrs, "to");
        }
        vars[binding.var] = *std::move(values);
        continue;
      }
      const auto* call = std::get_if<Call>(&binding.value);
      const auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr;
      const Function* composite = symbol ? module_.function(*symbol) : nullptr;
      if (!composite) return error("a region calls composites alone");
      std::vector<Values> args;
      for (const Atom& arg : call->args) {
        TENON_TRY_ASSIGN(values, values_of(vars, arg));
        args.push_back(*std::move(values));
      }
      const auto row = std::ranges::find(rows, composite->composite);
      if (row == rows.end()) return error(fmt::format("no row is called '{}'", composite->composite));
      std::map<VarId, Values> inner;
      TENON_TRY(add_layer(*composite, static_cast<uint32_t>(row - rows.begin()), args, inner));
      TENON_TRY_ASSIGN(result, values_of(inner, composite->body.result));
      vars[binding.var] = *std::move(result);
    }
    return {};
  }

  Expected<FlatRegion> finish(const std::map<VarId, Values>& vars, const Atom& result) {
    TENON_TRY_ASSIGN(results, values_of(vars, result));
    made_.result_ = *std::move(results);
    for (const uint32_t value : made_.result_) {
      const auto stored = stored_as_.find(value);
      made_.layouts_.push_back(stored == stored_as_.end() ? std::string() : stored->second);
    }
    if (failed_) return std::unexpected(*std::move(failed_));
    // From here on, all arrays have their final addresses.
    for (size_t i = 0; i < made_.nodes_.size(); ++i) {
      FlatRegion::Node& node = made_.nodes_[i];
      for (const auto& [name, value] : node.attrs) node.attributes.push_back(runtime::describe_attribute(name, value));
      made_.node_[i] = {.op = node.op.c_str(),
                        .origin = node.origin.c_str(),
                        .layer = made_.node_[i].layer,
                        .inputs = static_cast<uint32_t>(node.inputs.size()),
                        .outputs = static_cast<uint32_t>(node.outputs.size()),
                        .attributes = static_cast<uint32_t>(node.attributes.size()),
                        .input = node.inputs.data(),
                        .output = node.outputs.data(),
                        .attribute = node.attributes.data()};
    }
    for (const std::string& layout : made_.layouts_) made_.layout_.push_back(layout.c_str());
    made_.region_ = {.size = sizeof(tn_region),
                     .values = static_cast<uint32_t>(made_.value_.size()),
                     .nodes = static_cast<uint32_t>(made_.node_.size()),
                     .layers = static_cast<uint32_t>(made_.row_.size()),
                     .params = static_cast<uint32_t>(made_.param_.size()),
                     .results = static_cast<uint32_t>(made_.result_.size()),
                     .value = made_.value_.data(),
                     .node = made_.node_.data(),
                     .row = made_.row_.data(),
                     .param = made_.param_.data(),
                     .result = made_.result_.data(),
                     .layout = made_.layout_.data()};
    return std::move(made_);
  }

  const Context& context_;
  const Module& module_;
  FlatRegion made_;
  std::map<ConstId, uint32_t> constants_;
  std::map<uint32_t, std::string> stored_as_;  // by value of a result
  std::optional<Diagnostic> failed_;
};

std::string key_of(const FlatRegion& flat) {
  const tn_region& region = flat.region();
  std::string key;
  const auto add = [&](std::span<const uint32_t> numbers) { key += fmt::format("{};", fmt::join(numbers, ",")); };
  for (uint32_t i = 0; i < region.values; ++i) {
    const tn_value& value = region.value[i];
    key += fmt::format("{}({})", value.dtype, fmt::join(std::span(value.sizes, value.rank), ","));
    if (value.data) key += "=";
    if (value.data && value.bytes <= kComparedBytes) key.append(static_cast<const char*>(value.data), value.bytes);
    key += ";";
  }
  for (size_t i = 0; i < flat.nodes_.size(); ++i) {
    const FlatRegion::Node& node = flat.nodes_[i];
    key += fmt::format("{}:{}", flat.node_[i].layer, node.op);
    for (const auto& [name, value] : node.attrs) key += fmt::format("[{}={}]", name, attribute(value));
    add(node.inputs);
    add(node.outputs);
  }
  add(flat.row_);
  add(flat.param_);
  add(flat.result_);
  for (const std::string& layout : flat.layouts_) key += layout + ";";
  return key;
}

Expected<FlatRegion> flatten_composite(const Context& context, const Module& module, const Function& composite,
                                       uint32_t row) {
  return Flattener(context, module).composite(composite, row);
}

Expected<FlatRegion> flatten_region(const Context& context, const Module& module, const Function& region,
                                    std::span<const std::string> rows) {
  return Flattener(context, module).region(region, rows);
}

}  // namespace tenon::compiler::plugin
