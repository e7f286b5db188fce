// The importer: a model's graph to a module, its functions inlined, its parameters named as its inputs.
#include "compiler/frontend/onnx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "compiler/frontend/onnx/model.h"
#include "compiler/frontend/onnx/node.h"
#include "compiler/frontend/onnx_check.h"
#include "compiler/ir/dim_names.h"
#include "compiler/ir/rewrite.h"
#include "support/number.h"
#include "support/printable.h"

namespace tenon::compiler::onnx {
namespace {

std::vector<std::span<const Converter>> tables() {
  return {attention_converters(),    attention_variant_converters(),
          matmul_nbits_converters(), ml_converters(),
          control_converters(),      elementwise_converters(),
          image_converters(),        index_converters(),
          layer_converters(),        loss_converters(),
          microsoft_converters(),    microsoft_fused_converters(),
          quantize_converters(),     recurrent_converters(),
          reduce_converters(),       sequence_converters(),
          shape_converters(),        signal_converters(),
          vision_converters()};
}

const Converter* find_converter(std::string_view op) {
  for (auto table : tables()) {
    for (const Converter& converter : table) {
      if (converter.op == op) return &converter;
    }
  }
  return nullptr;
}

// Operators of ONNX Runtime that are the standard ones, from before these had all of their types and opsets.
constexpr std::string_view kStandardInMicrosoft[] = {"DequantizeLinear", "GatherND", "GridSample", "QuantizeLinear",
                                                     "Trilu"};

// "Relu", "com.microsoft.Gelu"
std::string qualified(const Node& node) {
  const bool standard =
      node.domain.empty() || (node.domain == "com.microsoft" &&
                              std::ranges::find(kStandardInMicrosoft, node.op) != std::end(kStandardInMicrosoft));
  return standard ? node.op : node.domain + "." + node.op;
}

// The first opset whose definition of an operator is that of opset 7, but for attributes without a meaning there.
int64_t first_opset(std::string_view op) {
  static constexpr std::pair<std::string_view, int64_t> kRedefined[] = {
      {"Add", 7},     {"And", 7},          {"BatchNormalization", 7},
      {"Cast", 6},    {"Concat", 4},       {"Div", 7},
      {"Dropout", 7}, {"Equal", 7},        {"GRU", 7},
      {"Gemm", 7},    {"GlobalLpPool", 2}, {"Greater", 7},
      {"LSTM", 7},    {"Less", 7},         {"LpPool", 2},
      {"Mul", 7},     {"Or", 7},           {"PRelu", 7},
      {"Pad", 2},     {"Pow", 7},          {"RNN", 7},
      {"Selu", 6},    {"Split", 2},        {"Sub", 7},
      {"Tile", 6},    {"Upsample", 7},     {"Xor", 7}};
  const auto found = std::ranges::find(kRedefined, op, &std::pair<std::string_view, int64_t>::first);
  return found == std::end(kRedefined) ? 1 : found->second;
}

// The node of a function's body as if it stood where the call is: references to attributes are replaced by the
// attributes of the call, and inputs that the call omits are omitted.
class Substitution {
 public:
  Substitution(const Attributes& attrs, const std::set<std::string>& omitted) : attrs_(attrs), omitted_(omitted) {}

  Node node(const Node& from) const {
    Node to = from;
    for (std::string& input : to.inputs) {
      if (omitted_.contains(input)) input.clear();
    }
    for (auto& [name, value] : from.attrs) {
      if (auto* reference = std::get_if<AttributeReference>(&value)) {
        to.attrs.erase(name);
        const auto found = attrs_.find(reference->attr);
        if (found != attrs_.end()) to.attrs.emplace(name, found->second);
      } else if (std::holds_alternative<std::vector<Graph>>(value)) {
        for (Graph& graph : std::get<std::vector<Graph>>(to.attrs.at(name))) {
          for (Node& inner : graph.nodes) inner = node(inner);
        }
      }
    }
    return to;
  }

 private:
  const Attributes& attrs_;
  const std::set<std::string>& omitted_;
};

constexpr int kMaxNesting = 16;  // of graphs and of calls of functions
// Nodes that graphs and functions inside the graph expand to: each level may double them.
constexpr size_t kMaxNestedNodes = size_t{1} << 18;

class ModelImporter : public GraphImport {
 public:
  ModelImporter(Context& context, const Model& model, const ImportOptions& options)
      : GraphImport(builder_),
        context_(context),
        model_(model),
        options_(options),
        scope_{{}, &model.opsets},
        builder_(context, module_, function_) {}

