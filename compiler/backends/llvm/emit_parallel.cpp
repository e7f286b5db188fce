// Parallel loops: a task, which is a function of its own, runs one stretch of the iterations.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/backends/llvm/emit.h"
#include "compiler/loop/access.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::native {

// More than threads, so that a slow one is made up for.
llvm::Value* FunctionEmitter::most_tasks() {
  Frame& here = frame();
  if (here.most_tasks) return here.most_tasks;
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(here.allocas);
  Value* threads = b_.CreateZExt(field(1, b_.getInt32Ty()), b_.getInt64Ty());
  return here.most_tasks = b_.CreateSelect(b_.CreateICmpUGT(threads, i64(1)), b_.CreateMul(threads, i64(4)), i64(1));
}

std::optional<FunctionEmitter::Parallel> FunctionEmitter::parallel_loop(const loop::Stmt& stmt) {
  Parallel found;
  for (const auto* one = std::get_if<loop::For>(&stmt.form); one; one = std::get_if<loop::For>(&one->body[0].form)) {
    const auto extent = resolve(one->extent).constant();
    if (extent && *extent > 1 && one->mark == loop::Mark::kParallel) {
      found.loop = one;
      return found;
    }
    if (extent != 1 || one->body.size() != 1) break;
    found.once.push_back(one->var);
  }
  return std::nullopt;
}

// Whether no iteration of one loop touches what another one's iteration of the other writes, as is seen where both name
// the same part of a buffer by their counters.
bool FunctionEmitter::independent(const loop::For& a, const loop::For& b) {
  struct Touched {
    Dims at;
    bool writes;
  };
  bool good = true;
  const auto all = [&](const loop::For& one) {
    std::multimap<BufferId, Touched> touched;
    for_each_statement(one.body, [&](const loop::Stmt& stmt) {
      good &= std::holds_alternative<loop::For>(stmt.form) || std::holds_alternative<loop::Stage>(stmt.form) ||
              std::holds_alternative<loop::Store>(stmt.form) || std::holds_alternative<loop::Alloc>(stmt.form);
      const auto* stage = std::get_if<loop::Stage>(&stmt.form);
      if (!stage) return;
      loop::for_each_access(*stage, [&](const loop::Access& access) {
        touched.emplace(access.buffer, Touched{loop::over_loops(unit_.context, *stage, access.indices), access.writes});
      });
    });
    return touched;
  };
  const auto of_a = all(a), of_b = all(b);
  for (const auto& [buffer, one] : of_a) {
    const auto [first, last] = of_b.equal_range(buffer);
    for (auto other = first; other != last; ++other) {
      if (!one.writes && !other->second.writes) continue;
      bool own = false;
      for (size_t axis = 0; axis < one.at.size(); ++axis)
        own |= one.at[axis].variable() == a.var && other->second.at[axis].variable() == b.var;
      good &= own;
    }
  }
  return good;
}

std::vector<FunctionEmitter::Parallel> FunctionEmitter::parallel_loops(std::span<const loop::Stmt> stmts) {
  std::vector<Parallel> found;
  if (frame().task || frame().lanes > 0 || stage_) return found;
  for (const loop::Stmt& stmt : stmts) {
    auto next = parallel_loop(stmt);
    const auto joins = [&](const Parallel& one) {
      return one.loop->extent == next->loop->extent && independent(*one.loop, *next->loop);
    };
    if (!next || !std::ranges::all_of(found, joins)) break;
    found.push_back(std::move(*next));
  }
  return found;
}

// One task function and one round of tasks instead of several; and what one loop leaves in the cache the next one
// finds.
void FunctionEmitter::parallel_together(const std::vector<Parallel>& loops) {
  const Env outside = env_;
  std::vector<const loop::For*> all;
  for (const Parallel& one : loops) {
    for (const Symbol var : one.once) env_[var] = unit_.context.dim(0);
    all.push_back(one.loop);
  }
  parallel(all, resolve(all[0]->extent));
  env_ = outside;
}

