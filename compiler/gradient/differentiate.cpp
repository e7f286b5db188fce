// The derivatives of calls, innermost first, and the functions that they need.
#include "compiler/gradient/differentiate.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/gradient/cells.h"
#include "compiler/gradient/functions_as_data.h"
#include "compiler/gradient/reverse.h"
#include "compiler/gradient/specialize.h"
#include "compiler/ir/adjoint.h"
#include "compiler/ir/dependencies.h"
#include "compiler/ir/rewrite.h"
#include "support/try.h"

namespace tenon::compiler::gradient {
namespace {

bool has_gradient(const Function& function) {
  bool found = false;
  for_each_binding(function.body,
                   [&](const Binding& binding) { found |= std::holds_alternative<Gradient>(binding.value); });
  return found;
}

class Differentiation : public PassesOfCallees {
 public:
  Differentiation(Context& context, Module& module) : context_(context), module_(module), cells_(context) {
    tables_.emplace(context, module);
  }

  Status run() {
    TENON_TRY(simplify());
    std::vector<Symbol> names;
    for_each_function(module_, [&](Symbol name, const Function&) { names.push_back(name); });
    for (const Symbol name : names) TENON_TRY(expand(name));
    while (!waiting_.empty()) TENON_TRY(write(waiting_.begin()->first));
    return {};
  }

  Expected<Passes> passes(Symbol function, const std::vector<bool>& active) override {
    const auto [known, is_new] = passes_.try_emplace({function, active});
    if (!is_new) return known->second;
    const Function& from = *module_.function(function);
    std::vector<Type> adjoints;
    for (size_t i = 0; i < active.size(); ++i) {
      if (!active[i]) continue;
      const Type type = from.type(from.params[i]);
      TENON_TRY(declare_adjoints_of(type));
      adjoints.push_back(erased(context_, adjoint_type(context_, module_, type)));
      TENON_TRY(check_sizes(function, adjoints.back()));
    }
    TENON_TRY(declare_adjoints_of(from.result));
    TENON_TRY(check_sizes(function, erased(context_, adjoint_type(context_, module_, from.result))));
    Passes& passes = known->second;
    passes.tape = declare_tape(context_, module_, context_.name(function), 1);
    passes.forward = unused_name(function, "forward", active);
    Function forward;
    forward.dims = from.dims;
    forward.bounds = from.bounds;
    for (const VarId param : from.params) {
      forward.params.push_back(static_cast<VarId>(forward.vars.size()));
      forward.vars.push_back(from.info(param));
    }
    forward.result = context_.tuple({from.result, passes.tape.type});
    module_.globals.emplace(passes.forward, std::move(forward));

    passes.backward = unused_name(function, "backward", active);
    Function backward;
    const Type cotangent = context_.map_sizes(adjoint_type(context_, module_, from.result), [&](Dim dim) {
      if (dim.constant()) return dim;
      backward.dims.push_back(tables_->dims.fresh(context_));
      return context_.dim(backward.dims.back());
    });
    backward.vars = {{passes.tape.type, context_.symbol("tape"), {}}, {cotangent, context_.symbol("cotangent"), {}}};
    backward.params = {VarId{0}, VarId{1}};
    backward.result = context_.tuple(std::move(adjoints));
    module_.globals.emplace(passes.backward, std::move(backward));
    waiting_.emplace(passes.forward, Key{function, active});
    waiting_.emplace(passes.backward, Key{function, active});
    return passes;
  }

 private:
  using Key = std::pair<Symbol, std::vector<bool>>;

  Status declare_adjoints_of(Type type) {
    Status status;
    for_each_part(type, [&](Type part) {
      if (status && part.adt()) status = declare_adjoint(context_, module_, part.adt()->name);
    });
    return status;
  }

  // Only visible sizes pass from a forward to a backward pass.
  Status check_sizes(Symbol function, Type adjoint) const {
    std::optional<Symbol> inner;
    for_each_part(adjoint, [&](Type part) {
      if (!part.tensor()) return;
      for (const Dim dim : part.tensor()->dims) for_each_variable(dim, [&](Symbol name) { inner = name; });
    });
    if (!inner) return {};
    return error(fmt::format("@{} is differentiated, but an adjoint of its arguments or its result is {}, with the "
                             "size {} inside of another type",
                             context_.name(function), context_.str(adjoint), context_.name(*inner)),
                 "", "give the size a constant value, or inline the function");
  }