  Expected<Module> run() {
    TENON_TRY(inputs());
    initializers(model_.graph, scope_);
    TENON_TRY(convert(model_.graph.nodes, scope_));
    TENON_TRY(outputs());
    module_.globals.emplace(context_.symbol("main"), std::move(function_));
    return std::move(module_);
  }

  // The types that the model states stand in for the results of nodes that are not supported.
  Expected<OnnxCheck> check() {
    TENON_TRY(inputs());
    initializers(model_.graph, scope_);
    OnnxCheck check;
    std::set<std::string> unknown;
    for (const Node& node : model_.graph.nodes) {
      ++check.operators[qualified(node)];
      const auto blocking =
          std::ranges::find_if(node.inputs, [&](const auto& input) { return unknown.contains(input); });
      const bool blocked = blocking != node.inputs.end() && supports(node);
      const Status status = blocked ? error(fmt::format("its input '{}' is the result of such a node", *blocking))
                                    : convert(node, model_.graph.nodes, scope_);
      if (status) continue;
      (blocked ? check.unexamined : check.problems).push_back({node.name, qualified(node), status.error()});
      for (const std::string& name : node.outputs) {
        const auto stated = model_.types.find(name);
        if (name.empty() || scope_.names.contains(name)) continue;
        const auto type = stated == model_.types.end() ? error("") : parameter_type({name, stated->second});
        if (type) scope_.names.emplace(name, builder_.param(*type, name));
        else unknown.insert(name);
      }
    }
    if (check.problems.empty()) {
      TENON_TRY(outputs());
      module_.globals.emplace(context_.symbol("main"), std::move(function_));
      check.module = std::move(module_);
    }
    return check;
  }

  Expected<Atoms> graph(const Graph& graph, const Atoms& inputs, Scope& scope) override {
    if (depth_ == kMaxNesting) return error("graphs are nested too deeply", module_.span(builder_.span()).str());
    if (inputs.size() != graph.inputs.size()) {
      return error(fmt::format("its graph has {} inputs, must have {}", graph.inputs.size(), inputs.size()),
                   module_.span(builder_.span()).str());
    }
    const SpanId outer = builder_.span();
    ++depth_;
    Scope inner{scope.names, scope.opsets};
    for (size_t i = 0; i < inputs.size(); ++i) inner.names.insert_or_assign(graph.inputs[i].name, inputs[i]);
    initializers(graph, inner);
    Status status = convert(graph.nodes, inner);
    --depth_;
    builder_.at(outer);
    if (!status) return std::unexpected(std::move(status.error()));
    Atoms results;
    for (const std::string& name : graph.outputs) {
      const auto found = inner.names.find(name);
      if (found == inner.names.end()) {
        return error(fmt::format("the output '{}' of its graph is not defined", name), module_.span(outer).str());
      }
      results.push_back(found->second);
    }
    return results;
  }

 private:
  SpanId span(std::string_view node, std::string_view op) {
    constexpr size_t kLongestNode = 1000;  // of a name that every message, report and executable repeats
    return module_.add_span(Span{options_.file, printable(node, kLongestNode), printable(op), 0, 0});
  }

  void initializers(const Graph& graph, Scope& scope) {
    for (const auto& [name, tensor] : graph.initializers) {
      scope.names.insert_or_assign(name, builder_.constant(tensor));
    }
  }

  Status inputs() {
    for (const ValueInfo& input : model_.graph.inputs) {
      builder_.at(span(input.name, "input"));
      if (scope_.names.contains(input.name)) {
        return error(fmt::format("input '{}' is defined twice", input.name), options_.file);
      }
      TENON_TRY_ASSIGN(value, parameter(input));
      scope_.names.emplace(input.name, *value);
    }
    for (const auto& [name, value] : options_.shapes) {
      const bool is_text =
          std::ranges::any_of(variables_, [&](const auto& variable) { return context_.name(variable.second) == name; });
      if (is_text || variables_.contains(name) || stated_.contains(name)) continue;
      std::vector<std::string> known;
      for (const auto& [variable, symbol] : variables_) known.push_back(variable);
      return error(fmt::format("the model has no unknown size '{}'", name), options_.file,
                   known.empty() ? "all of its sizes are fixed" : fmt::format("it has {}", fmt::join(known, ", ")));
    }
    return {};
  }

