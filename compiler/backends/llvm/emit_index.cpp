#include "compiler/backends/llvm/emit_index.h"
#include "support/function_ref.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace tenon::compiler::native {
namespace {

bool any_atom(Dim dim, FunctionRef<bool(const DimAtom&)> holds) {
  return std::ranges::any_of(dim.node->terms, [&](const DimTerm& term) {
    return std::ranges::any_of(term.factors, [&](const DimAtom* factor) {
      return holds(*factor) || std::ranges::any_of(factor->args, [&](Dim arg) { return any_atom(arg, holds); });
    });
  });
}

}  // namespace

bool is_ragged(const loop::Buffer& buffer) { return packed_axes(buffer) > 0; }

IndexEmitter::IndexEmitter(FrameEmitter& frames, ElementLoad load_element)
    : EmitterPart(frames), load_element_(std::move(load_element)), row_(context_.symbol("$row")) {}

Dims IndexEmitter::resolve(const Dims& dims) {
  Dims resolved;
  for (Dim dim : dims) resolved.push_back(resolve(dim));
  return resolved;
}

bool IndexEmitter::varies(Dim dim) {
  if (frame().lanes == 0) return false;
  bool found = false;
  for_each_variable(dim, [&](Symbol var) { found |= frame().variables.at(var).value->getType()->isVectorTy(); });
  return found;
}

bool IndexEmitter::never_negative(Dim dim) const {
  DimBounds bounds;
  for (BufferId param : function().params) bounds.emplace(function().buffer(param).name, DimRange{});
  const auto lo = range(dim, bounds).lo;
  return lo && *lo >= 0;
}

size_t IndexEmitter::scope_of(Dim dim) {
  size_t scope = 0;
  for_each_variable(dim, [&](Symbol var) { scope = std::max(scope, frame().variables.at(var).scope); });
  // An element that is a size is not hoisted above a guard: there its index may be out of range.
  if (any_atom(dim, [](const DimAtom& atom) { return atom.kind == DimAtom::Kind::kApply; })) {
    for (size_t i = frame().scopes.size(); i-- > scope + 1;) {
      if (frame().scopes[i].guarded) return i;
    }
  }
  return scope;
}

Value* IndexEmitter::value(Dim dim) { return varies(dim) ? vector_value(dim) : uniform(dim); }

// --- Values that are equal in all lanes ---

Value* IndexEmitter::uniform(Dim dim) {
  if (const auto constant = dim.constant()) return i64(*constant);
  const size_t scope = scope_of(dim);
  if (const auto found = frame().scopes[scope].values.find(dim.node); found != frame().scopes[scope].values.end())
    return found->second;
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(frame().scopes[scope].anchor);
  Dim outer = context_.dim(0);  // the terms that an outer scope computes
  Value* sum = nullptr;
  const bool is_short = this->is_short(dim);
  for (const DimTerm& term : dim.node->terms) {
    const Dim monomial = context_.monomial(term.factors, term.coefficient);
    if (term.factors.empty() || scope_of(monomial) < scope) {
      outer = context_.add(outer, monomial);
      continue;
    }
    Value* product = uniform_product(term, dim, scope, is_short);
    sum = sum ? b_.CreateAdd(sum, product) : product;
  }
  if (outer != context_.dim(0)) sum = b_.CreateAdd(shortened(uniform(outer), is_short), sum);
  if (is_short) sum = b_.CreateSExt(sum, b_.getInt64Ty());
  return frame().scopes[scope].values[dim.node] = sum;
}

// Whether the value has 32 bits: a GPU computes with these in half of the instructions. Sums and products of more bits
// wrap around, so only the result must fit.
bool IndexEmitter::is_short(Dim dim) {
  if (!frames_.unit().is_gpu()) return false;
  const DimRange bounds = range(dim, frame().bounds);
  return bounds.lo && bounds.hi && *bounds.lo >= INT32_MIN && *bounds.hi <= INT32_MAX;
}

Value* IndexEmitter::shortened(Value* value, bool is_short) {
  return is_short ? b_.CreateTrunc(value, b_.getInt32Ty()) : value;
}

