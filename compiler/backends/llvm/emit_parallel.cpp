#include "compiler/backends/llvm/emit_parallel.h"

#include <algorithm>

#include "compiler/loop/access.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::native {

// Four tasks for each thread, so that other threads can make up for a slow one.
Value* ParallelEmitter::max_tasks() {
  Frame& frame = this->frame();
  if (frame.max_tasks) return frame.max_tasks;
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(frame.allocas);
  Value* threads = b_.CreateZExt(frames_.call_field(1, b_.getInt32Ty()), b_.getInt64Ty());
  return frame.max_tasks = b_.CreateSelect(b_.CreateICmpUGT(threads, i64(1)), b_.CreateMul(threads, i64(4)), i64(1));
}

std::optional<ParallelEmitter::ParallelLoop> ParallelEmitter::find_parallel_loop(const loop::Stmt& stmt) {
  ParallelLoop found;
  for (const auto* loop = std::get_if<loop::For>(&stmt.form); loop;
       loop = std::get_if<loop::For>(&loop->body[0].form)) {
    const auto extent = indices_.resolve(loop->extent).constant();
    if (extent && *extent > 1 && loop->kind == loop::LoopKind::kParallel) {
      found.loop = loop;
      return found;
    }
    if (extent != 1 || loop->body.size() != 1) break;
    found.unit_loops.push_back(loop->var);
  }
  return std::nullopt;
}

// Whether no iteration of one loop accesses elements that a different iteration of the other one writes: this is proved
// if both index each common buffer by their counters on the same axis.
bool ParallelEmitter::independent(const loop::For& a, const loop::For& b) {
  struct Access {
    Dims indices;
    bool writes;
  };
  bool proved = true;
  const auto accesses_of = [&](const loop::For& loop) {
    std::multimap<BufferId, Access> accesses;
    for_each_statement(loop.body, [&](const loop::Stmt& stmt) {
      proved &= std::holds_alternative<loop::For>(stmt.form) || std::holds_alternative<loop::Stage>(stmt.form) ||
                std::holds_alternative<loop::Store>(stmt.form) || std::holds_alternative<loop::Alloc>(stmt.form);
      const auto* stage = std::get_if<loop::Stage>(&stmt.form);
      if (!stage) return;
      loop::for_each_access(*stage, [&](const loop::Access& access) {
        accesses.emplace(access.buffer, Access{loop::over_loops(context_, *stage, access.indices), access.writes});
      });
    });
    return accesses;
  };
  const auto of_a = accesses_of(a), of_b = accesses_of(b);
  for (const auto& [buffer, access] : of_a) {
    const auto [first, last] = of_b.equal_range(buffer);
    for (auto other = first; other != last; ++other) {
      if (!access.writes && !other->second.writes) continue;
      bool separated = false;
      for (size_t axis = 0; axis < access.indices.size(); ++axis)
        separated |= access.indices[axis].variable() == a.var && other->second.indices[axis].variable() == b.var;
      proved &= separated;
    }
  }
  return proved;
}

std::vector<ParallelEmitter::ParallelLoop> ParallelEmitter::joinable_loops(std::span<const loop::Stmt> stmts) {
  std::vector<ParallelLoop> found;
  if (frame().is_task || frame().lanes > 0 || frames_.stage()) return found;
  for (const loop::Stmt& stmt : stmts) {
    auto next = find_parallel_loop(stmt);
    const auto joins = [&](const ParallelLoop& earlier) {
      return earlier.loop->extent == next->loop->extent && independent(*earlier.loop, *next->loop);
    };
    if (!next || !std::ranges::all_of(found, joins)) break;
    found.push_back(std::move(*next));
  }
  return found;
}

void ParallelEmitter::emit_loop(const loop::For& loop, Dim extent) {
  const loop::For* const single = &loop;
  emit({&single, 1}, extent);
}

// One task function and one round of tasks instead of several; a loop also finds the results of the previous one in the
// cache.
void ParallelEmitter::emit_joined(const std::vector<ParallelLoop>& loops) {
  const IndexEmitter::Env outside = indices_.env();
  std::vector<const loop::For*> parallel_loops;
  for (const ParallelLoop& parallel : loops) {
    for (const Symbol var : parallel.unit_loops) indices_.env()[var] = context_.dim(0);
    parallel_loops.push_back(parallel.loop);
  }
  emit(parallel_loops, indices_.resolve(parallel_loops[0]->extent));
  indices_.env() = outside;
}

