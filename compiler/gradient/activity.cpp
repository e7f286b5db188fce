// The activity of variables, as a least fixed point over the calls.
#include "compiler/gradient/activity.h"

#include <algorithm>
#include <utility>

#include "compiler/gradient/cells.h"
#include "compiler/ir/adjoint.h"

namespace tenon::compiler::gradient {

class Activity::Walk {
 public:
  Walk(Activity& activity, const Function& function, const std::vector<bool>& params)
      : activity_(activity), function_(function), active_(function.vars.size()) {
    for (size_t i = 0; i < params.size(); ++i) mark(function.params[i], params[i]);
    // What is written to a reference may be read where it was passed before: a second walk finds the readers.
    for (int i = 0; i < 2; ++i) block(function.body);
  }

  bool active(const Atom& atom) const {
    const auto* var = std::get_if<VarId>(&atom);
    return var && active_[index(*var)];
  }
  std::vector<bool> take() { return std::move(active_); }

 private:
  void mark(VarId var, bool active) {
    const Type type = function_.type(var);
    if (is_cell(type)) active_[index(var)] = true;
    if (active && (type.function() || type.reference() || has_adjoint(type))) active_[index(var)] = true;
  }
  bool has_adjoint(Type type) {
    const auto [known, is_new] = floats_.try_emplace(type.node, false);
    if (is_new) known->second = compiler::has_adjoint(activity_.context_, activity_.module_, type);
    return known->second;
  }

  bool is_cell(Type type) {
    const auto [known, is_new] = cells_.try_emplace(type.node, false);
    if (is_new) known->second = has_reference_to_floats(activity_.context_, activity_.module_, type);
    return known->second;
  }

  void block(const Block& block) {
    for (const Binding& binding : block.bindings) mark(binding.var, value(binding.value));
  }
  bool value(const Value& value) {
    activity_.context_.visit();
    bool operands = false;
    for_each_operand(value, [&](const Atom& atom) { operands |= active(atom); });
    if (auto* branch = std::get_if<If>(&value)) {
      for (const Block& arm : branch->arms) block(arm);
      return std::ranges::any_of(branch->arms, [&](const Block& arm) { return active(arm.result); });
    }
    if (auto* match = std::get_if<Case>(&value)) {
      for (const Arm& arm : match->arms) {
        for_each_variable(arm.pattern, [&](VarId var) { mark(var, active(match->subject)); });
        block(arm.block);
      }
      return std::ranges::any_of(match->arms, [&](const Arm& arm) { return active(arm.block.result); });
    }
    if (auto* lambda = std::get_if<Lambda>(&value)) {
      bool captures = false;
      for_each_use(lambda->body[0], [&](const Atom& atom) { captures |= active(atom); });
      return captures;
    }
    if (auto* call = std::get_if<Call>(&value)) {
      auto* symbol = std::get_if<Symbol>(&call->callee);
      if (!symbol || !activity_.module_.function(*symbol)) return operands;
      std::vector<bool> params;
      for (const Atom& arg : call->args) params.push_back(active(arg));
      if (activity_.module_.function(*symbol)->gradient) return operands;
      return activity_.result(*symbol, params);
    }
    if (auto* write = std::get_if<WriteReference>(&value)) {
      if (auto* var = std::get_if<VarId>(&write->reference); var && active(write->value)) active_[index(*var)] = true;
    }
    return operands;
  }

  Activity& activity_;
  const Function& function_;
  std::vector<bool> active_;
  std::map<const TypeNode*, bool> floats_, cells_;
};

bool Activity::result(Symbol function, const std::vector<bool>& params) {
  const auto [known, is_new] = results_.try_emplace({function, params}, false);
  if (is_new) {
    changed_ = true;
    const Function& body = *module_.function(function);
    const bool active = Walk(*this, body, params).active(body.body.result);
    results_.at({function, params}) = active;
    return active;
  }
  return known->second;
}

std::vector<bool> Activity::variables(Symbol function, const std::vector<bool>& params) {
  result(function, params);
  // Results that were needed while they were computed, of functions that call themselves, may be active after all.
  while (std::exchange(changed_, false)) {
    for (auto& [key, active] : results_) {
      if (active) continue;
      const Function& body = *module_.function(key.first);
      if (!Walk(*this, body, key.second).active(body.body.result)) continue;
      active = changed_ = true;
    }
  }
  return Walk(*this, *module_.function(function), params).take();
}

}  // namespace tenon::compiler::gradient
