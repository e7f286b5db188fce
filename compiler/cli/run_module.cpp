// Inputs from files and literals, one run of the compiled module, and results as text, files or a comparison.
#include "compiler/cli/run_module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <span>

#include "compiler/cli/json.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/lower/values.h"
#include "runtime/dtype.h"
#include "runtime/run/inputs.h"
#include "runtime/run/results.h"
#include "runtime/vm/session.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using compiler::Context;
using compiler::Function;
using compiler::RunValue;
using runtime::Tensor;

// "%x: Tensor[(n,), f32], %steps: Tensor[(), i64]"
std::string signature(const Context& context, const Function& function) {
  std::vector<std::string> params;
  for (compiler::VarId param : function.params) {
    const compiler::VarInfo& info = function.info(param);
    params.push_back(fmt::format("%{}: {}", context.name(info.name), context.str(info.type)));
  }
  return params.empty() ? "no inputs" : fmt::format("{}", fmt::join(params, ", "));
}

// The function's inputs, all of them tensors.
Expected<std::vector<runtime::InputSlot>> input_slots(const Context& context, const Function& function,
                                                      const ModuleRun& run) {
  std::vector<runtime::InputSlot> slots;
  for (compiler::VarId param : function.params) {
    const compiler::VarInfo& info = function.info(param);
    const compiler::TensorType* type = info.type.tensor();
    if (!type) {
      return error(
          fmt::format("input '{}' is {}: only tensors can be given", context.name(info.name), context.str(info.type)),
          run.model.model, "write a function that builds the input from tensors, and name it with --entry");
    }
    slots.push_back({std::string(context.name(info.name)), context.str(info.type),
                     type->rank() == 0 ? std::optional(type->dtype) : std::nullopt});
  }
  return slots;
}

Expected<std::vector<RunValue>> read_inputs(const Context& context, const Function& function, const ModuleRun& run) {
  TENON_TRY_ASSIGN(slots, input_slots(context, function, run));
  TENON_TRY_ASSIGN(
      tensors,
      runtime::read_inputs(*slots, run.inputs,
                           {.where = run.model.model,
                            .help = fmt::format("{} takes {}", "@" + run.model.entry, signature(context, function)),
                            .fault = Fault::kUsage}));
  return std::vector<RunValue>(tensors->begin(), tensors->end());
}

// A tensor, or a tuple's fields by their indices: 0, 1.0, 1.1.
Status flatten(const Context& context, const RunValue& value, const std::string& name, runtime::NamedTensors& out) {
  if (value.tensor()) {
    out.emplace(name.empty() ? "0" : name, value.tensor());
    return {};
  }
  if (value.object->kind != compiler::RunObject::Kind::kTuple) {
    return error(fmt::format("the result {} is {}: files hold tensors and tuples of them", name,
                             compiler::describe(context, value)));
  }
  for (size_t i = 0; i < value.fields().size(); ++i) {
    TENON_TRY(flatten(context, value.fields()[i], fmt::format("{}{}{}", name, name.empty() ? "" : ".", i), out));
  }
  return {};
}

// A tensor as {"dtype", "shape", "data"}, a tuple as a list, a constructed value as {"constructor", "fields"}; values
// that are nested too deeply, and functions, as text.
void write_json(Json& out, const Context& context, const RunValue& value, int depth = 0) {
  using Kind = compiler::RunObject::Kind;
  constexpr int kDeepest = 200;
  const auto write_array = [&](std::span<const RunValue> values) {
    out.begin_array();
    for (const RunValue& next : values) write_json(out, context, next, depth + 1);
    out.end();
  };
  const Kind kind = value.object->kind;
  if (depth > kDeepest || kind == Kind::kClosure) {
    out.value(compiler::str(context, value));
  } else if (kind == Kind::kTensor) {
    const Tensor& tensor = value.tensor();
    out.begin_object().field("dtype", runtime::name(tensor.dtype())).key("shape").begin_array();
    for (int64_t size : tensor.shape()) out.value(size);
    out.end().key("data").begin_array();
    runtime::with_dtype<runtime::kAnyDType>(tensor.dtype(), [&]<class T>(T) {
      for (const T x : tensor.data<T>()) {
        if constexpr (runtime::is_real<T>) out.value(static_cast<double>(x));
        else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, uint64_t>) out.value(x);
        else out.value(static_cast<int64_t>(x));
      }
    });
    out.end().end();
  } else if (kind == Kind::kTuple) {
    write_array(value.fields());
  } else if (kind == Kind::kReference) {
    out.begin_object().key("ref");
    write_json(out, context, value.object->fields[0], depth + 1);
    out.end();
  } else {
    out.begin_object().field("constructor", context.name(value.object->constructor)).key("fields");
    write_array(value.fields());
    out.end();
  }
}