  // What the user states about an input beside its sizes, as "x.rank" of at most `largest`.
  Expected<std::optional<int64_t>> stated(const std::string& name, int64_t largest) {
    const auto found = options_.shapes.find(name);
    if (found == options_.shapes.end()) return std::nullopt;
    stated_.insert(name);
    if (found->second >= 0 && found->second <= largest) return found->second;
    return error(fmt::format("{}={}, must be 0 to {}", name, found->second, largest), options_.file);
  }

  // An optional value is present unless the user says otherwise. A sequence is a tuple of as many parameters as the
  // user says.
  Expected<Atom> parameter(const ValueInfo& input) {
    const ValueType& type = input.type;
    if (type.kind == ValueType::Kind::kOptional) {
      TENON_TRY_ASSIGN(present, stated(input.name + ".present", 1));
      if (present->value_or(1) != 0) return parameter({input.name, type.element[0]});
      const Node absent{"Optional", "", input.name, {}, {input.name}, {{"type", type.element[0]}}};
      Scope scope{{}, scope_.opsets};
      TENON_TRY(convert(absent, {}, scope));
      return scope.names.at(input.name);
    }
    if (type.kind == ValueType::Kind::kTensor) {
      TENON_TRY_ASSIGN(tensor, parameter_type(input));
      return builder_.param(*tensor, input.name);
    }
    const auto length = options_.shapes.find(input.name);
    constexpr int64_t kLongest = 4096;
    if (length == options_.shapes.end() || length->second > kLongest) {
      return error(
          fmt::format("input '{}' is a sequence, whose length must be known, and at most {}", input.name, kLongest),
          options_.file,
          fmt::format("--shapes {}=2 makes it the inputs {}.0 and {}.1", input.name, input.name, input.name));
    }
    if (type.element[0].kind != ValueType::Kind::kTensor)
      return error(fmt::format("input '{}' is a sequence of sequences, which is not supported", input.name),
                   options_.file);
    stated_.insert(input.name);
    ValueType element_type = type.element[0];
    if (!element_type.dims) {
      TENON_TRY_ASSIGN(dims, stated_dims(input.name));
      element_type.dims = std::move(*dims);
    }
    Atoms elements;
    for (int64_t k = 0; k < length->second; ++k) {
      ValueInfo element{fmt::format("{}.{}", input.name, k), element_type};
      // A size has the same name in each element, and yet may differ.
      if (element.type.dims) {
        for (Dimension& dim : *element.type.dims) dim.name = dim.name.empty() ? "" : fmt::format("{}_{}", dim.name, k);
      }
      TENON_TRY_ASSIGN(tensor, parameter_type(element));
      elements.push_back(builder_.param(*tensor, element.name));
    }
    return builder_.tuple(std::move(elements), input.name);
  }

  // Unknown sizes of as many axes as the user states for a tensor or for the elements of a sequence.
  Expected<std::optional<std::vector<Dimension>>> stated_dims(const std::string& name) {
    TENON_TRY_ASSIGN(rank, stated(name + ".rank", runtime::kMaxRank));
    if (!*rank) return std::nullopt;
    return std::vector<Dimension>(static_cast<size_t>(**rank), Dimension{-1, ""});
  }

  Expected<Type> parameter_type(const ValueInfo& input) {
    std::optional<std::vector<Dimension>> axes = input.type.dims;
    if (!axes) {
      TENON_TRY_ASSIGN(dims, stated_dims(input.name));
      axes = std::move(*dims);
    }
    if (!axes) {
      return error(
          fmt::format("input '{}' is not a tensor with a shape", input.name), options_.file,
          fmt::format("--shapes {}.rank=2 makes it a matrix; or run onnx.shape_inference, or export with shapes",
                      input.name));
    }
    if (axes->size() > runtime::kMaxRank) {
      return error(
          fmt::format("input '{}' has {} axes, at most {} are supported", input.name, axes->size(), runtime::kMaxRank),
          options_.file, "join or remove axes");
    }
    Dims dims;
    for (size_t i = 0; i < axes->size(); ++i) {
      const Dimension& dim = (*axes)[i];
      dims.push_back(dim.value >= 0 ? context_.dim(dim.value)
                                    : unknown_size(dim.name, fmt::format("{}_{}", input.name, i)));
    }
    return context_.tensor(std::move(dims), input.type.dtype);
  }

