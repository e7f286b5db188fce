// Models of the C interface: import, samples, compilation.
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/c_api/tenon_compiler.h"
#include "compiler/cli/compilation_json.h"
#include "compiler/cli/executable_options.h"
#include "compiler/cli/executable_text.h"
#include "compiler/cli/model_options.h"
#include "runtime/c_api/guarded.h"
#include "runtime/executable/executable.h"
#include "support/deep_stack.h"
#include "support/json.h"
#include "support/printable.h"
#include "support/try.h"

struct tenon_text {
  std::string string;
};

struct tenon_model {
  // What the options ask for.
  tenon::cli::ModelOptions options;
  tenon::cli::ExecutableOptions executable;
  std::vector<tenon::compiler::AcceleratorOptions> accelerators;
  std::optional<tenon::cli::LoadedModel> loaded;
  std::vector<std::pair<std::string, std::string>> inputs;  // names and types
  std::vector<std::string> outputs;                         // types
  std::optional<std::string> report;                        // of the last compilation

  tenon::cli::Sizes sizes() const { return sizes_of_inputs(options, !accelerators.empty()); }
};

namespace tenon::runtime::c_api {
namespace {

constexpr char kCalibrate[] = "tenon_model_calibrate";

// Imports and compilations recur on the depth of the model.
template <class Body>
tenon_error* guarded_deeply(Body&& body) {
  tenon_error* error = nullptr;
  tenon_error* const failed = guarded([&]() -> Status {
    with_deep_stack([&] { error = guarded(body); });
    return {};
  });
  return failed ? failed : error;
}

Status parse_options(tenon_model& model, const char* path, const tenon_option* options, size_t count) {
  std::vector<std::string> arguments;
  for (size_t i = 0; i < count; ++i) {
    const auto& [given, value] = options[i];
    const std::string name(given ? given : "");
    if (name.empty() || name.starts_with('-') || name.contains('=') || name == "help") {
      return error(fmt::format("option {} is '{}', which is no name of an option", i, printable(name)),
                   "tenon_model_import", "a name as \"config\", without dashes; tenon compile --help lists them",
                   Fault::kUsage);
    }
    arguments.push_back(value && *value ? fmt::format("--{}={}", name, value) : fmt::format("--{}", name));
  }
  arguments.emplace_back("--");
  arguments.emplace_back(path);
  Options declared("tenon compile", "");
  model.options.declare(declared);
  model.executable.declare(declared, model.options);
  TENON_TRY(declared.parse(std::move(arguments)));
  model.options.quiet = true;
  return model.executable.apply(model.options);
}

// Takes the model, and describes its inputs and outputs.
void set_loaded(tenon_model& model, cli::LoadedModel loaded) {
  const compiler::Context& context = *loaded.model.context;
  const compiler::Function& main = loaded.model.main();
  model.inputs.clear();
  for (const compiler::VarId param : main.params)
    model.inputs.emplace_back(context.name(main.info(param).name), context.str(main.type(param)));
  model.outputs.clear();
  for (const compiler::Type part : main.result.parts()) model.outputs.push_back(context.str(part));
  model.loaded = std::move(loaded);
  model.report.reset();
}

Status import_model(const char* path, const tenon_option* options, size_t count, tenon_model** out) {
  constexpr char kFunction[] = "tenon_model_import";
  TENON_TRY(require(kFunction, {{"path", path}, {"out", out}}));
  if (count > 0) TENON_TRY(require(kFunction, {{"options", options}}));
  auto model = std::make_unique<tenon_model>();
  TENON_TRY(parse_options(*model, path, options, count));
  TENON_TRY_ASSIGN(accelerators, model->executable.accelerators());
  model->accelerators = std::move(*accelerators);
  TENON_TRY_ASSIGN(loaded, cli::load(model->options, {}, model->sizes()));
  set_loaded(*model, std::move(*loaded));
  *out = model.release();
  return {};
}

// A copy of a tensor of the caller's.
Expected<Tensor> tensor_of(const tenon_value* value, size_t input) {
  if (!value) return error(fmt::format("the data of input {} is NULL", input), kCalibrate, {}, Fault::kUsage);
  if (tenon_value_kind(value) != TENON_TENSOR)
    return error(fmt::format("the data of input {} is no tensor", input), kCalibrate, {}, Fault::kUsage);
  const int64_t* sizes = tenon_tensor_sizes(value);
  Tensor tensor(static_cast<DType>(tenon_tensor_dtype(value)), Shape(sizes, sizes + tenon_tensor_rank(value)));
  if (!tensor.bytes().empty()) std::memcpy(tensor.bytes().data(), tenon_tensor_data(value), tensor.bytes().size());
  return tensor;
}

Status calibrate(tenon_model* model, const tenon_value* const* data, size_t count) {
  TENON_TRY(require(kCalibrate, {{"model", model}, {"data", data}}));
  if (count != model->inputs.size()) {
    return error(fmt::format("there are data of {} inputs, the model has {}", count, model->inputs.size()), kCalibrate,
                 {}, Fault::kUsage);
  }
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    TENON_TRY_ASSIGN(tensor, tensor_of(data[i], i));
    tensors.push_back(std::move(*tensor));
  }
  TENON_TRY_ASSIGN(loaded, cli::load_calibrated(model->options, model->sizes(), tensors, kCalibrate));
  set_loaded(*model, std::move(*loaded));
  return {};
}

// What people want to know of a compilation.
std::string report_of(const compiler::Compilation& compiled) {
  Json out;
  out.begin_object();
  cli::write_compilation(out, compiled);
  out.field("notes", compiled.notes).key("interpreted").begin_array();
  for (const compiler::CpuPlacement& placement : compiled.interpreted) {
    out.begin_object()
        .field("node", compiled.partitioned.span(placement.span).node)
        .field("op", placement.op)
        .field("reason", placement.reason)
        .end();
  }
  return out.end().end().str();
}

Status compile(tenon_model* model, tenon_program** out) {
  TENON_TRY(require("tenon_model_compile", {{"model", model}, {"out", out}}));
  model->report.reset();
  TENON_TRY_ASSIGN(compiled, cli::compile(*model->loaded, model->options, model->accelerators));
  TENON_TRY_ASSIGN(bytes, serialize(compiled->executable));
  if (tenon_error* failed =
          tenon_program_load_bytes(bytes->data(), bytes->size(), model->loaded->model.name.c_str(), out)) {
    const std::unique_ptr<tenon_error, void (*)(tenon_error*)> owner(failed, tenon_error_free);
    return error(tenon_error_what(failed), tenon_error_where(failed), tenon_error_help(failed), Fault::kInternal);
  }
  model->report = report_of(*compiled);
  return {};
}

Status report(const tenon_model* model, tenon_text** out) {
  TENON_TRY(require("tenon_model_report", {{"model", model}, {"out", out}}));
  if (!model->report)
    return error("the model is not compiled", "tenon_model_report", "call tenon_model_compile()", Fault::kUsage);
  *out = new tenon_text{*model->report};
  return {};
}

Status inspect(const char* path, tenon_text** out) {
  TENON_TRY(require("tenon_inspect", {{"path", path}, {"out", out}}));
  TENON_TRY_ASSIGN(executable, load(path));
  *out = new tenon_text{cli::executable_json(*executable)};
  return {};
}

}  // namespace

