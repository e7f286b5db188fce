// The effects of functions, as the least fixed point over their calls.
#include "compiler/ir/effects.h"

#include <algorithm>
#include <set>

#include "compiler/ir/dependencies.h"
#include "compiler/ir/operator.h"
#include "compiler/loop/safety.h"

namespace tenon::compiler {
namespace {

// An operand may have values that the attribute must not have; the type rule has proved that dims have none.
bool may_fail(const Module& module, const Function& function, const Apply& apply) {
  for (const auto& [name, attr] : apply.computed) {
    if (apply.op->may_fail || std::holds_alternative<Atom>(attr)) return true;
  }
  if (!apply.op->may_fail) return false;
  Application application{apply.attrs, {}};
  for (const Atom& arg : apply.args) {
    Application::Argument& next = application.args.emplace_back();
    if (auto* constant = std::get_if<ConstId>(&arg)) {
      next.constant = &module.constant(*constant);
      next.dtype = next.constant->dtype();
      next.sizes.assign(next.constant->shape().begin(), next.constant->shape().end());
    } else if (auto* var = std::get_if<VarId>(&arg)) {
      const TensorType& type = *function.type(*var).tensor();
      next.dtype = type.dtype;
      for (Dim dim : type.dims) next.sizes.push_back(dim.constant());
    }
  }
  return apply.op->may_fail(application);
}

}  // namespace

Effects::Effects(Context& context, const Module& module) : module_(module) {
  std::map<Symbol, std::set<Symbol>> calls;
  for (const auto& [name, global] : module.globals) {
    struct Visitor {
      Context& context;
      Effect operator()(const Function& x) const { return x.bounds.empty() ? Effect::kNone : Effect::kCheck; }
      Effect operator()(const loop::Function& x) const {
        const loop::UnprovenObligations unproven = loop::unproven_obligations(context, x);
        if (unproven.library) return Effect::kState;
        return unproven.none() && x.bounds.empty() ? Effect::kNone : Effect::kCheck;
      }
      Effect operator()(const Library&) const { return Effect::kState; }
    };
    functions_[name] = std::visit(Visitor{context}, global);
    if (auto* function = std::get_if<Function>(&global)) calls[name] = callees(*function);
  }
  // A function that can reach itself may not terminate. Functions whose callees are all acyclic are removed one by one
  // (Kahn's algorithm); the remaining functions are on a cycle or call a function on a cycle.
  std::map<Symbol, size_t> open;
  std::map<Symbol, std::vector<Symbol>> callers;
  std::vector<Symbol> ends;
  for (const auto& [name, names] : calls) {
    for (Symbol callee : names) {
      if (!calls.contains(callee)) continue;
      ++open[name];
      callers[callee].push_back(name);
    }
    if (open[name] == 0) ends.push_back(name);
  }
  while (!ends.empty()) {
    const Symbol name = ends.back();
    ends.pop_back();
    for (Symbol caller : callers[name]) {
      if (--open[caller] == 0) ends.push_back(caller);
    }
  }
  for (const auto& [name, count] : open) {
    if (count > 0) functions_[name] = Effect::kCheck;
  }
  // A function is visited again where the effect of one of its callees has grown, which it does at most twice.
  std::vector<Symbol> changed;
  for_each_function(module, [&](Symbol name, const Function&) { changed.push_back(name); });
  while (!changed.empty()) {
    const Symbol name = changed.back();
    changed.pop_back();
    const Function& function = *module.function(name);
    const Effect effect = std::max(functions_[name], of(function, function.body));
    if (effect == functions_[name]) continue;
    functions_[name] = effect;
    changed.insert(changed.end(), callers[name].begin(), callers[name].end());
  }
}

Effect Effects::of_function(Symbol name) const {
  auto found = functions_.find(name);
  return found == functions_.end() ? Effect::kState : found->second;
}

Effect Effects::of(const Function& function, const Block& block) const {
  Effect effect = Effect::kNone;
  for (const Binding& binding : block.bindings) effect = std::max(effect, of(function, binding.value));
  return effect;
}

Effect Effects::of(const Function& function, const Value& value) const {
  struct Visitor {
    const Effects& self;
    const Function& function;
    Effect operator()(const Apply& apply) const {
      return may_fail(self.module_, function, apply) ? Effect::kCheck : Effect::kNone;
    }
    Effect operator()(const Call& call) const {
      auto* symbol = std::get_if<Symbol>(&call.callee);
      return symbol ? self.of_function(*symbol) : Effect::kState;
    }
    Effect operator()(const Gradient& gradient) const { return (*this)(gradient.call); }
    Effect operator()(const Tuple&) const { return Effect::kNone; }
    Effect operator()(const DimValue&) const { return Effect::kNone; }
    Effect operator()(const Project&) const { return Effect::kNone; }
    Effect operator()(const Construct&) const { return Effect::kNone; }
    Effect operator()(const Lambda&) const { return Effect::kNone; }  // the creation of a closure has no effect
    Effect operator()(const If& branch) const {
      return std::max(self.of(function, branch.arms[0]), self.of(function, branch.arms[1]));
    }
    Effect operator()(const Case& match) const {
      Effect effect = Effect::kNone;
      for (const Arm& arm : match.arms) effect = std::max(effect, self.of(function, arm.block));
      return effect;
    }
    Effect operator()(const Cast&) const { return Effect::kCheck; }
    Effect operator()(const MakeReference&) const { return Effect::kState; }
    Effect operator()(const ReadReference&) const { return Effect::kState; }
    Effect operator()(const WriteReference&) const { return Effect::kState; }
  };
  return std::visit(Visitor{*this, function}, value);
}

}  // namespace tenon::compiler
