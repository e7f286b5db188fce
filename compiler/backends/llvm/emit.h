// One loop function as LLVM IR, for one level of a processor. Internal to this folder: LLVM's headers are included
// here.
//
// How it is made fast without IR passes for loops: every index is a polynomial of loop variables, so each part of it is
// computed where its last variable gets its value (a Scope), and is found there again by what needs it too: invariant
// code is hoisted by construction. Unrolled loops' variables are constants in these polynomials; small buffers with
// constant indices become registers by LLVM's SROA. A vector loop computes all its iterations at once, in lock-step: a
// value is a scalar as long as it is the same in all lanes, a condition that differs between lanes is a mask.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/backends/llvm/target.h"
#include "compiler/loop/loop.h"
#include "runtime/native/kernel.h"
#include "runtime/native/signature.h"

namespace tenon::compiler::native {

using loop::BufferId;
using loop::Expr;
using runtime::DType;

// Where kernels of a library may fail; equal ones are one.
struct Sites {
  std::map<std::pair<uint32_t, std::string>, uint32_t> numbers;
  std::vector<std::pair<uint32_t, std::string>> list;  // tn_fault, where

  uint32_t number(tn_fault fault, const std::string& where);
};

// Functions of other libraries that the kernels call, numbered as the runtime is asked for them; with the first caller.
struct Functions {
  std::vector<std::pair<std::string, std::string>> list;

  uint32_t number(const std::string& name, const std::string& caller);
};

struct Unit {
  TypeContext& context;
  llvm::Module& module;
  Sites& sites;
  Functions& functions;
  const Level& level;
  bool contract = false;
};

// Nothing where this function can be compiled; else what it uses that cannot.
Status supported(TypeContext& context, const loop::Function& function);

// Whether sizes of axes depend on the index of the first one; then a table says where its rows begin.
bool is_ragged(const loop::Buffer& buffer);

class FunctionEmitter {
 public:
  FunctionEmitter(Unit& unit, const loop::Function& function, const runtime::Signature& signature, std::string symbol);

  // A tn_kernel.
  llvm::Function* run();

 private:
  using Value = llvm::Value;
  using Env = std::map<Symbol, Dim>;

  // A pointer that each iteration of a loop moves by the same distance from `base`; without a base, a multiple of its
  // counter.
  struct Moving {
    llvm::Instruction* value = nullptr;
    Value* base = nullptr;
    llvm::Type* element = nullptr;
    Dim step;
  };
  // Values that depend on nothing further in, made before `anchor`.
  struct Scope {
    llvm::Instruction* anchor = nullptr;
    Symbol counter{};  // of the loop whose body it is
    std::vector<Moving> moving;
    bool guarded = false;  // perhaps not reached whenever the scope around it is
    std::map<const DimNode*, Value*> values;
    std::map<std::pair<Value*, const DimNode*>, Value*> pointers;  // by base and offset
  };
  // What exists from some scope on: an i64 or a vector of them, or a pointer.
  struct Placed {
    Value* value = nullptr;
    size_t scope = 0;
  };
  // One LLVM function: the kernel, or a task of it.
  struct Frame {
    llvm::Function* function = nullptr;
    llvm::Instruction* allocas = nullptr;  // stack memory is made before it
    llvm::BasicBlock* failed = nullptr;    // returns 1
    std::vector<Scope> scopes;
    std::map<Symbol, Placed> variables;                                  // whatever dims may name
    std::map<BufferId, Placed> bases;                                    // the buffers' memory
    std::map<std::pair<const DimNode*, const DimNode*>, Placed> tables;  // of ragged buffers, where rows begin
    int64_t stack = 0;                                                   // bytes
    bool task = false;
    Value* most_tasks = nullptr;
    unsigned lanes = 0;     // of the vector loop around; 0: none
    Symbol lane{};          // its variable
    Value* mask = nullptr;  // the lanes that are active, never none; nullptr: all
  };

  // What the block that is being written has already: as many instructions fewer for LLVM to find out that they are
  // equal. Empty wherever another block is written.
  struct Made {
    llvm::BasicBlock* block = nullptr;
    std::map<std::tuple<Value*, llvm::Type*, int64_t>, Value*> pointers;           // by base and offset
    std::map<std::pair<Value*, unsigned>, Value*> wide;                            // scalars, in so many lanes
    std::map<std::tuple<BufferId, Dims, Value*, Value*, unsigned>, Value*> loads;  // of what nobody writes
    std::map<Value*, std::map<int64_t, Value*>> kept;                              // in small buffers, by offset
  };

