// Parallel loops: a task, which is a function of its own, runs one stretch of the iterations.
#include <fmt/format.h>

#include "compiler/backends/llvm/emit.h"

namespace tenon::compiler::native {

void FunctionEmitter::parallel(const loop::For& loop, Dim extent) {
  // What the task needs, as a structure in this function's memory: how many tasks and iterations there are, and all
  // that has a place here.
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
  Value* threads = b_.CreateZExt(field(1, b_.getInt32Ty()), b_.getInt64Ty());
  // More tasks than threads, so that a slow one is made up for.
  Value* tasks = b_.CreateSelect(b_.CreateICmpUGT(threads, i64(1)), b_.CreateMul(threads, i64(4)), i64(1));
  tasks = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, tasks, count);
  Value* data = stack_memory(type, 1);
  b_.CreateStore(tasks, b_.CreateStructGEP(type, data, 0));
  b_.CreateStore(count, b_.CreateStructGEP(type, data, 1));
  for (unsigned i = 0; i < captured.size(); ++i)
    b_.CreateStore(captured[i].second, b_.CreateStructGEP(type, data, i + 2));

  llvm::Function* task = nullptr;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    task = make_function(fmt::format("{}.task{}", symbol_, tasks_++), true);
    enter(task, true);
    Value* own = task->getArg(1);
    auto slot = [&](unsigned i) { return b_.CreateLoad(types[i], b_.CreateStructGEP(type, own, i)); };
    Value *tasks_there = slot(0), *all = slot(1);
    for (unsigned i = 0; i < captured.size(); ++i) captured[i].first->value = slot(i + 2);
    frame().variables = std::move(inner.variables);
    frame().bases = std::move(inner.bases);
    frame().tables = std::move(inner.tables);
    Value* index = task->getArg(2);
    Value* begin = b_.CreateSDiv(b_.CreateMul(index, all), tasks_there);
    Value* end = b_.CreateSDiv(b_.CreateMul(b_.CreateAdd(index, i64(1)), all), tasks_there);
    open_scope(false);
    serial(begin, end, true, [&](Dim value) { repeat(loop, value); });
    leave();
  }

  auto* run_type =
      llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty()}, false);
  Value* failed = b_.CreateCall(run_type, field(4, b_.getPtrTy()), {frame().function->getArg(0), task, data, tasks});
  auto* good = block("good");
  b_.CreateCondBr(b_.CreateICmpNE(failed, b_.getInt32(0)), frame().failed, good);
  continue_at(good);
}

}  // namespace tenon::compiler::native
