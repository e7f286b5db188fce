// Memory planning: where in one arena the tensors of a function would lie.
//
// Semantics: a plan is for one call of the function, whose bindings are counted in the order of the text, arms one
// after another; each kernel writes its result into memory of its own, before what it reads may be taken again. A
// tensor lives from its binding to the last use of whatever may hold it: a tuple, a constructed value, a closure, the
// result of an arm or of a function that may have passed it on. In the arena are tensors whose bytes have a bound, by
// numbers and the bounds of dims. Not in it are parameters and constants, what leaves the function (results, and all
// that a reference or an unknown callee may keep), and what closures make, which run at other times. Largest first,
// each at the lowest offset that is free for all of its life (first fit by decreasing size).
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

struct PlannedTensor {
  static constexpr int64_t kOutside = -1;

  VarId var{};                   // that is bound to it, or to a tuple of which it is
  uint32_t field = 0;            // the one, in depth first order
  uint32_t first = 0, last = 0;  // bindings, both of them included
  int64_t bytes = 0;             // at most, a multiple of kMemoryAlignment; 0: no bound is known
  int64_t offset = kOutside;
  bool leaves = false;  // it may outlive the call
};
inline constexpr int64_t kMemoryAlignment = 64;

struct MemoryPlan {
  std::vector<PlannedTensor> tensors;
  int64_t arena = 0;    // bytes
  int64_t peak = 0;     // the most that live at once: no arena is smaller
  int64_t apart = 0;    // what they would take without reuse
  int64_t outside = 0;  // of what leaves the function, as far as it is known
  size_t unknown = 0;   // tensors without a bound, which are allocated when they are made
};

MemoryPlan plan_memory(Context& context, const Module& module, const Function& function);
// Places these tensors, whose lives are known: fills in offsets and sums.
MemoryPlan place_tensors(std::vector<PlannedTensor> tensors);
// "12 tensors in 4096 bytes (3584 live at once, 16384 apart); 512 bytes of results outside; 2 of unknown size"
std::string str(const MemoryPlan& plan);

}  // namespace tenon::compiler