  // --- Statements (emit_statements.cpp) ---
  void body(const loop::Body& body);
  void statement(const loop::For& loop);
  void statement(const loop::Stage& stage);
  void statement(const loop::Store& store);
  void statement(const loop::If& branch);
  void statement(const loop::Let& let);
  void statement(const loop::Alloc& alloc);
  void statement(const loop::CallLibrary& call);
  void statement(const loop::Intrinsic& call);
  bool dot_product(const loop::Intrinsic& call, const loop::Function& declared);
  bool contiguous(const loop::Operand& operand);
  std::optional<int64_t> constant_elements(BufferId id);
  std::optional<int64_t> known_elements(BufferId id);
  void points(const loop::Stage& stage, size_t guard, const Env& axes);
  void serial(Value* begin, Value* end, bool guarded, const std::function<void(Dim)>& run);
  void advance(const std::vector<Moving>& moving, llvm::PHINode* number);
  void repeat(const loop::For& loop, Dim value);  // the body, once
  int64_t lanes_at_once(const loop::For& loop);
  void vector(const loop::For& loop, int64_t extent);
  void lanes(const loop::For& loop, Dim begin, unsigned count);
  bool vectorizable(const loop::For& loop);
  // Parallel loops (emit_parallel.cpp): of as many iterations, each of which runs those of all.
  void parallel(std::span<const loop::For* const> loops, Dim extent);
  // A parallel loop in loops of one iteration.
  struct Parallel {
    std::vector<Symbol> once;
    const loop::For* loop = nullptr;
  };
  std::optional<Parallel> parallel_loop(const loop::Stmt& stmt);
  bool independent(const loop::For& a, const loop::For& b);
  std::vector<Parallel> parallel_loops(std::span<const loop::Stmt> stmts);  // the first ones, that may go together
  void parallel_together(const std::vector<Parallel>& loops);
  Value* most_tasks();
  // A tile that is stored turned round, if the loop is one (emit_turn.cpp).
  static constexpr int64_t kTurned = 4;  // rows at a time
  bool turn(const loop::For& outer);
  int64_t turned_lanes() const;
  llvm::Function* turning();
  // Runs `then` where the condition holds, else `otherwise`; where it differs between lanes, in those lanes.
  void branch(Value* condition, const std::function<void()>& then, const std::function<void()>& otherwise);
  // The blocks that come to what follows: without it, and behind it.
  std::pair<llvm::BasicBlock*, llvm::BasicBlock*> where_lanes(Value* condition, const std::function<void()>& run);

  // --- Frames, scopes, faults (emit.cpp) ---
  Frame& frame() { return frames_.back(); }
  llvm::Function* make_function(const std::string& name, bool task);
  void describe(llvm::Function& function) const;    // the processor it is for
  void enter(llvm::Function* function, bool task);  // then loads, then open_scope()
  void leave();
  void open_scope(bool guarded);  // here
  void close_scope();
  Dim define(Value* value);  // a variable of the innermost scope, made before its anchor
  Value* field(unsigned number, llvm::Type* type);
  Value* stack_memory(llvm::Type* type, uint64_t count);
  Value* allocate(Value* bytes);  // until release() or the end of the call
  void release(Value* memory);
  // Ends the call where the condition holds, of a vector in an active lane. `expected` is an i64, `found` that or a
  // float.
  void fail_if(Value* condition, tn_fault fault, Value* found, Value* expected);
  std::string where() const;
  llvm::BasicBlock* block(const char* name);
  void continue_at(llvm::BasicBlock* block) { b_.SetInsertPoint(block); }

  // --- Indices and addresses (emit_index.cpp) ---
  Dim resolve(Dim dim) { return unit_.context.substitute(dim, env_); }  // over the frame's variables
  bool varies(Dim dim);                                                 // between lanes
  bool never_negative(Dim dim) const;
  size_t scope_of(Dim dim);
  Value* value(Dim dim);  // of a resolved dim: an i64, or a vector of them
  Value* uniform(Dim dim);
  Value* uniform_atom(const DimAtom& atom);
  Value* lanes_of(Dim dim);
  Value* sum_of_lanes(Dim dim);
  Value* lanes_of(const DimAtom& atom);
  Value* to_index(DType dtype, Value* value);
  Value* floor_divide(Value* a, Value* b, bool nonnegative);
  void check_divisions(Dim dim);  // by what may be 0
  BufferId applied(const DimAtom& atom) const;
  void declare(BufferId id);  // its sizes, as they are here
  Dim extent(BufferId id, size_t axis, Dim row);
  Dim row_elements(BufferId id, Dim row);
  std::pair<const DimNode*, const DimNode*> table_key(BufferId id);
  void make_table(BufferId id);
  // base[rows + offset], where `rows` is nullptr or differs between lanes.
  struct Address {
    Value* base = nullptr;
    size_t scope = 0;  // from which on `base` is there; as many as there are scopes: only here
    Value* rows = nullptr;
    Dim offset;  // in elements
  };
  struct Lanes {
    enum Kind : uint8_t { kOne, kForward, kBackward, kApart, kAnywhere } kind;
    Dim begin;         // the first element in memory
    int64_t step = 1;  // kApart: how far one is from the next
  };
  Address address(BufferId id, const Dims& indices);  // resolved indices
  Lanes lanes_at(const Address& address);
  Value* pointer(const Address& address, Dim offset, llvm::Type* element);
  Value* moved(const Address& address, Dim rest, llvm::Type* element);
  Value* places(const Address& address, llvm::Type* element);
  Value* load(BufferId id, const Dims& indices, llvm::Constant* otherwise = nullptr);  // what inactive lanes get
  Value* load_from_memory(BufferId id, const Address& at, const Lanes& lanes, llvm::Constant* otherwise);
  bool in_pieces(const llvm::FixedVectorType* type, const Value* mask) const;
  Value* load_in_pieces(llvm::FixedVectorType* type, Value* place, llvm::Align align, Value* mask, Value* otherwise,
                        BufferId id);
  Made* made();  // nullptr where code is hoisted to
  Value* kept(const Address& at, const Lanes& lanes, llvm::Type* element);
  void keep(const Address& at, const Lanes& lanes, Value* value);  // nullptr: nobody knows which elements changed
  Value* load_some(BufferId id, Value* place, llvm::Type* element, std::span<llvm::Constant* const> wanted,
                   llvm::Constant* rest);
  Value* load_apart(const Address& address, const Lanes& lanes, llvm::FixedVectorType* type, llvm::Constant* otherwise,
                    BufferId id);
  bool store_apart(const Address& address, const Lanes& lanes, Value* value, BufferId id);
  void store(BufferId id, const Dims& indices, Value* value);
  void annotate(llvm::Instruction* access, BufferId id);

