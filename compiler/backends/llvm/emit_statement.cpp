#include "compiler/backends/llvm/emit_statement.h"

#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/tables.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::native {
namespace {

constexpr int64_t kMaxCopies = 4096;         // of a statement, by unrolling
constexpr int64_t kMaxLanes = 64;            // of an iteration of a vector loop
constexpr int64_t kMaxShortLanes = 16;       // of one whose lanes are costly
constexpr int64_t kStackBytes = 1 << 14;     // of a buffer that the function does not place on the stack
constexpr int64_t kMaxStackBytes = 1 << 20;  // of all buffers in one LLVM function

}  // namespace

StatementEmitter::StatementEmitter(FrameEmitter& frames, IndexEmitter& indices, ControlEmitter& control,
                                   MemoryEmitter& memory, ExprEmitter& exprs)
    : EmitterPart(frames),
      indices_(indices),
      control_(control),
      memory_(memory),
      exprs_(exprs),
      parallel_(frames, indices, control, [this](const loop::For& loop, Dim value) { iteration(loop, value); }),
      transposes_(frames, indices),
      async_copies_(frames, indices, control, memory, exprs),
      shuffles_(frames, indices, memory),
      intrinsics_(frames, indices, control, memory, [this](const loop::Body& statements) { body(statements); }) {}

void StatementEmitter::body(const loop::Body& body) {
  for (size_t i = 0; i < body.size();) {
    const auto together = parallel_.joinable_loops(std::span(body).subspan(i));
    if (together.size() > 1) parallel_.emit_joined(together);
    else std::visit([&](const auto& form) { statement(form); }, body[i].form);
    i += std::max<size_t>(together.size(), 1);
  }
}

// --- Loops ---

// The loop's body, with this value of its variable.
void StatementEmitter::iteration(const loop::For& loop, Dim value) {
  IndexEmitter::Env& env = indices_.env();
  const auto hidden = env.find(loop.var) == env.end() ? std::nullopt : std::optional(env.at(loop.var));
  env[loop.var] = value;
  body(loop.body);
  if (hidden) env[loop.var] = *hidden;
  else env.erase(loop.var);
}

void StatementEmitter::statement(const loop::For& loop) {
  const Dim extent = indices_.resolve(loop.extent);
  indices_.check_divisions(extent);
  const auto constant = extent.constant();
  if (constant && *constant <= 0) return;
  if (loop::binds_block(loop.kind) || loop::binds_thread(loop.kind)) return bound_loop(loop);
  if (constant && *constant == 1) return iteration(loop, context_.dim(0));
  switch (loop.kind) {
    case loop::LoopKind::kUnrolled:
      if (transposes_.emit(loop) || async_copies_.emit(loop)) return;
      if (constant && *constant * unroll_factor_ <= kMaxCopies) {
        unroll_factor_ *= *constant;
        for (int64_t i = 0; i < *constant; ++i) iteration(loop, context_.dim(i));
        unroll_factor_ /= *constant;
        return;
      }
      break;
    case loop::LoopKind::kVectorized:
      if (constant && vectorizable(loop)) return vector_loop(loop, *constant);
      break;
    case loop::LoopKind::kParallel:
      if (!frame().is_task && frame().lanes == 0) return parallel_.emit_loop(loop, extent);
      break;
    case loop::LoopKind::kSerial:
    case loop::LoopKind::kBlockX:
    case loop::LoopKind::kBlockY:
    case loop::LoopKind::kBlockZ:
    case loop::LoopKind::kThreadX:
    case loop::LoopKind::kThreadY:
    case loop::LoopKind::kThreadZ: break;
  }
  control_.serial_loop(i64(0), indices_.uniform(extent), !constant, [&](Dim value) { iteration(loop, value); });
}

