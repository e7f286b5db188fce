// Schedules: a loop function rewritten step by step, each step checked.
//
// A step either keeps what the function computes, bit for bit but for the order in which floats are reduced (and the
// sign of a zero that padding is added to), or is refused with the reason and leaves the function as it was. Loops are
// named by a stage inside them and their variable; a step is a line of text, and a schedule is their list: applied to
// the same function, it gives the same result. S, T are stages, I, J loops around S, %B is a buffer, written B.
//
//   split(S, I, 8)              I -> I0 (outer), I1 (inner, 8 points). Where 8 may not divide the size, what is inside
//                               is guarded.
//   fuse(S, I, J)               J, alone in I, and I become one loop I_J.
//   reorder(S, I, J, ...)       these loops take each other's places, so that they stand in this order from the
//                               outside in.
//   mark(S, I, parallel)        or vector, unroll, serial. Iterations of parallel and vector loops do not depend on
//                               each other; vector and unroll ones are of a constant number.
//   inline(S)                   what S computes is computed where it is read; its buffer goes.
//   compute_at(S, T, I)         S moves into the loop I of T, which reads what S computes, cut to what an iteration
//                               reads.
//   split_init(S, I)            the start of a reduction becomes a stage of its own, S_init, in front of I.
//   cache_read(S, B)            S reads a copy of B, B_S, which a stage of that name makes before it; with a loop,
//   cache_read(S, B, I, stack)  of what an iteration of I reads, there; registers, stack or heap says where it lies.
//   cache_write(S)              S writes a buffer of its own, S_cache, which a stage of that name copies to where it
//   cache_write(S, I, stack)    belongs; with a loop, what an iteration of I writes, there.
//   store_at(S, B, I, stack)    the buffer B is made anew in each iteration of I and holds what that one uses.
//   rfactor(S, I)               each iteration of I, a loop of a reduction, sums up on its own, in S_rf; S adds those.
//   pad(S, A, 8)                the axis A of S gets a size that is a multiple of 8, and guards of it go. Points that
//                               are new write zeros, or leave a reduction as it is.
//   partition(S, I)             I is cut in two where guards inside begin to matter: S and S_tail (and before, S_head).
//   hfuse(S, I, T, J)           the loops I and J, behind each other, become one loop I_J that runs I's iterations,
//                               then J's.
//   fold_storage(S, B, I, 3)    B holds the last 3 elements along the axis that I walks along, in the loop I of S.
//   pipeline(S, I)              S, the first in the loop I, runs one iteration ahead of the rest; its buffer doubles.
//   tensorize(S, I, dot4)       the loops from I inwards and S become a declared instruction (instructions.h).
//
// (The primitives are those of Halide and TVM: Ragan-Kelley et al., "Halide", PLDI 2013; Chen et al., "TVM", OSDI 2018;
// stages as units of rewriting: Feng et al., "TensorIR", ASPLOS 2023; hfuse and partition as operation splitting:
// Fegade et al., "CoRa", MLSys 2022.)
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

class Schedule {
 public:
  Schedule(TypeContext& context, Function function) : context_(context), function_(std::move(function)) {}

  const Function& function() const { return function_; }
  Function take() && { return std::move(function_); }
  // As they are written: "split(dot, i, 8)".
  const std::vector<std::string>& steps() const { return steps_; }

  Status apply(std::string_view step);
  // Each of them, up to the first that is refused.
  Status apply(const std::vector<std::string>& steps);
  // The steps on loops, from code.
  Status split(Symbol stage, Symbol loop, int64_t factor) {
    return step("split", {stage, loop}, std::to_string(factor));
  }
  Status fuse(Symbol stage, Symbol outer, Symbol inner) { return step("fuse", {stage, outer, inner}); }
  Status reorder(Symbol stage, std::vector<Symbol> loops) {
    loops.insert(loops.begin(), stage);
    return step("reorder", loops);
  }
  Status mark(Symbol stage, Symbol loop, Mark mark) { return step("mark", {stage, loop}, name(mark)); }
  Status split_init(Symbol stage, Symbol loop) { return step("split_init", {stage, loop}); }

 private:
  static std::string_view name(Mark mark);
  Status step(std::string_view primitive, const std::vector<Symbol>& names, std::string_view last = {});

  TypeContext& context_;
  Function function_;
  std::vector<std::string> steps_;
};

}  // namespace tenon::compiler::loop
