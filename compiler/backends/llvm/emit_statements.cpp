// Statements: loops, conditions, and points of stages.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "compiler/backends/llvm/emit.h"
#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::native {
namespace {

constexpr int64_t kMostCopies = 4096;                // of a statement, by unrolling
constexpr int64_t kMostLanes = 64;                   // of a vector loop at a time
constexpr int64_t kFewLanes = 16;                    // where that makes less code
constexpr int64_t kMostMoving = 3;                   // pointers of a loop that go by one step
constexpr int64_t kStackBytes = 1 << 14;             // of a buffer that is not said to be on the stack
constexpr int64_t kMostStackBytes = 1 << 20;         // of all in one function
constexpr int64_t kMostElements = int64_t{1} << 44;  // of a buffer

}  // namespace

void FunctionEmitter::body(const loop::Body& body) {
  for (size_t i = 0; i < body.size();) {
    const auto together = parallel_loops(std::span(body).subspan(i));
    if (together.size() > 1) parallel_together(together);
    else std::visit([&](const auto& form) { statement(form); }, body[i].form);
    i += std::max<size_t>(together.size(), 1);
  }
}

// --- Loops ---

void FunctionEmitter::repeat(const loop::For& loop, Dim value) {
  const auto hidden = env_.find(loop.var) == env_.end() ? std::nullopt : std::optional(env_.at(loop.var));
  env_[loop.var] = value;
  body(loop.body);
  if (hidden) env_[loop.var] = *hidden;
  else env_.erase(loop.var);
}

void FunctionEmitter::serial(Value* begin, Value* end, bool guarded, const std::function<void(Dim)>& run) {
  auto* before = b_.GetInsertBlock();
  auto* head = block("loop");
  auto* done = block("done");
  Value* any = b_.CreateICmpSLT(begin, end);
  if (llvm::isa<llvm::ConstantInt>(any) && llvm::cast<llvm::ConstantInt>(any)->isOne()) b_.CreateBr(head);
  else b_.CreateCondBr(any, head, done);
  continue_at(head);
  auto* number = b_.CreatePHI(b_.getInt64Ty(), 2);
  number->addIncoming(begin, before);
  open_scope(guarded);
  const Dim counter = define(number);
  frame().scopes.back().counter = *counter.variable();
  run(counter);
  const std::vector<Moving> moving = std::move(frame().scopes.back().moving);
  close_scope();
  Value* next = b_.CreateAdd(number, i64(1), "", true, true);
  number->addIncoming(next, b_.GetInsertBlock());
  advance(moving, number);
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), head, done);
  continue_at(done);
}

// Pointers and multiples that were made of the loop's counter become what the iteration before left, moved by a step:
// one addition each, and an address without an index. Of many pointers that move alike the counter is the better index,
// for it is one.
void FunctionEmitter::advance(const std::vector<Moving>& moving, llvm::PHINode* number) {
  auto* before = number->getIncomingBlock(0);
  Value* begin = number->getIncomingValue(0);
  const auto* zero = llvm::dyn_cast<llvm::ConstantInt>(begin);
  const auto alike = [&](const Moving& one) {
    return std::ranges::count_if(moving, [&](const Moving& other) { return other.base && other.step == one.step; });
  };
  for (const bool pointers : {true, false}) {  // which leave multiples without use
    for (const Moving& one : moving) {
      if ((one.base != nullptr) != pointers || one.value->use_empty() || (pointers && alike(one) > kMostMoving))
        continue;
      Value* step = uniform(one.step);
      llvm::IRBuilder<> first(before->getTerminator());
      Value* start = zero && zero->isZero() ? i64(0) : first.CreateMul(begin, step);
      if (pointers) start = zero && zero->isZero() ? one.base : first.CreateGEP(one.element, one.base, start);
      auto* phi = llvm::PHINode::Create(start->getType(), 2, "", number->getParent()->getFirstNonPHIIt());
      phi->addIncoming(start, before);
      one.value->replaceAllUsesWith(phi);
      Value* next = pointers ? b_.CreateGEP(one.element, phi, step) : b_.CreateAdd(phi, step);
      phi->addIncoming(next, b_.GetInsertBlock());
      if (pointers) one.value->eraseFromParent();
    }
  }
}

