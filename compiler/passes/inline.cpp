// Puts functions and closures in the place of calls: those that are called in one place, and small ones. What calls
// itself, directly or not, stays a function. Operands are values already, so evaluation happens where it did and as
// often as it did: effects, failures and loops without end included.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/ir/solver.h"
#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr size_t kSmall = 8;      // bindings that may be repeated at each call
constexpr size_t kDeepest = 60;   // blocks in one another that may come from this: far from what can be read back
constexpr size_t kLargest = 500;  // bindings that move: along a chain of calls they do so again and again

size_t count_bindings(const Block& block) {
  size_t count = 0;
  for_each_binding(block, [&](const Binding&) { ++count; });
  return count;
}

size_t depth_of(const Block& block) {
  size_t deepest = 0;
  for (const Binding& binding : block.bindings) {
    for_each_block(binding.value, [&](const Block& inner) { deepest = std::max(deepest, 1 + depth_of(inner)); });
  }
  return deepest;
}

// Copies blocks into a function, with new variables, and other sizes and types where they are given.
class Copier {
 public:
  // `taken`: names of dims that `to` has. `from` may be the variables of `to`.
  Copier(Context& context, const std::vector<VarInfo>& from, Function& to, std::set<Symbol>& taken)
      : context_(context), from_(from), to_(to), taken_(taken) {}

  void define(VarId var, Atom atom) { atoms_[var] = atom; }
  std::map<Symbol, Dim>& dims() { return dims_; }
  std::map<Symbol, Type>& types() { return types_; }

  Block block(const Block& block) {
    Block copy;
    copy.bindings.reserve(block.bindings.size());
    for (const Binding& binding : block.bindings) copy.bindings.push_back(one(binding));
    copy.result = block.result;
    rename(copy.result);
    return copy;
  }

 private:
  // A variable that nobody defined is one around what is copied.
  void rename(Atom& atom) const {
    auto* var = std::get_if<VarId>(&atom);
    if (!var) return;
    if (auto found = atoms_.find(*var); found != atoms_.end()) atom = found->second;
  }
  void replace(Type& type) const {
    if (!dims_.empty() || !types_.empty()) type = context_.substitute(type, dims_, types_);
  }
  VarId declare(VarId old) {
    VarInfo info = from_[index(old)];
    replace(info.type);
    const auto id = static_cast<VarId>(to_.vars.size());
    to_.vars.push_back(info);
    atoms_[old] = id;
    return id;
  }
  Binding one(const Binding& old) {
    context_.visit();
    Binding binding = old;
    for_each_operand(binding.value, [&](Atom& atom) { rename(atom); });
    if (auto* lambda = std::get_if<Lambda>(&binding.value)) {
      binding.var = declare(old.var);
      for (VarId& param : lambda->params) param = declare(param);
      replace(lambda->result);
    } else if (auto* match = std::get_if<Case>(&binding.value)) {
      for (Arm& arm : match->arms) {
        for_each_variable(arm.pattern, [&](VarId& var) { var = declare(var); });
      }
    } else if (auto* cast = std::get_if<Cast>(&binding.value)) {
      // The caller may have sizes of these names, from another copy of the same.
      for (Symbol& name : cast->fresh) {
        const Symbol other = fresh(name);
        dims_.insert_or_assign(name, context_.dim(other));
        name = other;
      }
      replace(cast->type);
    } else if (auto* call = std::get_if<Call>(&binding.value)) {
      for (Type& type : call->types) replace(type);
    } else if (auto* construct = std::get_if<Construct>(&binding.value)) {
      for (Type& type : construct->types) replace(type);
    }
    for_each_block(binding.value, [&](Block& inner) { inner = block(Block(inner)); });
    if (!std::holds_alternative<Lambda>(binding.value)) binding.var = declare(old.var);
    return binding;
  }
  Symbol fresh(Symbol name) const {
    for (size_t i = taken_.size();; ++i) {
      const Symbol other = context_.symbol(fmt::format("{}_{}", context_.name(name), i));
      if (taken_.insert(other).second) return other;
    }
  }

  Context& context_;
  const std::vector<VarInfo>& from_;
  Function& to_;
  std::set<Symbol>& taken_;
  std::map<VarId, Atom> atoms_;
  std::map<Symbol, Dim> dims_;
  std::map<Symbol, Type> types_;
};

// Calls in one function.
class Inliner {
 public:
  using Wanted = std::function<const Function*(Symbol)>;  // nullptr: stays a call

  Inliner(Context& context, const Module& module, Function& function, const Wanted& wanted)
      : context_(context), module_(module), function_(function), wanted_(wanted), uses_(use_counts(function)) {
    taken_.insert(function.dims.begin(), function.dims.end());
    for_each_binding(function.body, [&](const Binding& binding) {
      if (auto* cast = std::get_if<Cast>(&binding.value)) taken_.insert(cast->fresh.begin(), cast->fresh.end());
    });
  }

