#include "compiler/backends/llvm/emit_shuffle.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include "compiler/loop/access.h"
#include "compiler/loop/bindings.h"

namespace tenon::compiler::native {

bool ShuffleEmitter::is_exchanged(BufferId id) const { return unit_.exchanged && unit_.exchanged->contains(id); }

void ShuffleEmitter::read(const loop::Stage& stage) {
  auto& exchanged = frame().exchanged;
  exchanged.clear();
  if (!unit_.exchanged || unit_.exchanged->empty()) return;
  loop::for_each_access(stage, [&](const loop::Access& access) {
    if (access.writes || !is_exchanged(access.buffer)) return;
    Dims indices = indices_.resolve(access.indices);
    Dim& thread = indices[*unit_.exchanged->at(access.buffer)];
    if (thread == context_.dim(0)) return;
    Value*& value = frame().read_by_nest[{frame().scopes.back().anchor, access.buffer, indices}];
    Value*& read = exchanged[{access.buffer, indices}];
    if (!value) {
      const Dim source = context_.subtract(thread, context_.dim(1));
      thread = context_.dim(0);
      value = memory_.load(access.buffer, indices);
      const bool is_own = frame().thread_x && source == context_.dim(*frame().thread_x);
      if (!is_own) value = shuffled(value, indices_.value(source));
    }
    read = value;
  });
}

bool ShuffleEmitter::suits_all_threads(const loop::For& nest) {
  bool exchanges = false, in_registers = true;
  for_each_statement(nest.body, [&](const loop::Stmt& stmt) {
    const auto* stage = std::get_if<loop::Stage>(&stmt.form);
    if (!stage) return;
    loop::for_each_access(*stage, [&](const loop::Access& access) {
      const auto base = frame().bases.find(access.buffer);
      in_registers &= base != frame().bases.end() && llvm::isa<llvm::AllocaInst>(base->second.value);
      if (access.writes || !is_exchanged(access.buffer)) return;
      exchanges |= access.indices[*unit_.exchanged->at(access.buffer)] != context_.dim(0);
    });
  });
  return exchanges && in_registers;
}

// The value that thread `thread` along x, of the same y and z, has: rows of threads along x are aligned parts of a
// warp.
Value* ShuffleEmitter::shuffled(Value* value, Value* thread) {
  llvm::Type* const type = value->getType();
  const unsigned bits = type->getPrimitiveSizeInBits();
  llvm::IntegerType* const word = b_.getInt32Ty();
  const auto exchange = [&](Value* part) {
    constexpr unsigned kLastLane = loop::kWarpThreads - 1;
    const auto row = static_cast<unsigned>(unit_.threads[0]);
    Value* const segment = b_.getInt32(((loop::kWarpThreads - row) << 8) | kLastLane);
    return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {},
                              {b_.getInt32(~0u), part, b_.CreateTrunc(thread, word), segment});
  };
  Value* integer = b_.CreateBitCast(value, b_.getIntNTy(bits));
  if (bits <= 32) {
    integer = b_.CreateTrunc(exchange(b_.CreateZExt(integer, word)), b_.getIntNTy(bits));
  } else {
    Value* const low = exchange(b_.CreateTrunc(integer, word));
    Value* const high = exchange(b_.CreateTrunc(b_.CreateLShr(integer, 32), word));
    llvm::IntegerType* const wide = b_.getInt64Ty();
    integer = b_.CreateOr(b_.CreateZExt(low, wide), b_.CreateShl(b_.CreateZExt(high, wide), 32));
  }
  return b_.CreateBitCast(integer, type);
}

}  // namespace tenon::compiler::native