// The grid has as many blocks as the loop has iterations; of a block with more threads than the loop has, the others
// skip it, unless they have registers that its threads read.
void StatementEmitter::bound_loop(const loop::For& loop) {
  using llvm::Intrinsic::ID;
  constexpr ID kBlocks[] = {llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y,
                            llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z};
  constexpr ID kThreads[] = {llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y,
                             llvm::Intrinsic::nvvm_read_ptx_sreg_tid_z};
  const size_t axis = loop::bound_axis(loop.kind);
  const bool is_thread = loop::binds_thread(loop.kind);
  Value* index = b_.CreateZExt(b_.CreateIntrinsic((is_thread ? kThreads : kBlocks)[axis], {}, {}), b_.getInt64Ty());
  const auto extent = loop.extent.constant();
  if (is_thread) frame().read_by_nest.clear();
  const auto run = [&] {
    frames_.open_scope(false);
    const Dim variable = frames_.new_variable(index, extent);
    const bool all = is_thread && extent == unit_.threads[axis];
    if (all) frame().threads[axis] = variable.variable();
    if (is_thread && axis == 0) frame().thread_x = variable.variable();
    iteration(loop, variable);
    if (is_thread && axis == 0) frame().thread_x.reset();
    if (all) frame().threads[axis].reset();
    frames_.close_scope();
  };
  if (!is_thread || extent == unit_.threads[axis] || shuffles_.suits_all_threads(loop)) return run();
  control_.branch(b_.CreateICmpSLT(index, i64(extent.value_or(1))), run, [] {});
}

void StatementEmitter::statement(const loop::Barrier&) { b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {}); }

void StatementEmitter::statement(const loop::Commit&) {
  if (unit_.is_gpu()) b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {}, {});
}

void StatementEmitter::statement(const loop::Wait& wait) {
  if (unit_.is_gpu())
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {},
                       {b_.getInt32(static_cast<uint32_t>(wait.groups))});
}

// Whether all iterations may be computed in lock-step: the body allocates no memory and has no loops of varying
// extents, and every stage has different points in all iterations.
bool StatementEmitter::vectorizable(const loop::For& loop) {
  if (frame().lanes > 0) return false;
  bool possible = true;
  const Symbol var = loop.var;
  for_each_statement(loop.body, [&](const loop::Stmt& stmt) {
    if (std::holds_alternative<loop::Alloc>(stmt.form) || std::holds_alternative<loop::Intrinsic>(stmt.form) ||
        std::holds_alternative<loop::CallLibrary>(stmt.form))
      possible = false;
    if (const auto* inner = std::get_if<loop::For>(&stmt.form))
      possible &= !loop::mentions(std::span(&inner->extent, 1), var);
    if (const auto* stage = std::get_if<loop::Stage>(&stmt.form)) {
      bool is_axis = false;
      for (const loop::Axis& axis : stage->axes) {
        const bool mentions = loop::mentions(std::span(&axis.value, 1), var);
        is_axis |= mentions && axis.kind == loop::AxisKind::kSpatial;
        if (mentions && (axis.kind == loop::AxisKind::kReduce || axis.kind == loop::AxisKind::kScan)) possible = false;
      }
      possible &= is_axis;
    }
  });
  return possible;
}

// The number of iterations computed at a time. Loops on stack memory, which becomes registers, compute all of them.
// Loops on memory compute few if their elements are not contiguous, since LLVM then handles each lane separately, or if
// vector registers are short.
int64_t StatementEmitter::lanes_per_iteration(const loop::For& loop) {
  bool costly = !unit_.level.wide(), in_memory = true;
  for_each_statement(loop.body, [&](const loop::Stmt& stmt) {
    const auto* stage = std::get_if<loop::Stage>(&stmt.form);
    if (!stage) return;
    loop::for_each_access(*stage, [&](const loop::Access& access) {
      in_memory &= !llvm::isa<llvm::AllocaInst>(frame().bases.at(access.buffer).value);
      const Dims indices = loop::over_loops(context_, *stage, access.indices);
      for (size_t i = 0; i < indices.size(); ++i) {
        if (!loop::mentions({&indices[i], 1}, loop.var)) continue;
        const auto linear = context_.linear_in(loop.var, indices[i]);
        costly |= i + 1 < indices.size() || !linear || linear->first != context_.dim(1);
      }
    });
  });
  return costly && in_memory ? kMaxShortLanes : kMaxLanes;
}

