// The reconstruction of a function binding by binding under a map from old variables to new atoms.
#include "compiler/ir/rewrite.h"

#include "compiler/ir/result_names.h"
#include "compiler/ir/solver.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

class Rewriting {
 public:
  Rewriting(Context& context, Module& module, const Function& from, const RewriteStep& step)
      : context_(context),
        from_(from),
        step_(step),
        builder_(context, module, result_),
        renamed_(from.vars.size(), Atom{VarId{UINT32_MAX}}),
        results_(named_results(context, from)) {}

  Expected<Function> run() {
    result_.dims = from_.dims;
    result_.bounds = from_.bounds;
    result_.types = from_.types;
    result_.target = from_.target;
    result_.composite = from_.composite;
    for (VarId param : from_.params) {
      const VarInfo& info = from_.info(param);
      builder_.at(info.span);
      renamed_[index(param)] = builder_.param(info.type, context_.name(info.name));
    }
    user_visible_.assign(from_.params.size(), true);
    TENON_TRY(bindings(from_.body));
    Atom value = from_.body.result;
    rename(value);
    builder_.finish(value);
    // The declared result stays if it is still valid: it may be less specific than the type of the value.
    if (Solver(context_, from_.bounds).fit(from_.result, result_.result) == Answer::kYes) {
      result_.result = from_.result;
    }
    return std::move(result_);
  }

 private:
  void rename(Atom& atom) const {
    if (auto* var = std::get_if<VarId>(&atom)) atom = renamed_[index(*var)];
  }
  VarId declare(VarId old) {
    const VarInfo& info = from_.info(old);
    builder_.at(info.span);
    const VarId var = builder_.declare(info.type, context_.name(info.name));
    renamed_[index(old)] = var;
    return var;
  }
  Status bindings(const Block& block) {
    for (const Binding& old : block.bindings) TENON_TRY(rewrite_binding(old));
    return {};
  }
  Status block(Block& block) {
    builder_.open();
    TENON_TRY(bindings(block));
    Atom result = block.result;
    rename(result);
    block = builder_.close(result);
    return {};
  }

  Status rewrite_binding(const Binding& old) {
    context_.visit();
    const VarInfo& info = from_.info(old.var);
    Binding binding = old;
    for_each_operand(binding.value, [&](Atom& atom) { rename(atom); });
    auto* lambda = std::get_if<Lambda>(&binding.value);
    std::optional<VarId> self;
    if (lambda) {
      self = declare(old.var);
      for (VarId& param : lambda->params) param = declare(param);
    }
    if (auto* match = std::get_if<Case>(&binding.value)) {
      for (Arm& arm : match->arms) {
        for_each_variable(arm.pattern, [&](VarId& var) { var = declare(var); });
      }
    }
    Status status;
    for_each_block(binding.value, [&](Block& inner) {
      if (status) status = block(inner);
    });
    TENON_TRY(status);
    builder_.at(info.span);
    TENON_TRY_ASSIGN(replaced, step_(builder_, binding));
    if (*replaced) {
      TENON_TRY_ASSIGN(named, results_[index(old.var)] ? as_result(**replaced, info) : *replaced);
      renamed_[index(old.var)] = **named;
      return {};
    }
    TENON_TRY_ASSIGN(kept, self ? builder_.bind_to(*self, std::move(binding.value))
                                : builder_.bind(std::move(binding.value), info.name));
    renamed_[index(old.var)] = *kept;
    if (results_[index(old.var)]) set_user_visible(*kept);
    return {};
  }

  // The replacement of a named result gets the name of the result, because users refer to it by name. A replacement
  // that is user-visible under another name, as a parameter is, is copied under the name of the result.
  Expected<std::optional<Atom>> as_result(Atom atom, const VarInfo& info) {
    auto* var = std::get_if<VarId>(&atom);
    const bool taken = !var || (index(*var) < user_visible_.size() && user_visible_[index(*var)]);
    if (taken) {
      TENON_TRY_ASSIGN(type, builder_.type_of(atom));
      if (!type->tensor() || (var && result_.info(*var).name == info.name)) return atom;
      TENON_TRY_ASSIGN(copy, builder_.apply(ops::kIdentity, {atom}, {}, context_.name(info.name)));
      atom = *copy;
    } else {
      result_.vars[index(*var)].name = info.name;
    }
    set_user_visible(atom);
    return atom;
  }
  void set_user_visible(const Atom& atom) {
    auto* var = std::get_if<VarId>(&atom);
    if (!var) return;
    if (user_visible_.size() <= index(*var)) user_visible_.resize(index(*var) + 1);
    user_visible_[index(*var)] = true;
  }

  Context& context_;
  const Function& from_;
  const RewriteStep& step_;
  Function result_;
  Builder builder_;
  std::vector<Atom> renamed_;
  std::vector<bool> results_;       // by variable of the old function: a named result
  std::vector<bool> user_visible_;  // by variable of the new function: users refer to it by its name
};

}  // namespace

Expected<Function> rewrite(Context& context, Module& module, const Function& function, const RewriteStep& step) {
  return Rewriting(context, module, function, step).run();
}

Expected<Module> rewrite(Context& context, Module module, const RewriteStep& step) {
  for (auto& [name, global] : module.globals) {
    auto* old = std::get_if<Function>(&global);
    if (!old) continue;
    TENON_TRY_ASSIGN(function, rewrite(context, module, *old, step));
    *old = std::move(*function);
  }
  return module;
}

const runtime::Tensor* constant_of(const Module& module, const Atom& atom) {
  auto* constant = std::get_if<ConstId>(&atom);
  return constant ? &module.constant(*constant) : nullptr;
}

}  // namespace tenon::compiler