// One term of `whole`, which is computed in the scope.
Value* IndexEmitter::uniform_product(const DimTerm& term, Dim whole, size_t scope, bool is_short) {
  Value* product = nullptr;
  for (const DimAtom* factor : term.factors) {
    const Dim alone = context_.monomial({factor});
    Value* next = shortened(alone == whole ? uniform_atom(*factor) : uniform(alone), is_short);
    product = product ? b_.CreateMul(product, next) : next;
  }
  if (term.coefficient == 1) return product;
  product = b_.CreateMul(product, shortened(i64(term.coefficient), is_short));
  FrameEmitter::HoistScope& hoist = frame().scopes[scope];
  // A multiple of the loop's counter is stepped by the loop, except by a power of two: a shift costs no more.
  if (term.factors.size() == 1 && term.factors[0]->kind == DimAtom::Kind::kVariable &&
      term.factors[0]->name == hoist.counter && !std::has_single_bit(static_cast<uint64_t>(term.coefficient)))
    hoist.inductions.push_back(
        {llvm::cast<llvm::Instruction>(product), nullptr, nullptr, context_.dim(term.coefficient)});
  return product;
}

Value* IndexEmitter::uniform_atom(const DimAtom& atom) {
  switch (atom.kind) {
    case DimAtom::Kind::kVariable: return frame().variables.at(atom.name).value;
    case DimAtom::Kind::kFloorDivide: {
      const bool is_short = this->is_short(atom.args[0]) && atom.args[1].constant() && this->is_short(atom.args[1]);
      Value* quotient = floor_divide(shortened(uniform(atom.args[0]), is_short),
                                     shortened(uniform(atom.args[1]), is_short), never_negative(atom.args[0]));
      return is_short ? b_.CreateSExt(quotient, b_.getInt64Ty()) : quotient;
    }
    case DimAtom::Kind::kMin:
    case DimAtom::Kind::kMax: {
      const auto op = atom.kind == DimAtom::Kind::kMin ? llvm::Intrinsic::smin : llvm::Intrinsic::smax;
      Value* result = uniform(atom.args[0]);
      for (size_t i = 1; i < atom.args.size(); ++i)
        result = b_.CreateBinaryIntrinsic(op, result, uniform(atom.args[i]));
      return result;
    }
    case DimAtom::Kind::kApply: return element(atom);
    case DimAtom::Kind::kErased:
    case DimAtom::Kind::kInvalid: break;
  }
  assert(false && "a size without a value, which loop::verify() refuses");
  return i64(0);
}

Value* IndexEmitter::element(const DimAtom& atom) {
  const BufferId id = *std::ranges::find_if(function().params,
                                            [&](BufferId param) { return function().buffer(param).name == atom.name; });
  Value* loaded = load_element_(id, atom.args);
  return to_index(function().buffer(id).dtype, loaded);
}

Value* IndexEmitter::to_index(DType dtype, Value* value) {
  llvm::Type* type = b_.getInt64Ty();
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType()))
    type = llvm::FixedVectorType::get(type, vector->getNumElements());
  return b_.CreateIntCast(value, type, is_signed(dtype));
}

// --- Values that differ between lanes ---

Value* IndexEmitter::vector_value(Dim dim) {
  if (const auto found = vector_constants_.find(dim.node); found != vector_constants_.end()) return found->second;
  Value* const sum = vector_sum(dim);
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(sum)) vector_constants_.emplace(dim.node, constant);
  return sum;
}

Value* IndexEmitter::vector_sum(Dim dim) {
  Dim uniform_terms = context_.dim(0);
  Value* sum = nullptr;
  for (const DimTerm& term : dim.node->terms) {
    const Dim monomial = context_.monomial(term.factors, term.coefficient);
    if (!varies(monomial)) {
      uniform_terms = context_.add(uniform_terms, monomial);
      continue;
    }
    Dim uniform_factors = context_.dim(term.coefficient);
    Value* product = nullptr;
    for (const DimAtom* factor : term.factors) {
      const Dim alone = context_.monomial({factor});
      if (!varies(alone)) {
        uniform_factors = context_.multiply(uniform_factors, alone);
        continue;
      }
      Value* next = vector_atom(*factor);
      product = product ? b_.CreateMul(product, next) : next;
    }
    if (uniform_factors != context_.dim(1)) product = b_.CreateMul(product, frames_.splat(uniform(uniform_factors)));
    sum = sum ? b_.CreateAdd(sum, product) : product;
  }
  if (uniform_terms != context_.dim(0)) sum = b_.CreateAdd(frames_.splat(uniform(uniform_terms)), sum);
  return sum;
}