void FunctionEmitter::statement(const loop::For& loop) {
  const Dim extent = resolve(loop.extent);
  check_divisions(extent);
  const auto constant = extent.constant();
  if (constant && *constant <= 0) return;
  if (constant && *constant == 1) return repeat(loop, unit_.context.dim(0));
  switch (loop.mark) {
    case loop::Mark::kUnroll:
      if (turn(loop)) return;
      if (constant && *constant * unrolled_ <= kMostCopies) {
        unrolled_ *= *constant;
        for (int64_t i = 0; i < *constant; ++i) repeat(loop, unit_.context.dim(i));
        unrolled_ /= *constant;
        return;
      }
      break;
    case loop::Mark::kVector:
      if (constant && vectorizable(loop)) return vector(loop, *constant);
      break;
    case loop::Mark::kParallel:
      if (!frame().task && frame().lanes == 0) {
        const loop::For* const one = &loop;
        return parallel({&one, 1}, extent);
      }
      break;
    case loop::Mark::kSerial: break;
  }
  serial(i64(0), uniform(extent), !constant, [&](Dim value) { repeat(loop, value); });
}

// Whether all iterations may go in lock-step: no memory and no loop of their own, and every stage has points of its own
// in each of them.
bool FunctionEmitter::vectorizable(const loop::For& loop) {
  if (frame().lanes > 0) return false;
  bool good = true;
  const Symbol var = loop.var;
  for_each_statement(loop.body, [&](const loop::Stmt& stmt) {
    if (std::holds_alternative<loop::Alloc>(stmt.form) || std::holds_alternative<loop::Intrinsic>(stmt.form) ||
        std::holds_alternative<loop::CallLibrary>(stmt.form))
      good = false;
    if (const auto* inner = std::get_if<loop::For>(&stmt.form))
      good &= !loop::mentions(std::span(&inner->extent, 1), var);
    if (const auto* stage = std::get_if<loop::Stage>(&stmt.form)) {
      bool own = false;
      for (const loop::Axis& axis : stage->axes) {
        const bool mentions = loop::mentions(std::span(&axis.value, 1), var);
        own |= mentions && axis.kind == loop::AxisKind::kSpatial;
        if (mentions && (axis.kind == loop::AxisKind::kReduce || axis.kind == loop::AxisKind::kScan)) good = false;
      }
      good &= own;
    }
  });
  return good;
}

// How many go at a time: in registers all, for there are no others. In memory few where elements do not lie side by
// side, each of which is put together, and where registers are short.
int64_t FunctionEmitter::lanes_at_once(const loop::For& loop) {
  bool apart = !unit_.level.wide(), in_memory = true;
  for_each_statement(loop.body, [&](const loop::Stmt& stmt) {
    const auto* stage = std::get_if<loop::Stage>(&stmt.form);
    if (!stage) return;
    loop::for_each_access(*stage, [&](const loop::Access& access) {
      in_memory &= !llvm::isa<llvm::AllocaInst>(frame().bases.at(access.buffer).value);
      const Dims at = loop::over_loops(unit_.context, *stage, access.indices);
      for (size_t i = 0; i < at.size(); ++i) {
        if (!loop::mentions({&at[i], 1}, loop.var)) continue;
        const auto linear = unit_.context.linear_in(loop.var, at[i]);
        apart |= i + 1 < at.size() || !linear || linear->first != unit_.context.dim(1);
      }
    });
  });
  return apart && in_memory ? kFewLanes : kMostLanes;
}

void FunctionEmitter::vector(const loop::For& loop, int64_t extent) {
  TypeContext& context = unit_.context;
  const int64_t most = lanes_at_once(loop), whole = extent / most, rest = extent % most;
  const auto count = static_cast<unsigned>(most);
  if (whole == 1) lanes(loop, context.dim(0), count);
  if (whole > 1) {
    serial(i64(0), i64(whole), false,
           [&](Dim number) { lanes(loop, context.multiply(number, context.dim(most)), count); });
  }
  if (rest == 1) repeat(loop, context.dim(extent - 1));
  if (rest > 1) lanes(loop, context.dim(extent - rest), static_cast<unsigned>(rest));
}

void FunctionEmitter::lanes(const loop::For& loop, Dim begin, unsigned count) {
  std::vector<llvm::Constant*> numbers;
  for (unsigned i = 0; i < count; ++i) numbers.push_back(i64(i));
  // One variable for all vectors of a length: then what they compute of it is the same, too.
  const Symbol own = unit_.context.symbol(fmt::format("$lanes{}", count));
  const Dim lane = unit_.context.dim(own);
  frame().variables[own] = {llvm::ConstantVector::get(numbers), frame().scopes.size() - 1};
  frame().lanes = count;
  frame().lane = own;
  repeat(loop, unit_.context.add(begin, lane));
  frame().lanes = 0;
  frame().variables.erase(frame().lane);
}

// --- Conditions ---