void StatementEmitter::vector_loop(const loop::For& loop, int64_t extent) {
  const int64_t lanes = lanes_per_iteration(loop), whole = extent / lanes, tail = extent % lanes;
  const auto count = static_cast<unsigned>(lanes);
  if (whole == 1) vector_iteration(loop, context_.dim(0), count);
  if (whole > 1) {
    control_.serial_loop(i64(0), i64(whole), false, [&](Dim counter) {
      vector_iteration(loop, context_.multiply(counter, context_.dim(lanes)), count);
    });
  }
  if (tail == 1) iteration(loop, context_.dim(extent - 1));
  if (tail > 1) vector_iteration(loop, context_.dim(extent - tail), static_cast<unsigned>(tail));
}

void StatementEmitter::vector_iteration(const loop::For& loop, Dim begin, unsigned count) {
  std::vector<llvm::Constant*> lane_indices;
  for (unsigned i = 0; i < count; ++i) lane_indices.push_back(i64(i));
  // All vectors of one length share a variable: then dims over it are equal, too, and are computed once.
  const Symbol var = context_.symbol(fmt::format("$lanes{}", count));
  const Dim lane = context_.dim(var);
  frame().variables[var] = {llvm::ConstantVector::get(lane_indices), frame().scopes.size() - 1};
  frame().lanes = count;
  frame().lane = var;
  iteration(loop, context_.add(begin, lane));
  frame().lanes = 0;
  frame().variables.erase(frame().lane);
}

// --- Conditions ---

void StatementEmitter::statement(const loop::If& branch) {
  control_.branch(
      exprs_.root_expression(branch.condition), [&] { body(branch.then); }, [&] { body(branch.otherwise); });
}

void StatementEmitter::statement(const loop::Let& let) {
  exprs_.bind_root_index(let.var, let.extent, let.value, [&] { body(let.body); });
}

// --- Points ---

void StatementEmitter::statement(const loop::Stage& stage) {
  IndexEmitter::Env axes;
  for (const loop::Axis& axis : stage.axes) axes[axis.var] = indices_.resolve(axis.value);
  frames_.set_stage(&stage);
  IndexEmitter::Env outside = std::exchange(indices_.env(), axes);
  shuffles_.read(stage);
  indices_.env() = std::move(outside);
  points(stage, 0, axes);
  frame().exchanged.clear();
  frames_.set_stage(nullptr);
}

// The points of a stage for which the guards from `guard` on hold.
void StatementEmitter::points(const loop::Stage& stage, size_t guard, const IndexEmitter::Env& axes) {
  if (guard < stage.where.size()) {
    const Dim left = indices_.resolve(stage.where[guard].left), right = indices_.resolve(stage.where[guard].right);
    indices_.check_divisions(left), indices_.check_divisions(right);
    Value *a = indices_.value(left), *b = indices_.value(right);
    frames_.match_lanes(a, b);
    return control_.branch(
        b_.CreateICmpSLT(a, b), [&] { points(stage, guard + 1, axes); }, [] {});
  }
  for (const auto& [var, value] : axes) indices_.check_divisions(value);
  IndexEmitter::Env outside = std::exchange(indices_.env(), axes);
  if (!stage.init.empty()) {
    Value* first = b_.getTrue();
    for (const loop::Axis& axis : stage.axes) {
      if (axis.kind != loop::AxisKind::kReduce) continue;
      Value* value = indices_.value(axes.at(axis.var));
      first = b_.CreateAnd(first, b_.CreateICmpEQ(value, i64(0)));
    }
    control_.branch(
        first, [&] { body(stage.init); }, [] {});
  }
  if (!async_copies_.emit_point(stage)) body(stage.body);
  indices_.env() = std::move(outside);
}

