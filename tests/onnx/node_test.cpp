#include "tests/onnx/node_test.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "compiler/frontend/onnx.h"
#include "compiler/frontend/onnx/model.h"
#include "compiler/frontend/onnx/onnx.pb.h"
#include "compiler/ir/interpreter.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/reference/support.h"
#include "runtime/vm/session.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

namespace fs = std::filesystem;
using runtime::Tensor;

// The elements of an input or output: one of a tensor, none of an optional value that is absent.
struct Extent {
  std::optional<size_t> length;  // of a sequence
  size_t tensors = 0;
  int64_t rank = 0;  // of the first tensor
};

struct DataSet {
  std::vector<Tensor> inputs, outputs;  // a sequence is its elements
  std::vector<Extent> input_extents, output_extents;
};

// The fields of a message that are bytes, by their numbers, in order; nothing where it is damaged.
std::optional<std::vector<std::pair<uint64_t, std::string_view>>> fields_of(std::string_view message) {
  std::vector<std::pair<uint64_t, std::string_view>> fields;
  const auto varint = [&]() -> std::optional<uint64_t> {
    uint64_t value = 0;
    for (int shift = 0; !message.empty() && shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(message[0]);
      message.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  };
  while (!message.empty()) {
    const auto key = varint(), value = varint();
    if (!key || !value || (*key & 7) > 2 || (*key & 7) == 1) return std::nullopt;
    if ((*key & 7) == 0) continue;
    if (*value > message.size()) return std::nullopt;
    fields.emplace_back(*key >> 3, message.substr(0, *value));
    message.remove_prefix(*value);
  }
  return fields;
}

// The tensors of a TensorProto, a SequenceProto or an OptionalProto.
Status append_values(std::string_view bytes, const ::onnx::TypeProto& type, const std::string& file,
                     std::vector<Tensor>& values, std::optional<size_t>& length) {
  constexpr uint64_t kTensors = 3, kSequence = 5;
  if (type.has_tensor_type()) {
    TENON_TRY_ASSIGN(tensor, onnx::read_tensor(std::as_bytes(std::span(bytes)), file));
    values.push_back(std::move(*tensor));
    return {};
  }
  const auto fields = fields_of(bytes);
  if (!fields) return error("the values are damaged", file);
  if (type.has_sequence_type()) length = 0;
  for (const auto& [number, value] : *fields) {
    if (number != kTensors && number != kSequence) continue;
    const ::onnx::TypeProto& element =
        type.has_sequence_type() ? type.sequence_type().elem_type() : type.optional_type().elem_type();
    TENON_TRY(append_values(value, element, file, values, length));
    if (type.has_sequence_type()) ++*length;
  }
  return {};
}

Status read_values(const fs::path& folder, const char* kind, const auto& ports, std::vector<Tensor>& values,
                   std::vector<Extent>& extents) {
  for (int i = 0;; ++i) {
    const fs::path file = folder / fmt::format("{}_{}.pb", kind, i);
    if (!fs::exists(file) || i >= ports.size()) return {};
    TENON_TRY_ASSIGN(bytes, read_file(file));
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    const size_t first = values.size();
    Extent& extent = extents.emplace_back();
    TENON_TRY(append_values(text, ports[i].type(), file.filename().string(), values, extent.length));
    extent.tensors = values.size() - first;
    if (extent.tensors > 0) extent.rank = static_cast<int64_t>(values[first].shape().size());
  }
}

Expected<std::vector<DataSet>> read_data(const fs::path& folder, const ::onnx::GraphProto& graph) {
  std::vector<DataSet> sets;
  for (;;) {
    const fs::path set = folder / fmt::format("test_data_set_{}", sets.size());
    if (!fs::exists(set)) break;
    DataSet data;
    TENON_TRY(read_values(set, "input", graph.input(), data.inputs, data.input_extents));
    TENON_TRY(read_values(set, "output", graph.output(), data.outputs, data.output_extents));
    sets.push_back(std::move(data));
  }
  if (sets.empty()) return error("there is no test_data_set_0", folder.string());
  return sets;
}

struct Tolerance {
  double absolute = 1e-7, relative = 1e-3;
};

template <class T>
bool is_close(T have, T want, const Tolerance& tolerance) {
  if constexpr (std::is_floating_point_v<T>) {
    if (have == want || (std::isnan(have) && std::isnan(want))) return true;
    if (!std::isfinite(have) || !std::isfinite(want)) return false;
    return std::abs(have - want) <= tolerance.absolute + tolerance.relative * std::abs(want);
  } else {
    return have == want;
  }
}

// The tolerance of a generated model's output, by its dtype and its largest element.
Tolerance tolerance_of(const Tensor& want, Expectation expectation) {
  if (expectation == Expectation::kEachDataSet) return {};
  Tolerance tolerance{1e-7, 1e-3};
  double largest = 0;
  runtime::with_dtype<runtime::kAnyDType>(want.dtype(), [&]<class T>(T) {
    using W = runtime::Wide<T>;
    if constexpr (std::is_floating_point_v<W>) {
      for (const T element : want.data<T>()) {
        const W value = static_cast<W>(element);
        if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
      }
    }
    if (sizeof(T) == 2) tolerance.relative = want.dtype() == runtime::DType::kBF16 ? 2e-2 : 4e-3;
  });
  tolerance.absolute += largest * tolerance.relative / 10;
  return tolerance;
}

// An error of `wrong` results, which are no refusal.
constexpr std::string_view kWrongResults = "wrong results";
std::unexpected<Diagnostic> wrong(std::string what) { return error(std::move(what), std::string(kWrongResults)); }

Status compare(const Tensor& have, const Tensor& want, size_t output, Expectation expectation) {
  if (have.dtype() != want.dtype() || have.shape() != want.shape()) {
    return wrong(fmt::format("output {} is {} {}, expected {} {}", output, runtime::name(have.dtype()),
                             runtime::to_string(have.shape()), runtime::name(want.dtype()),
                             runtime::to_string(want.shape())));
  }
  Status status;
  const Tolerance tolerance = tolerance_of(want, expectation);
  runtime::with_dtype<runtime::kAnyDType>(have.dtype(), [&]<class T>(T) {
    const auto x = have.data<T>(), y = want.data<T>();
    for (size_t i = 0; i < x.size() && status; ++i) {
      const auto a = static_cast<runtime::Wide<T>>(x[i]), b = static_cast<runtime::Wide<T>>(y[i]);
      if (!is_close(a, b, tolerance))
        status = wrong(fmt::format("output {}: wrong values, as element {}: {}, expected {}", output, i, a, b));
    }
  });
  return status;
}

Status compare(const std::vector<Tensor>& have, const std::vector<Tensor>& want, Expectation expectation) {
  if (have.size() != want.size()) return wrong(fmt::format("{} outputs, expected {}", have.size(), want.size()));
  for (size_t i = 0; i < have.size(); ++i) TENON_TRY(compare(have[i], want[i], i, expectation));
  return {};
}

// Whether `run` has the expected results of each data set, or of any.
Status compare(const std::vector<DataSet>& sets, Expectation expectation,
               const std::function<Expected<std::vector<Tensor>>(const DataSet&)>& run) {
  Status first;
  for (const DataSet& set : sets) {
    TENON_TRY_ASSIGN(tensors, run(set));
    const Status status = compare(*tensors, set.outputs, expectation);
    if (expectation == Expectation::kEachDataSet) TENON_TRY(status);
    if (status && expectation == Expectation::kAnyDataSet) return {};
    if (first) first = status;
  }
  return first;
}

// Appends the tensors of a result: those of a tuple's fields, and of a list, whose last element is outermost.
template <class Value, class IsTensor>
void append_tensors(const Value& value, std::vector<Tensor>& tensors, const IsTensor& is_tensor) {
  if (is_tensor(value)) return tensors.push_back(value.tensor());
  for (const Value& field : value.fields()) append_tensors(field, tensors, is_tensor);
}

Status interpreted(const Model& model, const std::vector<DataSet>& sets, Expectation expectation) {
  return compare(sets, expectation, [&](const DataSet& set) -> Expected<std::vector<Tensor>> {
    const std::vector<RunValue> inputs(set.inputs.begin(), set.inputs.end());
    TENON_TRY_ASSIGN(result, interpret(*model.context, model.module, model.entry, inputs));
    std::vector<Tensor> tensors;
    append_tensors(*result, tensors,
                   [](const RunValue& value) { return value.object->kind == RunObject::Kind::kTensor; });
    return tensors;
  });
}

// The names of a model's outputs, and in front of a '.' the index of a sequence's element; a list is one result.
Status check_names(const runtime::Executable& executable, const std::vector<std::string>& names) {
  const auto whole = [](const std::string& name) { return name.substr(0, name.rfind('.')); };
  std::vector<std::string> found, wanted;
  for (const runtime::Port& port : executable.functions[executable.entry].results) found.push_back(port.name);
  for (const std::string& name : names) {
    const bool is_list = std::ranges::find(found, whole(name)) != found.end();
    const std::string result = is_list ? whole(name) : name;
    if (wanted.empty() || wanted.back() != result) wanted.push_back(result);
  }
  if (found == wanted) return {};
  return error(
      fmt::format("the results are named [{}], the outputs [{}]", fmt::join(found, ", "), fmt::join(names, ", ")));
}

Status compiled(Model model, const std::vector<DataSet>& sets, const std::vector<std::string>& names,
                Expectation expectation) {
  TENON_TRY_ASSIGN(simplified, run_passes(*model.context, std::move(model.module), standard_passes()));
  model.module = std::move(*simplified);
  TENON_TRY_ASSIGN(compilation, compile(model, {}));
  const runtime::Executable& executable = compilation->executable;
  TENON_TRY(check_names(executable, names));
  TENON_TRY_ASSIGN(session, runtime::Session::create(executable, {}));
  return compare(sets, expectation, [&](const DataSet& set) -> Expected<std::vector<Tensor>> {
    const std::vector<runtime::Value> inputs(set.inputs.begin(), set.inputs.end());
    TENON_TRY_ASSIGN(results, session->run_values(inputs));
    std::vector<Tensor> tensors;
    for (const runtime::Value& result : *results) {
      append_tensors(result, tensors, [](const runtime::Value& value) {
        return value.object->kind == runtime::ValueObject::Kind::kTensor;
      });
    }
    return tensors;
  });
}

std::string one_line(const Diagnostic& diagnostic) {
  std::string text = diagnostic.what;
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return text.empty() ? "failed without a message" : text;
}

Outcome outcome(const Status& status) {
  if (status) return {Outcome::State::kPassed, ""};
  const bool is_wrong = status.error().where == kWrongResults;
  return {is_wrong ? Outcome::State::kWrong : Outcome::State::kRefused, one_line(status.error())};
}

// The tensor type inside of sequences and optional values.
const ::onnx::TypeProto& tensor_type(const ::onnx::TypeProto& type) {
  if (type.has_sequence_type()) return tensor_type(type.sequence_type().elem_type());
  return type.has_optional_type() ? tensor_type(type.optional_type().elem_type()) : type;
}

// What the user of a model states about inputs whose types leave it open: lengths of sequences, ranks, absence.
std::map<std::string, int64_t> stated_shapes(const ::onnx::GraphProto& graph, const DataSet& set) {
  std::map<std::string, int64_t> shapes;
  for (int i = 0; i < graph.input_size() && i < static_cast<int>(set.input_extents.size()); ++i) {
    const ::onnx::ValueInfoProto& input = graph.input(i);
    const Extent& extent = set.input_extents[static_cast<size_t>(i)];
    if (extent.length) shapes[input.name()] = static_cast<int64_t>(*extent.length);
    if (extent.tensors == 0 && input.type().has_optional_type() && !extent.length)
      shapes[input.name() + ".present"] = 0;
    if (extent.tensors > 0 && !tensor_type(input.type()).tensor_type().has_shape())
      shapes[input.name() + ".rank"] = extent.rank;
  }
  return shapes;
}

::onnx::ModelProto read_proto(const fs::path& folder) {
  ::onnx::ModelProto model;
  if (const auto bytes = read_file(folder / "model.onnx")) {
    model.ParseFromArray(bytes->data(), static_cast<int>(bytes->size()));
  }
  return model;
}

}  // namespace

