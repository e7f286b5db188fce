// The loop function of a kernel with the operands of its parameters, and the steps that schedule it: those of
// templates, or a user's.
#pragma once

#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/kernels/knob.h"
#include "compiler/loop/loop.h"
#include "compiler/schedules/template.h"
#include "compiler/schedules/user_schedule.h"
#include "runtime/tensor.h"

namespace tenon::compiler::kernels {

using loop::BufferId;
using runtime::Tensor;

// The operand of a kernel's parameter: the index of an argument of the group, or a constant.
using Operand = std::variant<size_t, Tensor>;

// A loop function with the operands of its parameters.
struct KernelFunction {
  loop::Function function;
  std::vector<Operand> operands;
  std::vector<OperatorKnobs> knobs = {};  // of the operators that have knobs
  // The plain loops that the templates' steps led to `function` from, and those of its parameters that are constants.
  loop::Function algorithm = {};
  std::set<BufferId> constants = {};
  std::vector<std::string> steps = {};
  bool has_own_schedule = false;  // the steps are a user's, and no others follow
  std::string refused = {};       // the reason why the loops of a contraction stayed plain; mostly empty
};

// Stages that a template schedules, with the knobs of the operator that they are of.
struct TemplateUse {
  schedules::TemplateStages stages;
  size_t op = 0;  // its index in the kernel's knobs
};

// The parameters with constant operands.
std::set<BufferId> constants_of(const KernelFunction& kernel);

// Where a template's step is refused, its loops stay plain, and `kernel.refused` has the reason.
void apply_templates(Context& context, KernelFunction& kernel, std::span<const TemplateUse> templates,
                     const Machine& machine, KernelKnobs& knobs);

// An error where a step is refused.
Status apply_user_schedule(Context& context, KernelFunction& kernel, const schedules::UserSchedule& own);

}  // namespace tenon::compiler::kernels