void StatementEmitter::statement(const loop::Store& store) {
  Value* value = exprs_.root_expression(store.value);
  const Dims indices = indices_.resolve(store.indices);
  indices_.check_divisions(indices);
  memory_.store(store.buffer, indices, value);
}

// --- Buffers ---

std::optional<int64_t> StatementEmitter::stack_elements(BufferId id) {
  int64_t product = 1;
  for (Dim extent : indices_.extents().at(id)) {
    const auto size = extent.constant();
    if (!size || *size < 0 || *size > kMaxStackBytes || product > kMaxStackBytes) return std::nullopt;
    product *= *size;
  }
  return product;
}

void StatementEmitter::statement(const loop::Alloc& alloc) {
  indices_.declare(alloc.buffer);
  const auto bytes = static_cast<int64_t>(runtime::bytes(function().buffer(alloc.buffer).dtype));
  const auto outer_tables = frame().tables;
  const auto constant = stack_elements(alloc.buffer);
  if (alloc.scope == loop::Scope::kShared && constant) return shared_buffer(alloc, *constant);
  const int64_t most = alloc.scope == loop::Scope::kHeap ? kStackBytes : kMaxStackBytes;
  if (constant && *constant * bytes <= most && frame().stack + *constant * bytes <= kMaxStackBytes)
    stack_buffer(alloc, *constant);
  else heap_buffer(alloc);
  for (const auto& [key, table] : frame().tables) {
    if (!outer_tables.contains(key)) frames_.release(table.value);
  }
  frame().tables = outer_tables;
  frame().bases.erase(alloc.buffer);
}

void StatementEmitter::shared_buffer(const loop::Alloc& alloc, int64_t elements) {
  auto* type =
      llvm::ArrayType::get(frames_.memory_type(function().buffer(alloc.buffer).dtype), static_cast<uint64_t>(elements));
  constexpr unsigned kSharedSpace = 3;
  auto* memory = new llvm::GlobalVariable(unit_.module, type, false, llvm::GlobalValue::InternalLinkage,
                                          llvm::UndefValue::get(type), "shared", nullptr,
                                          llvm::GlobalValue::NotThreadLocal, kSharedSpace);
  memory->setAlignment(llvm::Align(16));
  frame().bases[alloc.buffer] = {b_.CreateAddrSpaceCast(memory, b_.getPtrTy()), 0};
  body(alloc.body);
  frame().bases.erase(alloc.buffer);
}

void StatementEmitter::stack_buffer(const loop::Alloc& alloc, int64_t elements) {
  const DType dtype = function().buffer(alloc.buffer).dtype;
  const int64_t bytes = elements * static_cast<int64_t>(runtime::bytes(dtype));
  frame().stack += bytes;
  Value* memory = frames_.stack_memory(frames_.memory_type(dtype), static_cast<uint64_t>(elements));
  frame().bases[alloc.buffer] = {memory, 0};
  if (elements > 0) b_.CreateLifetimeStart(memory, i64(bytes));
  body(alloc.body);
  if (elements > 0) b_.CreateLifetimeEnd(memory, i64(bytes));
}

void StatementEmitter::heap_buffer(const loop::Alloc& alloc) {
  const auto bytes = static_cast<int64_t>(runtime::bytes(function().buffer(alloc.buffer).dtype));
  Value* elements = allocated_elements(alloc.buffer);
  frames_.fail_if(b_.CreateICmpSGT(elements, i64(MemoryEmitter::kMaxElements)), TN_FAULT_SIZE, elements, i64(0));
  Value* memory = frames_.allocate(b_.CreateMul(elements, i64(bytes)));
  frames_.open_scope(false);
  frame().bases[alloc.buffer] = {memory, frame().scopes.size() - 1};
  body(alloc.body);
  frames_.close_scope();
  frames_.release(memory);
}

