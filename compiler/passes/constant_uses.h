// How often a module uses each constant, so that a pass that computes new weights from old ones frees the old ones one
// by one: large weights are not in memory twice.
#pragma once

#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

class ConstantUses {
 public:
  explicit ConstantUses(const Module& module) : uses_(module.constants.size()) {
    for_each_function(module, [&](Symbol, const Function& function) {
      for_each_use(function.body, [&](const Atom& atom) {
        if (const auto* constant = std::get_if<ConstId>(&atom)) ++uses_[index(*constant)];
      });
    });
  }

  // A pass has added uses of the atom: a constant is never freed.
  void keep(const Atom& atom) {
    const auto* constant = std::get_if<ConstId>(&atom);
    if (constant && index(*constant) < uses_.size()) uses_[index(*constant)] = SIZE_MAX;
  }
  // A pass has removed one use of the atom. Constants that are newer than the counts stay.
  void remove(Module& module, const Atom& atom) {
    const auto* constant = std::get_if<ConstId>(&atom);
    if (!constant || index(*constant) >= uses_.size() || uses_[index(*constant)] == SIZE_MAX) return;
    if (--uses_[index(*constant)] == 0) module.constants[index(*constant)] = {};
  }

 private:
  std::vector<size_t> uses_;
};

}  // namespace tenon::compiler
