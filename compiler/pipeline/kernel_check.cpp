#include "compiler/pipeline/kernel_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/evaluate.h"
#include "support/try.h"

namespace tenon::compiler {

Status KernelCheck::operator()(const runtime::Step& step) {
  const auto* call = std::get_if<runtime::CallNative>(&step.instruction->operation);
  if (!call) return {};
  const std::string& name = executable_.natives[call->code].kernels[call->kernel].name;
  const auto function =
      std::ranges::find_if(functions_, [&](const loop::Function& bound) { return context_.name(bound.name) == name; });
  if (function == functions_.end() || std::ranges::find(checked_, name) != checked_.end()) return {};
  loop::EvaluateOptions options;
  options.threads = loop::ThreadOrder::kShuffled;
  TENON_TRY_ASSIGN(results, loop::evaluate(context_, *function, step.args, options));
  checked_.push_back(name);
  for (size_t i = 0; i < results->size(); ++i) {
    const runtime::Tensor &expected = (*results)[i], &found = step.results[i];
    if (runtime::kIntegers.contains(expected.dtype()) && expected != found)
      return error(fmt::format("result {} of the kernel differs from the evaluator's", i), fmt::format("@{}", name), {},
                   Fault::kInternal);
  }
  return {};
}

}  // namespace tenon::compiler
