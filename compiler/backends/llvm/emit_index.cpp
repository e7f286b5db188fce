// Indices and addresses: polynomials of loop variables, each part made where its last variable gets its value.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <functional>
#include <numeric>

#include "compiler/backends/llvm/emit.h"

namespace tenon::compiler::native {
namespace {

constexpr int64_t kMostApart = 4;  // elements, below which vectors are loaded whole
constexpr int64_t kRegister = 16;  // lanes of a vector that is put together of them

// The first and the number of the lanes in a constant mask, where they are neighbours.
std::optional<std::pair<unsigned, unsigned>> run_of(const llvm::Value* mask) {
  const auto* known = llvm::dyn_cast<llvm::Constant>(mask);
  if (!known) return std::nullopt;
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
  const auto is_active = [&](unsigned lane) { return known->getAggregateElement(lane)->isOneValue(); };
  unsigned first = 0, end = lanes;
  while (first < lanes && !is_active(first)) ++first;
  while (end > first && !is_active(end - 1)) --end;
  for (unsigned i = first; i < end; ++i) {
    if (!is_active(i)) return std::nullopt;
  }
  return end > first ? std::optional(std::pair(first, end - first)) : std::nullopt;
}

bool any_atom(Dim dim, const std::function<bool(const DimAtom&)>& holds) {
  return std::ranges::any_of(dim.node->terms, [&](const DimTerm& term) {
    return std::ranges::any_of(term.factors, [&](const DimAtom* factor) {
      return holds(*factor) || std::ranges::any_of(factor->args, [&](Dim arg) { return any_atom(arg, holds); });
    });
  });
}

}  // namespace

bool FunctionEmitter::varies(Dim dim) {
  if (frame().lanes == 0) return false;
  bool found = false;
  for_each_variable(dim, [&](Symbol var) { found |= frame().variables.at(var).value->getType()->isVectorTy(); });
  return found;
}

bool FunctionEmitter::never_negative(Dim dim) const {
  DimBounds bounds;
  for (BufferId param : function_->params) bounds.emplace(function_->buffer(param).name, DimRange{});
  const auto lo = range(dim, bounds).lo;
  return lo && *lo >= 0;
}

size_t FunctionEmitter::scope_of(Dim dim) {
  size_t scope = 0;
  for_each_variable(dim, [&](Symbol var) { scope = std::max(scope, frame().variables.at(var).scope); });
  // An element that sizes are made of is read where it would be: above a guard its index may be out of range.
  if (any_atom(dim, [](const DimAtom& atom) { return atom.kind == DimAtom::Kind::kApply; })) {
    for (size_t i = frame().scopes.size(); i-- > scope + 1;) {
      if (frame().scopes[i].guarded) return i;
    }
  }
  return scope;
}

llvm::Value* FunctionEmitter::value(Dim dim) { return varies(dim) ? lanes_of(dim) : uniform(dim); }

llvm::Value* FunctionEmitter::uniform(Dim dim) {
  if (const auto constant = dim.constant()) return i64(*constant);
  const size_t at = scope_of(dim);
  if (const auto found = frame().scopes[at].values.find(dim.node); found != frame().scopes[at].values.end())
    return found->second;
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(frame().scopes[at].anchor);
  TypeContext& context = unit_.context;
  Dim before = context.dim(0);  // what is there in an outer scope already
  Value* sum = nullptr;
  for (const DimTerm& term : dim.node->terms) {
    const Dim one = context.monomial(term.factors, term.coefficient);
    if (term.factors.empty() || scope_of(one) < at) {
      before = context.add(before, one);
      continue;
    }
    Value* product = nullptr;
    for (const DimAtom* factor : term.factors) {
      const Dim alone = context.monomial({factor});
      Value* next = alone == dim ? uniform_atom(*factor) : uniform(alone);
      product = product ? b_.CreateMul(product, next) : next;
    }
    if (term.coefficient != 1) {
      product = b_.CreateMul(product, i64(term.coefficient));
      Scope& scope = frame().scopes[at];  // a shift is as good as a variable of the loop
      if (term.factors.size() == 1 && term.factors[0]->kind == DimAtom::Kind::kVariable &&
          term.factors[0]->name == scope.counter && !std::has_single_bit(static_cast<uint64_t>(term.coefficient)))
        scope.moving.push_back(
            {llvm::cast<llvm::Instruction>(product), nullptr, nullptr, context.dim(term.coefficient)});
    }
    sum = sum ? b_.CreateAdd(sum, product) : product;
  }
  if (before != context.dim(0)) sum = b_.CreateAdd(uniform(before), sum);
  return frame().scopes[at].values[dim.node] = sum;
}

llvm::Value* FunctionEmitter::uniform_atom(const DimAtom& atom) {
  switch (atom.kind) {
    case DimAtom::Kind::kVariable: return frame().variables.at(atom.name).value;
    case DimAtom::Kind::kFloorDivide:
      return floor_divide(uniform(atom.args[0]), uniform(atom.args[1]), never_negative(atom.args[0]));
    case DimAtom::Kind::kMin:
    case DimAtom::Kind::kMax: {
      const auto op = atom.kind == DimAtom::Kind::kMin ? llvm::Intrinsic::smin : llvm::Intrinsic::smax;
      Value* result = uniform(atom.args[0]);
      for (size_t i = 1; i < atom.args.size(); ++i)
        result = b_.CreateBinaryIntrinsic(op, result, uniform(atom.args[i]));
      return result;
    }
    case DimAtom::Kind::kApply: {
      const BufferId id = applied(atom);
      Value* element = load(id, atom.args);
      return to_index(function_->buffer(id).dtype, element);
    }
    case DimAtom::Kind::kErased:
    case DimAtom::Kind::kInvalid: break;
  }
  assert(false && "a size without a value, which loop::verify() refuses");
  return i64(0);
}

BufferId FunctionEmitter::applied(const DimAtom& atom) const {
  return *std::ranges::find_if(function_->params, [&](BufferId id) { return function_->buffer(id).name == atom.name; });
}

llvm::Value* FunctionEmitter::to_index(DType dtype, Value* value) {
  llvm::Type* type = b_.getInt64Ty();
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType()))
    type = llvm::FixedVectorType::get(type, vector->getNumElements());
  return b_.CreateIntCast(value, type, is_signed(dtype));
}

