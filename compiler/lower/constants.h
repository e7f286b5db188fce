// Constants that are freed while their module is lowered: the weights of a large model are then in memory once, packed
// or not yet packed.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

class LoweredConstants {
 public:
  // Each of `roots` is lowered once, every other function as often as it is called.
  LoweredConstants(const Module& module, std::span<const Symbol> roots);

  // Frees the constants whose only use is in the function, or in functions that it calls: its kernel is made.
  void free_used_by(Module& module, const Function& function) const;

 private:
  using Calls = std::map<Symbol, uint64_t>;

  uint64_t times_lowered(Symbol name);

  std::map<Symbol, Calls> callers_;
  std::map<Symbol, uint64_t> times_;  // functions are lowered so often; kMany is the limit
  std::vector<uint64_t> uses_;        // by constant
};

}  // namespace tenon::compiler
