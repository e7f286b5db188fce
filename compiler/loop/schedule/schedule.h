// Schedules: a loop function rewritten step by step, each step checked.
//
// A step either keeps what the function computes, bit for bit but for the order in which floats are reduced, or is
// refused with the reason and leaves the function as it was. Loops are named by a stage inside them and their variable.
// Each step has a line of text, and a schedule is their list: applied to the same function, it gives the same result.
// (The primitives are those of Halide and TVM: Ragan-Kelley et al., "Halide", PLDI 2013; Chen et al., "TVM", OSDI 2018;
// stages as units of rewriting: Feng et al., "TensorIR", ASPLOS 2023.)
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

class Schedule {
 public:
  Schedule(Context& context, Function function) : context_(context), function_(std::move(function)) {}

  const Function& function() const { return function_; }
  // As they are written: "split(dot, i, 8)".
  const std::vector<std::string>& steps() const { return steps_; }
  // A step from its text.
  Status apply(std::string_view step);

  // loop -> loop0 (outer), loop1 (inner, of `factor` points). Where the factor may not divide the loop's size, the
  // stages inside are guarded.
  Status split(Symbol stage, Symbol loop, int64_t factor);
  // Two loops, the inner one alone in the outer one, become outer_inner.
  Status fuse(Symbol stage, Symbol outer, Symbol inner);
  // These loops around the stage take each other's places, so that they stand in this order from the outside in.
  Status reorder(Symbol stage, std::span<const Symbol> loops);
  // Parallel and vector loops have iterations that do not depend on each other; vector and unroll ones a constant size.
  Status mark(Symbol stage, Symbol loop, Mark mark);
  // What the stage computes is computed where it is read; its buffer goes.
  Status inlined(Symbol stage);
  // The stage's loops move into `loop` of the stage that reads what it computes, cut to what one iteration reads.
  Status compute_at(Symbol stage, Symbol reader, Symbol loop);
  // `init` becomes a stage of its own, STAGE_init, in front of `loop`.
  Status split_init(Symbol stage, Symbol loop);
  // The stage reads a copy of the buffer, BUFFER_STAGE, which a stage of that name makes before it.
  Status cache_read(Symbol stage, Symbol buffer);
  // The stage writes a buffer of its own, STAGE_cache; a stage of that name copies it to where it belongs.
  Status cache_write(Symbol stage);

 private:
  Status finish(std::string step, Expected<Function> result);

  Context& context_;
  Function function_;
  std::vector<std::string> steps_;
};

}  // namespace tenon::compiler::loop