llvm::Value* FunctionEmitter::lanes_of(Dim dim) {
  if (const auto known = constants_.find(dim.node); known != constants_.end()) return known->second;
  Value* const all = sum_of_lanes(dim);
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(all)) constants_.emplace(dim.node, constant);
  return all;
}

llvm::Value* FunctionEmitter::sum_of_lanes(Dim dim) {
  Dim same = unit_.context.dim(0);  // in all lanes
  Value* sum = nullptr;
  for (const DimTerm& term : dim.node->terms) {
    const Dim one = unit_.context.monomial(term.factors, term.coefficient);
    if (!varies(one)) {
      same = unit_.context.add(same, one);
      continue;
    }
    Dim factor_same = unit_.context.dim(term.coefficient);
    Value* product = nullptr;
    for (const DimAtom* factor : term.factors) {
      const Dim alone = unit_.context.monomial({factor});
      if (!varies(alone)) {
        factor_same = unit_.context.multiply(factor_same, alone);
        continue;
      }
      Value* next = lanes_of(*factor);
      product = product ? b_.CreateMul(product, next) : next;
    }
    if (factor_same != unit_.context.dim(1)) product = b_.CreateMul(product, widen(uniform(factor_same)));
    sum = sum ? b_.CreateAdd(sum, product) : product;
  }
  if (same != unit_.context.dim(0)) sum = b_.CreateAdd(widen(uniform(same)), sum);
  return sum;
}

llvm::Value* FunctionEmitter::lanes_of(const DimAtom& atom) {
  auto wide = [&](Dim dim) { return varies(dim) ? lanes_of(dim) : widen(uniform(dim)); };
  switch (atom.kind) {
    case DimAtom::Kind::kVariable: return frame().variables.at(atom.name).value;
    case DimAtom::Kind::kFloorDivide: {
      Value* divisor = varies(atom.args[1]) ? lanes_of(atom.args[1]) : uniform(atom.args[1]);
      return floor_divide(wide(atom.args[0]), divisor, never_negative(atom.args[0]));
    }
    case DimAtom::Kind::kMin:
    case DimAtom::Kind::kMax: {
      const auto op = atom.kind == DimAtom::Kind::kMin ? llvm::Intrinsic::smin : llvm::Intrinsic::smax;
      Value* result = wide(atom.args[0]);
      for (size_t i = 1; i < atom.args.size(); ++i) result = b_.CreateBinaryIntrinsic(op, result, wide(atom.args[i]));
      return result;
    }
    case DimAtom::Kind::kApply: {
      const BufferId id = applied(atom);
      return to_index(function_->buffer(id).dtype, load(id, atom.args));
    }
    case DimAtom::Kind::kErased:
    case DimAtom::Kind::kInvalid: break;
  }
  assert(false && "a size without a value, which loop::verify() refuses");
  return i64(0);
}

