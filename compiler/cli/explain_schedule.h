// What binds each layer of an accelerator program: the resource that it uses most, or what keeps it from using it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/accelerator_program.h"

namespace tenon::cli {

// One layer, in cycles. Those of resources are their work in this layer without any wait; the roofline is the largest.
struct LayerSchedule {
  std::string name, op;
  uint64_t cycles = 0;          // by the cycle model, with the memory that the program was scheduled for
  uint64_t cycles_at_once = 0;  // with a memory that answers at once
  uint64_t load_waits = 0;  // of load engines for tokens: for room in a scratchpad, or for an earlier layer's stores
  uint64_t lanes = 0, requantizer = 0, reads = 0, stores = 0;  // `reads` has the instructions' beats, too
  uint64_t roofline() const;
  std::string bound_by() const;
  void join(const LayerSchedule& next);  // that is fused with it
};

// The layers in the order of their completion; those that are fused, since results of all but the last go to inp, are
// one. Layers overlap: a layer's cycles are those from the completion of the
// layers before it to its own, so that they add up to the program's (runtime/profile/analysis.h).
std::vector<LayerSchedule> layer_schedules(const runtime::AcceleratorProgram& program);

// The table of these, with a line for the whole program.
std::string explain_schedule(const runtime::AcceleratorProgram& program);

}  // namespace tenon::cli
