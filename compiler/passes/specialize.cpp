// Specialization by constants: a function that is called with constants, tensors or functions, for parameters that its
// recursion passes on unchanged becomes a copy without these parameters, one for each set of constants. (As ACRoBat
// duplicates functions that different weights are given to, and as Steele and others specialize by static arguments.)
// One function may so be the forward and the backward pass of a recurrent layer: in its copies the weights are
// constants, which kernels pack, and function parameters are direct calls.
//
// compiler/gradient/specialize.h copies functions for the types of their calls, which it must do, and says so where it
// cannot; here every copy is an option, and a call that gets none stays as it is.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/ir/dependencies.h"
#include "compiler/ir/instantiate.h"
#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr size_t kMaxCopies = 64;  // of the module's functions

class Specialization {
 public:
  Specialization(Context& context, Module& module) : context_(context), module_(module) {}

  void run() {
    std::vector<Symbol> waiting;
    for_each_function(module_, [&](Symbol name, const Function&) { waiting.push_back(name); });
    while (!waiting.empty()) {
      const Symbol name = waiting.back();
      waiting.pop_back();
      Function function = *module_.function(name);
      bool changed = false;
      for_each_binding(function.body, [&](Binding& binding) {
        context_.visit();
        auto* call = std::get_if<Call>(&binding.value);
        if (call) changed |= specialize(function, *call, waiting);
      });
      if (changed) *module_.function(name) = std::move(function);
    }
  }

 private:
  using Constants = std::vector<std::pair<size_t, Atom>>;  // by index of the parameter

  bool specialize(const Function& caller, Call& call, std::vector<Symbol>& made) {
    const Symbol* name = std::get_if<Symbol>(&call.callee);
    const Function* callee = name ? module_.function(*name) : nullptr;
    if (!callee || !callee->composite.empty() || !callee->target.empty()) return false;
    Constants constants;
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (!std::holds_alternative<VarId>(call.args[i]) && static_params(*name)[i])
        constants.emplace_back(i, call.args[i]);
    }
    if (constants.empty()) return false;
    const auto [known, is_new] = copies_.try_emplace({*name, constants});
    if (is_new) {
      known->second = copy(caller, *name, *callee, constants);
      if (known->second) made.push_back(*known->second);
    }
    if (!known->second) return false;
    call.callee = *known->second;
    for (size_t k = constants.size(); k-- > 0;)
      call.args.erase(call.args.begin() + static_cast<ptrdiff_t>(constants[k].first));
    return true;
  }

  // Whether each parameter keeps its value in the function's recursion: all calls of itself pass it on. A function that
  // calls itself through others has none of them.
  const std::vector<bool>& static_params(Symbol name) {
    const auto [found, is_new] = static_.try_emplace(name);
    if (!is_new) return found->second;
    const Function& function = *module_.function(name);
    std::vector<bool>& kept = found->second;
    kept.assign(function.params.size(), true);
    for (const Symbol other : reachable_globals(module_, name)) {
      const Function* user = module_.function(other);
      if (user && other != name && callees(*user).contains(name)) kept.assign(kept.size(), false);
    }
    for_each_binding(function.body, [&](const Binding& binding) {
      const auto* call = std::get_if<Call>(&binding.value);
      if (!call || call->callee != Atom(name)) return;
      for (size_t i = 0; i < kept.size(); ++i) kept[i] = kept[i] && call->args[i] == Atom(function.params[i]);
    });
    return kept;
  }

  // The function without these parameters; nothing where the remaining ones do not determine its sizes and types.
  std::optional<Symbol> copy(const Function& caller, Symbol name, const Function& callee, const Constants& constants) {
    if (made_ == kMaxCopies) return std::nullopt;
    const auto found = constant_sizes(caller, callee, constants);
    if (!found || !found->bounds_hold) return std::nullopt;
    Function copy = callee;
    substitute(context_, copy, found->dims, found->types);
    std::erase_if(copy.dims, [&](Symbol dim) { return found->dims.contains(dim); });
    std::erase_if(copy.types, [&](Symbol type) { return found->types.contains(type); });
    for (const auto& [dim, size] : found->dims) copy.bounds.erase(dim);
    for (size_t k = constants.size(); k-- > 0;) {
      const auto& [param, constant] = constants[k];
      const Atom variable = copy.params[param];
      copy.params.erase(copy.params.begin() + static_cast<ptrdiff_t>(param));
      for_each_use(copy.body, [&](Atom& atom) {
        if (atom == variable) atom = constant;
      });
    }
    if (!is_determined(copy) ||
        explicit_type_params(signature_of(context_, copy)) != explicit_type_params(signature_of(context_, callee)))
      return std::nullopt;
    // With these sizes, a check of the function may be known to fail, which must happen at run time.
    auto checked = rewrite(context_, module_, copy, [](Builder&, Binding&) { return std::optional<Atom>(); });
    if (!checked) return std::nullopt;
    Symbol symbol;
    do symbol = context_.symbol(fmt::format("{}.of{}", context_.name(name), made_++));
    while (module_.globals.contains(symbol));
    module_.globals.emplace(symbol, std::move(*checked));
    return symbol;
  }

  // The sizes and types that the constants determine.
  std::optional<Instantiation> constant_sizes(const Function& caller, const Function& callee,
                                              const Constants& constants) const {
    Function part;
    part.vars = callee.vars;
    part.result = context_.unit();
    Call call;
    std::set<Symbol> dims, types;
    for (const auto& [param, constant] : constants) {
      part.params.push_back(callee.params[param]);
      call.args.push_back(constant);
      const Type type = callee.type(callee.params[param]);
      collect_type_variables(type, types);
      for_each_part(type, [&](Type inner) {
        if (!inner.tensor()) return;
        for (const Dim dim : inner.tensor()->dims) for_each_variable(dim, [&](Symbol name) { dims.insert(name); });
      });
    }
    std::ranges::copy_if(callee.dims, std::back_inserter(part.dims), [&](Symbol name) { return dims.contains(name); });
    std::ranges::copy_if(callee.types, std::back_inserter(part.types),
                         [&](Symbol name) { return types.contains(name); });
    for (const auto& [name, range] : callee.bounds) {
      if (dims.contains(name)) part.bounds.emplace(name, range);
    }
    return instantiate(context_, module_, caller, part, call);
  }

  // Whether the parameters' types have all dims and type variables.
  bool is_determined(const Function& function) const {
    std::set<Symbol> dims;
    for (const VarId param : function.params) {
      context_.map_sizes(function.type(param), [&](Dim dim) {
        for_each_variable(dim, [&](Symbol name) { dims.insert(name); });
        return dim;
      });
    }
    return std::ranges::all_of(function.dims, [&](Symbol name) { return dims.contains(name); });
  }

  Context& context_;
  Module& module_;
  std::map<Symbol, std::vector<bool>> static_;
  std::map<std::pair<Symbol, Constants>, std::optional<Symbol>> copies_;
  size_t made_ = 0;
};

}  // namespace

Expected<Module> specialize(Context& context, Module module) {
  Specialization(context, module).run();
  return infer(context, std::move(module));
}

Pass specialize_pass() {
  return {"specialize", "Copies functions for the constants that their recursion passes on.", specialize};
}

}  // namespace tenon::compiler
