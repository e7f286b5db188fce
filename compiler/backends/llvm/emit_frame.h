// The LLVM functions under emission: their frames, scopes of hoisted values, stack and heap memory, faults, and the
// values that a block has already computed. Internal to this folder: LLVM's headers are included here.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/backends/llvm/target.h"
#include "compiler/loop/loop.h"
#include "runtime/native/kernel.h"

namespace tenon::compiler::native {

using llvm::Value;
using loop::BufferId;
using loop::Expr;
using runtime::DType;

// The sites at which kernels of a library may fail; equal sites have one id.
struct FaultSites {
  std::map<std::pair<uint32_t, std::string>, uint32_t> ids;
  std::vector<std::pair<uint32_t, std::string>> list;  // tn_fault, location

  uint32_t id(tn_fault fault, const std::string& where);
};

// The external functions that the kernels call, each with its first caller. The runtime resolves them by their index.
struct ExternalFunctions {
  std::vector<std::pair<std::string, std::string>> list;

  uint32_t id(const std::string& name, const std::string& caller);
};

// The module under emission, and the level for which a function is emitted.
struct Unit {
  TypeContext& context;
  llvm::Module& module;
  FaultSites& sites;
  ExternalFunctions& functions;
  const Level& level;
  bool contract = false;
  // For a GPU: the threads of a block, and its registers that threads read from others, with the axis of each whose
  // index is the other thread's (loop::Kernel).
  std::array<int64_t, 3> threads{1, 1, 1};
  const std::map<BufferId, std::optional<size_t>>* exchanged = nullptr;

  bool is_gpu() const { return level.family == Machine::Family::kNvidia; }
};

bool is_signed(DType dtype);

class FrameEmitter {
 public:
  // A value that each iteration of a loop changes by the same step: a pointer into `base`, or, without a base, a
  // multiple of the loop's counter.
  struct Induction {
    llvm::Instruction* value = nullptr;
    Value* base = nullptr;
    llvm::Type* element = nullptr;
    Dim step;
  };
  // The region of code in which variables have their values: values that depend on no inner variable are computed
  // before its `anchor`.
  struct HoistScope {
    llvm::Instruction* anchor = nullptr;
    Symbol counter{};  // of the loop whose body the scope is
    std::vector<Induction> inductions;
    bool guarded = false;  // may be skipped when the enclosing scope is executed
    std::map<const DimNode*, Value*> values;
    std::map<std::pair<Value*, const DimNode*>, Value*> pointers;  // by base and offset
  };
  // A value that is available from some scope on: an i64 or a vector of them, or a pointer.
  struct ScopedValue {
    Value* value = nullptr;
    size_t scope = 0;
  };
  // One LLVM function: the kernel, or a task of it.
  struct Frame {
    llvm::Function* function = nullptr;
    llvm::Instruction* allocas = nullptr;  // stack memory is allocated before it
    llvm::BasicBlock* failed = nullptr;    // returns 1
    std::vector<HoistScope> scopes;
    std::map<Symbol, ScopedValue> variables;                                  // the variables of resolved dims
    DimBounds bounds;                                                         // of these variables
    std::map<BufferId, ScopedValue> bases;                                    // the buffers' memory
    std::map<std::pair<const DimNode*, const DimNode*>, ScopedValue> tables;  // row offsets of ragged buffers
    int64_t stack = 0;                                                        // bytes
    bool is_task = false;
    Value* max_tasks = nullptr;
    unsigned lanes = 0;                            // of the enclosing vector loop; 0: none
    Symbol lane{};                                 // its variable
    std::array<std::optional<Symbol>, 3> threads;  // the variables of the enclosing loops over threads, of full blocks
    std::optional<Symbol> thread_x;                // the variable of the enclosing loop over threads along x
    // What the stage reads of other threads' registers; and what the nest has read, by the scope.
    std::map<std::pair<BufferId, Dims>, Value*> exchanged;
    std::map<std::tuple<llvm::Instruction*, BufferId, Dims>, Value*> read_by_nest;
    Value* mask = nullptr;  // the active lanes, at least one; nullptr: all
  };
  // Values that the current block has computed already, which saves LLVM the search for equal instructions. The cache
  // is emptied when another block is entered.
  struct BlockCache {
    llvm::BasicBlock* block = nullptr;
    std::map<std::tuple<Value*, llvm::Type*, int64_t>, Value*> pointers;           // by base and offset
    std::map<std::pair<Value*, unsigned>, Value*> splats;                          // of scalars, by number of lanes
    std::map<std::tuple<BufferId, Dims, Value*, Value*, unsigned>, Value*> loads;  // of buffers that are never written
    // Of bytes: by pointer, mask, the other bytes, and the lanes with bytes.
    std::map<std::tuple<Value*, Value*, Value*, Value*>, Value*> words;
    std::map<Value*, std::map<int64_t, Value*>> stored;  // contents of small buffers, by offset
  };