// Rounded down; a divisor of 0, which check_divisions() finds where the quotient is wanted, counts as 1 here.
llvm::Value* FunctionEmitter::floor_divide(Value* a, Value* b, bool nonnegative) {
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(b);
  if (b->getType() != a->getType()) b = widen(b);
  auto* zero = llvm::Constant::getNullValue(a->getType());
  if (constant && constant->getSExtValue() > 0 && nonnegative) return b_.CreateUDiv(a, b);
  Value* negated = nullptr;
  if (!constant || constant->getSExtValue() == -1) {
    auto* one = llvm::ConstantInt::get(a->getType(), 1);
    auto* minus = b_.CreateICmpEQ(b, llvm::ConstantInt::getSigned(a->getType(), -1));
    negated = minus;
    b = b_.CreateSelect(b_.CreateOr(minus, b_.CreateICmpEQ(b, zero)), one, b);  // INT64_MIN / -1 is a trap
  }
  Value* quotient = b_.CreateSDiv(a, b);
  Value* rest = b_.CreateSub(a, b_.CreateMul(quotient, b));
  Value* down = b_.CreateAnd(b_.CreateICmpNE(rest, zero), b_.CreateICmpSLT(b_.CreateXor(rest, b), zero));
  quotient = b_.CreateAdd(quotient, b_.CreateSExt(down, a->getType()));
  return negated ? b_.CreateSelect(negated, b_.CreateNeg(a), quotient) : quotient;
}

void FunctionEmitter::check_divisions(Dim dim) {
  any_atom(dim, [&](const DimAtom& atom) {
    if (atom.kind != DimAtom::Kind::kFloorDivide || atom.args[1].constant()) return false;
    Value* divisor = value(atom.args[1]);
    fail_if(b_.CreateICmpEQ(divisor, llvm::Constant::getNullValue(divisor->getType())), TN_FAULT_SIZE_DIVISION, i64(0),
            i64(0));
    return false;
  });
}

// --- Ragged buffers ---

void FunctionEmitter::declare(BufferId id) {
  const loop::Buffer& buffer = function_->buffer(id);
  Env env = env_;
  for (const loop::BufferAxis& axis : buffer.axes) env.erase(axis.var);
  if (is_ragged(buffer)) env[buffer.axes[0].var] = unit_.context.dim(row_);
  Dims& extents = extents_[id];
  extents.clear();
  for (const loop::BufferAxis& axis : buffer.axes) extents.push_back(unit_.context.substitute(axis.extent, env));
}

Dim FunctionEmitter::extent(BufferId id, size_t axis, Dim row) {
  return unit_.context.substitute(extents_.at(id)[axis], {{row_, row}});
}

Dim FunctionEmitter::row_elements(BufferId id, Dim row) {
  Dim product = unit_.context.dim(1);
  for (size_t axis = 1; axis < extents_.at(id).size(); ++axis)
    product = unit_.context.multiply(product, extent(id, axis, row));
  return product;
}

// Buffers with the same rows share their table.
std::pair<const DimNode*, const DimNode*> FunctionEmitter::table_key(BufferId id) {
  return {extents_.at(id)[0].node, row_elements(id, unit_.context.dim(row_)).node};
}

// begin[0] = 0, begin[b + 1] = begin[b] + the elements of row b.
void FunctionEmitter::make_table(BufferId id) {
  const loop::Buffer& buffer = function_->buffer(id);
  if (!is_ragged(buffer)) return;
  const auto key = table_key(id);
  if (frame().tables.contains(key)) return;
  const Dim rows = extents_.at(id)[0];
  check_divisions(rows);
  Value* count = uniform(rows);
  Value* memory = allocate(b_.CreateMul(b_.CreateAdd(count, i64(1)), i64(8)));
  b_.CreateStore(i64(0), memory);
  serial(i64(0), count, true, [&](Dim row) {
    for (size_t axis = 1; axis < buffer.rank(); ++axis) {
      const Dim size = extent(id, axis, row);
      check_divisions(size);
      fail_if(b_.CreateICmpSLT(uniform(size), i64(0)), TN_FAULT_SIZE, uniform(size), i64(0));
    }
    Value* at = b_.CreateGEP(b_.getInt64Ty(), memory, uniform(row));
    Value* next = b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), at), uniform(row_elements(id, row)));
    b_.CreateStore(next, b_.CreateGEP(b_.getInt64Ty(), at, i64(1)));
  });
  frame().tables[key] = {memory, frame().scopes.size() - 1};
}

// --- Addresses ---

