#include "compiler/frontend/onnx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "compiler/frontend/onnx_node.h"
#include "compiler/ir/rewrite.h"
#include "support/file.h"

namespace tenon::compiler {
namespace {

std::vector<std::span<const OnnxConverter>> tables() {
  return {onnx_elementwise_converters(), onnx_image_converters(),    onnx_index_converters(),
          onnx_layer_converters(),       onnx_quantize_converters(), onnx_recurrent_converters(),
          onnx_reduce_converters(),      onnx_shape_converters()};
}

const OnnxConverter* find_converter(std::string_view op) {
  for (auto table : tables()) {
    for (const OnnxConverter& converter : table) {
      if (converter.op == op) return &converter;
    }
  }
  return nullptr;
}

// The name as an identifier of the text form.
std::string identifier(std::string_view name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "d" + out;
  return out;
}

class Importer {
 public:
  Importer(Context& context, const OnnxModel& model, const ImportOptions& options)
      : context_(context), model_(model), options_(options), builder_(context, module_, function_) {}

  Expected<Module> run() {
    TENON_TRY(inputs());
    for (const auto& [name, tensor] : model_.initializers) names_.insert_or_assign(name, builder_.constant(tensor));
    for (const OnnxNode& node : model_.nodes) TENON_TRY(convert(node));
    TENON_TRY(outputs());
    module_.globals.emplace(context_.symbol("main"), std::move(function_));
    return std::move(module_);
  }

 private:
  SpanId span(std::string node, std::string op) {
    return module_.add_span(Span{options_.file, std::move(node), std::move(op), 0, 0});
  }

  Status inputs() {
    std::set<std::string> variables;
    for (const OnnxValue& input : model_.inputs) {
      Dims dims;
      for (size_t i = 0; i < input.dims.size(); ++i) {
        const OnnxDim& dim = input.dims[i];
        if (dim.value >= 0) {
          dims.push_back(context_.dim(dim.value));
          continue;
        }
        // Each unnamed size gets its own variable.
        const std::string name =
            dim.name.empty() ? fmt::format("{}_{}", identifier(input.name), i) : identifier(dim.name);
        variables.insert(dim.name.empty() ? name : dim.name);
        auto bound = options_.shapes.find(dim.name.empty() ? name : dim.name);
        if (bound != options_.shapes.end()) {
          dims.push_back(context_.dim(bound->second));
          continue;
        }
        const Symbol variable = context_.symbol(name);
        if (std::ranges::find(function_.dims, variable) == function_.dims.end()) function_.dims.push_back(variable);
        dims.push_back(context_.dim(variable));
      }
      builder_.at(span(input.name, "input"));
      if (names_.contains(input.name)) {
        return error(fmt::format("input '{}' is defined twice", input.name), options_.file);
      }
      names_.emplace(input.name, builder_.param(context_.tensor(std::move(dims), input.dtype), input.name));
    }
    for (const auto& [name, value] : options_.shapes) {
      if (variables.contains(name)) continue;
      return error(
          fmt::format("the model has no unknown size '{}'", name), options_.file,
          variables.empty() ? "all of its sizes are fixed" : fmt::format("it has {}", fmt::join(variables, ", ")));
    }
    return {};
  }

  Status convert(const OnnxNode& node) {
    const SpanId span_id = span(node.name, node.op);
    builder_.at(span_id);
    NodeImport import(builder_, node, model_.opset, names_);
    const bool standard = node.domain.empty() || node.domain == "ai.onnx";
    const OnnxConverter* converter = standard ? find_converter(node.op) : nullptr;
    if (!converter) {
      return import.fail(fmt::format("the operator {}{} is not supported", standard ? "" : node.domain + ".", node.op),
                         "express it by operators that are, or export the model without it");
    }
    if (node.inputs.size() < converter->min_inputs || node.inputs.size() > converter->max_inputs) {
      return import.fail(fmt::format("expected {} .. {} inputs, found {}", converter->min_inputs, converter->max_inputs,
                                     node.inputs.size()));
    }
    if (node.outputs.empty()) return import.fail("has no output");
    // A message names the later node that defines the input: the user can then sort the graph or correct the name.
    for (const std::string& name : node.inputs) {
      if (name.empty() || names_.contains(name)) continue;
      for (const OnnxNode& other : model_.nodes) {
        if (std::ranges::find(other.outputs, name) == other.outputs.end()) continue;
        return import.fail(fmt::format("input '{}' is an output of {} '{}', which does not come before it", name,
                                       other.op, other.name),
                           "the graph has a cycle or is not sorted");
      }
      return import.fail(fmt::format("input '{}' is not defined", name), "the graph lacks a node or an input");
    }
    Status status = converter->convert(import);
    if (status) status = import.no_other_attributes();
    if (!status) {
      if (status.error().where.empty()) status.error().where = module_.span(span_id).str();
      return status;
    }
    for (const std::string& name : node.outputs) {
      if (name.empty() || names_.contains(name)) continue;
      return import.fail(fmt::format("the output '{}' is not supported, only the first is", name));
    }
    return {};
  }

  Status outputs() {
    Atoms results;
    builder_.at(span("", "output"));
    for (const std::string& name : model_.outputs) {
      auto found = names_.find(name);
      if (found == names_.end()) {
        return error(fmt::format("output '{}' is not defined", name), options_.file, "the graph lacks a node");
      }
      results.push_back(found->second);
    }
    if (results.empty()) return error("the model has no outputs", options_.file);
    if (results.size() == 1) {
      builder_.finish(results[0]);
      return {};
    }
    TENON_TRY_ASSIGN(tuple, builder_.tuple(std::move(results), "outputs"));
    builder_.finish(*tuple);
    return {};
  }

  Context& context_;
  const OnnxModel& model_;
  const ImportOptions& options_;
  Module module_;
  Function function_;
  Builder builder_;
  OnnxNames names_;
};

}  // namespace

Expected<Module> import_onnx(Context& context, std::span<const std::byte> bytes, const ImportOptions& options) {
  TENON_TRY_ASSIGN(model, read_onnx(bytes, options.file));
  return Importer(context, *model, options).run();
}

Expected<Module> load_onnx(Context& context, const std::filesystem::path& path,
                           const std::map<std::string, int64_t>& shapes) {
  TENON_TRY_ASSIGN(bytes, read_file(path));
  return import_onnx(context, *bytes, {path.filename().string(), shapes});
}

Expected<std::map<std::string, int64_t>> parse_shapes(std::string_view text) {
  std::map<std::string, int64_t> shapes;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const size_t equals = item.find('=');
    int64_t value = 0;
    const char* end = item.data() + item.size();
    if (equals == 0 || equals == std::string_view::npos ||
        std::from_chars(item.data() + equals + 1, end, value).ptr != end || value < 1 || value > INT32_MAX) {
      return error(fmt::format("'{}' is not a size", item), "--shapes", "write NAME=SIZE, as --shapes N=1,T=64",
                   Fault::kUsage);
    }
    shapes.insert_or_assign(std::string(item.substr(0, equals)), value);
  }
  return shapes;
}

std::vector<std::string> onnx_operators() {
  std::vector<std::string> names;
  for (auto table : tables()) {
    for (const OnnxConverter& converter : table) names.emplace_back(converter.op);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace tenon::compiler