Value* StatementEmitter::allocated_elements(BufferId id) {
  if (const auto constant = memory_.constant_elements(id)) return i64(*constant);
  const auto packed = is_ragged(function().buffer(id))
                          ? packed_offset(context_, function(), function().buffer(id),
                                          Dims(function().buffer(id).rank(), context_.dim(int64_t{0})))
                          : std::nullopt;
  if (is_ragged(function().buffer(id)) && !packed) {
    memory_.make_row_table(id);
    Value* rows = indices_.uniform(indices_.extents().at(id)[0]);
    Value* end = b_.CreateGEP(b_.getInt64Ty(), frame().tables.at(indices_.table_key(id)).value, rows);
    return b_.CreateLoad(b_.getInt64Ty(), end);
  }
  Value* elements = i64(1);
  for (Dim extent : packed ? packed->elements : indices_.extents().at(id)) {
    indices_.check_divisions(extent);
    Value* size = indices_.uniform(extent);
    frames_.fail_if(b_.CreateICmpSLT(size, i64(0)), TN_FAULT_SIZE, size, i64(0));
    Value* product = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smul_with_overflow, elements, size);
    elements = b_.CreateExtractValue(product, 0);
    frames_.fail_if(b_.CreateExtractValue(product, 1), TN_FAULT_SIZE, size, i64(0));
  }
  return elements;
}

// --- Calls ---

void StatementEmitter::statement(const loop::Intrinsic& call) { intrinsics_.emit(call); }

// The runtime resolves the function's address. The buffers' addresses and sizes are passed in stack memory, the
// operands' types and ranks in a constant table.
void StatementEmitter::statement(const loop::CallLibrary& call) {
  std::vector<BufferId> ids = call.inputs;
  ids.insert(ids.end(), call.outputs.begin(), call.outputs.end());
  std::vector<Value*> sizes;
  for (const BufferId id : ids) {
    for (Dim extent : indices_.extents().at(id)) {
      indices_.check_divisions(extent);
      sizes.push_back(indices_.uniform(extent));
    }
  }
  Value* buffers = frames_.stack_memory(b_.getPtrTy(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i)
    b_.CreateStore(frame().bases.at(ids[i]).value, b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), buffers, i));
  Value* dims = frames_.stack_memory(b_.getInt64Ty(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i)
    b_.CreateStore(sizes[i], b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), dims, i));
  Value* table = operand_table(ids);
  const uint32_t id = unit_.functions.id(std::string(context_.name(call.symbol)), frames_.where());
  llvm::Type *pointer = b_.getPtrTy(), *i32 = b_.getInt32Ty();
  auto* type = llvm::FunctionType::get(i32, {pointer, i32, pointer, pointer, pointer, i32, i32}, false);
  frames_.fail_on(b_.CreateCall(type, frames_.call_field(8, pointer),
                                {frame().function->getArg(0), b_.getInt32(id), buffers, dims, table,
                                 b_.getInt32(static_cast<uint32_t>(call.inputs.size())),
                                 b_.getInt32(static_cast<uint32_t>(call.outputs.size()))}));
}

Value* StatementEmitter::operand_table(std::span<const BufferId> operands) {
  auto* type = llvm::StructType::get(b_.getInt32Ty(), b_.getInt32Ty());
  std::vector<llvm::Constant*> rows;
  for (const BufferId id : operands) {
    const loop::Buffer& buffer = function().buffer(id);
    rows.push_back(llvm::ConstantStruct::get(
        type, {b_.getInt32(static_cast<uint32_t>(buffer.dtype)), b_.getInt32(static_cast<uint32_t>(buffer.rank()))}));
  }
  auto* array = llvm::ArrayType::get(type, rows.size());
  return new llvm::GlobalVariable(unit_.module, array, true, llvm::GlobalValue::InternalLinkage,
                                  llvm::ConstantArray::get(array, rows));
}

}  // namespace tenon::compiler::native
