#include "compiler/tune/candidates.h"

#include <algorithm>
#include <map>

#include "compiler/kernels/kernels.h"
#include "compiler/lower/native.h"
#include "support/try.h"

namespace tenon::compiler::tune {
namespace {

using kernels::KnobSettings;
using kernels::OperatorKnobs;

constexpr double kMaxCostRatio = 2;  // cost relative to the best option above which the cost model is trusted

Expected<std::vector<OperatorKnobs>> knobs_of(Context& context, const Module& kernels, const Function& group,
                                              const Machine& machine, const std::string& key,
                                              const KnobSettings& settings) {
  const auto knobs = [&](const std::string& operator_key) { return operator_key == key ? settings : KnobSettings(); };
  TENON_TRY_ASSIGN(kernel, kernels::make_kernel(context, kernels, "kernel", group, machine, knobs));
  return std::move(kernel->knobs);
}

class Explorer {
 public:
  Explorer(Context& context, const Module& kernels, const Task& task, const Machine& machine, size_t limit)
      : context_(context), kernels_(kernels), task_(task), machine_(machine), limit_(limit) {}

  Expected<std::vector<Candidate>> run() {
    TENON_TRY(explore({}, 0));
    std::ranges::stable_sort(found_.begin() + 1, found_.end(), {}, &Candidate::cost);
    return std::move(found_);
  }

 private:
  // Adds the candidate with these settings and defaults for the other knobs; then explores the other options of all
  // knobs after the first `fixed` ones.
  Status explore(const KnobSettings& settings, size_t fixed) {
    TENON_TRY_ASSIGN(operators, knobs_of(context_, kernels_, task_.group, machine_, task_.key, settings));
    const auto op = std::ranges::find(*operators, task_.key, &OperatorKnobs::key);
    if (op == operators->end()) return {};
    Candidate& candidate = found_.emplace_back(op->settings(), 1.0);
    for (const kernels::Knob& knob : op->knobs) candidate.cost *= ratio(knob, knob.selected);
    KnobSettings prefix;
    for (size_t i = 0; i < op->knobs.size(); ++i) {
      const kernels::Knob& knob = op->knobs[i];
      if (i >= fixed) {
        for (const size_t option : worth_trying(knob)) {
          if (found_.size() >= limit_) return {};
          KnobSettings variant = prefix;
          variant.insert_or_assign(knob.name, knob.options[option].name);
          TENON_TRY(explore(variant, i + 1));
        }
      }
      prefix.insert_or_assign(knob.name, knob.options[knob.selected].name);
    }
    return {};
  }

  static double ratio(const kernels::Knob& knob, size_t option) {
    const double best = std::ranges::min_element(knob.options, {}, &kernels::Option::cost)->cost;
    return best <= 0 ? 1 : std::min(knob.options[option].cost / best, kMaxCostRatio);
  }
  // The options other than the selected one, in the order of their cost.
  static std::vector<size_t> worth_trying(const kernels::Knob& knob) {
    std::vector<size_t> order;
    for (size_t i = 0; i < knob.options.size(); ++i) {
      if (i != knob.selected) order.push_back(i);
    }
    std::ranges::stable_sort(order, {}, [&](size_t i) { return knob.options[i].cost; });
    while (order.size() > 1 && ratio(knob, order.back()) >= kMaxCostRatio) order.pop_back();
    return order;
  }

  Context& context_;
  const Module& kernels_;
  const Task& task_;
  const Machine& machine_;
  const size_t limit_;
  std::vector<Candidate> found_;
};

}  // namespace

Expected<std::vector<Task>> find_tasks(Context& context, const Module& kernels, Symbol entry, const Machine& machine) {
  std::vector<Task> tasks;
  std::map<std::string, size_t> task_by_key;
  const Function& main = *kernels.function(entry);
  for (const Binding& binding : main.body.bindings) {
    const auto* call = std::get_if<Call>(&binding.value);
    const auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr;
    const Function* callee = symbol ? kernels.function(*symbol) : nullptr;
    Function group;
    if (callee && callee->composite == "fused") group = *callee;
    else if (std::holds_alternative<Apply>(binding.value)) group = single_operator(context, main, binding).function;
    else continue;
    // Groups without a kernel have no knobs.
    const auto operators = knobs_of(context, kernels, group, machine, "", {});
    if (!operators) continue;
    for (const OperatorKnobs& op : *operators) {
      const bool has_options = std::ranges::any_of(op.knobs, [](const auto& d) { return d.options.size() > 1; });
      if (!has_options) continue;
      const auto [task, is_new] = task_by_key.try_emplace(op.key, tasks.size());
      if (is_new) tasks.push_back({op.key, group, 0});
      ++tasks[task->second].uses;
    }
  }
  return tasks;
}

Expected<std::vector<Candidate>> find_candidates(Context& context, const Module& kernels, const Task& task,
                                                 const Machine& machine, size_t limit) {
  return Explorer(context, kernels, task, machine, limit).run();
}

}  // namespace tenon::compiler::tune
