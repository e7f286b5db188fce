// Inlining of functions and closures that are small or have a single call site. Recursive functions are not inlined.
// Operands are evaluated values, so inlining preserves the order and count of evaluations: of effects, failures and
// infinite loops too.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/ir/instantiate.h"
#include "compiler/ir/result_names.h"
#include "compiler/passes/calls.h"
#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr size_t kMaxCopiedBindings = 8;  // of a body that is copied to each call
// Of a body that moves into a function which may move itself: along a chain of calls it moves repeatedly.
constexpr size_t kMaxMovedBindings = 500;

// Copies blocks into a function, with new variables, and with dims and types substituted.
class Copier {
 public:
  // `used_dims`: the names of the dims of `to`. `from` may be the variables of `to`.
  Copier(Context& context, const std::vector<VarInfo>& from, Function& to, std::set<Symbol>& used_dims)
      : context_(context), from_(from), to_(to), used_dims_(used_dims) {}

  void define(VarId var, Atom atom) { atoms_[var] = atom; }
  std::map<Symbol, Dim>& dims() { return dims_; }
  std::map<Symbol, Type>& types() { return types_; }

  Block block(const Block& block) {
    Block copy;
    copy.bindings.reserve(block.bindings.size());
    for (const Binding& binding : block.bindings) copy.bindings.push_back(copy_binding(binding));
    copy.result = block.result;
    rename(copy.result);
    return copy;
  }

 private:
  // A variable without a definition in the copied block belongs to the enclosing blocks.
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
  Binding copy_binding(const Binding& old) {
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
      // The caller may have dims of these names, from another copy of the same body.
      for (Symbol& name : cast->fresh) {
        const Symbol other = fresh(name);
        dims_.insert_or_assign(name, context_.dim(other));
        name = other;
      }
      replace(cast->type);
    } else if (Call* call = call_of(binding.value)) {
      for (Type& type : call->types) replace(type);
    } else if (auto* construct = std::get_if<Construct>(&binding.value)) {
      for (Type& type : construct->types) replace(type);
    }
    for_each_dim(binding.value, [&](Dim& dim) { dim = context_.substitute(dim, dims_); });
    if (auto* apply = std::get_if<Apply>(&binding.value)) settle_attributes(*apply);
    for_each_block(binding.value, [&](Block& inner) { inner = block(Block(inner)); });
    if (!std::holds_alternative<Lambda>(binding.value)) binding.var = declare(old.var);
    return binding;
  }
  Symbol fresh(Symbol name) const {
    for (size_t i = used_dims_.size();; ++i) {
      const Symbol other = context_.symbol(fmt::format("{}_{}", context_.name(name), i));
      if (used_dims_.insert(other).second) return other;
    }
  }

  Context& context_;
  const std::vector<VarInfo>& from_;
  Function& to_;
  std::set<Symbol>& used_dims_;
  std::map<VarId, Atom> atoms_;
  std::map<Symbol, Dim> dims_;
  std::map<Symbol, Type> types_;
};

// Calls in one function.
class Inliner {
 public:
  using Policy = std::function<const Function*(Symbol)>;  // the function to inline; nullptr keeps the call