FunctionEmitter::Address FunctionEmitter::address(BufferId id, const Dims& indices) {
  const loop::Buffer& buffer = function_->buffer(id);
  TypeContext& context = unit_.context;
  const Placed base = frame().bases.at(id);
  Address result{base.value, base.scope, nullptr, context.dim(0)};
  const bool ragged = is_ragged(buffer);
  Dim stride = context.dim(1);
  for (size_t axis = buffer.rank(); axis-- > (ragged ? 1u : 0u);) {
    result.offset = context.add(result.offset, context.multiply(indices[axis], stride));
    stride = context.multiply(stride, extent(id, axis, indices[0]));
  }
  if (ragged) {
    const Placed& rows = frame().tables.at(table_key(id));
    Value* row = value(indices[0]);
    if (row->getType()->isVectorTy()) {
      Value* begins = b_.CreateGEP(b_.getInt64Ty(), rows.value, row);
      auto* type = llvm::FixedVectorType::get(b_.getInt64Ty(), frame().lanes);
      result.rows =
          b_.CreateMaskedGather(type, begins, llvm::Align(8), frame().mask, llvm::Constant::getNullValue(type));
    } else {
      Value* begin = b_.CreateLoad(b_.getInt64Ty(), b_.CreateGEP(b_.getInt64Ty(), rows.value, row));
      result.base = b_.CreateGEP(memory_type(buffer.dtype), base.value, begin);
      result.scope = frame().scopes.size();  // here
    }
  }
  return result;
}

llvm::Value* FunctionEmitter::pointer(const Address& address, Dim offset, llvm::Type* element) {
  int64_t constant = 0;
  Dim rest = unit_.context.dim(0);
  for (const DimTerm& term : offset.node->terms) {
    if (term.factors.empty()) constant = term.coefficient;
    else rest = unit_.context.add(rest, unit_.context.monomial(term.factors, term.coefficient));
  }
  Value* place = moved(address, rest, element);
  if (constant == 0) return place;
  Made* const here = made();
  if (!here) return b_.CreateGEP(element, place, i64(constant));
  Value*& known = here->pointers[{place, element, constant}];
  if (!known) known = b_.CreateGEP(element, place, i64(constant));
  return known;
}

llvm::Value* FunctionEmitter::moved(const Address& address, Dim rest, llvm::Type* element) {
  if (rest == unit_.context.dim(0)) return address.base;
  if (address.scope == frame().scopes.size()) return b_.CreateGEP(element, address.base, uniform(rest));
  const size_t at = std::max(scope_of(rest), address.scope);
  const std::pair key(address.base, rest.node);
  if (const auto found = frame().scopes[at].pointers.find(key); found != frame().scopes[at].pointers.end())
    return found->second;
  Dim before = unit_.context.dim(0), here = unit_.context.dim(0);
  for (const DimTerm& term : rest.node->terms) {
    const Dim one = unit_.context.monomial(term.factors, term.coefficient);
    (scope_of(one) < at ? before : here) = unit_.context.add(scope_of(one) < at ? before : here, one);
  }
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(frame().scopes[at].anchor);
  Value* place = at > address.scope ? moved(address, before, element) : address.base;
  if (at == address.scope) here = rest;
  Value* result = b_.CreateGEP(element, place, uniform(here));
  Scope& scope = frame().scopes[at];
  if (at > address.scope && scope.counter != Symbol{}) {
    const auto linear = unit_.context.linear_in(scope.counter, here);
    if (linear && linear->second == unit_.context.dim(0) && scope_of(linear->first) < at)
      scope.moving.push_back({llvm::cast<llvm::Instruction>(result), place, element, linear->first});
  }
  return scope.pointers[key] = result;
}

void FunctionEmitter::annotate(llvm::Instruction* access, BufferId id) {
  if (alias_.empty()) return;
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, alias_[loop::index(id)].first);
  access->setMetadata(llvm::LLVMContext::MD_noalias, alias_[loop::index(id)].second);
  if (llvm::isa<llvm::LoadInst>(access) && std::ranges::find(function_->params, id) != function_->params.end())
    access->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
}

// How the elements that the lanes want lie.
FunctionEmitter::Lanes FunctionEmitter::lanes_at(const Address& address) {
  if (address.rows) return {Lanes::kAnywhere, {}};
  if (!varies(address.offset)) return {Lanes::kOne, address.offset};
  if (const auto linear = unit_.context.linear_in(frame().lane, address.offset)) {
    const auto& [step, begin] = *linear;
    if (!varies(step) && !varies(begin)) {
      if (step == unit_.context.dim(1)) return {Lanes::kForward, begin};
      if (step == unit_.context.dim(-1))
        return {Lanes::kBackward, unit_.context.subtract(begin, unit_.context.dim(frame().lanes - 1))};
      if (const auto apart = step.constant(); apart && *apart > 1 && *apart <= kMostApart)
        return {Lanes::kApart, begin, *apart};
    }
  }
  return {Lanes::kAnywhere, {}};
}

llvm::Value* FunctionEmitter::places(const Address& address, llvm::Type* element) {
  Value* offset = varies(address.offset) ? lanes_of(address.offset) : widen(uniform(address.offset));
  if (address.rows) offset = b_.CreateAdd(offset, address.rows);
  return b_.CreateGEP(element, address.base, offset);
}

