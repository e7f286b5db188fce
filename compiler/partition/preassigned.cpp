#include "compiler/partition/preassigned.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "compiler/partition/pattern_text.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

class Checker {
 public:
  Checker(Context& context, const Module& module, const Target& target)
      : context_(context), module_(module), target_(target) {}

  Status composite(Symbol name, const Function& function) const {
    const size_t count = function.body.bindings.size();
    std::string expected, why;
    if (count > 0 && function.body.result == Atom(function.body.bindings.back().var)) {
      const DataFlow flow(context_, module_, function, function.body);
      for (const TargetPattern& row : target_.patterns) {
        if (row.composite != function.composite) continue;
        expected = to_string(row.pattern);
        TENON_TRY_ASSIGN(found, match(row.pattern, flow, count - 1, {}, [&](const Match& candidate) {
                           if (candidate.bindings.size() != count) return false;
                           const Status accepted =
                               row.accepts ? row.accepts(context_, module_, function, candidate) : Status();
                           if (!accepted) why = accepted.error().what;
                           return accepted.has_value();
                         }));
        if (found->match) return {};
      }
    }
    if (why.empty()) why = expected.empty() ? "the target has no such pattern" : "it must be " + expected;
    return error(fmt::format("@{} is not a {} of {}: {}", context_.name(name), function.composite, target_.name, why),
                 {}, "leave out its target: the compiler finds the patterns itself");
  }

  Status region(Symbol name, const Function& function) const {
    const auto is_var = [](const Atom& atom) { return std::holds_alternative<VarId>(atom); };
    const auto& bindings = function.body.bindings;
    bool fits = is_var(function.body.result), calls = false;
    for (size_t i = 0; i < bindings.size(); ++i) {
      const Value& value = bindings[i].value;
      if (const auto* apply = std::get_if<Apply>(&value)) {
        fits &= apply->op->is(ops::kLayoutTransform) && is_var(apply->args[0]);
      } else if (const auto* call = std::get_if<Call>(&value)) {
        const auto* callee = std::get_if<Symbol>(&call->callee);
        const Function* composite = callee ? module_.function(*callee) : nullptr;
        fits &= composite && composite->target == target_.name && !composite->composite.empty() &&
                std::ranges::all_of(call->args, is_var);
        calls = true;
      } else if (const auto* tuple = std::get_if<Tuple>(&value)) {
        fits &= i + 1 == bindings.size() && std::ranges::all_of(tuple->fields, is_var);
      } else {
        fits = false;
      }
    }
    if (fits && calls) return {};
    return error(fmt::format("@{} is not a region of {}: its body must be calls of functions with target \"{}\" and a "
                             "composite, and layout_transforms at its boundary",
                             context_.name(name), target_.name, target_.name),
                 {}, "leave out its target: the compiler finds the regions itself");
  }

 private:
  Context& context_;
  const Module& module_;
  const Target& target_;
};

}  // namespace

Status check_preassigned(Context& context, const Module& module, std::span<const Target> targets) {
  for (const auto& [name, global] : module.globals) {
    const auto* function = std::get_if<Function>(&global);
    if (!function) continue;
    const auto target = std::ranges::find(targets, function->target, &Target::name);
    if (target == targets.end()) continue;
    const Checker checker(context, module, *target);
    const Status status =
        function->composite.empty() ? checker.region(name, *function) : checker.composite(name, *function);
    if (!status) return status;
  }
  return {};
}

}  // namespace tenon::compiler
