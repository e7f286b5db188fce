// Addresses of elements.
#include "compiler/backends/llvm/emit_memory.h"

#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <numeric>

#include "compiler/loop/tables.h"

namespace tenon::compiler::native {
namespace {

constexpr unsigned kPanelLanes = 8;  // the shortest panel
constexpr int64_t kMaxStride = 4;    // of strided loads, which load all elements between the lanes'

}  // namespace

MemoryEmitter::MemoryEmitter(FrameEmitter& frames, IndexEmitter& indices, ControlEmitter& control,
                             std::span<const runtime::InPlace> in_place)
    : EmitterPart(frames), indices_(indices), control_(control) {
  // No two buffers overlap, but for a result in place of a parameter.
  std::vector<size_t> scope_of(function().buffers.size());
  std::iota(scope_of.begin(), scope_of.end(), 0);
  for (const auto& [result, param] : in_place) {
    const size_t joined = scope_of[loop::index(function().params[param])];
    std::ranges::replace(scope_of, joined, scope_of[loop::index(function().results[result])]);
    overwritten_.insert(function().params[param]);
  }
  llvm::MDBuilder metadata(b_.getContext());
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain();
  std::vector<llvm::Metadata*> scopes;
  for (size_t i = 0; i < scope_of.size(); ++i) scopes.push_back(metadata.createAnonymousAliasScope(domain));
  for (size_t i = 0; i < scope_of.size(); ++i) {
    std::vector<llvm::Metadata*> others;
    for (size_t k = 0; k < scope_of.size(); ++k) {
      if (scope_of[k] == k && k != scope_of[i]) others.push_back(scopes[k]);
    }
    alias_scopes_.emplace_back(llvm::MDNode::get(b_.getContext(), {scopes[scope_of[i]]}),
                               llvm::MDNode::get(b_.getContext(), others));
  }
}

void MemoryEmitter::set_alias_metadata(llvm::Instruction* access, BufferId id) {
  if (alias_scopes_.empty()) return;
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, alias_scopes_[loop::index(id)].first);
  access->setMetadata(llvm::LLVMContext::MD_noalias, alias_scopes_[loop::index(id)].second);
  if (llvm::isa<llvm::LoadInst>(access) && !overwritten_.contains(id) &&
      std::ranges::find(function().params, id) != function().params.end())
    access->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
}

std::optional<int64_t> MemoryEmitter::constant_elements(BufferId id) {
  if (is_ragged(function().buffer(id))) return std::nullopt;
  int64_t product = 1;
  for (Dim extent : indices_.extents().at(id)) {
    const auto size = extent.constant();
    if (!size || *size < 0 || __builtin_mul_overflow(product, *size, &product)) return std::nullopt;
  }
  return product <= kMaxElements ? std::optional(product) : std::nullopt;
}

void MemoryEmitter::make_row_table(BufferId id) {
  const loop::Buffer& buffer = function().buffer(id);
  if (!is_ragged(buffer) || packed_offset(context_, function(), buffer, Dims(buffer.rank(), context_.dim(int64_t{0}))))
    return;
  const auto key = indices_.table_key(id);
  if (frame().tables.contains(key)) return;
  const Dim rows = indices_.extents().at(id)[0];
  indices_.check_divisions(rows);
  Value* count = indices_.uniform(rows);
  Value* memory = frames_.allocate(b_.CreateMul(b_.CreateAdd(count, i64(1)), i64(8)));
  b_.CreateStore(i64(0), memory);
  control_.serial_loop(i64(0), count, true, [&](Dim row) {
    for (size_t axis = 1; axis < buffer.rank(); ++axis) {
      const Dim size = indices_.extent(id, axis, row);
      indices_.check_divisions(size);
      frames_.fail_if(b_.CreateICmpSLT(indices_.uniform(size), i64(0)), TN_FAULT_SIZE, indices_.uniform(size), i64(0));
    }
    Value* begin = b_.CreateGEP(b_.getInt64Ty(), memory, indices_.uniform(row));
    Value* next = b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), begin), indices_.uniform(indices_.row_elements(id, row)));
    b_.CreateStore(next, b_.CreateGEP(b_.getInt64Ty(), begin, i64(1)));
  });
  frame().tables[key] = {memory, frame().scopes.size() - 1};
}

MemoryEmitter::Address MemoryEmitter::address(BufferId id, const Dims& indices) {
  const loop::Buffer& buffer = function().buffer(id);
  const ScopedValue base = frame().bases.at(id);
  Address result{base.value, base.scope, nullptr, context_.dim(0)};
  const bool ragged = is_ragged(buffer);
  // Where tables have the offsets of the rows, they are terms as any others: those of an element of all rows cancel.
  if (ragged) {
    if (const auto packed = packed_offset(context_, function(), buffer, indices)) {
      result.offset = packed->offset;
      return result;
    }
  }
  Dim stride = context_.dim(1);
  for (size_t axis = buffer.rank(); axis-- > (ragged ? 1u : 0u);) {
    const Dim extent = indices_.extent(id, axis, indices[0]);
    // Its index is 0, however it is written, which a register needs to know. Masked lanes of a vector have others.
    if (frames_.unit().is_gpu() && extent == context_.dim(1)) continue;
    Dim at = indices[axis];
    if (const auto found = std::ranges::find(buffer.swizzles, axis, &loop::Swizzle::axis);
        found != buffer.swizzles.end()) {
      const Dim shift = context_.floor_divide(indices[found->by], context_.dim(found->divisor));
      at = context_.modulo(context_.add(at, shift), extent);
    }
    result.offset = context_.add(result.offset, context_.multiply(at, stride));
    stride = context_.multiply(stride, extent);
  }
  if (!ragged) return result;
  const ScopedValue& table = frame().tables.at(indices_.table_key(id));
  Value* row = indices_.value(indices[0]);
  if (row->getType()->isVectorTy()) {
    Value* begins = b_.CreateGEP(b_.getInt64Ty(), table.value, row);
    auto* type = llvm::FixedVectorType::get(b_.getInt64Ty(), frame().lanes);
    result.rows = b_.CreateMaskedGather(type, begins, llvm::Align(8), frame().mask, llvm::Constant::getNullValue(type));
  } else {
    Value* begin = b_.CreateLoad(b_.getInt64Ty(), b_.CreateGEP(b_.getInt64Ty(), table.value, row));
    result.base = b_.CreateGEP(frames_.memory_type(buffer.dtype), base.value, begin);
    result.scope = frame().scopes.size();
  }
  return result;
}