  Symbol unused_name(Symbol function, std::string_view what, const std::vector<bool>& active) const {
    const Function& from = *module_.function(function);
    std::string name = fmt::format("{}.{}", context_.name(function), what);
    bool all = true;
    std::string wrt;
    for (size_t i = 0; i < active.size(); ++i) {
      all &= active[i] || !has_adjoint(context_, module_, from.type(from.params[i]));
      if (active[i]) wrt += fmt::format("{}{}", wrt.empty() ? "" : "_", i);
    }
    if (!all) name += fmt::format(".{}", wrt);
    for (size_t i = 0;; ++i) {
      const Symbol symbol = context_.symbol(i == 0 ? name : fmt::format("{}.{}", name, i));
      if (!module_.globals.contains(symbol)) return symbol;
    }
  }

  // Brings the code that is differentiated into a form without type variables and closures.
  Status simplify() {
    bool polymorphic = false, closures = false;
    for (const Symbol name : differentiated()) {
      const Function* function = module_.function(name);
      polymorphic |= function && !function->types.empty();
      closures |= function && uses_closures(*function);
    }
    for_each_function(module_, [&](Symbol, const Function& function) {
      for_each_binding(function.body, [&](const Binding& binding) {
        auto* gradient = std::get_if<Gradient>(&binding.value);
        closures |= gradient && std::holds_alternative<VarId>(gradient->call.callee);
      });
    });
    if (polymorphic || closures) {
      TENON_TRY_ASSIGN(module, specialize(context_, std::move(module_)));
      module_ = std::move(*module);
      tables_.emplace(context_, module_);
    }
    if (closures) {
      TENON_TRY(functions_as_data(context_, module_, *this));
      tables_.emplace(context_, module_);
    }
    return references();
  }

  Status references() {
    bool found = false;
    for (const Symbol name : differentiated()) {
      const Function* function = module_.function(name);
      for (size_t i = 0; function && i < function->vars.size(); ++i) {
        const Type type = function->vars[i].type;
        found |= type && has_reference_to_floats(context_, module_, type);
      }
    }
    if (!found) return {};
    TENON_TRY(declare_adjoints(context_, module_));
    TENON_TRY(cells_.convert(module_, tables_->dims));
    tables_.emplace(context_, module_);
    return {};
  }

  // The globals that are reachable from what is differentiated.
  std::set<Symbol> differentiated() const {
    std::set<Symbol> found;
    for_each_function(module_, [&](Symbol, const Function& function) {
      for_each_binding(function.body, [&](const Binding& binding) {
        auto* gradient = std::get_if<Gradient>(&binding.value);
        auto* callee = gradient ? std::get_if<Symbol>(&gradient->call.callee) : nullptr;
        if (!callee) return;
        for (const Symbol next : reachable_globals(module_, *callee)) found.insert(next);
      });
    });
    return found;
  }

  // Expands the derivatives in the function, after those in all functions that it differentiates.
  Status expand(Symbol name) {
    const auto [state, is_new] = states_.try_emplace(name, State::kOpen);
    if (!is_new) return {};
    if (const Function& function = *module_.function(name); has_gradient(function)) {
      std::vector<Symbol> inner;
      for_each_binding(function.body, [&](const Binding& binding) {
        auto* gradient = std::get_if<Gradient>(&binding.value);
        auto* callee = gradient ? std::get_if<Symbol>(&gradient->call.callee) : nullptr;
        if (callee) inner.push_back(*callee);
      });
      for (const Symbol callee : inner) TENON_TRY(complete(callee));
      const RewriteStep step = [this](Builder& builder, Binding& binding) { return expanded(builder, binding); };
      const Function before = *module_.function(name);
      TENON_TRY_ASSIGN(after, rewrite(context_, module_, before, step));
      *module_.function(name) = std::move(*after);
    }
    states_.at(name) = State::kDone;
    return {};
  }