tenon_error* out_of_memory() noexcept {
  return tenon_error_create(TENON_FAULT_INTERNAL, "there is not enough memory", nullptr, nullptr);
}

tenon_error* make_error(Diagnostic diagnostic) noexcept {
  try {
    for (const Diagnostic& other : diagnostic.more) diagnostic.what += '\n' + other.str();
    return tenon_error_create(static_cast<int32_t>(diagnostic.fault), diagnostic.what.c_str(), diagnostic.where.c_str(),
                              diagnostic.help.c_str());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

}  // namespace tenon::runtime::c_api

namespace c_api = tenon::runtime::c_api;

tenon_error* tenon_model_import(const char* path, const tenon_option* options, size_t option_count, tenon_model** out) {
  return c_api::guarded_deeply([&] { return c_api::import_model(path, options, option_count, out); });
}
void tenon_model_free(tenon_model* model) { delete model; }

const char* tenon_model_name(const tenon_model* model) { return model->loaded->model.name.c_str(); }
size_t tenon_model_input_count(const tenon_model* model) { return model->inputs.size(); }
size_t tenon_model_output_count(const tenon_model* model) { return model->outputs.size(); }
const char* tenon_model_input_name(const tenon_model* model, size_t index) {
  return index < model->inputs.size() ? model->inputs[index].first.c_str() : nullptr;
}
const char* tenon_model_input_type(const tenon_model* model, size_t index) {
  return index < model->inputs.size() ? model->inputs[index].second.c_str() : nullptr;
}
const char* tenon_model_output_type(const tenon_model* model, size_t index) {
  return index < model->outputs.size() ? model->outputs[index].c_str() : nullptr;
}

tenon_error* tenon_model_calibrate(tenon_model* model, const tenon_value* const* data, size_t input_count) {
  return c_api::guarded_deeply([&] { return c_api::calibrate(model, data, input_count); });
}
tenon_error* tenon_model_compile(tenon_model* model, tenon_program** out) {
  return c_api::guarded_deeply([&] { return c_api::compile(model, out); });
}
tenon_error* tenon_model_report(const tenon_model* model, tenon_text** out) {
  return c_api::guarded([&] { return c_api::report(model, out); });
}
tenon_error* tenon_inspect(const char* path, tenon_text** out) {
  return c_api::guarded([&] { return c_api::inspect(path, out); });
}

const char* tenon_text_string(const tenon_text* text) { return text->string.c_str(); }
void tenon_text_free(tenon_text* text) { delete text; }
