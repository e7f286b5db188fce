// Addresses of buffers' elements, and loads and stores of scalars and vectors.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "compiler/backends/llvm/emit_control.h"
#include "compiler/backends/llvm/emit_frame.h"
#include "compiler/backends/llvm/emit_index.h"
#include "runtime/native/signature.h"

namespace tenon::compiler::native {

class MemoryEmitter : EmitterPart {
 public:
  static constexpr int64_t kMaxElements = int64_t{1} << 44;  // of a buffer
  static constexpr int64_t kGpuAlignment = 16;               // in bytes, of every buffer on a GPU

  // base[rows + offset], where `rows` is a vector, or nullptr if it is equal in all lanes.
  struct Address {
    Value* base = nullptr;
    size_t scope = 0;  // the scope from which on `base` is available; the number of scopes: only at the insertion point
    Value* rows = nullptr;
    Dim offset;  // in elements
  };
  // Of each buffer: its own alias scope, and those of all other buffers.
  using AliasScopes = std::vector<std::pair<llvm::MDNode*, llvm::MDNode*>>;

  // `in_place`: of the function's results and parameters.
  MemoryEmitter(FrameEmitter& frames, IndexEmitter& indices, ControlEmitter& control,
                std::span<const runtime::InPlace> in_place);

  // The methods take resolved indices.
  Address address(BufferId id, const Dims& indices);
  Value* pointer(const Address& address, Dim offset, llvm::Type* element);
  // `otherwise`: the value of inactive lanes; nullptr: any value.
  Value* load(BufferId id, const Dims& indices, llvm::Constant* otherwise = nullptr);
  // Words of four bytes, which need not be aligned: byte k of each lane is at indices[k] of the buffer, or `otherwise`
  // where the constant inside[k] is false for the lane (nullptr: it is true for all). nullptr where this takes more
  // than one load.
  Value* load_words(BufferId id, const std::array<Dims, 4>& indices, const std::array<llvm::Constant*, 4>& inside,
                    llvm::Constant* otherwise);
  void store(BufferId id, const Dims& indices, Value* value);
  void set_alias_metadata(llvm::Instruction* access, BufferId id);
  // The alias scopes of the function's buffers; none: accesses are not annotated.
  AliasScopes& alias_scopes() { return alias_scopes_; }

  // For a ragged buffer, computes the table of its rows' offsets: begin[0] = 0, begin[b + 1] = begin[b] + elements of
  // row b.
  void make_row_table(BufferId id);
  // The number of elements of a buffer of constant size, if it can be allocated.
  std::optional<int64_t> constant_elements(BufferId id);

 private:
  // The elements that the lanes of a vector access.
  struct LaneAccess {
    enum Kind : uint8_t { kUniform, kContiguous, kReversed, kStrided, kPanels, kScattered } kind;
    Dim begin;         // the element with the lowest address
    int64_t step = 1;  // kStrided: the distance between neighbouring lanes
    Dims panels = {};  // kPanels: the first elements of contiguous parts of equal length
  };
  // The parameters that all registers of one strided load share.
  struct StridedLoad {
    const Address& address;
    const LaneAccess& access;
    llvm::Type* element;
    const llvm::Constant* active;  // mask; nullptr: all lanes
    llvm::Constant* fill;          // value of inactive lanes
    BufferId id;
    const llvm::AllocaInst* stack;  // the buffer's memory, if the load's offset in it is a constant
    int64_t shift;                  // lanes by which the first register begins before the first element

    bool is_active(int64_t lane) const {
      return !active || !active->getAggregateElement(static_cast<unsigned>(lane))->isNullValue();
    }
  };

  llvm::Align alignment(Dim offset, DType dtype);
  Value* hoisted_pointer(const Address& address, Dim offset, llvm::Type* element);
  Value* lane_pointers(const Address& address, llvm::Type* element);
  LaneAccess lane_access(const Address& address);
  std::optional<Dims> panels_of(Dim offset);

  Value* load_from_memory(BufferId id, const Address& address, const LaneAccess& access, llvm::Constant* otherwise);
  Value* load_vector(BufferId id, const Address& address, const LaneAccess& access, llvm::Constant* otherwise);
  Value* load_contiguous(BufferId id, const Address& address, const LaneAccess& access, llvm::FixedVectorType* type,
                         Value* mask, llvm::Constant* otherwise);
  Value* load_panels(BufferId id, const Address& address, const LaneAccess& access, llvm::FixedVectorType* type);
  Value* load_scattered(BufferId id, const Address& address, llvm::FixedVectorType* type, Value* mask,
                        llvm::Constant* fill);
  Value* load_constant_mask(BufferId id, Value* pointer, llvm::Type* element, std::span<llvm::Constant* const> wanted,
                            llvm::Constant* fill);
  Value* load_strided(const Address& address, const LaneAccess& access, llvm::FixedVectorType* type,
                      llvm::Constant* otherwise, BufferId id);
  Value* load_strided_lanes(const StridedLoad& load, int64_t first, int64_t count);
  Value* load_strided_register(const StridedLoad& load, int64_t begin, int64_t width,
                               const std::vector<llvm::Constant*>* wanted);
  bool needs_register_loads(const llvm::FixedVectorType* type, const Value* mask) const;
  Value* load_by_registers(llvm::FixedVectorType* type, Value* pointer, llvm::Align align, Value* mask,
                           Value* otherwise, BufferId id);

  llvm::Instruction* store_contiguous(BufferId id, const Address& address, const LaneAccess& access, Value* value,
                                      llvm::Align align);
  bool store_strided(const Address& address, const LaneAccess& access, Value* value, BufferId id);

  Value* stored_value(const BlockCache& cache, const Address& address, const LaneAccess& access, llvm::Type* element);
  // `value`: nullptr if it is unknown which elements changed.
  void remember_store(const Address& address, const LaneAccess& access, Value* value);

  IndexEmitter& indices_;
  ControlEmitter& control_;
  AliasScopes alias_scopes_;
  std::set<BufferId> overwritten_;  // parameters that a result may be in place of
};

}  // namespace tenon::compiler::native
