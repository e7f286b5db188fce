// Inputs from files and literals, one run of the compiled module, and results as text, files or a comparison.
#include "compiler/cli/run_module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <span>

#include "compiler/gradient/differentiate.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/lower/values.h"
#include "runtime/run/inputs.h"
#include "runtime/run/results.h"
#include "runtime/vm/session.h"
#include "support/json.h"
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

// The tensors of a parameter: the parameter itself as NAME, those of a tuple by their path, as NAME.0 and NAME.1.0.
Status add_slots(const Context& context, compiler::Type type, const std::string& name, const std::string& where,
                 std::vector<runtime::InputSlot>& slots) {
  if (const compiler::TensorType* tensor = type.tensor()) {
    slots.push_back({name, context.str(type), tensor->rank() == 0 ? std::optional(tensor->dtype) : std::nullopt});
    return {};
  }
  if (!type.tuple()) {
    return error(fmt::format("input '{}' is {}: only tensors and tuples of them can be given", name, context.str(type)),
                 where, "write a function that builds the input from tensors, and name it with --entry");
  }
  for (size_t i = 0; i < type.tuple()->fields.size(); ++i)
    TENON_TRY(add_slots(context, type.tuple()->fields[i], fmt::format("{}.{}", name, i), where, slots));
  return {};
}

// A value of the type, of the next tensors.
RunValue assembled(compiler::Type type, std::vector<Tensor>::iterator& next) {
  if (!type.tuple()) return *next++;
  std::vector<RunValue> fields;
  for (const compiler::Type field : type.tuple()->fields) fields.push_back(assembled(field, next));
  return RunValue::tuple(std::move(fields));
}

// NAME=FILE.npz of a tuple is each of its tensors, which are in the file by their paths, as results are.
std::vector<std::string> with_members(const std::vector<std::string>& arguments,
                                      const std::vector<runtime::InputSlot>& slots) {
  std::vector<std::string> expanded;
  for (const std::string& argument : arguments) {
    const size_t begin = argument.starts_with('%') ? 1 : 0, equals = argument.find('=');
    const size_t before = expanded.size();
    if (equals != std::string::npos && argument.ends_with(".npz")) {
      const std::string prefix = argument.substr(begin, equals - begin) + ".";
      for (const runtime::InputSlot& slot : slots) {
        if (slot.name.starts_with(prefix))
          expanded.push_back(slot.name + argument.substr(equals) + ":" + slot.name.substr(prefix.size()));
      }
    }
    if (expanded.size() == before) expanded.push_back(argument);
  }
  return expanded;
}

Expected<std::vector<RunValue>> read_inputs(const Context& context, const Function& function, const ModuleRun& run) {
  std::vector<runtime::InputSlot> slots;
  for (const compiler::VarId param : function.params) {
    const compiler::VarInfo& info = function.info(param);
    TENON_TRY(add_slots(context, info.type, std::string(context.name(info.name)), run.model.model, slots));
  }
  TENON_TRY_ASSIGN(
      tensors,
      runtime::read_inputs(slots, with_members(run.inputs, slots),
                           {.where = run.model.model,
                            .help = fmt::format("{} takes {}", "@" + run.model.entry, signature(context, function)),
                            .fault = Fault::kUsage}));
  std::vector<RunValue> inputs;
  auto next = tensors->begin();
  for (const compiler::VarId param : function.params) inputs.push_back(assembled(function.type(param), next));
  return inputs;
}

// A tensor, or a tuple's fields by their indices: 0, 1.0, 1.1.
Expected<runtime::NamedTensors> tensors_by_path(const Context& context, const RunValue& value) {
  runtime::NamedTensors tensors;
  std::string other;
  runtime::for_each_leaf(
      value, [&](const RunValue& part) { return view(context, part); },
      [&](const std::string& path, const RunValue& leaf) {
        if (leaf.tensor()) tensors.emplace(path.empty() ? "0" : path, leaf.tensor());
        else if (other.empty()) other = fmt::format("{} is {}", path, compiler::describe(context, leaf));
      });
  if (other.empty()) return tensors;
  return error(fmt::format("the result {}: files hold tensors and tuples of them", other), {},
               "--json prints it with all its parts");
}

// The module as it is in the file, for the interpreter.
Expected<LoadedModel> read(const ModelOptions& options) {
  TENON_TRY(open_libraries(options));
  TENON_TRY_ASSIGN(model,
                   compiler::read_model(options.model, {}, {.strict_shapes = options.strict_shapes}, options.entry));
  TENON_TRY(compiler::check_entry(*model, options.model));
  TENON_TRY_ASSIGN(module, compiler::differentiate(*model->context, std::move(model->module)));
  model->module = std::move(*module);
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
  print_stderr("note: the module does not compile and runs in the interpreter: {}\n", compiled.error().what);
  return compiler::interpret(*model.context, model.module, model.entry, inputs);
}

}  // namespace

bool is_module(const std::string& path) { return path.ends_with(".tn") || path.ends_with(".tnb"); }

Status run_module(const ModuleRun& run) {
  std::vector<std::string> files{run.model.model, run.expect};
  files.insert(files.end(), run.inputs.begin(), run.inputs.end());
  TENON_TRY(runtime::check_output(run.output, "--output", files));
  if (run.interpret && run.limits.any()) {
    return error("--max-memory, --max-steps, --max-stack, --max-seconds and --budget are limits of compiled code", {},
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
    TENON_TRY_ASSIGN(tensors, tensors_by_path(context, *result));
    if (!run.output.empty()) TENON_TRY(runtime::write_results(run.output, *tensors));
    if (!run.expect.empty()) {
      TENON_TRY(runtime::compare_results(*tensors, run.expect, run.tolerance));
      if (!run.json) print_stdout("as expected: {} result{}\n", tensors->size(), tensors->size() == 1 ? "" : "s");
    }
  }
  if (run.json) {
    Json out;
    out.begin_object().key("result");
    runtime::write_json(out, *result, [&](const RunValue& part) { return view(context, part); });
    print_stdout("{}", out.end().str());
  } else if (run.output.empty() && run.expect.empty()) {
    print_stdout("{}\n", compiler::str(context, *result));
  }
  return {};
}

}  // namespace tenon::cli
