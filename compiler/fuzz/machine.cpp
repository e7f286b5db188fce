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
  const auto executable = lower(context, module, context.symbol("main"), {}, options);
  if (!executable) return failed(executable.error());
  const auto file = runtime::serialize(*executable);
  if (!file) return failed(file.error());
  const auto loaded = runtime::deserialize(*file, "memory");
  if (!loaded) return failed(loaded.error());
  if (*loaded != *executable) return failed(error("the loaded executable differs from the saved one").error());
  runtime::SessionOptions how;
  how.threads = 1;
  how.max_steps = static_cast<uint64_t>(limits.steps);
  how.max_bytes = kMaxRunBytes;
  how.budget = budget;
  how.kernels = [&](std::string_view name) -> runtime::CpuKernel {
    if (name.starts_with('@')) return external_kernel(context, module, libraries, limits, name.substr(1));
    const runtime::reference::Kernel kernel = runtime::reference::find(name);
    return kernel ? runtime::CpuKernel(kernel) : runtime::CpuKernel();
  };
  auto session = runtime::Session::create(*loaded, how);
  if (!session) return failed(session.error());
  std::vector<runtime::Value> values;
  for (const RunValue& input : inputs) {
    auto value = to_session(context, module, *loaded, input);
    if (!value) return failed(value.error());
    values.push_back(std::move(*value));
  }
  run.compiled = true;
  const auto results = session->run_values(values);
  if (!results) {
    run.limited = results.error().what.starts_with("the run takes more than") ||
                  results.error().what.starts_with("the values of the run") ||
                  results.error().what.starts_with("the calls nest too deep") ||
                  results.error().what.find("of the budget of") != std::string::npos;
    return failed(results.error());
  }
  run.peak = session->profile().memory.peak_bytes;
  const bool is_tuple = module.function(context.symbol("main"))->result.tuple() != nullptr;
  run.result = from_session(context, *loaded, is_tuple ? runtime::Value::tuple(*results) : results->front());
  return run;
}

}  // namespace tenon::compiler::fuzz