  // Whether an input's size has this very name in the file.
  bool names_a_size(std::string_view name) const {
    return std::ranges::any_of(model_.graph.inputs, [&](const ValueInfo& input) {
      return input.type.dims && std::ranges::find(*input.type.dims, name, &Dimension::name) != input.type.dims->end();
    });
  }

  // The variable of a size that is unknown, or the number that it is bound to. Each size without a name has its own.
  Dim unknown_size(const std::string& name, const std::string& otherwise) {
    const std::string named = identifier(name).empty() ? identifier(otherwise) : name;
    auto bound = options_.shapes.find(named);
    if (bound == options_.shapes.end() && !names_a_size(identifier(named)))
      bound = options_.shapes.find(identifier(named));
    const auto found = variables_.find(named);
    if (found == variables_.end()) {
      std::string text = identifier(named);
      while (text.empty() || this->dims().contains(context_.symbol(text))) text += '_';
      variables_.emplace(named, context_.symbol(text));
      use_dim(context_.symbol(text));
      if (bound == options_.shapes.end()) function_.dims.push_back(context_.symbol(text));
    }
    return bound == options_.shapes.end() ? context_.dim(variables_.at(named)) : context_.dim(bound->second);
  }

  Status convert(const std::vector<Node>& nodes, Scope& scope) {
    for (const Node& node : nodes) TENON_TRY(convert(node, nodes, scope));
    return {};
  }

  // A message names the later node that defines the input: the user can then sort the graph or correct the name.
  static Status check_inputs(const NodeImport& import, const Node& node, const std::vector<Node>& nodes,
                             const Scope& scope) {
    for (const std::string& name : node.inputs) {
      if (name.empty() || scope.names.contains(name)) continue;
      for (const Node& other : nodes) {
        if (std::ranges::find(other.outputs, name) == other.outputs.end()) continue;
        return import.fail(fmt::format("input '{}' is an output of {} '{}', which does not come before it", name,
                                       other.op, other.name),
                           "the graph has a cycle or is not sorted");
      }
      return import.fail(fmt::format("input '{}' is not defined", name), "the graph lacks a node or an input");
    }
    return {};
  }

  bool supports(const Node& node) const { return find_function(node) || find_converter(qualified(node)); }

  const LocalFunction* find_function(const Node& node) const {
    const auto found = std::ranges::find_if(model_.functions, [&](const LocalFunction& function) {
      return function.name == node.op && function.domain == node.domain && function.overload == node.overload;
    });
    return found == model_.functions.end() ? nullptr : &*found;
  }

  Status convert(const Node& node, const std::vector<Node>& nodes, Scope& scope) {
    const SpanId span_id = span(prefix_ + node.name, qualified(node));
    builder_.at(span_id);
    NodeImport import(*this, node, scope);
    if (depth_ > 0 && ++nested_nodes_ > kMaxNestedNodes) {
      return import.fail(
          fmt::format("the graphs and functions inside the model expand to more than {} nodes", kMaxNestedNodes));
    }
    // An operator that is not supported is so whatever its inputs are.
    Status status = supports(node) ? check_inputs(import, node, nodes, scope) : Status();
    if (!status) return status;
    if (const LocalFunction* function = find_function(node)) return call(*function, node, import);
    const Converter* converter = find_converter(qualified(node));
    if (!converter) {
      return import.fail(fmt::format("the operator {} is not supported", qualified(node)),
                         node.domain == "com.microsoft.nchwc"
                             ? "the model was optimized for one processor: save it with ORT_ENABLE_EXTENDED at most"
                             : "express it by operators that are, or export the model without it");
    }
    if (node.domain.empty() && import.opset() < first_opset(node.op)) {
      return import.fail(fmt::format("{} of opset {} is not supported", node.op, import.opset()),
                         "convert the model to opset 7 or later with onnx.version_converter");
    }
    if (node.inputs.size() < converter->min_inputs || node.inputs.size() > converter->max_inputs) {
      return import.fail(fmt::format("expected {} .. {} inputs, found {}", converter->min_inputs, converter->max_inputs,
                                     node.inputs.size()));
    }
    if (node.outputs.empty()) return import.fail("has no output");
    status = converter->convert(import);
    if (status) status = import.no_other_attributes();
    if (!status) {
      if (status.error().where.empty()) status.error().where = module_.span(span_id).str();
      return status;
    }
    for (const std::string& name : node.outputs) {
      if (name.empty()) continue;
      if (!scope.names.contains(name))
        return import.fail(fmt::format("the output '{}' is not supported, only the first is", name));
      if (depth_ == 0) TENON_TRY(check_stated_type(import, name));
    }
    return {};
  }