// Elements that a constant mask asks for, `rest` in place of the others, where a level has no loads under masks: LLVM
// would load each by itself. What lies between the first and the last of them is in the buffer, too.
llvm::Value* FunctionEmitter::load_some(BufferId id, Value* place, llvm::Type* element,
                                        std::span<llvm::Constant* const> wanted, llvm::Constant* rest) {
  if (unit_.level.masks()) return nullptr;
  const auto is_wanted = [](const llvm::Constant* one) { return one->isOneValue(); };
  const auto first = std::ranges::find_if(wanted, is_wanted) - wanted.begin(), all = std::ssize(wanted);
  auto last = all - 1;
  while (last > first && !is_wanted(wanted[static_cast<size_t>(last)])) --last;
  if (first == all)
    return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(static_cast<unsigned>(all)), rest);
  const auto size = last - first + 1;
  auto* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(size));
  auto* loaded = b_.CreateAlignedLoad(type, first == 0 ? place : b_.CreateGEP(element, place, i64(first)),
                                      llvm::Align(element->getScalarSizeInBits() / 8));
  annotate(loaded, id);
  std::vector<int> from;
  for (ptrdiff_t i = 0; i < all; ++i)
    from.push_back(static_cast<int>(is_wanted(wanted[static_cast<size_t>(i)]) ? i - first : size));
  return b_.CreateShuffleVector(loaded, llvm::ConstantVector::getSplat(type->getElementCount(), rest), from);
}

// Every step-th element of vectors that are loaded whole; each is of one lane, so those of inactive ones are
// `otherwise`, the same in all lanes. Nothing where it is not known which lanes are active.
llvm::Value* FunctionEmitter::load_apart(const Address& address, const Lanes& lanes, llvm::FixedVectorType* type,
                                         llvm::Constant* otherwise, BufferId id) {
  const auto* active = frame().mask ? llvm::dyn_cast<llvm::Constant>(frame().mask) : nullptr;
  if (frame().mask && !active) return nullptr;
  const auto is_active = [&](int64_t lane) {
    return !active || !active->getAggregateElement(static_cast<unsigned>(lane))->isNullValue();
  };
  llvm::Type* element = type->getElementType();
  const llvm::Align align(element->getScalarSizeInBits() / 8);
  llvm::Constant* rest = otherwise->getSplatValue();
  // `wide` elements from `begin` on, of which the mask says which are loaded; nullptr: all.
  const auto vector = [&](int64_t begin, int64_t wide, const std::vector<llvm::Constant*>* wanted) {
    auto* own = llvm::FixedVectorType::get(element, static_cast<unsigned>(wide));
    Value* place = pointer(address, unit_.context.add(lanes.begin, unit_.context.dim(begin)), element);
    llvm::Instruction* loaded = nullptr;
    if (!wanted) loaded = b_.CreateAlignedLoad(own, place, align);
    else if (Value* known = load_some(id, place, element, *wanted, rest)) return known;
    else
      loaded = b_.CreateMaskedLoad(own, place, align, llvm::ConstantVector::get(*wanted),
                                   llvm::ConstantVector::getSplat(own->getElementCount(), rest));
    annotate(loaded, id);
    return static_cast<Value*>(loaded);
  };
  // Lanes of one register each, put together. In registers of the function's own all remainders are taken of the same
  // vectors.
  const auto all = static_cast<int64_t>(frame().lanes);
  const auto known = lanes.begin.constant();
  const auto* own = known && *known >= 0 ? llvm::dyn_cast<llvm::AllocaInst>(address.base) : nullptr;
  const int64_t shift = own ? *known % lanes.step : 0;
  Value* result = nullptr;
  for (int64_t first = 0; first < all; first += kRegister) {
    const int64_t count = std::min(kRegister, all - first), origin = first * lanes.step - shift,
                  span = (count - 1) * lanes.step + 1 + shift;
    // Where they all come from one register, one load of it; else as many as steps, the last of which ends with them.
    const bool one = span <= kRegister;
    const int64_t wide = one ? kRegister : count;
    Value* group = nullptr;
    for (int64_t number = 0; number < (one ? 1 : lanes.step); ++number) {
      const int64_t begin = one ? 0 : std::min(number * count, span - count);
      std::vector<llvm::Constant*> wanted(static_cast<size_t>(wide), b_.getFalse());
      std::vector<int> from;  // of what there is already, and of this vector
      for (int64_t lane = 0; lane < count; ++lane) {
        const int64_t at = lane * lanes.step + shift, place = at - begin;
        const bool here = place >= 0 && place < wide && at >= number * count;
        from.push_back(static_cast<int>(here ? (group ? count : 0) + place : lane));
        if (here && is_active(first + lane)) wanted[static_cast<size_t>(place)] = b_.getTrue();
      }
      const bool inside =
          own && *known + origin + begin + wide <= static_cast<int64_t>(own->getAllocatedType()->getArrayNumElements());
      Value* const loaded = vector(origin + begin, wide, !inside && (active || one) ? &wanted : nullptr);
      group = group ? b_.CreateShuffleVector(group, loaded, from) : b_.CreateShuffleVector(loaded, from);
    }
    if (all <= kRegister) return group;
    std::vector<int> spread, joined;
    for (int64_t lane = 0; lane < all; ++lane) {
      const bool here = lane >= first && lane < first + count;
      spread.push_back(here ? static_cast<int>(lane - first) : -1);
      joined.push_back(static_cast<int>(here ? all + lane : lane));
    }
    group = b_.CreateShuffleVector(group, spread);
    result = result ? b_.CreateShuffleVector(result, group, joined) : group;
  }
  return result;
}

