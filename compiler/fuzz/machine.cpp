#include "compiler/fuzz/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/evaluate.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/values.h"
#include "runtime/vm/session.h"
#include "support/try.h"

namespace tenon::compiler::fuzz {
namespace {

constexpr uint64_t kMaxRunBytes = uint64_t{1} << 30;
using Tensors = std::vector<runtime::Tensor>;

// The kernel of a loop function or of a library's function, as an operator's kernel.
runtime::CpuKernel external_kernel(Context& context, const Module& module, const Libraries& libraries,
                                   const Limits& limits, std::string_view name) {
  const Symbol symbol = context.symbol(name);
  if (const loop::Function* function = module.loop_function(symbol)) {
    return [&context, function, limits](const runtime::Attrs&, std::span<const runtime::Tensor> args) {
      loop::EvaluateOptions options;
      options.max_bytes = limits.bytes;
      options.max_steps = std::min(options.max_steps, static_cast<uint64_t>(limits.steps));
      return loop::evaluate(context, *function, args, options);
    };
  }
  const Library* library = module.library(symbol);
  if (!library) return {};
  const auto found = libraries.find(library->symbol);
  if (found == libraries.end()) {
    // As in the interpreter, only a call of the function is an error.
    return [missing = library->symbol](const runtime::Attrs&, std::span<const runtime::Tensor>) -> Expected<Tensors> {
      return error(fmt::format("there is no library function \"{}\"", missing));
    };
  }
  return [implementation = &found->second](const runtime::Attrs&,
                                           std::span<const runtime::Tensor> args) -> Expected<Tensors> {
    TENON_TRY_ASSIGN(value, (*implementation)(std::vector<RunValue>(args.begin(), args.end())));
    if (value->tensor()) return Tensors{value->tensor()};
    Tensors results;
    for (const RunValue& field : value->fields()) results.push_back(field.tensor());
    return results;
  };
}

// The executable of @main and all that it uses, saved and loaded.
Expected<runtime::Executable> lowered(Context& context, const Module& module, const LowerOptions& options) {
  TENON_TRY_ASSIGN(executable, lower(context, module, context.symbol("main"), {}, options));
  TENON_TRY_ASSIGN(file, runtime::serialize(*executable));
  TENON_TRY_ASSIGN(loaded, runtime::deserialize(*file, "memory"));
  if (*loaded != *executable) return error("the loaded executable differs from the saved one");
  return std::move(*loaded);
}

runtime::SessionOptions session_options(Context& context, const Module& module, const Libraries& libraries,
                                        const Limits& limits) {
  runtime::SessionOptions how;
  how.threads = 1;
  how.max_steps = static_cast<uint64_t>(limits.steps);
  how.kernels = [&context, &module, &libraries, limits](std::string_view name) -> runtime::CpuKernel {
    if (name.starts_with('@')) return external_kernel(context, module, libraries, limits, name.substr(1));
    const runtime::reference::Kernel kernel = runtime::reference::find(name);
    return kernel ? runtime::CpuKernel(kernel) : runtime::CpuKernel();
  };
  return how;
}

Expected<std::vector<runtime::Value>> values_of(Context& context, const Module& module,
                                                const runtime::Executable& executable,
                                                std::span<const RunValue> inputs) {
  std::vector<runtime::Value> values;
  for (const RunValue& input : inputs) {
    TENON_TRY_ASSIGN(value, to_session(context, module, executable, input));
    values.push_back(std::move(*value));
  }
  return values;
}

RunValue result_of(Context& context, const Module& module, const runtime::Executable& executable,
                   const std::vector<runtime::Value>& results) {
  const bool is_tuple = module.function(context.symbol("main"))->result.tuple() != nullptr;
  return from_session(context, executable, is_tuple ? runtime::Value::tuple(results) : results.front());
}

}  // namespace

CompiledRun run_compiled(Context& context, const Module& module, std::span<const RunValue> inputs,
                         const Libraries& libraries, const Limits& limits, NativeCode native, uint64_t budget) {
  CompiledRun run{.result = RunValue()};
  const auto failed = [&](Diagnostic problem) {
    run.result = std::unexpected(std::move(problem));
    return std::move(run);
  };
  LowerOptions options;
  options.name = "module";
  options.cpu.native = native == NativeCode::kKernels;
  options.cpu.ahead_of_time = native == NativeCode::kFunctions;
  options.cpu.external = true;
  if (!runtime::host_levels().empty()) options.cpu.levels = {std::string(runtime::host_levels().front())};
  const auto loaded = lowered(context, module, options);
  if (!loaded) return failed(loaded.error());
  runtime::SessionOptions how = session_options(context, module, libraries, limits);
  how.max_bytes = kMaxRunBytes;
  how.budget = budget;
  auto session = runtime::Session::create(*loaded, how);
  if (!session) return failed(session.error());
  const auto values = values_of(context, module, *loaded, inputs);
  if (!values) return failed(values.error());
  run.compiled = true;
  const auto results = session->run_values(*values);
  if (!results) {
    run.limited = results.error().what.starts_with("the run takes more than") ||
                  results.error().what.starts_with("the values of the run") ||
                  results.error().what.starts_with("the calls nest too deep") ||
                  results.error().what.find("of the budget of") != std::string::npos;
    return failed(results.error());
  }
  run.peak = session->profile().memory.peak_bytes;
  run.result = result_of(context, module, *loaded, *results);
  return run;
}

std::optional<std::string> together_differs(Context& context, const Module& module, const std::vector<Symbol>& units,
                                            std::span<const std::vector<RunValue>> instances,
                                            const Libraries& libraries, const Limits& limits, NativeCode native,
                                            runtime::BatchPolicy policy, runtime::BatchCounts& counts) {
  LowerOptions options;
  options.name = "module";
  options.cpu.native = native == NativeCode::kKernels;
  options.cpu.external = true;
  if (!runtime::host_levels().empty()) options.cpu.levels = {std::string(runtime::host_levels().front())};
  options.units = units;
  const auto executable = lowered(context, module, options);
  if (!executable) return "the module of units does not compile: " + executable.error().str();
  runtime::SessionOptions how = session_options(context, module, libraries, limits);
  how.batch_policy = policy;
  auto session = runtime::Session::create(*executable, how);
  if (!session) return "the executable with units has no session: " + session.error().str();
  std::vector<std::vector<runtime::Value>> inputs;
  for (const std::vector<RunValue>& instance : instances) {
    auto values = values_of(context, module, *executable, instance);
    if (!values) return std::nullopt;
    inputs.push_back(std::move(*values));
  }
  const auto together = session->run_many(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto text = [&](const Expected<std::vector<runtime::Value>>& results) {
      return results ? str(context, result_of(context, module, *executable, *results)) : results.error().str();
    };
    const auto alone = session->run_values(inputs[i]);
    // A limit counts the instructions of a batch otherwise.
    const bool limited = !alone && (alone.error().what.starts_with("the run takes more than") ||
                                    alone.error().what.starts_with("the calls nest too deep"));
    if (limited || text(alone) == text(together[i])) continue;
    return fmt::format("instance {} of {} computes {}, and alone {}", i, inputs.size(), text(together[i]), text(alone));
  }
  counts += session->batches();
  return std::nullopt;
}

}  // namespace tenon::compiler::fuzz
