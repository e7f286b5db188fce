// Schedules: sequences of checked steps that rewrite a loop function.
//
// A step either preserves the function's results, bit for bit except for the order in which floats are reduced (and the
// sign of a zero to which padding is added), or is refused with the reason and leaves the function unchanged. A loop is
// named by a stage inside it and its variable; a step is a line of text, and a schedule is a list of steps: applied to
// equal functions, it gives equal results. S, T are stages, I, J loops around S, B stands for the buffer %B.
//
//   split(S, I, 8)              I -> I0 (outer), I1 (inner, 8 points). If 8 may not divide the size, the stages inside
//                               get guards.
//   split(S, I, 14, 8, 1)       with several factors: blocks of 14 iterations, of the remaining ones as many blocks
//                               of 8 as fit, and so on, each in a copy of the loop with stages S, S_1, S_2.
//   split(S, I, 8, overlap)     all blocks have 8 iterations; the last one, in S_1, ends with I, and computes points of
//                               the one before again. S is the only stage in I, and reads nothing that it writes.
//   split(S, I, 32, 32, 16, round)
//                               blocks of 32 iterations; the remaining ones, rounded up to a multiple of 16, are as
//                               few blocks of 32 and 16 as possible, whose stages have guards.
//   fuse(S, I, J)               I and J, the only statement in I, become one loop I_J. Where the size of J depends on
//                               I, tables of the function have the offsets of I's iterations and map I_J to I.
//   reorder(S, I, J, ...)       permutes these loops, so that they are nested in this order, the first outermost.
//   skew(S, I, J)               I, which contains J alone, becomes a loop I_J over the diagonals I + J. With
//                               guards, the stage S computes the points of I.
//   remap(S, I, descending)     I, whose iterations are independent, visits those of most work first, by a table: by
//   the
//                               sizes of the loops inside that depend on I.
//   mark(S, I, parallel)        sets the loop kind: parallel, vector, unroll or serial. Iterations of parallel and
//                               vector loops are independent; vector and unroll loops have a constant extent.
//   inline(S)                   the values of S are computed where they are read; its buffer is removed.
//   compute_at(S, T, I)         S moves into the loop I of T, which reads its results, and computes only the elements
//                               that an iteration reads.
//   split_init(S, I)            the init of a reduction becomes a separate stage S_init before I.
//   cache_read(S, B)            S reads a copy of B, B_S, which a stage of that name computes before S; with a loop,
//   cache_read(S, B, I, stack)  inside I, a copy of the elements that an iteration reads, in registers, stack or heap.
//   cache_write(S)              S writes a new buffer S_cache, which a stage of that name copies to the original one;
//   cache_write(S, I, stack)    with a loop, inside I, a buffer of the elements that an iteration writes.
//   store_at(S, B, I, stack)    B is allocated in each iteration of I and holds the elements that the iteration uses.
//   rfactor(S, I)               each iteration of I, a loop of a reduction, computes a partial result in S_rf; S
//                               combines them.
//   pad(S, A, 8)                the size of the axis A of S is rounded up to a multiple of 8, which removes guards of
//                               it. New points of copies write zeros, those of sums values that nothing reads; new
//                               terms do not change a sum. The rows of a ragged buffer must be as large before.
//   pad(S, A, 8, 15)            the same to a multiple that is larger by at least 15.
//   partition(S, I)             I is split where guards inside begin to fail, or comparisons of indices in selects: S
//                               and S_tail (and S_head before them). Ranges without iterations are left out.
//   fill(S)                     S, whose values are selected by comparisons of indices, as those of padding are, runs
//                               over the points alone for which they hold; S_fill stores the other values everywhere
//                               before.
//   hfuse(S, I, T, J)           the consecutive loops I and J become one loop I_J that runs I's iterations, then J's.
//   fold_storage(S, B, I, 3)    B holds only the last 3 elements along the axis that the loop I of S traverses.
//   align_storage(B, 1, 9)      the size of the axis 1 of B (the first is 0) is rounded up to a multiple of 9 by
//                               elements that nothing uses: other strides, for banks of memory; the size of each row
//                               where the axis is ragged, for pad.
//   swizzle(B, 3, 1, 4)         the elements along the axis 3 of B are rotated in memory by the index of the axis 1
//                               divided by 4: those of equal indices are in other banks (loop.h).
//   pipeline(S, I)              S, the first statement in the loop I, runs one iteration ahead of the remaining ones;
//                               its buffer is doubled.
//   pipeline(S, I, 3, async)    S, a copy to shared memory, runs two iterations ahead in the background; its buffer is
//                               tripled, and each iteration waits for its copy.
//   clone(S, T)                 T gets a copy of S for itself, S_T, with a buffer of its own.
//   layout(B, j k -> j/16 k j%16)
//                               changes the order of B's elements: the new axes are quotients and remainders of the
//                               old ones, which are named here in their order, and determine them. A quotient is
//                               rounded up where 16 does not divide a constant size. h*w joins two axes, as one of
//                               their size in all.
//   fuse_axes(S, A, B)          A and B, adjacent axes of S and of its buffer, become one axis A_B of both: where the
//                               size of B depends on A, of the size of all rows together, which pad rounds up once.
//   at_load(S)                  S leaves the function; its buffer becomes a parameter, which is computed once, when the
//                               function is loaded. S reads constant parameters only.
//   tensorize(S, I, dot4)       the loops from I inwards, with S, become a declared instruction (instructions.h).
//   tensorize(S, I, mma, inexact)
//                               the same, where the instruction may add in another order and precision, with the bound
//                               that it declares (loop.h).
//
// (The primitives are those of Halide and TVM: Ragan-Kelley et al., "Halide", PLDI 2013; Chen et al., "TVM", OSDI 2018;
// align_storage is Halide's; swizzle is CUTLASS's for axes of two elements; stages as units of rewriting: Feng et al.,
// "TensorIR", ASPLOS 2023; fused ragged loops, padding of loops, storage and totals, remap, hfuse, and partition as
// operation splitting: Fegade et al., "The CoRa tensor compiler", MLSys 2022, section 4.)
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/loop/loop.h"
#include "compiler/loop/schedule/primitives.h"

