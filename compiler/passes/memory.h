// Memory plan of a function of the IR: offsets in one arena for the tensors that a call of it makes.
//
// Semantics: a plan is for one call of the function, at the positions of its bindings (compiler/ir/liveness.h); each
// kernel writes its result into memory of its own, before the memory of its operands may be reused. A tensor is live
// from its binding to the last use of every value that may hold it: a tuple, a constructed value, a closure, the result
// of an arm or of a function that may have passed it on. The arena has the tensors whose bytes are bounded, by
// constants and the bounds of dims. Outside are parameters and constants, tensors that escape the call (results, and
// all that a reference or an unknown callee may keep), and tensors that closures make, which run at other times. The
// allocator is compiler/base/first_fit.h.
//
// This plan answers for modules that have no executable (`tenon opt --memory`). An executable's own plan is made from
// its code by compiler/lower/memory.h.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

struct PlannedTensor {
  static constexpr int64_t kOutside = -1;

  VarId var{};                   // bound to the tensor, or to a tuple that has it
  uint32_t field = 0;            // index among the tensors of that tuple, in depth first order
  uint32_t first = 0, last = 0;  // live range: positions, both included
  int64_t bytes = 0;             // upper bound, a multiple of kMemoryAlignment; 0: no bound is known
  int64_t offset = kOutside;
  bool escapes = false;  // the tensor may outlive the call
};

struct MemoryPlan {
  std::vector<PlannedTensor> tensors;
  int64_t arena = 0;    // bytes
  int64_t peak = 0;     // the most bytes that are live at once: no arena is smaller
  int64_t total = 0;    // bytes of an arena without reuse
  int64_t outside = 0;  // bytes of the tensors that escape, of those with a bound
  size_t unknown = 0;   // tensors without a bound, which are allocated when they are made
};

// The most bytes that a tensor of the type has by its constant sizes and the declared bounds of dims, a multiple of
// kMemoryAlignment; 0: no bound is known, or the tensor is empty.
int64_t most_bytes(const TensorType& type, const DimBounds& bounds);

MemoryPlan plan_memory(Context& context, const Module& module, const Function& function);
// "12 tensors in 4096 bytes (3584 live at once, 16384 without reuse); 512 bytes of results outside; 2 of unknown size"
std::string str(const MemoryPlan& plan);

}  // namespace tenon::compiler
