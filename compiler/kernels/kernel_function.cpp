#include "compiler/kernels/kernel_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/loop/access.h"
#include "compiler/loop/rearrange.h"
#include "compiler/loop/schedule/schedule.h"
#include "compiler/loop/tree.h"
#include "support/try.h"

namespace tenon::compiler::kernels {

std::set<BufferId> constants_of(const KernelFunction& kernel) {
  std::set<BufferId> constants;
  for (size_t i = 0; i < kernel.operands.size(); ++i)
    if (std::holds_alternative<Tensor>(kernel.operands[i])) constants.insert(kernel.function.params[i]);
  return constants;
}

namespace {

// Removes the parameters with constant operands that neither the function nor its tables read.
void remove_unread(KernelFunction& kernel) {
  std::set<BufferId> read;
  for (const loop::Stmt& stmt : kernel.function.body) read.merge(loop::buffers_read(stmt));
  for (const BufferId param : kernel.function.params) {
    const Symbol name = kernel.function.buffer(param).name;
    const auto applies = [&](const loop::Table& table) { return loop::mentions_function(table.width, name); };
    if (std::ranges::any_of(kernel.function.tables, applies)) read.insert(param);
  }
  for (size_t i = kernel.operands.size(); i-- > 0;) {
    if (read.contains(kernel.function.params[i]) || !std::holds_alternative<Tensor>(kernel.operands[i])) continue;
    kernel.function.params.erase(kernel.function.params.begin() + static_cast<ptrdiff_t>(i));
    kernel.operands.erase(kernel.operands.begin() + static_cast<ptrdiff_t>(i));
  }
}

// Computes the operands that the steps moved out of the function.
Status add_operands(Context& context, KernelFunction& kernel, const std::vector<loop::LoadStep>& loads) {
  std::vector<Operand> operands = kernel.operands;
  for (const loop::LoadStep& load : loads) {
    std::vector<Tensor> inputs;
    for (const BufferId input : load.inputs) {
      const auto at = std::ranges::find(kernel.function.params, input) - kernel.function.params.begin();
      inputs.push_back(std::get<Tensor>(operands[static_cast<size_t>(at)]));
    }
    TENON_TRY_ASSIGN(computed, loop::rearranged(context, load.load, inputs));
    operands.emplace_back(std::move(*computed));
  }
  kernel.operands = std::move(operands);
  remove_unread(kernel);
  return {};
}

}  // namespace

Status apply_user_schedule(Context& context, KernelFunction& kernel, const schedules::UserSchedule& own) {
  loop::Schedule schedule(context, kernel.function, kernel.constants);
  TENON_TRY(schedules::apply(schedule, own));
  kernel.function = schedule.function();
  kernel.steps = schedule.steps();
  kernel.has_own_schedule = true;
  return add_operands(context, kernel, schedule.loads());
}

void apply_templates(Context& context, KernelFunction& kernel, std::span<const TemplateUse> templates,
                     const Machine& machine, KernelKnobs& knobs) {
  std::map<size_t, size_t> templates_of;  // of each operator, so far
  for (const TemplateUse& use : templates) {
    loop::Schedule schedule(context, kernel.function, constants_of(kernel));
    const size_t number = ++templates_of[use.op];
    const auto choose = [&](std::string_view knob, std::vector<Option> options) {
      return knobs.choose(use.op, number == 1 ? std::string(knob) : fmt::format("{}_{}", knob, number),
                          std::move(options));
    };
    KernelFunction scheduled = kernel;
    Status status = schedules::apply_template(context, schedule, use.stages, machine, choose);
    if (status) {
      scheduled.function = schedule.function();
      status = add_operands(context, scheduled, schedule.loads());
    }
    if (!status) {
      kernel.refused = status.error().str();
      continue;
    }
    kernel = std::move(scheduled);
    kernel.steps.insert(kernel.steps.end(), schedule.steps().begin(), schedule.steps().end());
  }
}

}  // namespace tenon::compiler::kernels
