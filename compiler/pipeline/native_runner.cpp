#include "compiler/pipeline/native_runner.h"

#include <memory>
#include <string>
#include <utility>

#include "compiler/lower/lower.h"
#include "compiler/partition/partition.h"
#include "compiler/passes/pass.h"
#include "runtime/native/native.h"
#include "runtime/vm/session.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

struct CompiledFunction {
  runtime::Executable executable;
  std::unique_ptr<runtime::Session> session;  // of the executable, which stays at its address
};

Expected<std::shared_ptr<CompiledFunction>> compiled(Context& context, const Module& module, Symbol entry) {
  Module copy = clone(module);
  TENON_TRY(partition(context, copy, entry, {}));
  TENON_TRY_ASSIGN(kernels, run_passes(context, std::move(copy), kernel_passes()));
  LowerOptions options{.name = "calibration", .facts = {}};
  if (!runtime::host_levels().empty()) options.cpu.levels = {std::string(runtime::host_levels().front())};
  TENON_TRY_ASSIGN(executable, lower(context, *kernels, entry, {}, options));
  auto made = std::make_shared<CompiledFunction>();
  made->executable = std::move(*executable);
  TENON_TRY_ASSIGN(session, runtime::Session::create(made->executable, {.profile = false}));
  made->session = std::make_unique<runtime::Session>(std::move(*session));
  return made;
}

}  // namespace

Runner native_runner(Context& context) {
  return [&context](const Module& module, Symbol entry) -> Expected<RunFunction> {
    TENON_TRY_ASSIGN(made, compiled(context, module, entry));
    return [function = std::move(*made)](std::span<const runtime::Tensor> inputs) {
      return function->session->run(inputs);
    };
  };
}

}  // namespace tenon::compiler