  // Expands and writes what is reachable from the function, so that it can be differentiated.
  Status complete(Symbol function) {
    std::set<Symbol> seen;
    std::vector<Symbol> open{function};
    while (!open.empty()) {
      const Symbol next = open.back();
      open.pop_back();
      if (!module_.function(next) || complete_.contains(next) || !seen.insert(next).second) continue;
      if (waiting_.contains(next)) TENON_TRY(write(next));
      TENON_TRY(expand(next));
      if (states_.at(next) == State::kOpen) {
        return error(
            fmt::format("@{} is differentiated, but its own code needs this derivative", context_.name(function)), "",
            "the order of a derivative must be finite");
      }
      for (const Symbol callee : callees(*module_.function(next))) open.push_back(callee);
    }
    complete_.merge(seen);
    return {};
  }

  Expected<std::optional<Atom>> expanded(Builder& builder, Binding& binding) {
    auto* gradient = std::get_if<Gradient>(&binding.value);
    if (!gradient) return std::nullopt;
    auto* callee = std::get_if<Symbol>(&gradient->call.callee);
    const Function* function = callee ? module_.function(*callee) : nullptr;
    const std::string where = module_.span(builder.span()).str();
    if (!callee) return error("the derivative of a closure whose code is not known", where);
    if (!function)
      return error(fmt::format("@{} has no derivative: it is not a function of the language", context_.name(*callee)),
                   where);
    std::vector<bool> active(gradient->call.args.size(), false);
    for (const uint32_t index : gradient->wrt) active[index] = true;
    const Symbol target = function->gradient ? called(*callee) : *callee;
    if (gradient->kind == Gradient::Kind::kGradient) {
      TENON_TRY_ASSIGN(name, gradient_of(target, active));
      TENON_TRY_ASSIGN(atom, builder.call(*name, gradient->call.args));
      return *atom;
    }
    TENON_TRY_ASSIGN(passes, this->passes(target, active));
    std::vector<Type> adjoints;
    for (const uint32_t index : gradient->wrt) {
      TENON_TRY_ASSIGN(type, builder.type_of(gradient->call.args[index]));
      adjoints.push_back(adjoint_type(context_, module_, *type));
    }
    TENON_TRY_ASSIGN(pair, builder.call(passes->forward, gradient->call.args));
    TENON_TRY_ASSIGN(result, builder.project(*pair, 0));
    TENON_TRY_ASSIGN(tape, builder.project(*pair, 1));
    TENON_TRY_ASSIGN(result_type, builder.type_of(*result));
    const Type cotangent = adjoint_type(context_, module_, *result_type);
    const Type all = context_.tuple(adjoints);
    Lambda lambda{{}, all, {}};
    const VarId self = builder.declare(context_.function({cotangent}, all), "");
    lambda.params.push_back(builder.declare(cotangent, "cotangent"));
    builder.open();
    AdjointBuilder checked(builder, tables_->adders, tables_->dims);
    TENON_TRY_ASSIGN(open, opened(builder, lambda.params[0], tables_->dims));
    TENON_TRY_ASSIGN(found, builder.call(passes->backward, {*tape, *open}));
    Atoms values;
    for (uint32_t i = 0; i < adjoints.size(); ++i) {
      TENON_TRY_ASSIGN(value, builder.project(*found, i));
      TENON_TRY_ASSIGN(cast, checked.cast(*value, adjoints[i]));
      values.push_back(*cast);
    }
    TENON_TRY_ASSIGN(tuple, builder.tuple(std::move(values)));
    lambda.body.push_back(builder.close(*tuple));
    TENON_TRY_ASSIGN(closure, builder.bind_to(self, std::move(lambda)));
    TENON_TRY_ASSIGN(both, builder.tuple({*result, *closure}));
    return *both;
  }

  // A function that calls this one, which has a gradient of its own.
  Symbol called(Symbol function) {
    const auto [known, is_new] = called_.try_emplace(function);
    if (!is_new) return known->second;
    const Function& from = *module_.function(function);
    Function caller;
    caller.dims = from.dims;
    caller.bounds = from.bounds;
    Call call{function, {}, {}};
    for (const VarId param : from.params) {
      caller.params.push_back(static_cast<VarId>(caller.vars.size()));
      caller.vars.push_back(from.info(param));
      call.args.emplace_back(caller.params.back());
    }
    const auto result = static_cast<VarId>(caller.vars.size());
    caller.vars.push_back({from.result, Symbol{}, SpanId{}});
    caller.body.bindings.push_back({result, std::move(call)});
    caller.body.result = result;
    caller.result = from.result;
    known->second = unused_name(function, "call", std::vector<bool>(from.params.size(), true));
    module_.globals.emplace(known->second, std::move(caller));
    states_[known->second] = State::kDone;
    return known->second;
  }

