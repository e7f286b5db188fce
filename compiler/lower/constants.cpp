#include "compiler/lower/constants.h"

#include <algorithm>

namespace tenon::compiler {
namespace {

constexpr uint64_t kMany = 2;

const Symbol* callee_of(const Binding& binding) {
  const auto* call = std::get_if<Call>(&binding.value);
  return call ? std::get_if<Symbol>(&call->callee) : nullptr;
}

}  // namespace

LoweredConstants::LoweredConstants(const Module& module, std::span<const Symbol> roots)
    : uses_(module.constants.size()) {
  for_each_function(module, [&](Symbol name, const Function& function) {
    for_each_binding(function.body, [&](const Binding& binding) {
      if (const Symbol* callee = callee_of(binding)) ++callers_[*callee][name];
    });
    // A function that is a value is called from anywhere.
    for_each_use(function.body, [&](const Atom& atom) {
      if (const auto* symbol = std::get_if<Symbol>(&atom)) times_[*symbol] = kMany;
    });
  });
  for (const Symbol root : roots) times_[root] = callers_.contains(root) ? kMany : 1;
  for_each_function(module, [&](Symbol name, const Function& function) {
    const uint64_t times = times_lowered(name);
    for_each_use(function.body, [&](const Atom& atom) {
      if (const auto* constant = std::get_if<ConstId>(&atom)) uses_[index(*constant)] += times;
    });
  });
}

// A function that calls itself is lowered often.
uint64_t LoweredConstants::times_lowered(Symbol name) {
  const auto [entry, is_new] = times_.emplace(name, kMany);
  if (!is_new) return entry->second;
  uint64_t times = 0;
  for (const auto& [caller, calls] : callers_[name]) times += calls * times_lowered(caller);
  return times_[name] = std::min(times, kMany);
}

void LoweredConstants::free_used_by(Module& module, const Function& function) const {
  for_each_use(function.body, [&](const Atom& atom) {
    const auto* constant = std::get_if<ConstId>(&atom);
    if (constant && uses_[index(*constant)] == 1) module.constants[index(*constant)] = {};
  });
  for_each_binding(function.body, [&](const Binding& binding) {
    const Symbol* callee = callee_of(binding);
    const Function* called = callee ? module.function(*callee) : nullptr;
    if (called && called != &function) free_used_by(module, *called);
  });
}

}  // namespace tenon::compiler
