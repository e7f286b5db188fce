// Registers that a GPU's threads read from others of their warp: shfl.sync (NVIDIA, "Parallel Thread Execution ISA").
#pragma once

#include "compiler/backends/llvm/emit_frame.h"
#include "compiler/backends/llvm/emit_index.h"
#include "compiler/backends/llvm/emit_memory.h"

namespace tenon::compiler::native {

class ShuffleEmitter : EmitterPart {
 public:
  ShuffleEmitter(FrameEmitter& frames, IndexEmitter& indices, MemoryEmitter& memory)
      : EmitterPart(frames), indices_(indices), memory_(memory) {}

  // Reads what the stage reads from other threads, into Frame::exchanged: before the stage's conditions, since all
  // threads of the warp must execute it. The indices' variables are the stage's axes. A nest writes none of the
  // registers that it reads from other threads, so each of its scopes reads them once.
  void read(const loop::Stage& stage);
  // Whether the nest may be executed by threads that have no iteration of it: it accesses registers of the block alone,
  // and reads some from other threads.
  bool suits_all_threads(const loop::For& nest);

 private:
  bool is_exchanged(BufferId id) const;
  Value* shuffled(Value* value, Value* thread);

  IndexEmitter& indices_;
  MemoryEmitter& memory_;
};

}  // namespace tenon::compiler::native