  FrameEmitter(Unit& unit, const loop::Function& function, std::string symbol);

  Unit& unit() { return unit_; }
  llvm::IRBuilder<>& builder() { return b_; }
  // The function whose body is emitted; the declaration of an instruction while that is emitted.
  const loop::Function& function() const { return *function_; }
  void set_function(const loop::Function& function) { function_ = &function; }
  const loop::Stage* stage() const { return stage_; }
  void set_stage(const loop::Stage* stage) { stage_ = stage; }

  // --- Functions ---
  Frame& frame() { return frames_.back(); }
  llvm::Function* make_kernel() { return make_function(symbol_, false); }
  llvm::Function* fault_function();  // of a GPU's module: records the first fault, returns 1
  llvm::Function* make_task();
  void set_target_attributes(llvm::Function& function) const;
  void enter(llvm::Function* function, bool is_task);  // loads of arguments and open_scope() must follow
  void leave();
  llvm::BasicBlock* block(const char* name);
  void continue_at(llvm::BasicBlock* block) { b_.SetInsertPoint(block); }

  // --- Scopes ---
  void open_scope(bool guarded);  // at the insertion point
  void close_scope();
  // A variable of the innermost scope, below `end`; the value must be defined before the scope's anchor.
  Dim new_variable(Value* value, std::optional<int64_t> end = std::nullopt);

  // --- The call: its fields (tn_call), memory, faults ---
  Value* call_field(unsigned index, llvm::Type* type);
  Value* stack_memory(llvm::Type* type, uint64_t count);
  Value* allocate(Value* bytes);  // until release() or the end of the call
  void release(Value* memory);
  // Ends the call if the condition holds, for a vector in an active lane. `expected` is an i64, `found` an i64 or a
  // float.
  void fail_if(Value* condition, tn_fault fault, Value* found, Value* expected);
  // Ends the call, with the fault already recorded, if the status, an i32 that a runtime function returned, is not 0.
  void fail_on(Value* status);
  std::string where() const;

  // --- Types and lanes ---
  llvm::Type* memory_type(DType dtype);
  llvm::Type* value_type(DType dtype);
  llvm::Type* shaped_as(llvm::Type* type, Value* value);  // a vector if the value is one
  Value* splat(Value* value);                             // a scalar to all lanes
  void match_lanes(Value*& a, Value*& b);                 // makes both scalars or both vectors
  Value* any_lane(Value* lanes);                          // of i1s
  Value* all_lanes();

  // nullptr while code is hoisted to another block.
  BlockCache* block_cache();
  void clear_block_cache() { block_cache_ = {}; }

 private:
  llvm::Function* make_function(const std::string& name, bool is_task);

  Unit& unit_;
  const loop::Function* function_;
  const loop::Stage* stage_ = nullptr;
  std::string symbol_;
  llvm::IRBuilder<> b_;
  llvm::StructType* call_type_;
  std::deque<Frame> frames_;
  BlockCache block_cache_;
  uint32_t variable_count_ = 0, task_count_ = 0;
};

// The base of the other emitters: short names for the function under emission.
class EmitterPart {
 protected:
  using Frame = FrameEmitter::Frame;
  using ScopedValue = FrameEmitter::ScopedValue;
  using BlockCache = FrameEmitter::BlockCache;

  explicit EmitterPart(FrameEmitter& frames)
      : frames_(frames), b_(frames.builder()), unit_(frames.unit()), context_(frames.unit().context) {}

  Frame& frame() { return frames_.frame(); }
  const loop::Function& function() const { return frames_.function(); }
  llvm::BasicBlock* block(const char* name) { return frames_.block(name); }
  llvm::ConstantInt* i64(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }

  FrameEmitter& frames_;
  llvm::IRBuilder<>& b_;
  Unit& unit_;
  TypeContext& context_;
};

}  // namespace tenon::compiler::native