Value* IndexEmitter::vector_atom(const DimAtom& atom) {
  auto vector = [&](Dim dim) { return varies(dim) ? vector_value(dim) : frames_.splat(uniform(dim)); };
  switch (atom.kind) {
    case DimAtom::Kind::kVariable: return frame().variables.at(atom.name).value;
    case DimAtom::Kind::kFloorDivide: {
      Value* divisor = varies(atom.args[1]) ? vector_value(atom.args[1]) : uniform(atom.args[1]);
      return floor_divide(vector(atom.args[0]), divisor, never_negative(atom.args[0]));
    }
    case DimAtom::Kind::kMin:
    case DimAtom::Kind::kMax: {
      const auto op = atom.kind == DimAtom::Kind::kMin ? llvm::Intrinsic::smin : llvm::Intrinsic::smax;
      Value* result = vector(atom.args[0]);
      for (size_t i = 1; i < atom.args.size(); ++i) result = b_.CreateBinaryIntrinsic(op, result, vector(atom.args[i]));
      return result;
    }
    case DimAtom::Kind::kApply: return element(atom);
    case DimAtom::Kind::kErased:
    case DimAtom::Kind::kInvalid: break;
  }
  assert(false && "a size without a value, which loop::verify() refuses");
  return i64(0);
}

// The quotient rounded down. A divisor of 0 counts as 1: check_divisions() reports it where the quotient is used.
Value* IndexEmitter::floor_divide(Value* a, Value* b, bool nonnegative) {
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(b);
  if (b->getType() != a->getType()) b = frames_.splat(b);
  auto* zero = llvm::Constant::getNullValue(a->getType());
  if (constant && constant->getSExtValue() > 0 && nonnegative) return b_.CreateUDiv(a, b);
  Value* negated = nullptr;
  if (!constant || constant->getSExtValue() == -1) {
    auto* unit = llvm::ConstantInt::get(a->getType(), 1);
    auto* minus = b_.CreateICmpEQ(b, llvm::ConstantInt::getSigned(a->getType(), -1));
    negated = minus;
    b = b_.CreateSelect(b_.CreateOr(minus, b_.CreateICmpEQ(b, zero)), unit, b);  // INT64_MIN / -1 is a trap
  }
  Value* quotient = b_.CreateSDiv(a, b);
  Value* remainder = b_.CreateSub(a, b_.CreateMul(quotient, b));
  Value* down = b_.CreateAnd(b_.CreateICmpNE(remainder, zero), b_.CreateICmpSLT(b_.CreateXor(remainder, b), zero));
  quotient = b_.CreateAdd(quotient, b_.CreateSExt(down, a->getType()));
  return negated ? b_.CreateSelect(negated, b_.CreateNeg(a), quotient) : quotient;
}

void IndexEmitter::check_divisions(Dim dim) {
  any_atom(dim, [&](const DimAtom& atom) {
    if (atom.kind != DimAtom::Kind::kFloorDivide || atom.args[1].constant()) return false;
    Value* divisor = value(atom.args[1]);
    frames_.fail_if(b_.CreateICmpEQ(divisor, llvm::Constant::getNullValue(divisor->getType())), TN_FAULT_SIZE_DIVISION,
                    i64(0), i64(0));
    return false;
  });
}

void IndexEmitter::check_divisions(const Dims& dims) {
  for (Dim dim : dims) check_divisions(dim);
}

// --- Sizes of buffers ---

void IndexEmitter::declare(BufferId id) {
  const loop::Buffer& buffer = function().buffer(id);
  Env env = env_;
  for (const loop::BufferAxis& axis : buffer.axes) env.erase(axis.var);
  if (is_ragged(buffer)) env[buffer.axes[0].var] = context_.dim(row_);
  Dims& extents = extents_[id];
  extents.clear();
  for (const loop::BufferAxis& axis : buffer.axes) extents.push_back(context_.substitute(axis.extent, env));
}

Dim IndexEmitter::extent(BufferId id, size_t axis, Dim row) {
  return context_.substitute(extents_.at(id)[axis], {{row_, row}});
}

Dim IndexEmitter::row_elements(BufferId id, Dim row) {
  Dim product = context_.dim(1);
  for (size_t axis = 1; axis < extents_.at(id).size(); ++axis)
    product = context_.multiply(product, extent(id, axis, row));
  return product;
}

std::pair<const DimNode*, const DimNode*> IndexEmitter::table_key(BufferId id) {
  return {extents_.at(id)[0].node, row_elements(id, context_.dim(row_)).node};
}

}  // namespace tenon::compiler::native
