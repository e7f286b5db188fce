// The kernels of all operators, bound to a GPU, with the arguments and results of their stored cases.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/backends/cuda/region.h"
#include "compiler/ir/module.h"
#include "compiler/ir/text.h"
#include "compiler/kernels/kernels.h"
#include "compiler/machine/machine.h"
#include "tests/compiler/ir/operators/cases.h"

namespace tenon::compiler {

struct BoundKernel {
  std::string where;
  loop::Function function;
  std::vector<runtime::Tensor> params, results;
};

// The bound kernels of all stored cases whose operators have loop functions; counts those that are not bound.
inline std::deque<BoundKernel> bound_kernels(Context& context, size_t& refused) {
  const Machine& machine = *find_machine("sm_80");
  std::deque<BoundKernel> kernels;
  for (const auto& [name, stored] : operator_cases()) {
    std::string params, type;
    for (size_t i = 0; i < stored.inputs.size(); ++i) {
      params += fmt::format("{}%{}: {}", i ? ", " : "", static_cast<char>('a' + i),
                            context.str(context.type_of(stored.inputs[i])));
    }
    for (const runtime::Tensor& result : stored.results)
      type += (type.empty() ? "" : ", ") + context.str(context.type_of(result));
    if (stored.results.size() > 1) type = "(" + type + ")";
    const auto module =
        parse(context, fmt::format("#[version = \"1\"]\ndef @main({}) -> {} {{ {} }}\n", params, type, stored.call), {},
              name);
    if (!module) continue;
    const Function& function = *module->function(context.symbol("main"));
    if (!kernels::make_kernel(context, *module, "kernel", function, machine)) continue;
    auto step = cuda::bound_step(context, *module, function, machine);
    if (!step) {
      ++refused;
      continue;
    }
    step->function.name = context.symbol(fmt::format("k{}", kernels.size()));
    BoundKernel& made = kernels.emplace_back(BoundKernel{name, std::move(step->function), {}, stored.results});
    for (const auto& operand : step->operands)
      made.params.push_back(std::holds_alternative<runtime::Tensor>(operand)
                                ? std::get<runtime::Tensor>(operand)
                                : stored.inputs[std::get<size_t>(operand)]);
  }
  return kernels;
}

}  // namespace tenon::compiler