  // `may_move`: whether the function is inlined into another one later.
  Inliner(Context& context, const Module& module, Function& function, const Policy& policy, bool may_move)
      : context_(context),
        module_(module),
        function_(function),
        policy_(policy),
        may_move_(may_move),
        uses_(use_counts(function)),
        results_(named_results(context, function)) {
    used_dims_.insert(function.dims.begin(), function.dims.end());
    for_each_binding(function.body, [&](const Binding& binding) {
      if (auto* cast = std::get_if<Cast>(&binding.value)) used_dims_.insert(cast->fresh.begin(), cast->fresh.end());
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

  // Whether calls of the closure may be inlined: it is not recursive, and small or used once.
  bool is_plain(VarId var, const Lambda& lambda) const {
    bool recursive = false;
    for_each_use(lambda.body[0], [&](const Atom& atom) { recursive |= atom == Atom(var); });
    if (recursive) return false;
    return (index(var) < uses_.size() && uses_[index(var)] == 1) ||
           count_bindings(lambda.body[0]) <= kMaxCopiedBindings;
  }

  bool splice(VarId var, const Call& call, std::vector<Binding>& out) {
    if (auto* symbol = std::get_if<Symbol>(&call.callee)) {
      const Function* callee = policy_(*symbol);
      if (!callee || !within_limits(callee->body, !may_move_ && depth_ == 0)) return false;
      Copier copier(context_, callee->vars, function_, used_dims_);
      if (!instantiate(*callee, call, copier)) return false;
      for (size_t i = 0; i < call.args.size(); ++i) copier.define(callee->params[i], call.args[i]);
      insert(var, copier.block(callee->body), out);
      return true;
    }
    auto* closure = std::get_if<VarId>(&call.callee);
    const auto found = closure ? closures_.find(*closure) : closures_.end();
    if (found == closures_.end() || has_erased(found->second.result) || !within_limits(found->second.body[0], false))
      return false;
    Copier copier(context_, function_.vars, function_, used_dims_);
    for (size_t i = 0; i < call.args.size(); ++i) copier.define(found->second.params[i], call.args[i]);
    insert(var, copier.block(found->second.body[0]), out);
    return true;
  }

  // `moves_once`: what calls it is not moved or copied itself.
  bool within_limits(const Block& body, bool moves_once) const {
    return (moves_once || count_bindings(body) <= kMaxMovedBindings) &&
           (depth_ == 0 || depth_ + depth_of(body) <= kMaxBlockDepth);
  }

  // A result of the function keeps its name.
  void insert(VarId var, Block body, std::vector<Binding>& out) {
    const auto* result = std::get_if<VarId>(&body.result);
    const bool named = index(var) < results_.size() && results_[index(var)];
    const bool inside =
        result && std::ranges::any_of(body.bindings, [&](const Binding& b) { return b.var == *result; });
    if (named && inside) function_.vars[index(*result)].name = function_.info(var).name;
    std::ranges::move(body.bindings, std::back_inserter(out));
    renamed_.emplace(var, body.result);
    changed_ = true;
  }

  bool instantiate(const Function& callee, const Call& call, Copier& copier) {
    if (has_erased(callee.result)) return false;  // the caller must not see more than the declared type
    std::optional<Instantiation> found = compiler::instantiate(context_, module_, function_, callee, call);
    if (!found || !found->bounds_hold) return false;
    copier.dims() = std::move(found->dims);
    copier.types() = std::move(found->types);
    return true;
  }

  Context& context_;
  const Module& module_;
  Function& function_;
  const Policy& policy_;
  const bool may_move_;
  std::vector<uint32_t> uses_;        // of the function's original variables
  const std::vector<bool> results_;   // by variable: whether it is a named result of the function
  std::set<Symbol> used_dims_;        // names of dims
  std::map<VarId, Lambda> closures_;  // in scope, whose calls may be inlined
  std::map<VarId, Atom> renamed_;     // the results of inlined calls
  size_t depth_ = 0;                  // of the current block
  bool changed_ = false;
};

// Whether the function calls a function whose dims are bound by its arguments.
bool calls_polymorphic_in_dims(const Module& module, const Function& function) {
  bool polymorphic = false;
  for_each_callee(function, [&](Symbol callee) {
    const Function* found = module.function(callee);
    polymorphic |= found && !found->dims.empty();
  });
  return polymorphic;
}

}  // namespace

Expected<Module> inline_calls(Context& context, Module module) {
  const CallOrder calls = call_order(module);
  std::map<Symbol, bool> small;
  bool changed = false;
  for (const Symbol name : calls.order) {
    Function& function = *module.function(name);
    if (!function.composite.empty() || !function.target.empty()) continue;  // it represents a kernel
    const Inliner::Policy policy = [&](Symbol callee) -> const Function* {
      const Function* found = module.function(callee);
      if (!found || calls.recursive.contains(callee)) return nullptr;
      if (!found->composite.empty() || !found->target.empty()) return nullptr;
      return calls.sites.at(callee) == 1 || small[callee] ? found : nullptr;
    };
    // An inlined body may contain closures or calls, which the next round inlines.
    constexpr int kRounds = 4;
    for (int round = 0; round < kRounds; ++round) {
      std::optional<Function> before;
      if (calls_polymorphic_in_dims(module, function)) before = function;
      const bool may_move = calls.sites.contains(name);
      if (!Inliner(context, module, function, policy, may_move).run()) break;
      auto dense = rewrite(context, module, function, [](Builder&, Binding&) { return std::nullopt; });
      // With the sizes of this call a check of the callee always fails, which must happen at run time.
      if (!dense && before) {
        function = std::move(*before);
        break;
      }
      if (!dense) return std::unexpected(std::move(dense.error()));
      function = std::move(*dense);
      changed = true;
    }
    small[name] = count_bindings(function.body) <= kMaxCopiedBindings;
  }
  return changed ? dead_code(context, std::move(module)) : std::move(module);
}

Pass inline_pass() { return {"inline", "Inlines functions and closures that are small or called once.", inline_calls}; }

}  // namespace tenon::compiler