  bool run() {
    block(function_.body);
    return changed_;
  }

 private:
  void rename(Atom& atom) const {
    for (auto* var = std::get_if<VarId>(&atom); var;) {
      const auto found = renamed_.find(*var);
      if (found == renamed_.end()) return;
      atom = found->second;
      var = std::get_if<VarId>(&atom);
    }
  }

  void block(Block& block) {
    std::vector<Binding> bindings;
    bindings.reserve(block.bindings.size());
    std::vector<VarId> closures;
    for (Binding& binding : block.bindings) {
      context_.visit();
      for_each_operand(binding.value, [&](Atom& atom) { rename(atom); });
      ++depth_;
      for_each_block(binding.value, [&](Block& inner) { this->block(inner); });
      --depth_;
      if (auto* lambda = std::get_if<Lambda>(&binding.value)) {
        if (is_plain(binding.var, *lambda)) {
          closures_.emplace(binding.var, *lambda);
          closures.push_back(binding.var);
        }
      }
      auto* call = std::get_if<Call>(&binding.value);
      if (call && splice(binding.var, *call, bindings)) continue;
      bindings.push_back(std::move(binding));
    }
    rename(block.result);
    block.bindings = std::move(bindings);
    for (const VarId closure : closures) closures_.erase(closure);
  }

  // Whether calls of the closure may be replaced: it does not name itself, and is small or used in one place.
  bool is_plain(VarId var, const Lambda& lambda) const {
    bool recursive = false;
    for_each_use(lambda.body[0], [&](const Atom& atom) { recursive |= atom == Atom(var); });
    if (recursive) return false;
    return (index(var) < uses_.size() && uses_[index(var)] == 1) || count_bindings(lambda.body[0]) <= kSmall;
  }

  bool splice(VarId var, const Call& call, std::vector<Binding>& out) {
    if (auto* symbol = std::get_if<Symbol>(&call.callee)) {
      const Function* callee = wanted_(*symbol);
      if (!callee || !room(callee->body)) return false;
      Copier copier(context_, callee->vars, function_, taken_);
      if (!instantiate(*callee, call, copier)) return false;
      for (size_t i = 0; i < call.args.size(); ++i) copier.define(callee->params[i], call.args[i]);
      place(var, copier.block(callee->body), out);
      return true;
    }
    auto* closure = std::get_if<VarId>(&call.callee);
    const auto found = closure ? closures_.find(*closure) : closures_.end();
    if (found == closures_.end() || has_erased(found->second.result) || !room(found->second.body[0])) return false;
    Copier copier(context_, function_.vars, function_, taken_);
    for (size_t i = 0; i < call.args.size(); ++i) copier.define(found->second.params[i], call.args[i]);
    place(var, copier.block(found->second.body[0]), out);
    return true;
  }

  bool room(const Block& body) const {
    return count_bindings(body) <= kLargest && (depth_ == 0 || depth_ + depth_of(body) <= kDeepest);
  }

  void place(VarId var, Block body, std::vector<Binding>& out) {
    std::ranges::move(body.bindings, std::back_inserter(out));
    renamed_.emplace(var, body.result);
    changed_ = true;
  }

  // What the arguments' types say of the callee's dims and types.
  bool instantiate(const Function& callee, const Call& call, Copier& copier) {
    if (has_erased(callee.result)) return false;  // the caller must not see more than that
    if (callee.dims.empty() && callee.types.empty()) return true;
    Solver solver(context_, function_.bounds);
    std::map<Symbol, Dim> dims;
    std::map<Symbol, Type> types;
    for (const Symbol name : callee.dims) dims.emplace(name, solver.fresh_dim());
    const std::vector<Symbol> given = types_to_give(signature_of(context_, callee));
    for (size_t i = 0; i < given.size(); ++i) types.emplace(given[i], call.types[i]);
    for (const Symbol name : callee.types) types.try_emplace(name, solver.fresh_type());
    for (size_t i = 0; i < call.args.size(); ++i) {
      auto* var = std::get_if<VarId>(&call.args[i]);
      const Expected<Type> found =
          var ? Expected<Type>(function_.type(*var)) : infer_atom(context_, module_, function_, call.args[i]);
      if (!found) return false;
      if (!solver.unify(context_.substitute(callee.type(callee.params[i]), dims, types), *found)) return false;
    }
    if (!solver.retry() || solver.open() > 0) return false;
    for (const auto& [name, dim] : dims) {
      const Dim known = solver.resolve(dim);
      if (!solver.known(known)) return false;
      if (auto bound = callee.bounds.find(name); bound != callee.bounds.end()) {  // entering it would check them
        const DimRange& range = bound->second;
        const DimProver& prover = solver.prover();
        if (range.lo && prover.less_equal(context_.dim(*range.lo), known) != Answer::kYes) return false;
        if (range.hi && prover.less_equal(known, context_.dim(*range.hi)) != Answer::kYes) return false;
      }
      copier.dims().emplace(name, known);
    }
    for (const auto& [name, type] : types) {
      const Type known = solver.resolve(type);
      if (!solver.known(known)) return false;
      copier.types().emplace(name, known);
    }
    return true;
  }

