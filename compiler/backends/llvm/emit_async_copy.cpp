#include "compiler/backends/llvm/emit_async_copy.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <utility>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"

namespace tenon::compiler::native {
namespace {

constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

// The instructions that copy this number of bytes; the second one fills the bytes after some with zeros.
std::optional<std::pair<llvm::Intrinsic::ID, llvm::Intrinsic::ID>> instructions_of(int64_t bytes) {
  using namespace llvm::Intrinsic;
  if (bytes == 4) return std::pair(nvvm_cp_async_ca_shared_global_4, nvvm_cp_async_ca_shared_global_4_s);
  if (bytes == 8) return std::pair(nvvm_cp_async_ca_shared_global_8, nvvm_cp_async_ca_shared_global_8_s);
  if (bytes == 16) return std::pair(nvvm_cp_async_cg_shared_global_16, nvvm_cp_async_cg_shared_global_16_s);
  return std::nullopt;
}

}  // namespace

std::optional<AsyncCopyEmitter::Copy> AsyncCopyEmitter::copy_of(const loop::Stage& stage) {
  if (!frames_.unit().is_gpu() || frame().lanes != 0 || !stage.async) return std::nullopt;
  const auto& store = std::get<loop::Store>(stage.body.front().form);
  auto copied = loop::copied_element(store.value);
  if (!copied) return std::nullopt;
  return Copy{&stage, &store, copied->element, std::move(copied->conditions)};
}

int64_t AsyncCopyEmitter::element_bytes(const Copy& copy) {
  return static_cast<int64_t>(runtime::bytes(function().buffer(copy.store->buffer).dtype));
}

void AsyncCopyEmitter::at_iteration(const loop::For& loop, const loop::Stage& stage, int64_t iteration,
                                    FunctionRef<void()> use) {
  IndexEmitter::Env outside = indices_.env();
  indices_.env()[loop.var] = context_.dim(iteration);
  IndexEmitter::Env axes;
  for (const loop::Axis& axis : stage.axes) axes[axis.var] = indices_.resolve(axis.value);
  indices_.env() = std::move(axes);
  use();
  indices_.env() = std::move(outside);
}

bool AsyncCopyEmitter::is_one_access(const loop::For& loop, const Copy& copy, int64_t elements) {
  const DimProver prover(context_);
  bool is_one = true;
  Dim first_from, first_to;
  for (int64_t i = 0; i < elements && is_one; ++i) {
    at_iteration(loop, *copy.stage, i, [&] {
      const auto from = memory_.address(copy.load->buffer, indices_.resolve(copy.load->indices)),
                 to = memory_.address(copy.store->buffer, indices_.resolve(copy.store->indices));
      if (i == 0) first_from = from.offset, first_to = to.offset;
      is_one &= !from.rows && !to.rows;
      for (const auto& [first, offset] : {std::pair(first_from, from.offset), std::pair(first_to, to.offset)}) {
        is_one &= context_.subtract(offset, first).constant() == i;
        if (i == 0) is_one &= prover.divides(context_.dim(elements), first) == Answer::kYes;
      }
    });
  }
  for (const loop::Guard& guard : copy.stage->where)
    for (const Dim dim : {guard.left, guard.right}) is_one &= !loop::mentions({&dim, 1}, loop.var);
  return is_one;
}

// Whether the condition has the same value in all iterations: it compares an index, which grows from a multiple of
// their number, with another multiple of it, or with what does not change.
bool AsyncCopyEmitter::is_uniform(const loop::For& loop, const Copy& copy, const Expr& condition, int64_t elements) {
  const auto* binary = std::get_if<loop::Binary>(&condition->form);
  if (!binary) return false;
  if (binary->op == loop::BinaryOp::kAnd)
    return is_uniform(loop, copy, binary->left, elements) && is_uniform(loop, copy, binary->right, elements);
  const auto* left = std::get_if<loop::IndexValue>(&binary->left->form);
  const auto* right = std::get_if<loop::IndexValue>(&binary->right->form);
  const bool is_less = binary->op == loop::BinaryOp::kLess;
  if ((!is_less && binary->op != loop::BinaryOp::kLessEqual) || !left || !right) return false;
  Dim first_left, last_left, first_right, last_right;
  at_iteration(loop, *copy.stage, 0,
               [&] { first_left = indices_.resolve(left->value), first_right = indices_.resolve(right->value); });
  at_iteration(loop, *copy.stage, elements - 1,
               [&] { last_left = indices_.resolve(left->value), last_right = indices_.resolve(right->value); });
  if (first_right != last_right) return false;
  if (first_left == last_left) return true;
  if (!is_less) return false;
  const DimProver prover(context_);
  const Dim count = context_.dim(elements);
  return context_.subtract(last_left, first_left).constant() == elements - 1 &&
         prover.divides(count, first_left) == Answer::kYes && prover.divides(count, first_right) == Answer::kYes;
}

void AsyncCopyEmitter::guarded(const loop::Stage& stage, size_t guard, FunctionRef<void()> emit) {
  if (guard == stage.where.size()) return emit();
  const Dim left = indices_.resolve(stage.where[guard].left), right = indices_.resolve(stage.where[guard].right);
  indices_.check_divisions(left), indices_.check_divisions(right);
  control_.branch(
      b_.CreateICmpSLT(indices_.value(left), indices_.value(right)), [&] { guarded(stage, guard + 1, emit); }, [] {});
}

void AsyncCopyEmitter::emit_copy(const Copy& copy, int64_t bytes) {
  const auto pointer = [&](BufferId buffer, const Dims& at, unsigned space) {
    const Dims indices = indices_.resolve(at);
    indices_.check_divisions(indices);
    const MemoryEmitter::Address address = memory_.address(buffer, indices);
    Value* generic = memory_.pointer(address, address.offset, frames_.memory_type(function().buffer(buffer).dtype));
    return b_.CreateAddrSpaceCast(generic, b_.getPtrTy(space));
  };
  Value* condition = nullptr;
  for (const Expr& each : copy.conditions) {
    Value* holds = exprs_.root_expression(each);
    condition = condition ? b_.CreateAnd(condition, holds) : holds;
  }
  Value* to = pointer(copy.store->buffer, copy.store->indices, kSharedSpace);
  Value* from = pointer(copy.load->buffer, copy.load->indices, kGlobalSpace);
  const auto [whole, some] = *instructions_of(bytes);
  if (!condition) {
    b_.CreateIntrinsic(whole, {}, {to, from});
  } else {
    Value* copied = b_.CreateSelect(condition, b_.getInt32(static_cast<uint32_t>(bytes)), b_.getInt32(0));
    b_.CreateIntrinsic(some, {}, {to, from, copied});
  }
}

bool AsyncCopyEmitter::emit(const loop::For& loop) {
  const auto* stage = loop.body.size() == 1 ? std::get_if<loop::Stage>(&loop.body.front().form) : nullptr;
  const auto copy = stage ? copy_of(*stage) : std::nullopt;
  const auto elements = loop.extent.constant();
  if (!copy || !elements) return false;
  const int64_t bytes = *elements * element_bytes(*copy);
  if (!instructions_of(bytes) || !is_one_access(loop, *copy, *elements)) return false;
  for (const Expr& condition : copy->conditions)
    if (!is_uniform(loop, *copy, condition, *elements)) return false;
  guarded(*copy->stage, 0, [&] { at_iteration(loop, *copy->stage, 0, [&] { emit_copy(*copy, bytes); }); });
  frames_.clear_block_cache();
  return true;
}

bool AsyncCopyEmitter::emit_point(const loop::Stage& stage) {
  const auto copy = copy_of(stage);
  if (!copy || !instructions_of(element_bytes(*copy))) return false;
  emit_copy(*copy, element_bytes(*copy));
  return true;
}

}  // namespace tenon::compiler::native
