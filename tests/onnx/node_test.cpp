#include "tests/onnx/node_test.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <vector>

#include "compiler/frontend/onnx.h"
#include "compiler/frontend/onnx.pb.h"
#include "compiler/frontend/onnx_model.h"
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

struct DataSet {
  std::vector<Tensor> inputs, outputs;
};

Expected<std::vector<Tensor>> read_values(const fs::path& folder, const char* kind) {
  std::vector<Tensor> values;
  for (;;) {
    const fs::path file = folder / fmt::format("{}_{}.pb", kind, values.size());
    if (!fs::exists(file)) return values;
    TENON_TRY_ASSIGN(bytes, read_file(file));
    TENON_TRY_ASSIGN(tensor, read_onnx_tensor(*bytes, file.filename().string()));
    values.push_back(std::move(*tensor));
  }
}

Expected<std::vector<DataSet>> read_data(const fs::path& folder) {
  std::vector<DataSet> sets;
  for (;;) {
    const fs::path set = folder / fmt::format("test_data_set_{}", sets.size());
    if (!fs::exists(set)) break;
    TENON_TRY_ASSIGN(inputs, read_values(set, "input"));
    TENON_TRY_ASSIGN(outputs, read_values(set, "output"));
    sets.push_back({std::move(*inputs), std::move(*outputs)});
  }
  if (sets.empty()) return error("there is no test_data_set_0", folder.string());
  return sets;
}

template <class T>
bool is_close(T have, T want) {
  if constexpr (std::is_floating_point_v<T>) {
    if (have == want || (std::isnan(have) && std::isnan(want))) return true;
    return std::abs(have - want) <= T(1e-7) + T(1e-3) * std::abs(want);
  } else {
    return have == want;
  }
}

Status compare(const Tensor& have, const Tensor& want, size_t output) {
  if (have.dtype() != want.dtype() || have.shape() != want.shape()) {
    return error(fmt::format("output {} is {} {}, expected {} {}", output, runtime::name(have.dtype()),
                             runtime::to_string(have.shape()), runtime::name(want.dtype()),
                             runtime::to_string(want.shape())));
  }
  Status status;
  runtime::with_dtype<runtime::kAnyDType>(have.dtype(), [&]<class T>(T) {
    const auto x = have.data<T>(), y = want.data<T>();
    for (size_t i = 0; i < x.size() && status; ++i) {
      const auto a = static_cast<runtime::Wide<T>>(x[i]), b = static_cast<runtime::Wide<T>>(y[i]);
      if (!is_close(a, b))
        status = error(fmt::format("output {}: wrong values, as element {}: {}, expected {}", output, i, a, b));
    }
  });
  return status;
}

Status compare(const std::vector<Tensor>& have, const std::vector<Tensor>& want) {
  if (have.size() != want.size()) return error(fmt::format("{} outputs, expected {}", have.size(), want.size()));
  for (size_t i = 0; i < have.size(); ++i) TENON_TRY(compare(have[i], want[i], i));
  return {};
}

Status interpreted(const Model& model, const std::vector<DataSet>& sets) {
  for (const DataSet& set : sets) {
    TENON_TRY_ASSIGN(results, interpret(*model.context, model.module, model.entry, set.inputs));
    TENON_TRY(compare(*results, set.outputs));
  }
  return {};
}

Status compiled(Model model, const std::vector<DataSet>& sets, const std::vector<std::string>& names) {
  TENON_TRY_ASSIGN(simplified, run_passes(*model.context, std::move(model.module), standard_passes()));
  model.module = std::move(*simplified);
  TENON_TRY_ASSIGN(compilation, compile(model, {}));
  const runtime::Executable& executable = compilation->executable;
  std::vector<std::string> found;
  for (const runtime::Port& port : executable.functions[executable.entry].results) found.push_back(port.name);
  if (found != names)
    return error(
        fmt::format("the results are named [{}], the outputs [{}]", fmt::join(found, ", "), fmt::join(names, ", ")));
  TENON_TRY_ASSIGN(session, runtime::Session::create(executable, {}));
  for (const DataSet& set : sets) {
    TENON_TRY_ASSIGN(results, session->run(std::span(set.inputs)));
    TENON_TRY(compare(*results, set.outputs));
  }
  return {};
}

std::string one_line(const Diagnostic& diagnostic) {
  std::string text = diagnostic.what;
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return text.empty() ? "failed without a message" : text;
}

Outcome outcome(const Status& status) { return {true, status ? "" : one_line(status.error())}; }

onnx::ModelProto read_proto(const fs::path& folder) {
  onnx::ModelProto model;
  if (const auto bytes = read_file(folder / "model.onnx")) {
    model.ParseFromArray(bytes->data(), static_cast<int>(bytes->size()));
  }
  return model;
}

}  // namespace

NodeTestResult run_node_test(const fs::path& folder, bool with_compiled) {
  auto model = read_model(folder / "model.onnx", {});
  if (!model) return {{true, one_line(model.error())}, {}};
  const auto sets = read_data(folder);
  if (!sets) return {{true, one_line(sets.error())}, {}};
  NodeTestResult result{outcome(interpreted(*model, *sets)), {}};
  if (with_compiled && result.interpreted.passed()) {
    std::vector<std::string> names;
    const onnx::ModelProto proto = read_proto(folder);
    for (const auto& output : proto.graph().output()) names.push_back(output.name());
    result.compiled = outcome(compiled(std::move(*model), *sets, names));
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
  const onnx::ModelProto model = read_proto(folder);
  // The operator of the last node: what precedes it makes its inputs.
  if (model.graph().node_size() == 0) return "";
  const auto& node = model.graph().node(model.graph().node_size() - 1);
  return node.domain().empty() ? node.op_type() : node.domain() + "." + node.op_type();
}

}  // namespace tenon::compiler