namespace tenon::compiler::loop {

class Schedule {
 public:
  // `constants`: the parameters whose elements are known when the function is loaded.
  Schedule(TypeContext& context, Function function, std::set<BufferId> constants = {})
      : context_(context), function_(std::move(function)), constants_(std::move(constants)) {}

  const Function& function() const { return function_; }
  Function take() && { return std::move(function_); }
  // The operands that at_load steps added, in their order.
  const std::vector<LoadStep>& loads() const { return loads_; }
  const std::set<BufferId>& constants() const { return constants_; }
  // The applied steps in text form: "split(dot, i, 8)".
  const std::vector<std::string>& steps() const { return steps_; }

  Status apply(std::string_view step);
  // Applies the steps up to the first one that is refused.
  Status apply(const std::vector<std::string>& steps);
  // Steps on loops, for callers in code.
  Status split(Symbol stage, Symbol loop, int64_t factor) {
    return step("split", {stage, loop}, std::to_string(factor));
  }
  Status fuse(Symbol stage, Symbol outer, Symbol inner) { return step("fuse", {stage, outer, inner}); }
  Status reorder(Symbol stage, std::vector<Symbol> loops) {
    loops.insert(loops.begin(), stage);
    return step("reorder", loops);
  }
  Status annotate(Symbol stage, Symbol loop, LoopKind kind) { return step("mark", {stage, loop}, loop::name(kind)); }
  Status split_init(Symbol stage, Symbol loop) { return step("split_init", {stage, loop}); }
  Status partition(Symbol stage, Symbol loop) { return step("partition", {stage, loop}); }

 private:
  Status step(std::string_view primitive, const std::vector<Symbol>& names, std::string_view last = {});

  TypeContext& context_;
  Function function_;
  std::set<BufferId> constants_;
  std::vector<LoadStep> loads_;
  std::vector<std::string> steps_;
};

}  // namespace tenon::compiler::loop