void FunctionEmitter::branch(Value* condition, const std::function<void()>& then,
                             const std::function<void()>& otherwise) {
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(condition)) return constant->isOne() ? then() : otherwise();
  if (condition->getType()->isVectorTy()) {
    if (const auto* known = llvm::dyn_cast<llvm::Constant>(condition)) {
      if (known->isAllOnesValue()) return then();
      if (known->isNullValue()) return otherwise();
    }
    where_lanes(condition, then);
    where_lanes(b_.CreateNot(condition), otherwise);
    return;
  }
  auto* yes = block("then");
  auto* no = block("else");
  auto* done = block("done");
  b_.CreateCondBr(condition, yes, no);
  for (auto& [at, run] : {std::pair(yes, &then), std::pair(no, &otherwise)}) {
    continue_at(at);
    open_scope(true);
    (*run)();
    close_scope();
    b_.CreateBr(done);
  }
  continue_at(done);
}

std::pair<llvm::BasicBlock*, llvm::BasicBlock*> FunctionEmitter::where_lanes(Value* condition,
                                                                             const std::function<void()>& run) {
  Value* const outer = frame().mask;
  Value* mask = outer ? b_.CreateAnd(outer, condition) : condition;
  auto* some = block("lanes");
  auto* done = block("done");
  b_.CreateCondBr(any(mask), some, done);
  auto* before = b_.GetInsertBlock();
  continue_at(some);
  open_scope(true);
  frame().mask = mask;
  run();
  frame().mask = outer;
  close_scope();
  auto* after = b_.GetInsertBlock();
  b_.CreateBr(done);
  continue_at(done);
  return {before, after};
}

void FunctionEmitter::statement(const loop::If& branch) {
  this->branch(
      whole(branch.condition), [&] { body(branch.then); }, [&] { body(branch.otherwise); });
}

void FunctionEmitter::statement(const loop::Let& let) {
  shared_.clear();
  with_index(let.var, let.extent, let.value, [&] { body(let.body); });
}

// --- Points ---

void FunctionEmitter::statement(const loop::Stage& stage) {
  Env axes;
  for (const loop::Axis& axis : stage.axes) axes[axis.var] = resolve(axis.value);
  stage_ = &stage;
  points(stage, 0, axes);
  stage_ = nullptr;
}

void FunctionEmitter::points(const loop::Stage& stage, size_t guard, const Env& axes) {
  if (guard < stage.where.size()) {
    const Dim left = resolve(stage.where[guard].left), right = resolve(stage.where[guard].right);
    check_divisions(left), check_divisions(right);
    Value *a = value(left), *b = value(right);
    same_lanes(a, b);
    return branch(
        b_.CreateICmpSLT(a, b), [&] { points(stage, guard + 1, axes); }, [] {});
  }
  for (const auto& [var, value] : axes) check_divisions(value);
  Env outside = std::exchange(env_, axes);
  if (!stage.init.empty()) {
    Value* first = b_.getTrue();
    for (const loop::Axis& axis : stage.axes) {
      if (axis.kind != loop::AxisKind::kReduce) continue;
      Value* at = value(axes.at(axis.var));
      first = b_.CreateAnd(first, b_.CreateICmpEQ(at, i64(0)));
    }
    branch(
        first, [&] { body(stage.init); }, [] {});
  }
  body(stage.body);
  env_ = std::move(outside);
}

void FunctionEmitter::statement(const loop::Store& store) {
  Value* value = whole(store.value);
  const Dims indices = resolve(store.indices);
  for (Dim one : indices) check_divisions(one);
  this->store(store.buffer, indices, value);
}

// --- Buffers ---

std::optional<int64_t> FunctionEmitter::constant_elements(BufferId id) {
  int64_t product = 1;
  for (Dim one : extents_.at(id)) {
    const auto size = one.constant();
    if (!size || *size < 0 || *size > kMostStackBytes || product > kMostStackBytes) return std::nullopt;
    product *= *size;
  }
  return product;
}

// Of a buffer of constant size, where that is one that can be allocated.
std::optional<int64_t> FunctionEmitter::known_elements(BufferId id) {
  if (is_ragged(function_->buffer(id))) return std::nullopt;
  int64_t product = 1;
  for (Dim one : extents_.at(id)) {
    const auto size = one.constant();
    if (!size || *size < 0 || __builtin_mul_overflow(product, *size, &product)) return std::nullopt;
  }
  return product <= kMostElements ? std::optional(product) : std::nullopt;
}

