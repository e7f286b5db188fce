// Asynchronous copies to a GPU's shared memory: cp.async (NVIDIA, "Parallel Thread Execution ISA", section on
// non-bulk copies), of 4, 8 or 16 bytes each.
#pragma once

#include <optional>

#include "compiler/backends/llvm/emit_control.h"
#include "compiler/backends/llvm/emit_expr.h"
#include "compiler/backends/llvm/emit_frame.h"
#include "compiler/backends/llvm/emit_index.h"
#include "compiler/backends/llvm/emit_memory.h"
#include "support/function_ref.h"

namespace tenon::compiler::native {

class AsyncCopyEmitter : EmitterPart {
 public:
  AsyncCopyEmitter(FrameEmitter& frames, IndexEmitter& indices, ControlEmitter& control, MemoryEmitter& memory,
                   ExprEmitter& exprs)
      : EmitterPart(frames), indices_(indices), control_(control), memory_(memory), exprs_(exprs) {}

  // Emits the loop around an asynchronous stage as one instruction, if its iterations copy adjacent elements that are
  // aligned together, all of them or none. Else returns false.
  bool emit(const loop::For& loop);
  // Emits a point of an asynchronous stage, in the environment of its axes, as one instruction, if its element has 4 or
  // 8 bytes. Else returns false: the element is then loaded and stored, which is right as well, since a copy may end at
  // any time before the wait.
  bool emit_point(const loop::Stage& stage);

 private:
  struct Copy {
    const loop::Stage* stage = nullptr;
    const loop::Store* store = nullptr;
    const loop::Load* load = nullptr;
    std::vector<Expr> conditions;  // of the copy; without one, zeros are stored
  };
  std::optional<Copy> copy_of(const loop::Stage& stage);
  // Runs `use` in the environment of the stage at this iteration.
  void at_iteration(const loop::For& loop, const loop::Stage& stage, int64_t iteration, FunctionRef<void()> use);
  bool is_one_access(const loop::For& loop, const Copy& copy, int64_t elements);
  bool is_uniform(const loop::For& loop, const Copy& copy, const Expr& condition, int64_t elements);
  void guarded(const loop::Stage& stage, size_t guard, FunctionRef<void()> emit);
  int64_t element_bytes(const Copy& copy);
  void emit_copy(const Copy& copy, int64_t bytes);

  IndexEmitter& indices_;
  ControlEmitter& control_;
  MemoryEmitter& memory_;
  ExprEmitter& exprs_;
};

}  // namespace tenon::compiler::native