// The number of iterations of a task, and the number of tasks that have one more. The division uses 32 bits if they
// suffice, which is cheaper to execute and to compile.
std::pair<Value*, Value*> ParallelEmitter::iterations_per_task(Dim extent, Value* count, Value* tasks) {
  const auto constant = extent.constant();
  if (constant && *constant > 0 && *constant <= INT32_MAX) {
    auto* iterations = b_.getInt32(static_cast<uint32_t>(*constant));
    Value* divisor = b_.CreateTrunc(tasks, b_.getInt32Ty());
    Value* per_task = b_.CreateZExt(b_.CreateUDiv(iterations, divisor), b_.getInt64Ty());
    Value* more = b_.CreateZExt(b_.CreateURem(iterations, divisor), b_.getInt64Ty());
    return {per_task, more};
  }
  Value* divisor = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, tasks, i64(1));
  Value* per_task = b_.CreateSDiv(count, divisor);
  return {per_task, b_.CreateSRem(count, divisor)};
}

// Loops of equal extents, each iteration of which executes the iterations of all of them.
void ParallelEmitter::emit(std::span<const loop::For* const> loops, Dim extent) {
  // The task receives a structure in this function's stack memory: the iterations of each task, the number of tasks
  // that have one more, and all values of this frame that the task uses.
  Frame inner;
  Captures captures{.values = {}, .types = {b_.getInt64Ty(), b_.getInt64Ty()}};
  for (auto& [symbol, variable] : frame().variables) inner.variables[symbol] = {variable.value, 0};
  for (auto& [buffer, base] : frame().bases) inner.bases[buffer] = {base.value, 0};
  for (auto& [key, table] : frame().tables) inner.tables[key] = {table.value, 0};
  auto capture = [&](ScopedValue& captured) {
    captures.values.emplace_back(&captured, captured.value);
    captures.types.push_back(captured.value->getType());
  };
  for (auto& [symbol, variable] : inner.variables) capture(variable);
  for (auto& [buffer, base] : inner.bases) capture(base);
  for (auto& [key, table] : inner.tables) capture(table);
  auto* type = llvm::StructType::get(b_.getContext(), captures.types);

  Value* count = indices_.uniform(extent);
  Value* tasks = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, max_tasks(), count);
  const auto [per_task, more] = iterations_per_task(extent, count, tasks);
  Value* data = frames_.stack_memory(type, 1);
  b_.CreateStore(per_task, b_.CreateStructGEP(type, data, 0));
  b_.CreateStore(more, b_.CreateStructGEP(type, data, 1));

  std::vector<llvm::LoadInst*> loaded;
  llvm::Function* task = make_task(loops, std::move(inner), captures, loaded);
  for (unsigned i = 0; i < captures.values.size(); ++i) {
    if (loaded[i]->use_empty()) loaded[i]->eraseFromParent();
    else b_.CreateStore(captures.values[i].second, b_.CreateStructGEP(type, data, i + 2));
  }

  auto* run_type =
      llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty()}, false);
  frames_.fail_on(
      b_.CreateCall(run_type, frames_.call_field(4, b_.getPtrTy()), {frame().function->getArg(0), task, data, tasks}));
}

llvm::Function* ParallelEmitter::make_task(std::span<const loop::For* const> loops, Frame&& captured,
                                           const Captures& captures, std::vector<llvm::LoadInst*>& loaded) {
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  auto* type = llvm::StructType::get(b_.getContext(), captures.types);
  llvm::Function* task = frames_.make_task();
  frames_.enter(task, true);
  auto field = [&](unsigned i) {
    return b_.CreateLoad(captures.types[i], b_.CreateStructGEP(type, task->getArg(1), i));
  };
  Value *per_task = field(0), *more = field(1);
  for (unsigned i = 0; i < captures.values.size(); ++i)
    captures.values[i].first->value = loaded.emplace_back(field(i + 2));
  frame().variables = std::move(captured.variables);
  frame().bases = std::move(captured.bases);
  frame().tables = std::move(captured.tables);
  Value* index = task->getArg(2);
  Value* begin =
      b_.CreateAdd(b_.CreateMul(index, per_task), b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, index, more));
  Value* end =
      b_.CreateAdd(b_.CreateAdd(begin, per_task), b_.CreateZExt(b_.CreateICmpSLT(index, more), b_.getInt64Ty()));
  frames_.open_scope(false);
  control_.serial_loop(begin, end, true, [&](Dim value) {
    for (const loop::For* loop : loops) iteration_(*loop, value);
  });
  frames_.leave();
  return task;
}

}  // namespace tenon::compiler::native