void FunctionEmitter::statement(const loop::Alloc& alloc) {
  declare(alloc.buffer);
  const loop::Buffer& buffer = function_->buffer(alloc.buffer);
  const auto bytes = static_cast<int64_t>(runtime::bytes(buffer.dtype));
  const auto outer_tables = frame().tables;
  const auto constant = constant_elements(alloc.buffer);
  const int64_t most = alloc.scope == loop::Scope::kHeap ? kStackBytes : kMostStackBytes;
  if (constant && *constant * bytes <= most && frame().stack + *constant * bytes <= kMostStackBytes) {
    frame().stack += *constant * bytes;
    Value* memory = stack_memory(memory_type(buffer.dtype), static_cast<uint64_t>(*constant));
    frame().bases[alloc.buffer] = {memory, 0};
    if (*constant > 0) b_.CreateLifetimeStart(memory, i64(*constant * bytes));
    body(alloc.body);
    if (*constant > 0) b_.CreateLifetimeEnd(memory, i64(*constant * bytes));
  } else {
    Value* elements = i64(1);
    if (const auto known = known_elements(alloc.buffer)) {
      elements = i64(*known);
    } else if (is_ragged(buffer)) {
      make_table(alloc.buffer);
      Value* rows = uniform(extents_.at(alloc.buffer)[0]);
      Value* end = b_.CreateGEP(b_.getInt64Ty(), frame().tables.at(table_key(alloc.buffer)).value, rows);
      elements = b_.CreateLoad(b_.getInt64Ty(), end);
    } else {
      for (Dim one : extents_.at(alloc.buffer)) {
        check_divisions(one);
        Value* size = uniform(one);
        fail_if(b_.CreateICmpSLT(size, i64(0)), TN_FAULT_SIZE, size, i64(0));
        Value* product = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smul_with_overflow, elements, size);
        elements = b_.CreateExtractValue(product, 0);
        fail_if(b_.CreateExtractValue(product, 1), TN_FAULT_SIZE, size, i64(0));
      }
    }
    fail_if(b_.CreateICmpSGT(elements, i64(kMostElements)), TN_FAULT_SIZE, elements, i64(0));
    Value* memory = allocate(b_.CreateMul(elements, i64(bytes)));
    open_scope(false);
    frame().bases[alloc.buffer] = {memory, frame().scopes.size() - 1};
    body(alloc.body);
    close_scope();
    release(memory);
  }
  for (const auto& [key, table] : frame().tables) {
    if (!outer_tables.contains(key)) release(table.value);
  }
  frame().tables = outer_tables;
  frame().bases.erase(alloc.buffer);
}

// The runtime has the function's address; what it is told lies on the stack, and its operands' types in the code.
void FunctionEmitter::statement(const loop::CallLibrary& call) {
  std::vector<BufferId> ids = call.inputs;
  ids.insert(ids.end(), call.outputs.begin(), call.outputs.end());
  std::vector<Value*> sizes;
  std::vector<llvm::Constant*> operands;
  auto* operand_type = llvm::StructType::get(b_.getInt32Ty(), b_.getInt32Ty());
  for (const BufferId id : ids) {
    for (Dim extent : extents_.at(id)) {
      check_divisions(extent);
      sizes.push_back(uniform(extent));
    }
    const loop::Buffer& buffer = function_->buffer(id);
    operands.push_back(llvm::ConstantStruct::get(operand_type, {b_.getInt32(static_cast<uint32_t>(buffer.dtype)),
                                                                b_.getInt32(static_cast<uint32_t>(buffer.rank()))}));
  }
  Value* buffers = stack_memory(b_.getPtrTy(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i)
    b_.CreateStore(frame().bases.at(ids[i]).value, b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), buffers, i));
  Value* dims = stack_memory(b_.getInt64Ty(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i)
    b_.CreateStore(sizes[i], b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), dims, i));
  auto* array = llvm::ArrayType::get(operand_type, operands.size());
  auto* table = new llvm::GlobalVariable(unit_.module, array, true, llvm::GlobalValue::InternalLinkage,
                                         llvm::ConstantArray::get(array, operands));
  const uint32_t number = unit_.functions.number(std::string(unit_.context.name(call.symbol)), where());
  llvm::Type *pointer = b_.getPtrTy(), *word = b_.getInt32Ty();
  auto* type = llvm::FunctionType::get(word, {pointer, word, pointer, pointer, pointer, word, word}, false);
  Value* failed = b_.CreateCall(type, field(8, pointer),
                                {frame().function->getArg(0), b_.getInt32(number), buffers, dims, table,
                                 b_.getInt32(static_cast<uint32_t>(call.inputs.size())),
                                 b_.getInt32(static_cast<uint32_t>(call.outputs.size()))});
  auto* good = block("good");
  b_.CreateCondBr(b_.CreateICmpNE(failed, b_.getInt32(0)), frame().failed, good);
  continue_at(good);
}

}  // namespace tenon::compiler::native