void FunctionEmitter::parallel(std::span<const loop::For* const> loops, Dim extent) {
  // What the task needs, as a structure in this function's memory: iterations of each task, how many tasks have one
  // more, and all that has a place here and is used there.
  std::vector<std::pair<Placed*, Value*>> captured;
  Frame inner;
  for (auto& [symbol, one] : frame().variables) inner.variables[symbol] = {one.value, 0};
  for (auto& [buffer, one] : frame().bases) inner.bases[buffer] = {one.value, 0};
  for (auto& [key, one] : frame().tables) inner.tables[key] = {one.value, 0};
  std::vector<llvm::Type*> types{b_.getInt64Ty(), b_.getInt64Ty()};
  auto capture = [&](Placed& one) {
    captured.emplace_back(&one, one.value);
    types.push_back(one.value->getType());
  };
  for (auto& [symbol, one] : inner.variables) capture(one);
  for (auto& [buffer, one] : inner.bases) capture(one);
  for (auto& [key, one] : inner.tables) capture(one);
  auto* type = llvm::StructType::get(b_.getContext(), types);

  Value* count = uniform(extent);
  Value* tasks = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, most_tasks(), count);
  // Divided once, here; by 32 bits where that is enough, which is cheaper to run and to compile.
  const auto known = extent.constant();
  Value *each = nullptr, *more = nullptr;
  if (known && *known > 0 && *known <= INT32_MAX) {
    auto* all = b_.getInt32(static_cast<uint32_t>(*known));
    Value* divisor = b_.CreateTrunc(tasks, b_.getInt32Ty());
    each = b_.CreateZExt(b_.CreateUDiv(all, divisor), b_.getInt64Ty());
    more = b_.CreateZExt(b_.CreateURem(all, divisor), b_.getInt64Ty());
  } else {
    Value* divisor = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, tasks, i64(1));
    each = b_.CreateSDiv(count, divisor), more = b_.CreateSRem(count, divisor);
  }
  Value* data = stack_memory(type, 1);
  b_.CreateStore(each, b_.CreateStructGEP(type, data, 0));
  b_.CreateStore(more, b_.CreateStructGEP(type, data, 1));

  llvm::Function* task = nullptr;
  std::vector<llvm::LoadInst*> taken;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    task = make_function(fmt::format("{}.task{}", symbol_, tasks_++), true);
    enter(task, true);
    Value* own = task->getArg(1);
    auto slot = [&](unsigned i) { return b_.CreateLoad(types[i], b_.CreateStructGEP(type, own, i)); };
    Value *each_there = slot(0), *more_there = slot(1);
    for (unsigned i = 0; i < captured.size(); ++i) captured[i].first->value = taken.emplace_back(slot(i + 2));
    frame().variables = std::move(inner.variables);
    frame().bases = std::move(inner.bases);
    frame().tables = std::move(inner.tables);
    Value* index = task->getArg(2);
    Value* begin = b_.CreateAdd(b_.CreateMul(index, each_there),
                                b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, index, more_there));
    Value* end = b_.CreateAdd(b_.CreateAdd(begin, each_there),
                              b_.CreateZExt(b_.CreateICmpSLT(index, more_there), b_.getInt64Ty()));
    open_scope(false);
    serial(begin, end, true, [&](Dim value) {
      for (const loop::For* loop : loops) repeat(*loop, value);
    });
    leave();
  }
  for (unsigned i = 0; i < captured.size(); ++i) {
    if (taken[i]->use_empty()) taken[i]->eraseFromParent();
    else b_.CreateStore(captured[i].second, b_.CreateStructGEP(type, data, i + 2));
  }

  auto* run_type =
      llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty()}, false);
  Value* failed = b_.CreateCall(run_type, field(4, b_.getPtrTy()), {frame().function->getArg(0), task, data, tasks});
  auto* good = block("good");
  b_.CreateCondBr(b_.CreateICmpNE(failed, b_.getInt32(0)), frame().failed, good);
  continue_at(good);
}

}  // namespace tenon::compiler::native