  // --- Values (emit_expr.cpp) ---
  Dims resolve(const Dims& dims);
  Value* whole(const Expr& expr);       // as statements have it
  Value* expression(const Expr& expr);  // a part of it
  Value* form(const loop::ExprNode& node, const loop::Literal& form);
  Value* form(const loop::ExprNode& node, const loop::IndexValue& form);
  Value* form(const loop::ExprNode& node, const loop::Load& form);
  Value* form(const loop::ExprNode& node, const loop::Unary& form);
  Value* form(const loop::ExprNode& node, const loop::Binary& form);
  Value* form(const loop::ExprNode& node, const loop::Select& form);
  Value* form(const loop::ExprNode& node, const loop::Convert& form);
  Value* form(const loop::ExprNode& node, const loop::LetIndex& form);
  Value* computed(const loop::Binary& form, Value* a, Value* b);
  Value* contracted(const loop::Binary& form);
  Value* dot_added(const loop::Binary& form);
  // sum + the dot product of the bytes in each i32 (emit_intrinsic.cpp).
  Value* byte_dot(Value* sum, Value* x, Value* y, bool x_signed, bool y_signed);
  Value* byte_dot_of_lanes(Value* sum, Value* x, Value* y, bool x_signed, bool y_signed);
  Value* divide(loop::BinaryOp op, DType dtype, Value* left, Value* right);
  Value* extreme(bool max, DType dtype, Value* left, Value* right);
  Value* shift(bool right, DType dtype, Value* value, Value* distance);
  Value* convert(DType from, DType to, Value* value);
  Value* to_integer(DType from, DType to, Value* value);
  // Binds a computed index, once checked, while run() makes what sees it.
  void with_index(Symbol var, Dim extent, const Expr& expr, const std::function<void()>& run);
  Value* choose(Value* condition, const Expr& then, const Expr& otherwise);
  Value* load_where(Value* condition, const Expr& then, const Expr& otherwise);
  bool harmless(const Expr& expr);  // may be evaluated where its value is not wanted
  bool harmless(Dim dim);
  bool inside(const loop::Load& load);  // whatever the point
  void note_loads(const Expr& expr);    // that are evaluated with it
  void same_lanes(Value*& a, Value*& b);
  Value* widen(Value* value);  // a scalar to all lanes
  Value* any(Value* lanes);    // of i1s
  Value* all_lanes();
  llvm::Type* shaped_as(llvm::Type* type, Value* value);  // a vector where the value is one

  llvm::Type* memory_type(DType dtype);
  llvm::Type* value_type(DType dtype);
  llvm::ConstantInt* i64(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }

  Unit& unit_;
  const loop::Function* function_;  // the declaration of an instruction, while that is made
  const runtime::Signature& signature_;
  std::string symbol_;
  llvm::IRBuilder<> b_;
  llvm::StructType* call_type_;
  std::deque<Frame> frames_;
  Env env_;                           // loops, axes and Lets as dims over the frame's variables
  std::map<BufferId, Dims> extents_;  // the same, and over kRow
  Symbol row_{};                      // stands for the index of a ragged buffer's first axis
  const loop::Stage* stage_ = nullptr;
  std::vector<std::pair<llvm::MDNode*, llvm::MDNode*>> alias_;  // of each buffer: its scope, all others
  uint32_t fresh_ = 0;                                          // variables so far
  int64_t unrolled_ = 1;                                        // copies of what is being made
  uint32_t tasks_ = 0;                                          // functions so far
  Made made_;
  std::map<const DimNode*, llvm::Constant*> constants_;  // dims over lanes that are the same everywhere
  // Parts that the expression which is written mentions again, where they are known: not beyond a branch they are in.
  std::unordered_map<Expr, Value*> shared_;
  std::map<std::tuple<loop::BinaryOp, Value*, Value*>, llvm::Constant*> folded_;  // conditions of such
  std::vector<std::pair<BufferId, Dims>> loaded_;  // elements that are sure to be there, here
};

bool is_signed(DType dtype);

}  // namespace tenon::compiler::native