// Lanes drawn apart in vectors that are stored where a constant mask says so: a scatter takes longer. Nothing where
// there are too few lanes in a vector, or a level has no such stores.
bool FunctionEmitter::store_apart(const Address& address, const Lanes& lanes, Value* value, BufferId id) {
  const auto* active = frame().mask ? llvm::dyn_cast<llvm::Constant>(frame().mask) : nullptr;
  llvm::Type* element = value->getType()->getScalarType();
  const unsigned bits = element->getScalarSizeInBits();
  const int64_t all = frame().lanes, some = kRegister / lanes.step;
  if ((frame().mask && !active) || !unit_.level.masks() || (bits < 32 && !unit_.level.wide()) || some < 2) return false;
  for (int64_t first = 0; first < all; first += some) {
    const int64_t count = std::min(some, all - first);
    std::vector<int> from(std::bit_ceil(static_cast<size_t>((count - 1) * lanes.step + 1)), -1);
    std::vector<llvm::Constant*> wanted(from.size(), b_.getFalse());
    bool any = false;
    for (int64_t lane = 0; lane < count; ++lane) {
      if (active && active->getAggregateElement(static_cast<unsigned>(first + lane))->isNullValue()) continue;
      const auto to = static_cast<size_t>(lane * lanes.step);
      from[to] = static_cast<int>(first + lane), wanted[to] = b_.getTrue(), any = true;
    }
    if (!any) continue;
    const Dim begin = unit_.context.add(lanes.begin, unit_.context.dim(first * lanes.step));
    annotate(b_.CreateMaskedStore(b_.CreateShuffleVector(value, from), pointer(address, begin, element),
                                  llvm::Align(bits / 8), llvm::ConstantVector::get(wanted)),
             id);
  }
  return true;
}

FunctionEmitter::Made* FunctionEmitter::made() {
  auto* const block = b_.GetInsertBlock();
  if (b_.GetInsertPoint() != block->end()) return nullptr;
  if (made_.block != block) made_ = {.block = block, .pointers = {}, .wide = {}, .loads = {}, .kept = {}};
  return &made_;
}

llvm::Value* FunctionEmitter::kept(const Address& at, const Lanes& lanes, llvm::Type* element) {
  const auto offset = lanes.begin.node ? lanes.begin.constant() : std::nullopt;
  if (frame().mask || !offset || (lanes.kind != Lanes::kOne && lanes.kind != Lanes::kForward)) return nullptr;
  const auto buffer = made_.kept.find(at.base);
  if (buffer == made_.kept.end()) return nullptr;
  const auto found = buffer->second.find(*offset);
  if (found == buffer->second.end()) return nullptr;
  if (lanes.kind == Lanes::kForward) element = llvm::FixedVectorType::get(element, frame().lanes);
  return found->second->getType() == element ? found->second : nullptr;
}

void FunctionEmitter::keep(const Address& at, const Lanes& lanes, Value* value) {
  if (!llvm::isa<llvm::AllocaInst>(at.base) || !made()) return;
  const auto offset = lanes.begin.node ? lanes.begin.constant() : std::nullopt;
  if (!value || !offset) {
    made_.kept.erase(at.base);
    return;
  }
  const auto size = [](Value* one) -> int64_t {
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(one->getType());
    return vector ? vector->getNumElements() : 1;
  };
  auto& buffer = made_.kept[at.base];
  std::erase_if(buffer, [&](const auto& one) {
    return one.first < *offset + size(value) && *offset < one.first + size(one.second);
  });
  buffer.emplace(*offset, value);
}

