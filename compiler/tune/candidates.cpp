#include "compiler/tune/candidates.h"

#include <algorithm>
#include <map>

#include "compiler/kernels/kernels.h"
#include "compiler/lower/native.h"
#include "support/try.h"

namespace tenon::compiler::tune {
namespace {

using kernels::Choice;
using kernels::Decided;

constexpr double kWorst = 2;  // times the best option of a decision: beyond, counting is trusted

Expected<std::vector<Decided>> decisions_of(Context& context, const Module& kernels, const Function& group,
                                            const std::string& key, const Choice& choice) {
  TENON_TRY_ASSIGN(kernel, kernels::make_kernel(context, kernels, "kernel", group, [&](const std::string& other) {
                     return other == key ? choice : Choice();
                   }));
  return std::move(kernel->decided);
}

class Explorer {
 public:
  Explorer(Context& context, const Module& kernels, const Task& task, size_t most)
      : context_(context), kernels_(kernels), task_(task), most_(most) {}

  Expected<std::vector<Candidate>> run() {
    TENON_TRY(explore({}, 0));
    std::ranges::stable_sort(found_.begin() + 1, found_.end(), {}, &Candidate::cost);
    return std::move(found_);
  }

 private:
  // The choice with what follows from it by default; then what differs from that behind the first `fixed` decisions.
  Status explore(const Choice& choice, size_t fixed) {
    TENON_TRY_ASSIGN(decided, decisions_of(context_, kernels_, task_.group, task_.key, choice));
    const auto own = std::ranges::find(*decided, task_.key, &Decided::key);
    if (own == decided->end()) return {};
    Candidate& candidate = found_.emplace_back(own->choice(), 1.0);
    for (const kernels::Decision& decision : own->decisions) candidate.cost *= ratio(decision, decision.taken);
    Choice prefix;
    for (size_t i = 0; i < own->decisions.size(); ++i) {
      const kernels::Decision& decision = own->decisions[i];
      if (i >= fixed) {
        for (const size_t option : worth_trying(decision)) {
          if (found_.size() >= most_) return {};
          Choice other = prefix;
          other.insert_or_assign(decision.name, decision.options[option].name);
          TENON_TRY(explore(other, i + 1));
        }
      }
      prefix.insert_or_assign(decision.name, decision.options[decision.taken].name);
    }
    return {};
  }

  static double ratio(const kernels::Decision& decision, size_t option) {
    const double best = std::ranges::min_element(decision.options, {}, &kernels::Option::cost)->cost;
    return best <= 0 ? 1 : std::min(decision.options[option].cost / best, kWorst);
  }
  // But the one that is taken; cheap ones first.
  static std::vector<size_t> worth_trying(const kernels::Decision& decision) {
    std::vector<size_t> order;
    for (size_t i = 0; i < decision.options.size(); ++i) {
      if (i != decision.taken) order.push_back(i);
    }
    std::ranges::stable_sort(order, {}, [&](size_t i) { return decision.options[i].cost; });
    while (order.size() > 1 && ratio(decision, order.back()) >= kWorst) order.pop_back();
    return order;
  }

  Context& context_;
  const Module& kernels_;
  const Task& task_;
  const size_t most_;
  std::vector<Candidate> found_;
};

}  // namespace

Expected<std::vector<Task>> find_tasks(Context& context, const Module& kernels, Symbol entry) {
  std::vector<Task> tasks;
  std::map<std::string, size_t> known;
  const Function& main = *kernels.function(entry);
  for (const Binding& binding : main.body.bindings) {
    const auto* call = std::get_if<Call>(&binding.value);
    const auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr;
    const Function* callee = symbol ? kernels.function(*symbol) : nullptr;
    Function group;
    if (callee && callee->composite == "fused") group = *callee;
    else if (std::holds_alternative<Apply>(binding.value)) group = operator_alone(context, main, binding).function;
    else continue;
    // What has no kernel has nothing to decide.
    const auto decided = decisions_of(context, kernels, group, "", {});
    if (!decided) continue;
    for (const Decided& one : *decided) {
      const bool open = std::ranges::any_of(one.decisions, [](const auto& d) { return d.options.size() > 1; });
      if (!open) continue;
      const auto [place, is_new] = known.try_emplace(one.key, tasks.size());
      if (is_new) tasks.push_back({one.key, group, 0});
      ++tasks[place->second].uses;
    }
  }
  return tasks;
}

Expected<std::vector<Candidate>> find_candidates(Context& context, const Module& kernels, const Task& task,
                                                 size_t most) {
  return Explorer(context, kernels, task, most).run();
}

}  // namespace tenon::compiler::tune