Value* MemoryEmitter::pointer(const Address& address, Dim offset, llvm::Type* element) {
  int64_t constant = 0;
  Dim variable = context_.dim(0);
  for (const DimTerm& term : offset.node->terms) {
    if (term.factors.empty()) constant = term.coefficient;
    else variable = context_.add(variable, context_.monomial(term.factors, term.coefficient));
  }
  Value* base = hoisted_pointer(address, variable, element);
  if (constant == 0) return base;
  BlockCache* const cache = frames_.block_cache();
  if (!cache) return b_.CreateGEP(element, base, i64(constant));
  Value*& cached = cache->pointers[{base, element, constant}];
  if (!cached) cached = b_.CreateGEP(element, base, i64(constant));
  return cached;
}

// The pointer to an offset without a constant, computed in the scope of the offset's last variable.
Value* MemoryEmitter::hoisted_pointer(const Address& address, Dim offset, llvm::Type* element) {
  if (offset == context_.dim(0)) return address.base;
  if (address.scope == frame().scopes.size()) return b_.CreateGEP(element, address.base, indices_.uniform(offset));
  const size_t scope = std::max(indices_.scope_of(offset), address.scope);
  const std::pair key(address.base, offset.node);
  if (const auto found = frame().scopes[scope].pointers.find(key); found != frame().scopes[scope].pointers.end())
    return found->second;
  Dim outer = context_.dim(0), inner = context_.dim(0);
  for (const DimTerm& term : offset.node->terms) {
    const Dim monomial = context_.monomial(term.factors, term.coefficient);
    Dim& sum = indices_.scope_of(monomial) < scope ? outer : inner;
    sum = context_.add(sum, monomial);
  }
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(frame().scopes[scope].anchor);
  Value* base = scope > address.scope ? hoisted_pointer(address, outer, element) : address.base;
  if (scope == address.scope) inner = offset;
  Value* result = b_.CreateGEP(element, base, indices_.uniform(inner));
  FrameEmitter::HoistScope& hoist = frame().scopes[scope];
  if (scope > address.scope && hoist.counter != Symbol{}) {
    const auto linear = context_.linear_in(hoist.counter, inner);
    if (linear && linear->second == context_.dim(0) && indices_.scope_of(linear->first) < scope)
      hoist.inductions.push_back({llvm::cast<llvm::Instruction>(result), base, element, linear->first});
  }
  return hoist.pointers[key] = result;
}

MemoryEmitter::LaneAccess MemoryEmitter::lane_access(const Address& address) {
  if (address.rows) return {LaneAccess::kScattered, {}};
  if (!indices_.varies(address.offset)) return {LaneAccess::kUniform, address.offset};
  if (const auto linear = context_.linear_in(frame().lane, address.offset)) {
    const auto& [step, begin] = *linear;
    if (!indices_.varies(step) && !indices_.varies(begin)) {
      if (step == context_.dim(1)) return {LaneAccess::kContiguous, begin};
      if (step == context_.dim(-1))
        return {LaneAccess::kReversed, context_.subtract(begin, context_.dim(frame().lanes - 1))};
      if (const auto stride = step.constant(); stride && *stride > 1 && *stride <= kMaxStride)
        return {LaneAccess::kStrided, begin, *stride};
    }
  }
  if (auto panels = panels_of(address.offset)) {
    bool adjacent = true;
    for (size_t i = 1; i < panels->size(); ++i)
      adjacent &= context_.subtract((*panels)[i], (*panels)[i - 1]) == context_.dim(kPanelLanes);
    if (adjacent) return {LaneAccess::kContiguous, panels->front()};
    return {LaneAccess::kPanels, panels->front(), 1, std::move(*panels)};
  }
  return {LaneAccess::kScattered, {}};
}

// The first elements of the panels that the lanes are in, as in x[lane / 16, k, lane % 16]: within a panel, lanes are
// contiguous. Other numbers of lanes are one panel.
std::optional<Dims> MemoryEmitter::panels_of(Dim offset) {
  const unsigned size = frame().lanes % kPanelLanes == 0 ? kPanelLanes : frame().lanes;
  const auto at = [&](unsigned lane) { return context_.substitute(offset, {{frame().lane, context_.dim(lane)}}); };
  Dims panels;
  for (unsigned lane = 0; lane < frame().lanes; ++lane) {
    const Dim element = at(lane);
    if (lane % size == 0) panels.push_back(element);
    if (indices_.varies(element) || context_.subtract(element, panels.back()).constant() != lane % size)
      return std::nullopt;
  }
  return panels;
}

Value* MemoryEmitter::lane_pointers(const Address& address, llvm::Type* element) {
  Value* offset = indices_.varies(address.offset) ? indices_.vector_value(address.offset)
                                                  : frames_.splat(indices_.uniform(address.offset));
  if (address.rows) offset = b_.CreateAdd(offset, address.rows);
  return b_.CreateGEP(element, address.base, offset);
}

}  // namespace tenon::compiler::native
