// Instructions: dot products of bytes, and a warp's products of tiles, become the processor's instructions; of all
// others the declaration is executed.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "compiler/backends/llvm/emit_control.h"
#include "compiler/backends/llvm/emit_frame.h"
#include "compiler/backends/llvm/emit_index.h"
#include "compiler/backends/llvm/emit_memory.h"
#include "support/function_ref.h"

namespace tenon::compiler::native {

class IntrinsicEmitter : EmitterPart {
 public:
  using BodyEmitter = std::function<void(const loop::Body&)>;

  IntrinsicEmitter(FrameEmitter& frames, IndexEmitter& indices, ControlEmitter& control, MemoryEmitter& memory,
                   BodyEmitter body)
      : EmitterPart(frames), indices_(indices), control_(control), memory_(memory), body_(std::move(body)) {}

  void emit(const loop::Intrinsic& call);

 private:
  // The copy of a block on which a declaration operates.
  struct Block {
    const loop::Operand* operand;
    BufferId id;  // in the declaration
    Value* memory;
  };

  bool is_contiguous(const loop::Operand& operand);
  bool emit_dot(const loop::Intrinsic& call, const loop::Function& declared);
  bool emit_mma(const loop::Intrinsic& call, const loop::Function& declared);
  // The blocks that the threads of a warp multiply: the indices at which that of its first thread begins, the axis
  // whose index is the thread's own besides, and those of the halves, of the rows and of the terms of one.
  struct Fragment {
    Dims begin;
    size_t across = 0, halves = 0, rows = 0, terms = 0;
  };
  // nullopt: the threads' blocks are not neighbours along one axis.
  std::optional<Fragment> fragment_of(const loop::Operand& operand, Symbol thread);
  // Words of 32 bits of the halves of each row: of both rows for the left operand, of one column for the right one.
  // Empty where they may not be aligned.
  std::vector<Value*> load_fragment(const loop::Operand& operand, const Fragment& fragment, bool is_left);
  std::vector<Value*> load_matrices(const loop::Operand& operand, const Fragment& fragment, bool is_left);
  Value* word_at(const loop::Operand& operand, const Dims& indices);
  Value* fragment_pointer(const loop::Operand& operand, const Dims& indices, int64_t bytes);
  void for_each_element(const loop::Operand& operand, FunctionRef<void(const Dims& indices, Dim offset)> visit);
  void copy_in(Block& block);
  void copy_out(const Block& block);
  void execute(const loop::Function& declared, std::span<const Block> blocks);

  IndexEmitter& indices_;
  ControlEmitter& control_;
  MemoryEmitter& memory_;
  BodyEmitter body_;
};

}  // namespace tenon::compiler::native