llvm::Value* FunctionEmitter::load(BufferId id, const Dims& indices, llvm::Constant* otherwise) {
  const bool is_read_only = !alias_.empty() && std::ranges::find(function_->params, id) != function_->params.end();
  const std::tuple key(id, indices, frame().mask, static_cast<Value*>(otherwise), frame().lanes);
  if (Made* const here = is_read_only ? made() : nullptr) {
    if (const auto found = here->loads.find(key); found != here->loads.end()) return found->second;
  }
  const Address at = address(id, indices);
  const Lanes lanes = lanes_at(at);
  const DType dtype = function_->buffer(id).dtype;
  if (made() && dtype != DType::kBool) {
    if (Value* known = kept(at, lanes, memory_type(dtype))) return known;
  }
  Value* const loaded = load_from_memory(id, at, lanes, otherwise);
  if (Made* const here = is_read_only ? made() : nullptr) here->loads.emplace(key, loaded);
  return loaded;
}

namespace {

// Lanes that a mask never has, as far as its parts say.
std::vector<bool> never_set(const llvm::Value* mask, unsigned lanes) {
  std::vector<bool> never(lanes);
  if (const auto* constant = llvm::dyn_cast<llvm::Constant>(mask)) {
    for (unsigned i = 0; i < lanes; ++i) {
      const llvm::Constant* one = constant->getAggregateElement(i);
      never[i] = one && one->isNullValue();
    }
  } else if (const auto* both = llvm::dyn_cast<llvm::BinaryOperator>(mask)) {
    const bool conjunction = both->getOpcode() == llvm::Instruction::And;
    if (!conjunction && both->getOpcode() != llvm::Instruction::Or) return never;
    const auto left = never_set(both->getOperand(0), lanes), right = never_set(both->getOperand(1), lanes);
    for (unsigned i = 0; i < lanes; ++i) never[i] = conjunction ? left[i] || right[i] : left[i] && right[i];
  }
  return never;
}

}  // namespace

// Where masks are vectors of numbers, as in AVX2, and a vector is several registers, LLVM 19 loads a register whole
// whose lanes the mask never has: outside of the buffer too. There each register has a load of its own, or none.
bool FunctionEmitter::in_pieces(const llvm::FixedVectorType* type, const Value* mask) const {
  const Level& level = unit_.level;
  return level.family == Family::kX86 && level.masks() && !level.wide() && !llvm::isa<llvm::Constant>(mask) &&
         static_cast<int64_t>(type->getNumElements() * type->getScalarSizeInBits() / 8) > level.vector_bytes;
}

llvm::Value* FunctionEmitter::load_in_pieces(llvm::FixedVectorType* type, Value* place, llvm::Align align, Value* mask,
                                             Value* otherwise, BufferId id) {
  llvm::Type* const element = type->getElementType();
  const unsigned lanes = type->getNumElements(),
                 most = static_cast<unsigned>(unit_.level.vector_bytes * 8) / element->getScalarSizeInBits();
  const std::vector<bool> never = never_set(mask, lanes);
  Value* all = otherwise;
  for (unsigned begin = 0, end = 0; begin < lanes; begin = end) {
    end = std::min(begin + most, lanes);
    if (std::all_of(never.begin() + begin, never.begin() + end, [](bool one) { return one; })) continue;
    std::vector<int> part, whole(lanes, -1), blend;
    for (unsigned i = begin; i < end; ++i) part.push_back(static_cast<int>(i)), whole[i] = static_cast<int>(i - begin);
    for (unsigned i = 0; i < lanes; ++i) blend.push_back(static_cast<int>(i >= begin && i < end ? lanes + i : i));
    auto* loaded =
        b_.CreateMaskedLoad(llvm::FixedVectorType::get(element, end - begin), b_.CreateGEP(element, place, i64(begin)),
                            align, b_.CreateShuffleVector(mask, part), b_.CreateShuffleVector(otherwise, part));
    annotate(loaded, id);
    all = b_.CreateShuffleVector(all, b_.CreateShuffleVector(loaded, whole), blend);
  }
  return all;
}