NodeTestResult run_node_test(const fs::path& folder, bool with_compiled, Expectation expectation) {
  const ::onnx::ModelProto proto = read_proto(folder);
  const ::onnx::GraphProto& graph = proto.graph();
  const auto sets = read_data(folder, graph);
  const auto shapes = sets ? stated_shapes(graph, sets->front()) : std::map<std::string, int64_t>();
  auto model = read_model(folder / "model.onnx", shapes);
  if (!model) return {outcome(std::unexpected(model.error())), {}};
  if (!sets) return {outcome(std::unexpected(sets.error())), {}};
  NodeTestResult result{outcome(interpreted(*model, *sets, expectation)), {}};
  if (with_compiled && result.interpreted.passed()) {
    std::vector<std::string> names;
    for (int i = 0; i < graph.output_size(); ++i) {
      const auto length = sets->front().output_extents[static_cast<size_t>(i)].length;
      if (!length) names.push_back(graph.output(i).name());
      for (size_t k = 0; length && k < *length; ++k) names.push_back(fmt::format("{}.{}", graph.output(i).name(), k));
    }
    result.compiled = outcome(compiled(std::move(*model), *sets, names, expectation));
  }
  return result;
}

std::string tested_operator(const fs::path& folder) {
  const std::string name = folder.filename().string();
  const size_t expanded = name.find("_expanded");
  if (expanded != std::string::npos) {
    const fs::path base = folder.parent_path() / name.substr(0, expanded);
    if (fs::exists(base)) return tested_operator(base);
  }
  const ::onnx::ModelProto model = read_proto(folder);
  // The operator of the last node: what precedes it makes its inputs.
  if (model.graph().node_size() == 0) return "";
  const auto& node = model.graph().node(model.graph().node_size() - 1);
  return node.domain().empty() ? node.op_type() : node.domain() + "." + node.op_type();
}

}  // namespace tenon::compiler
