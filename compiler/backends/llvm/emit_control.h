// Control flow: serial loops, branches, and regions of code under a mask of lanes.
#pragma once

#include <utility>
#include <vector>

#include "compiler/backends/llvm/emit_frame.h"
#include "compiler/backends/llvm/emit_index.h"
#include "support/function_ref.h"

namespace tenon::compiler::native {

class ControlEmitter : EmitterPart {
 public:
  ControlEmitter(FrameEmitter& frames, IndexEmitter& indices) : EmitterPart(frames), indices_(indices) {}

  // A loop from `begin` to `end`; `run` emits its body for a counter. `guarded`: the loop may have no iterations.
  void serial_loop(Value* begin, Value* end, bool guarded, FunctionRef<void(Dim counter)> run);
  // Executes `then` if the condition holds, else `otherwise`; if the condition is a vector, each for its lanes.
  void branch(Value* condition, FunctionRef<void()> then, FunctionRef<void()> otherwise);
  // Executes `run` for the lanes of the condition, if there are any. Returns the predecessors of the code that follows:
  // the block that skips `run`, and the last block of `run`.
  std::pair<llvm::BasicBlock*, llvm::BasicBlock*> under_mask(Value* condition, FunctionRef<void()> run);

 private:
  void make_inductions(const std::vector<FrameEmitter::Induction>& inductions, llvm::PHINode* counter);

  IndexEmitter& indices_;
};

}  // namespace tenon::compiler::native