llvm::Value* FunctionEmitter::load_from_memory(BufferId id, const Address& at, const Lanes& lanes,
                                               llvm::Constant* otherwise) {
  const DType dtype = function_->buffer(id).dtype;
  llvm::Type* element = memory_type(dtype);
  const llvm::Align align(static_cast<uint64_t>(runtime::bytes(dtype)));
  llvm::Instruction* result = nullptr;
  Value* loaded = nullptr;
  if (lanes.kind == Lanes::kOne) {
    loaded = result = b_.CreateAlignedLoad(element, pointer(at, lanes.begin, element), align);
  } else {
    auto* type = llvm::FixedVectorType::get(element, frame().lanes);
    // Where all lanes lie in memory of the function's own, a mask would only keep it from becoming registers.
    const auto begin = lanes.kind == Lanes::kForward ? lanes.begin.constant() : std::nullopt;
    const auto* own = llvm::dyn_cast<llvm::AllocaInst>(at.base);
    const bool all = begin && own && *begin >= 0 &&
                     static_cast<uint64_t>(*begin) + frame().lanes <= own->getAllocatedType()->getArrayNumElements();
    Value* mask = all ? nullptr : frame().mask;
    llvm::Constant* zero = otherwise ? otherwise : llvm::Constant::getNullValue(type);
    if (lanes.kind == Lanes::kApart) {
      if (Value* apart = load_apart(at, lanes, type, zero, id))
        return dtype == DType::kBool ? b_.CreateICmpNE(apart, llvm::Constant::getNullValue(type)) : apart;
    }
    if (lanes.kind == Lanes::kAnywhere || lanes.kind == Lanes::kApart) {
      Value* from = places(at, element);
      if (mask && !llvm::isa<llvm::Constant>(mask) && !unit_.level.masks() && known_elements(id).value_or(0) > 0) {
        // No branch for each lane: inactive ones load the first element.
        from = b_.CreateSelect(mask, from, widen(at.base));
        result = b_.CreateMaskedGather(type, from, align, all_lanes(), zero);
        loaded = b_.CreateSelect(mask, result, zero);
      } else {
        loaded = result = b_.CreateMaskedGather(type, from, align, mask ? mask : all_lanes(), zero);
      }
    } else {
      const bool backward = lanes.kind == Lanes::kBackward;
      Value* place = pointer(at, lanes.begin, element);
      if (const auto* known = mask && !backward ? llvm::dyn_cast<llvm::Constant>(mask) : nullptr;
          known && zero->getSplatValue()) {
        std::vector<llvm::Constant*> wanted;
        for (unsigned i = 0; i < frame().lanes; ++i) wanted.push_back(known->getAggregateElement(i));
        if (Value* some = load_some(id, place, element, wanted, zero->getSplatValue()))
          return dtype == DType::kBool ? b_.CreateICmpNE(some, llvm::Constant::getNullValue(type)) : some;
      }
      if (mask && !backward && in_pieces(type, mask)) {
        loaded = load_in_pieces(type, place, align, mask, zero, id);
        return dtype == DType::kBool ? b_.CreateICmpNE(loaded, llvm::Constant::getNullValue(type)) : loaded;
      }
      if (!mask) result = b_.CreateAlignedLoad(type, place, align);
      else result = b_.CreateMaskedLoad(type, place, align, backward ? b_.CreateVectorReverse(mask) : mask, zero);
      loaded = backward ? b_.CreateVectorReverse(result) : result;
      if (!mask && otherwise && frame().mask) loaded = b_.CreateSelect(frame().mask, loaded, otherwise);
    }
  }
  annotate(result, id);
  return dtype == DType::kBool ? b_.CreateICmpNE(loaded, llvm::Constant::getNullValue(loaded->getType())) : loaded;
}

void FunctionEmitter::store(BufferId id, const Dims& indices, Value* value) {
  const DType dtype = function_->buffer(id).dtype;
  llvm::Type* element = memory_type(dtype);
  const llvm::Align align(static_cast<uint64_t>(runtime::bytes(dtype)));
  const Address at = address(id, indices);
  if (frame().lanes > 0) value = widen(value);
  if (dtype == DType::kBool) value = b_.CreateZExt(value, value->getType()->getWithNewType(element));
  llvm::Instruction* done = nullptr;
  const bool is_kept = dtype != DType::kBool && !frame().mask;
  if (frame().lanes == 0) {
    done = b_.CreateAlignedStore(value, pointer(at, at.offset, element), align);
    keep(at, {Lanes::kOne, at.offset}, is_kept ? value : nullptr);
  } else {
    const Lanes lanes = lanes_at(at);
    keep(at, lanes, is_kept && lanes.kind == Lanes::kForward ? value : nullptr);
    Value* mask = frame().mask;
    if (lanes.kind == Lanes::kForward || lanes.kind == Lanes::kBackward) {
      const bool backward = lanes.kind == Lanes::kBackward;
      Value* place = pointer(at, lanes.begin, element);
      if (backward) value = b_.CreateVectorReverse(value);
      if (const auto some = !backward && mask && !unit_.level.masks() ? run_of(mask) : std::nullopt) {
        std::vector<int> from(some->second);
        std::iota(from.begin(), from.end(), static_cast<int>(some->first));
        value = b_.CreateShuffleVector(value, from);
        place = b_.CreateGEP(element, place, i64(some->first));
        mask = nullptr;
      }
      if (!mask) done = b_.CreateAlignedStore(value, place, align);
      else done = b_.CreateMaskedStore(value, place, align, backward ? b_.CreateVectorReverse(mask) : mask);
    } else if (lanes.kind == Lanes::kApart && store_apart(at, lanes, value, id)) {
      return;
    } else {  // where several lanes write one element, the last one stays
      done = b_.CreateMaskedScatter(value, places(at, element), align, mask ? mask : all_lanes());
    }
  }
  annotate(done, id);
}

}  // namespace tenon::compiler::native