  // What the file states about a value of the main graph must be the type that its node has. Sizes are not compared:
  // the user may bind others, and exporters leave those of an example.
  Status check_stated_type(const NodeImport& import, const std::string& name) {
    const auto stated = model_.types.find(name);
    if (stated == model_.types.end() || stated->second.kind != ValueType::Kind::kTensor) return {};
    const TensorType* inferred = builder_.tensor_type(scope_.names.at(name));
    if (!inferred) return {};
    const ValueType& type = stated->second;
    const bool same_rank = !type.dims || type.dims->size() == inferred->dims.size();
    if (type.dtype == inferred->dtype && same_rank) return {};
    Dims dims;
    for (size_t i = 0; type.dims && i < type.dims->size(); ++i) {
      const Dimension& dim = (*type.dims)[i];
      dims.push_back(dim.value >= 0 ? context_.dim(dim.value) : context_.erased());
    }
    const std::string told = type.dims ? context_.str(context_.tensor(dims, type.dtype))
                                       : fmt::format("a tensor of {}", runtime::name(type.dtype));
    return import.fail(fmt::format("the model states that '{}' is {}, the node's result is {}", name, told,
                                   context_.str(context_.tensor(inferred->dims, inferred->dtype))),
                       "correct the model's value_info and outputs, as by onnx.shape_inference, or the exporter");
  }

  // The nodes of a function of the model, with names of their own, instead of the node that calls it.
  Status call(const LocalFunction& function, const Node& node, NodeImport& import) {
    if (depth_ == kMaxNesting) return import.fail("functions call each other too deeply");
    if (node.inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size()) {
      return import.fail(fmt::format("the function has {} inputs and {} outputs, its call {} and {}",
                                     function.inputs.size(), function.outputs.size(), node.inputs.size(),
                                     node.outputs.size()));
    }
    Attributes attrs = function.defaults;
    for (const auto& [name, value] : node.attrs) {
      if (!attrs.contains(name) && std::ranges::find(function.attributes, name) == function.attributes.end()) {
        return import.fail(fmt::format("the function has no attribute '{}'", name));
      }
      attrs.insert_or_assign(name, value);
    }
    Scope inner{{}, &function.opsets};
    std::set<std::string> omitted;
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      if (!import.has_input(i)) {
        omitted.insert(function.inputs[i]);
        continue;
      }
      TENON_TRY_ASSIGN(input, import.input(i));
      inner.names.emplace(function.inputs[i], *input);
    }
    const Substitution substitution(attrs, omitted);
    std::vector<Node> nodes;
    for (const Node& one : function.nodes) nodes.push_back(substitution.node(one));
    const std::string outer = prefix_;
    prefix_ += node.name + "/";
    ++depth_;
    Status status = convert(nodes, inner);
    --depth_;
    prefix_ = outer;
    TENON_TRY(status);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const auto found = inner.names.find(function.outputs[i]);
      if (found == inner.names.end()) {
        return import.fail(fmt::format("the output '{}' of the function is not defined", function.outputs[i]));
      }
      TENON_TRY(import.result(i, found->second));
    }
    return {};
  }

  // An output has the model's name, also where it is an input, a constant, or a value with another name: a copy then.
  Expected<Atom> named(Atom value, const std::string& name, std::set<VarId>& taken) {
    auto* var = std::get_if<VarId>(&value);
    const bool free =
        var && !taken.contains(*var) && std::ranges::find(function_.params, *var) == function_.params.end();
    const bool is_tensor = builder_.tensor_type(value) != nullptr;
    if (free && !is_tensor) function_.vars[index(*var)].name = context_.symbol(name);
    if (is_tensor && !(free && context_.name(function_.info(*var).name) == name)) {
      TENON_TRY_ASSIGN(copy, builder_.apply(ops::kIdentity, {value}, {}, name));
      value = *copy;
    }
    if (auto* last = std::get_if<VarId>(&value)) taken.insert(*last);
    return value;
  }

