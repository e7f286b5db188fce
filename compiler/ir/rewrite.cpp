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
        results_(context, from) {}

  Expected<Function> run() {
    result_.dims = from_.dims;
    result_.bounds = from_.bounds;
    result_.types = from_.types;
    result_.target = from_.target;
    result_.composite = from_.composite;
    result_.batched = from_.batched;
    result_.gradient = from_.gradient;
    result_.joined_axes = from_.joined_axes;
    for (VarId param : from_.params) {
      const VarInfo& info = from_.info(param);
      builder_.at(info.span);
      renamed_[index(param)] = builder_.param(info.type, context_.name(info.name));
    }
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
    Atom atom;
    if (*replaced) {
      atom = **replaced;
    } else {
      TENON_TRY_ASSIGN(kept, self ? builder_.bind_to(*self, std::move(binding.value))
                                  : builder_.bind(std::move(binding.value), info.name));
      atom = *kept;
    }
    if (results_.contains(old.var)) {
      TENON_TRY_ASSIGN(named, results_.keep(builder_, atom, info));
      atom = *named;
    }
    renamed_[index(old.var)] = atom;
    return {};
  }

  Context& context_;
  const Function& from_;
  const RewriteStep& step_;
  Function result_;
  Builder builder_;
  std::vector<Atom> renamed_;
  ResultNames results_;
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