  Context& context_;
  const Module& module_;
  Function& function_;
  const Wanted& wanted_;
  std::vector<uint32_t> uses_;        // of the variables that were there before
  std::set<Symbol> taken_;            // names of dims
  std::map<VarId, Lambda> closures_;  // in scope, and such that calls may be replaced
  std::map<VarId, Atom> renamed_;     // what became of calls
  size_t depth_ = 0;                  // of the block that is looked at
  bool changed_ = false;
};

// Each place where a function calls a global one, or names it as a value.
void for_each_callee(const Function& function, const std::function<void(Symbol)>& visit) {
  for_each_binding(function.body, [&](const Binding& binding) {
    auto* call = std::get_if<Call>(&binding.value);
    if (auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr) visit(*symbol);
  });
  for_each_use(function.body, [&](const Atom& atom) {
    if (auto* symbol = std::get_if<Symbol>(&atom)) visit(*symbol);
  });
}

// Whether it calls a function whose dims take their sizes from the arguments.
bool takes_sizes(const Module& module, const Function& function) {
  bool takes = false;
  for_each_callee(function, [&](Symbol callee) {
    const Function* found = module.function(callee);
    takes |= found && !found->dims.empty();
  });
  return takes;
}

// The functions, each behind those that it calls as far as that can be, and those that may reach themselves.
struct CallOrder {
  std::vector<Symbol> order;
  std::map<Symbol, size_t> sites;  // places where a function is called or named
  std::set<Symbol> recursive;
};
CallOrder call_order(const Module& module) {
  CallOrder result;
  std::map<Symbol, std::set<Symbol>> callees, callers;
  for_each_function(module, [&](Symbol name, const Function& function) {
    callees[name];
    for_each_callee(function, [&](Symbol callee) {
      ++result.sites[callee];
      if (!module.function(callee)) return;
      callees[name].insert(callee);
      callers[callee].insert(name);
    });
  });
  std::set<Symbol> left;
  for (const auto& [name, called] : callees) left.insert(name);
  // Takes away what has no edge of that kind left, again and again: what is on no cycle, nor on a way to one.
  const auto peel = [&](std::map<Symbol, std::set<Symbol>>& edges, std::map<Symbol, std::set<Symbol>>& back) {
    std::map<Symbol, size_t> open;
    std::vector<Symbol> ready, order;
    for (const Symbol name : left) {
      for (const Symbol other : edges[name]) open[name] += left.contains(other);
      if (open[name] == 0) ready.push_back(name);
    }
    while (!ready.empty()) {
      const Symbol name = ready.back();
      ready.pop_back();
      order.push_back(name);
      left.erase(name);
      for (const Symbol other : back[name]) {
        if (left.contains(other) && --open[other] == 0) ready.push_back(other);
      }
    }
    return order;
  };
  result.order = peel(callees, callers);
  const std::vector<Symbol> above = peel(callers, callees);
  result.recursive = left;
  result.order.insert(result.order.end(), left.begin(), left.end());
  result.order.insert(result.order.end(), above.rbegin(), above.rend());
  return result;
}

}  // namespace

Expected<Module> inline_calls(Context& context, Module module) {
  const CallOrder calls = call_order(module);
  std::map<Symbol, bool> small;
  bool changed = false;
  for (const Symbol name : calls.order) {
    Function& function = *module.function(name);
    if (!function.composite.empty() || !function.target.empty()) continue;  // it stands for a kernel
    const Inliner::Wanted wanted = [&](Symbol callee) -> const Function* {
      const Function* found = module.function(callee);
      if (!found || calls.recursive.contains(callee)) return nullptr;
      if (!found->composite.empty() || !found->target.empty()) return nullptr;
      return calls.sites.at(callee) == 1 || small[callee] ? found : nullptr;
    };
    // What one round puts in place may hold closures, or call them, for the next.
    constexpr int kRounds = 4;
    for (int round = 0; round < kRounds; ++round) {
      std::optional<Function> before;
      if (takes_sizes(module, function)) before = function;
      if (!Inliner(context, module, function, wanted).run()) break;
      auto dense = rewrite(context, module, function, [](Builder&, Binding&) { return std::nullopt; });
      if (!dense &&
          before) {  // with the sizes of this call a check of the callee always fails: it does so when it runs
        function = std::move(*before);
        break;
      }
      if (!dense) return forward_error(dense);
      function = std::move(*dense);
      changed = true;
    }
    small[name] = count_bindings(function.body) <= kSmall;
  }
  return changed ? dead_code(context, std::move(module)) : std::move(module);
}

Pass inline_pass() {
  return {"inline", "Puts functions and closures that are small, or called once, in the place of calls.", inline_calls};
}

}  // namespace tenon::compiler