  Status outputs() {
    Atoms results;
    std::set<VarId> taken;
    for (const std::string& name : model_.graph.outputs) {
      builder_.at(span(name, "output"));
      auto found = scope_.names.find(name);
      if (found == scope_.names.end()) {
        return error(fmt::format("output '{}' is not defined", name), options_.file, "the graph lacks a node");
      }
      TENON_TRY_ASSIGN(type, builder_.type_of(found->second));
      const Tuple* sequence = nullptr;
      if (const Value* value = builder_.value_of(found->second)) sequence = std::get_if<Tuple>(value);
      // The elements of a sequence are outputs with their index in their names.
      const Atoms elements = sequence ? sequence->fields : Atoms();
      for (uint32_t i = 0; type->tuple() && i < type->tuple()->fields.size(); ++i) {
        const std::string own = fmt::format("{}.{}", name, i);
        Expected<Atom> element = elements.empty() ? builder_.project(found->second, i, own) : elements[i];
        if (element) element = named(*element, own, taken);
        if (!element) return std::unexpected(std::move(element.error()));
        results.push_back(*element);
      }
      if (type->tuple()) continue;
      TENON_TRY_ASSIGN(result, named(found->second, name, taken));
      results.push_back(*result);
    }
    builder_.at(span("", "output"));
    if (results.empty()) return error("the model has no outputs", options_.file);
    Atom result = results[0];
    if (results.size() > 1) {
      TENON_TRY_ASSIGN(tuple, builder_.tuple(std::move(results), "outputs"));
      result = *tuple;
    }
    builder_.finish(result);
    // Sizes with variables that are not the function's own depend on data: a caller sees some size.
    function_.result = context_.map_sizes(function_.result, [&](Dim dim) {
      bool inside = false;
      for_each_variable(
          dim, [&](Symbol name) { inside |= std::ranges::find(function_.dims, name) == function_.dims.end(); });
      return inside ? context_.erased() : dim;
    });
    return {};
  }

  Context& context_;
  const Model& model_;
  const ImportOptions& options_;
  Module module_;
  Function function_;
  Scope scope_;
  Builder builder_;
  std::map<std::string, Symbol> variables_;  // of unknown sizes, by their names in the model
  std::set<std::string> stated_;             // lengths, ranks and presence of inputs that the user states
  std::string prefix_;                       // of the names of nodes: the calls of functions around them
  int depth_ = 0;                            // of graphs and calls
  size_t nested_nodes_ = 0;                  // converted so far at a depth above 0
};

}  // namespace
}  // namespace tenon::compiler::onnx

namespace tenon::compiler {

Expected<Module> import_onnx(Context& context, std::span<const std::byte> bytes, const ImportOptions& options) {
  TENON_TRY_ASSIGN(model, onnx::read_model(bytes, options.file, options.folder));
  return onnx::ModelImporter(context, *model, options).run();
}

Expected<Module> load_onnx(Context& context, const std::filesystem::path& path,
                           const std::map<std::string, int64_t>& shapes) {
  TENON_TRY_ASSIGN(model, onnx::read_model(path));
  return onnx::ModelImporter(context, *model, {path.filename().string(), shapes}).run();
}

Expected<OnnxCheck> check_onnx(Context& context, const std::filesystem::path& path,
                               const std::map<std::string, int64_t>& shapes) {
  TENON_TRY_ASSIGN(model, onnx::read_model(path));
  return onnx::ModelImporter(context, *model, {path.filename().string(), shapes}).check();
}

Expected<std::map<std::string, int64_t>> parse_shapes(std::string_view text) {
  std::map<std::string, int64_t> shapes;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const size_t equals = item.find('=');
    constexpr std::string_view kHelp = "write NAME=SIZE, as --shapes N=1,T=64";
    if (equals == 0 || equals == std::string_view::npos)
      return error(fmt::format("'{}' is not NAME=SIZE", item), "--shapes", std::string(kHelp), Fault::kUsage);
    const std::string name(item.substr(0, equals));
    const auto size = read_number<int64_t>(name, item.substr(equals + 1), {0, INT32_MAX});
    if (!size) return error(size.error().what, "--shapes", std::string(kHelp), Fault::kUsage);
    if (!shapes.emplace(name, *size).second)
      return error(fmt::format("{} is given twice", name), "--shapes", {}, Fault::kUsage);
  }
  return shapes;
}

std::vector<std::string> onnx_operators() {
  std::vector<std::string> names;
  for (auto table : onnx::tables()) {
    for (const onnx::Converter& converter : table) names.emplace_back(converter.op);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace tenon::compiler