// The module as it is in the file, for the interpreter.
Expected<LoadedModel> read(const ModelOptions& options) {
  TENON_TRY(open_libraries(options));
  TENON_TRY_ASSIGN(model,
                   compiler::read_model(options.model, {}, {.strict_shapes = options.strict_shapes}, options.entry));
  TENON_TRY(compiler::check_entry(*model, options.model));
  return LoadedModel{std::move(*model), {}};
}

// One run of the executable. The results of a function whose result is a tuple are its fields.
Expected<RunValue> execute(compiler::Model& model, const runtime::Executable& executable,
                           std::span<const RunValue> inputs, runtime::SessionOptions options) {
  Context& context = *model.context;
  std::vector<runtime::Value> values;
  for (const RunValue& input : inputs) {
    TENON_TRY_ASSIGN(value, compiler::to_session(context, model.module, executable, input));
    values.push_back(std::move(*value));
  }
  TENON_TRY_ASSIGN(session, runtime::Session::create(executable, std::move(options)));
  TENON_TRY_ASSIGN(made, session->run_values(values));
  std::vector<RunValue> results;
  for (const runtime::Value& value : *made) {
    results.push_back(compiler::from_session(context, executable, value));
  }
  return model.main().result.tuple() ? RunValue::tuple(std::move(results)) : std::move(results.at(0));
}

Expected<RunValue> evaluate(LoadedModel& loaded, const ModuleRun& run, std::span<const RunValue> inputs,
                            runtime::SessionOptions options) {
  compiler::Model& model = loaded.model;
  if (run.interpret) return compiler::interpret(*model.context, model.module, model.entry, inputs);
  const auto compiled = compile(loaded, run.model, nullptr);
  if (compiled) return execute(model, compiled->executable, inputs, std::move(options));
  if (compiled.error().fault != Fault::kInput || run.limits.any()) return std::unexpected(compiled.error());
  fmt::print(stderr, "note: the module does not compile and runs in the interpreter: {}\n", compiled.error().what);
  return compiler::interpret(*model.context, model.module, model.entry, inputs);
}

}  // namespace

bool is_module(const std::string& path) { return path.ends_with(".tn") || path.ends_with(".tnb"); }

Status run_module(const ModuleRun& run) {
  if (!(run.tolerance >= 0)) return error("--tolerance is at least 0", {}, {}, Fault::kUsage);
  std::vector<std::string> files{run.model.model, run.expect};
  files.insert(files.end(), run.inputs.begin(), run.inputs.end());
  TENON_TRY(runtime::check_output(run.output, "--output", files));
  if (run.interpret && run.limits.any()) {
    return error("--max-memory, --max-steps, --max-stack and --max-seconds are limits of compiled code", {},
                 "leave --interpret out", Fault::kUsage);
  }
  runtime::SessionOptions session;
  session.threads = run.threads;
  TENON_TRY(run.limits.apply(session));
  TENON_TRY_ASSIGN(loaded, run.interpret ? read(run.model) : load(run.model));
  Context& context = *loaded->model.context;
  TENON_TRY_ASSIGN(inputs, read_inputs(context, loaded->model.main(), run));
  auto result = evaluate(*loaded, run, *inputs, std::move(session));
  if (!result && result.error().where.empty()) result.error().where = run.model.model;
  TENON_TRY(result);
  if (!run.output.empty() || !run.expect.empty()) {
    runtime::NamedTensors tensors;
    TENON_TRY(flatten(context, *result, "", tensors));
    if (!run.output.empty()) TENON_TRY(runtime::write_results(run.output, tensors));
    if (!run.expect.empty()) {
      TENON_TRY(runtime::compare_results(tensors, run.expect, run.tolerance));
      if (!run.json) fmt::print("as expected: {} result{}\n", tensors.size(), tensors.size() == 1 ? "" : "s");
    }
  }
  if (run.json) {
    Json out;
    out.begin_object().key("result");
    write_json(out, context, *result);
    fmt::print("{}", out.end().str());
  } else if (run.output.empty() && run.expect.empty()) {
    fmt::print("{}\n", compiler::str(context, *result));
  }
  return {};
}

}  // namespace tenon::cli
