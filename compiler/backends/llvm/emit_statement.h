// Statements: loops, conditions, points of stages, allocations and calls.
//
// A vector loop computes all of its iterations at once, in lock-step; a condition that differs between lanes is a mask.
#pragma once

#include <optional>
#include <span>

#include "compiler/backends/llvm/emit_async_copy.h"
#include "compiler/backends/llvm/emit_control.h"
#include "compiler/backends/llvm/emit_expr.h"
#include "compiler/backends/llvm/emit_frame.h"
#include "compiler/backends/llvm/emit_index.h"
#include "compiler/backends/llvm/emit_intrinsic.h"
#include "compiler/backends/llvm/emit_memory.h"
#include "compiler/backends/llvm/emit_parallel.h"
#include "compiler/backends/llvm/emit_shuffle.h"
#include "compiler/backends/llvm/emit_transpose.h"

namespace tenon::compiler::native {

class StatementEmitter : EmitterPart {
 public:
  StatementEmitter(FrameEmitter& frames, IndexEmitter& indices, ControlEmitter& control, MemoryEmitter& memory,
                   ExprEmitter& exprs);

  void body(const loop::Body& body);

 private:
  void statement(const loop::For& loop);
  void statement(const loop::Stage& stage);
  void statement(const loop::Store& store);
  void statement(const loop::If& branch);
  void statement(const loop::Let& let);
  void statement(const loop::Alloc& alloc);
  void statement(const loop::CallLibrary& call);
  void statement(const loop::Intrinsic& call);
  void statement(const loop::Barrier& barrier);
  void statement(const loop::Commit& commit);
  void statement(const loop::Wait& wait);

  void iteration(const loop::For& loop, Dim value);
  void bound_loop(const loop::For& loop);
  void shared_buffer(const loop::Alloc& alloc, int64_t elements);
  bool vectorizable(const loop::For& loop);
  int64_t lanes_per_iteration(const loop::For& loop);
  void vector_loop(const loop::For& loop, int64_t extent);
  void vector_iteration(const loop::For& loop, Dim begin, unsigned count);
  void points(const loop::Stage& stage, size_t guard, const IndexEmitter::Env& axes);
  void stack_buffer(const loop::Alloc& alloc, int64_t elements);
  void heap_buffer(const loop::Alloc& alloc);
  std::optional<int64_t> stack_elements(BufferId id);
  Value* allocated_elements(BufferId id);
  Value* operand_table(std::span<const BufferId> operands);

  IndexEmitter& indices_;
  ControlEmitter& control_;
  MemoryEmitter& memory_;
  ExprEmitter& exprs_;
  ParallelEmitter parallel_;
  TransposeEmitter transposes_;
  AsyncCopyEmitter async_copies_;
  ShuffleEmitter shuffles_;
  IntrinsicEmitter intrinsics_;
  int64_t unroll_factor_ = 1;  // copies of the current statement
};

}  // namespace tenon::compiler::native
