#include "compiler/backends/llvm/emit_control.h"

#include <algorithm>

namespace tenon::compiler::native {
namespace {

constexpr int64_t kMaxInductionPointers = 3;  // with the same step, in a loop

}  // namespace

void ControlEmitter::serial_loop(Value* begin, Value* end, bool guarded, FunctionRef<void(Dim)> run) {
  auto* before = b_.GetInsertBlock();
  auto* head = block("loop");
  auto* done = block("done");
  Value* any = b_.CreateICmpSLT(begin, end);
  if (llvm::isa<llvm::ConstantInt>(any) && llvm::cast<llvm::ConstantInt>(any)->isOne()) b_.CreateBr(head);
  else b_.CreateCondBr(any, head, done);
  frames_.continue_at(head);
  auto* phi = b_.CreatePHI(b_.getInt64Ty(), 2);
  phi->addIncoming(begin, before);
  frames_.open_scope(guarded);
  const auto* last = llvm::dyn_cast<llvm::ConstantInt>(end);
  const bool bounded = last && llvm::isa<llvm::ConstantInt>(begin);
  const Dim counter = frames_.new_variable(phi, bounded ? std::optional(last->getSExtValue()) : std::nullopt);
  frame().scopes.back().counter = *counter.variable();
  run(counter);
  const std::vector<FrameEmitter::Induction> inductions = std::move(frame().scopes.back().inductions);
  frames_.close_scope();
  Value* next = b_.CreateAdd(phi, i64(1), "", true, true);
  phi->addIncoming(next, b_.GetInsertBlock());
  make_inductions(inductions, phi);
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), head, done);
  frames_.continue_at(done);
}

// Strength reduction: replaces pointers and multiples that were computed from the loop's counter by induction
// variables, which cost one addition each, and address memory without an index. If many pointers have the same step,
// the counter is the better index, since it is a single register. On GPUs LLVM does this itself, after it has joined
// loads of adjacent elements, whose alignment a pointer that a loop advances would hide.
void ControlEmitter::make_inductions(const std::vector<FrameEmitter::Induction>& inductions, llvm::PHINode* counter) {
  using Induction = FrameEmitter::Induction;
  if (frames_.unit().is_gpu()) return;
  auto* before = counter->getIncomingBlock(0);
  Value* begin = counter->getIncomingValue(0);
  const auto* zero = llvm::dyn_cast<llvm::ConstantInt>(begin);
  const auto pointers_with_step_of = [&](const Induction& induction) {
    return std::ranges::count_if(inductions,
                                 [&](const Induction& other) { return other.base && other.step == induction.step; });
  };
  for (const bool pointers : {true, false}) {  // pointers first: they may leave multiples without users
    for (const Induction& induction : inductions) {
      if ((induction.base != nullptr) != pointers || induction.value->use_empty() ||
          (pointers && pointers_with_step_of(induction) > kMaxInductionPointers))
        continue;
      Value* step = indices_.uniform(induction.step);
      llvm::IRBuilder<> entry(before->getTerminator());
      Value* start = zero && zero->isZero() ? i64(0) : entry.CreateMul(begin, step);
      if (pointers)
        start = zero && zero->isZero() ? induction.base : entry.CreateGEP(induction.element, induction.base, start);
      auto* phi = llvm::PHINode::Create(start->getType(), 2, "", counter->getParent()->getFirstNonPHIIt());
      phi->addIncoming(start, before);
      induction.value->replaceAllUsesWith(phi);
      Value* next = pointers ? b_.CreateGEP(induction.element, phi, step) : b_.CreateAdd(phi, step);
      phi->addIncoming(next, b_.GetInsertBlock());
      if (pointers) induction.value->eraseFromParent();
    }
  }
}

void ControlEmitter::branch(Value* condition, FunctionRef<void()> then, FunctionRef<void()> otherwise) {
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(condition)) return constant->isOne() ? then() : otherwise();
  if (condition->getType()->isVectorTy()) {
    if (const auto* constant = llvm::dyn_cast<llvm::Constant>(condition)) {
      if (constant->isAllOnesValue()) return then();
      if (constant->isNullValue()) return otherwise();
    }
    under_mask(condition, then);
    under_mask(b_.CreateNot(condition), otherwise);
    return;
  }
  auto* yes = block("then");
  auto* no = block("else");
  auto* done = block("done");
  b_.CreateCondBr(condition, yes, no);
  for (auto& [side, run] : {std::pair(yes, &then), std::pair(no, &otherwise)}) {
    frames_.continue_at(side);
    frames_.open_scope(true);
    (*run)();
    frames_.close_scope();
    b_.CreateBr(done);
  }
  frames_.continue_at(done);
}

std::pair<llvm::BasicBlock*, llvm::BasicBlock*> ControlEmitter::under_mask(Value* condition, FunctionRef<void()> run) {
  Value* const outer = frame().mask;
  Value* mask = outer ? b_.CreateAnd(outer, condition) : condition;
  auto* masked = block("lanes");
  auto* done = block("done");
  b_.CreateCondBr(frames_.any_lane(mask), masked, done);
  auto* before = b_.GetInsertBlock();
  frames_.continue_at(masked);
  frames_.open_scope(true);
  frame().mask = mask;
  run();
  frame().mask = outer;
  frames_.close_scope();
  auto* after = b_.GetInsertBlock();
  b_.CreateBr(done);
  frames_.continue_at(done);
  return {before, after};
}

}  // namespace tenon::compiler::native