  // The function with the forward and the backward code of `function` in one block.
  Expected<Symbol> gradient_of(Symbol function, const std::vector<bool>& active) {
    const auto [known, is_new] = gradients_.try_emplace({function, active});
    if (!is_new) return known->second;
    const Function& from = *module_.function(function);
    for (size_t i = 0; i < active.size(); ++i) {
      if (active[i]) TENON_TRY(declare_adjoints_of(from.type(from.params[i])));
    }
    Reverse reverse(context_, module_, *tables_, *this, function, active);
    TENON_TRY_ASSIGN(made, reverse.gradient());
    TENON_TRY(report());
    known->second = unused_name(function, "gradient", active);
    TENON_TRY(store(known->second, *made));
    return known->second;
  }

  // Writes the forward and the backward pass of which `name` is one.
  Status write(Symbol name) {
    const Key key = waiting_.at(name);
    const Passes passes = passes_.at(key);
    states_[passes.forward] = states_[passes.backward] = State::kOpen;
    waiting_.erase(passes.forward);
    waiting_.erase(passes.backward);
    if (cells_.contains(key.first)) {
      TENON_TRY(cells_.define(module_, *tables_, key.first, key.second, passes));
      states_[passes.forward] = states_[passes.backward] = State::kDone;
      return {};
    }
    TENON_TRY(complete(key.first));
    Reverse reverse(context_, module_, *tables_, *this, key.first, key.second);
    Function forward, backward;
    TENON_TRY(reverse.passes(passes, forward, backward));
    TENON_TRY(report());
    TENON_TRY(store(passes.forward, forward));
    return store(passes.backward, backward);
  }

  // The variables get new numbers: a forward and a backward pass have a part each of those of both.
  Status store(Symbol name, const Function& function) {
    TENON_TRY_ASSIGN(dense, rewrite(context_, module_, function, [](Builder&, Binding&) { return std::nullopt; }));
    module_.globals.insert_or_assign(name, std::move(*dense));
    states_[name] = State::kDone;
    return {};
  }

  // The findings of a function so far, as one error.
  Status report() {
    if (tables_->problems.empty()) return {};
    Diagnostic first = std::move(tables_->problems.front());
    for (size_t i = 1; i < tables_->problems.size(); ++i) first.more.push_back(std::move(tables_->problems[i]));
    return std::unexpected(std::move(first));
  }

  Context& context_;
  Module& module_;
  std::optional<Tables> tables_;
  Cells cells_;
  enum class State : uint8_t { kOpen, kDone };
  std::map<Symbol, State> states_;
  std::set<Symbol> complete_;  // functions that are final, with all that they depend on
  std::map<Key, Passes> passes_;
  std::map<Key, Symbol> gradients_;
  std::map<Symbol, Symbol> called_;  // the callers of functions with a gradient of their own
  std::map<Symbol, Key> waiting_;    // by the names of both passes
};

}  // namespace
}  // namespace tenon::compiler::gradient

namespace tenon::compiler {

Expected<Module> differentiate(Context& context, Module module) {
  bool any = false;
  for_each_function(module, [&](Symbol, const Function& function) { any |= gradient::has_gradient(function); });
  if (any) TENON_TRY(gradient::Differentiation(context, module).run());
  // No derivative is left that would use gradients of functions, and stop where it is told to.
  bool stops = false;
  for_each_function(module, [&](Symbol, Function& function) {
    function.gradient.reset();
    for_each_binding(function.body, [&](const Binding& binding) {
      const auto* apply = std::get_if<Apply>(&binding.value);
      stops |= apply && apply->op->is(ops::kStopGradient);
    });
  });
  if (!stops) return module;
  return rewrite(context, std::move(module), [](Builder&, Binding& binding) -> Expected<std::optional<Atom>> {
    const auto* apply = std::get_if<Apply>(&binding.value);
    return apply && apply->op->is(ops::kStopGradient) ? std::optional(apply->args[0]) : std::nullopt;
  });
}

}  // namespace tenon::compiler
