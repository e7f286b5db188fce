// Parallel loops: a task, which is an LLVM function of its own, executes a range of the iterations.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "compiler/backends/llvm/emit_control.h"
#include "compiler/backends/llvm/emit_frame.h"
#include "compiler/backends/llvm/emit_index.h"

namespace tenon::compiler::native {

class ParallelEmitter : EmitterPart {
 public:
  using Iteration = std::function<void(const loop::For&, Dim)>;
  // A parallel loop inside loops of one iteration.
  struct ParallelLoop {
    std::vector<Symbol> unit_loops;
    const loop::For* loop = nullptr;
  };

  // `iteration` emits the body of a loop for a value of its variable.
  ParallelEmitter(FrameEmitter& frames, IndexEmitter& indices, ControlEmitter& control, Iteration iteration)
      : EmitterPart(frames), indices_(indices), control_(control), iteration_(std::move(iteration)) {}

  void emit_loop(const loop::For& loop, Dim extent);
  // The leading statements that are parallel loops whose iterations may be executed by one task each.
  std::vector<ParallelLoop> joinable_loops(std::span<const loop::Stmt> stmts);
  void emit_joined(const std::vector<ParallelLoop>& loops);

 private:
  // Values that a task receives from its caller.
  struct Captures {
    std::vector<std::pair<ScopedValue*, Value*>> values;  // in the task's frame, and the caller's value
    std::vector<llvm::Type*> types;                       // of the structure's fields
  };

  std::optional<ParallelLoop> find_parallel_loop(const loop::Stmt& stmt);
  bool independent(const loop::For& a, const loop::For& b);
  void emit(std::span<const loop::For* const> loops, Dim extent);
  Value* max_tasks();
  std::pair<Value*, Value*> iterations_per_task(Dim extent, Value* count, Value* tasks);
  llvm::Function* make_task(std::span<const loop::For* const> loops, Frame&& captured, const Captures& captures,
                            std::vector<llvm::LoadInst*>& loaded);

  IndexEmitter& indices_;
  ControlEmitter& control_;
  Iteration iteration_;
};

}  // namespace tenon::compiler::native
