#include "compiler/backends/llvm/emit_expr.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "compiler/backends/llvm/emit_byte_dot.h"
#include "compiler/backends/llvm/emit_short_float.h"
#include "compiler/backends/llvm/math.h"
#include "compiler/loop/expr.h"

namespace tenon::compiler::native {

using loop::BinaryOp;
using loop::UnaryOp;

// --- Leaves ---

// A shared part, such as the operand of a quantization's clamp, is computed once: a chain of them would grow
// exponentially otherwise.
Value* ExprEmitter::expression(const Expr& expr) {
  if (const auto found = subexpressions_.find(expr); found != subexpressions_.end()) return found->second;
  Value* const value = std::visit([&](const auto& node) { return form(*expr, node); }, expr->form);
  if (expr.use_count() > 1) subexpressions_.emplace(expr, value);
  return value;
}
Value* ExprEmitter::root_expression(const Expr& expr) {
  subexpressions_.clear();
  return expression(expr);
}

Value* ExprEmitter::form(const loop::ExprNode& node, const loop::Literal& form) {
  llvm::Type* type = frames_.value_type(node.dtype);
  if (node.dtype == DType::kF16) return llvm::ConstantInt::get(type, runtime::Half(form.real).bits);
  if (node.dtype == DType::kBF16) return llvm::ConstantInt::get(type, runtime::BFloat16(form.real).bits);
  if (loop::is_float(node.dtype)) return llvm::ConstantFP::get(type, form.real);
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(form.integer), is_signed(node.dtype));
}

Value* ExprEmitter::form(const loop::ExprNode&, const loop::IndexValue& form) {
  const Dim dim = indices_.resolve(form.value);
  indices_.check_divisions(dim);
  return indices_.value(dim);
}

Value* ExprEmitter::form(const loop::ExprNode&, const loop::Load& form) {
  const Dims indices = indices_.resolve(form.indices);
  indices_.check_divisions(indices);
  return memory_.load(form.buffer, indices);
}

// --- Operations ---

Value* ExprEmitter::form(const loop::ExprNode& node, const loop::Unary& form) {
  Value* x = expression(form.value);
  const bool real = loop::is_float(node.dtype);
  switch (form.op) {
    case UnaryOp::kNegate: return real ? b_.CreateFNeg(x) : b_.CreateNeg(x);
    case UnaryOp::kNot: return b_.CreateNot(x);
    case UnaryOp::kAbs:
      if (real) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
      return is_signed(node.dtype) ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b_.getFalse()) : x;
    case UnaryOp::kSqrt: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
    case UnaryOp::kFloor: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
    case UnaryOp::kCeil: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x);
    // rint rounds in the current mode, which is to nearest even everywhere; LLVM has no roundeven for ARMv7's vectors.
    case UnaryOp::kRound: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::rint, x);
    case UnaryOp::kExp:
    case UnaryOp::kLog:
    case UnaryOp::kTanh:
    case UnaryOp::kErf:
    case UnaryOp::kSin:
    case UnaryOp::kCos:
    case UnaryOp::kAtan: return emit_function(b_, unit_.module, form.op, x);
  }
  assert(false);
  return x;
}

Value* ExprEmitter::form(const loop::ExprNode& node, const loop::Binary& form) {
  if (form.op == BinaryOp::kAnd || form.op == BinaryOp::kOr) {
    if (!speculatable(form.right)) {  // evaluates the right operand only if the left one does not determine the result
      const bool conjunction = form.op == BinaryOp::kAnd;
      Value* left = expression(form.left);
      const Expr determined = loop::integer_literal(DType::kBool, conjunction ? 0 : 1);
      return conjunction ? select_value(left, form.right, determined) : select_value(left, determined, form.right);
    }
  } else if (Value* fused = fused_multiply_add(form)) {
    return fused;
  } else if (Value* dot = dot_sum(form)) {
    return dot;
  } else if (Value* words = form.op == BinaryOp::kBitOr ? byte_words(node) : nullptr) {
    return words;
  }
  Value *a = expression(form.left), *b = expression(form.right);
  frames_.match_lanes(a, b);
  // LLVM folds vectors lane by lane, which is slow if every kernel tap of a window has the same condition.
  const std::tuple key(form.op, a, b);
  const bool is_condition = form.left->dtype == DType::kI64 || form.left->dtype == DType::kBool;
  const bool folds =
      is_condition && a->getType()->isVectorTy() && llvm::isa<llvm::Constant>(a) && llvm::isa<llvm::Constant>(b);
  if (folds) {
    if (const auto found = folded_conditions_.find(key); found != folded_conditions_.end()) return found->second;
  }
  Value* const result = binary_operation(form, a, b);
  if (auto* constant = folds ? llvm::dyn_cast<llvm::Constant>(result) : nullptr)
    folded_conditions_.emplace(key, constant);
  return result;
}

Value* ExprEmitter::binary_operation(const loop::Binary& form, Value* a, Value* b) {
  const DType dtype = form.left->dtype;
  const bool real = loop::is_float(dtype), sign = is_signed(dtype);
  switch (form.op) {
    case BinaryOp::kAdd: return real ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case BinaryOp::kSubtract: return real ? b_.CreateFSub(a, b) : b_.CreateSub(a, b);
    case BinaryOp::kMultiply: return real ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    case BinaryOp::kDivide: return real ? b_.CreateFDiv(a, b) : divide(form.op, dtype, a, b);
    case BinaryOp::kRemainder:
      return real ? emit_function(b_, unit_.module, form.op, a, b) : divide(form.op, dtype, a, b);
    case BinaryOp::kMin:
    case BinaryOp::kMax: return min_or_max(form.op == BinaryOp::kMax, dtype, a, b);
    case BinaryOp::kPower: return emit_function(b_, unit_.module, form.op, a, b);
    case BinaryOp::kEqual: return real ? b_.CreateFCmpOEQ(a, b) : b_.CreateICmpEQ(a, b);
    case BinaryOp::kLess: return real ? b_.CreateFCmpOLT(a, b) : sign ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    case BinaryOp::kLessEqual:
      return real ? b_.CreateFCmpOLE(a, b) : sign ? b_.CreateICmpSLE(a, b) : b_.CreateICmpULE(a, b);
    case BinaryOp::kAnd:
    case BinaryOp::kBitAnd: return b_.CreateAnd(a, b);
    case BinaryOp::kOr:
    case BinaryOp::kBitOr: return b_.CreateOr(a, b);
    case BinaryOp::kBitXor: return b_.CreateXor(a, b);
    case BinaryOp::kShiftLeft: return shift(false, dtype, a, b);
    case BinaryOp::kShiftRight: return shift(true, dtype, a, b);
    case BinaryOp::kByteDot:
    case BinaryOp::kByteDotSaturating:
    case BinaryOp::kInt16Dot: break;  // dot_sum()
  }
  assert(false);
  return a;
}

// a * b + c, or c + a * b, rounded once. Returns nullptr if the operation is not a fused multiply-add.
Value* ExprEmitter::fused_multiply_add(const loop::Binary& form) {
  if (!unit_.contract || !unit_.level.fma || form.op != BinaryOp::kAdd || !loop::is_float(form.left->dtype))
    return nullptr;
  for (const auto& [product, sum] : {std::pair(&form.right, &form.left), std::pair(&form.left, &form.right)}) {
    const auto* multiply = std::get_if<loop::Binary>(&(*product)->form);
    if (!multiply || multiply->op != BinaryOp::kMultiply) continue;
    Value* c = expression(*sum);
    Value *a = expression(multiply->left), *b = expression(multiply->right);
    for (Value** factor : {&a, &b}) frames_.match_lanes(*factor, c);
    frames_.match_lanes(a, c), frames_.match_lanes(b, c);
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {c->getType()}, {a, b, c});
  }
  return nullptr;
}

// A dot product of packed integers and an addition to it. Returns nullptr if the operation is neither.
Value* ExprEmitter::dot_sum(const loop::Binary& form) {
  const auto make = [&](const loop::Binary& dot, Value* sum) {
    Value *x = expression(dot.left), *y = expression(dot.right);
    if (!sum) sum = llvm::Constant::getNullValue((x->getType()->isVectorTy() ? x : y)->getType());
    if (x->getType()->isVectorTy() || y->getType()->isVectorTy()) sum = frames_.splat(sum);
    if (dot.op == BinaryOp::kByteDotSaturating) return emit_byte_dot_saturating(b_, unit_.level, sum, x, y);
    if (dot.op == BinaryOp::kInt16Dot) return emit_int16_dot(b_, unit_.level, sum, x, y);
    return emit_byte_dot(b_, unit_.level, sum, x, y, false, true);
  };
  if (loop::is_dot(form.op)) return make(form, nullptr);
  if (form.op != BinaryOp::kAdd) return nullptr;
  for (const auto& [dot, sum] : {std::pair(&form.right, &form.left), std::pair(&form.left, &form.right)}) {
    const auto* product = std::get_if<loop::Binary>(&(*dot)->form);
    if (product && loop::is_dot(product->op)) return make(*product, expression(*sum));
  }
  return nullptr;
}

namespace {

// The i32 that four bytes are packed into, the first one in the lowest bits: each is an element of a buffer, or a
// constant where a condition fails.
struct PackedByte {
  const loop::Load* load = nullptr;
  Expr condition, otherwise;  // nullptr: it is always loaded
};
std::optional<PackedByte> packed_byte(const Expr& expr) {
  const auto* widened = std::get_if<loop::Convert>(&expr->form);
  if (!widened) return std::nullopt;
  const Expr* value = &widened->value;
  if ((*value)->dtype != DType::kU8) return std::nullopt;
  if (const auto* sign = std::get_if<loop::Convert>(&(*value)->form); sign && sign->value->dtype == DType::kI8)
    value = &sign->value;
  PackedByte byte;
  if (const auto* select = std::get_if<loop::Select>(&(*value)->form)) {
    if (!std::holds_alternative<loop::Literal>(select->otherwise->form)) return std::nullopt;
    byte.condition = select->condition, byte.otherwise = select->otherwise;
    value = &select->then;
  }
  byte.load = std::get_if<loop::Load>(&(*value)->form);
  return byte.load ? std::optional(byte) : std::nullopt;
}
std::optional<std::array<PackedByte, 4>> packed_bytes(const loop::ExprNode& node) {
  std::array<PackedByte, 4> bytes;
  const loop::ExprNode* sum = &node;
  for (size_t k = 3; k > 0; --k) {
    const auto* both = std::get_if<loop::Binary>(&sum->form);
    const auto* shift = both && both->op == BinaryOp::kBitOr ? std::get_if<loop::Binary>(&both->right->form) : nullptr;
    const auto* distance =
        shift && shift->op == BinaryOp::kShiftLeft ? std::get_if<loop::Literal>(&shift->right->form) : nullptr;
    const auto byte =
        distance && distance->integer == static_cast<int64_t>(8 * k) ? packed_byte(shift->left) : std::nullopt;
    if (!byte) return std::nullopt;
    bytes[k] = *byte;
    if (k == 1) {
      const auto first = packed_byte(both->left);
      if (!first) return std::nullopt;
      bytes[0] = *first;
    }
    sum = both->left.get();
  }
  return bytes;
}

}  // namespace

// Words of four bytes that adjacent lanes read near each other. Returns nullptr if the node is none, or if the lanes'
// bytes are not in one register.
Value* ExprEmitter::byte_words(const loop::ExprNode& node) {
  if (frame().lanes == 0) return nullptr;
  const auto bytes = packed_bytes(node);
  if (!bytes) return nullptr;
  std::array<Dims, 4> indices;
  std::array<llvm::Constant*, 4> inside{};
  llvm::Constant* otherwise = nullptr;
  for (size_t k = 0; k < 4; ++k) {
    const auto& [load, condition, fill] = (*bytes)[k];
    if (load->buffer != (*bytes)[0].load->buffer) return nullptr;
    indices[k] = indices_.resolve(load->indices);
    if (!std::ranges::all_of(indices[k], [&](Dim dim) { return speculatable(dim); })) return nullptr;
    if (!condition) continue;
    auto* constant = llvm::dyn_cast<llvm::Constant>(expression(condition));
    auto* value = llvm::cast<llvm::Constant>(expression(fill));
    if (!constant || (otherwise && otherwise != value)) return nullptr;
    inside[k] = constant, otherwise = value;
  }
  return memory_.load_words((*bytes)[0].load->buffer, indices, inside, otherwise);
}

Value* ExprEmitter::divide(BinaryOp op, DType dtype, Value* a, Value* b) {
  const bool quotient = op == BinaryOp::kDivide, sign = is_signed(dtype);
  auto integer = [&](int64_t value) { return llvm::ConstantInt::getSigned(b->getType(), value); };
  Value* minus = nullptr;  // whether the divisor is -1, by which the smallest integer overflows: a trap
  const auto* constant = llvm::dyn_cast<llvm::Constant>(b);
  if (const auto* scalar = constant && b->getType()->isVectorTy() ? constant->getSplatValue() : constant;
      const auto* divisor = llvm::dyn_cast_or_null<llvm::ConstantInt>(scalar)) {
    if (divisor->isMinusOne() && sign) return quotient ? b_.CreateNeg(a) : integer(0);
    if (divisor->isZero()) {
      frames_.fail_if(frame().mask ? static_cast<Value*>(frame().mask) : b_.getTrue(), TN_FAULT_DIVISION, i64(0),
                      i64(0));
      return integer(0);
    }
  } else {
    Value* zero = b_.CreateICmpEQ(b, integer(0));
    frames_.fail_if(zero, TN_FAULT_DIVISION, i64(0), i64(0));
    if (sign) minus = b_.CreateICmpEQ(b, integer(-1));
    if (Value* replaced = minus && frame().mask ? b_.CreateOr(zero, minus)
                          : minus               ? minus
                          : frame().mask        ? zero
                                                : nullptr)
      b = b_.CreateSelect(replaced, integer(1), b);
  }
  Value* result = quotient ? (sign ? b_.CreateSDiv(a, b) : b_.CreateUDiv(a, b))
                           : (sign ? b_.CreateSRem(a, b) : b_.CreateURem(a, b));
  return minus && quotient ? b_.CreateSelect(minus, b_.CreateNeg(a), result) : result;
}

// Of floats, NaN if one of the operands is NaN; of equal operands, such as zeros of both signs, the first one.
Value* ExprEmitter::min_or_max(bool max, DType dtype, Value* a, Value* b) {
  if (!loop::is_float(dtype)) {
    const auto op = is_signed(dtype) ? (max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                                     : (max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
    return b_.CreateBinaryIntrinsic(op, a, b);
  }
  Value* second = max ? b_.CreateFCmpOLT(a, b) : b_.CreateFCmpOLT(b, a);
  Value* result = b_.CreateSelect(second, b, a);  // a, if one of them is NaN
  Value* b_is_nan = b_.CreateFCmpUNO(b, b);       // folded if b is a constant
  if (const auto* constant = llvm::dyn_cast<llvm::Constant>(b_is_nan); constant && constant->isNullValue())
    return result;
  return b_.CreateSelect(b_is_nan, b, result);
}

Value* ExprEmitter::shift(bool right, DType dtype, Value* value, Value* distance) {
  auto* bits = llvm::ConstantInt::get(value->getType(), 8 * static_cast<uint64_t>(runtime::bytes(dtype)));
  auto* zero = llvm::Constant::getNullValue(value->getType());
  Value* fits = b_.CreateICmpULT(distance, bits);
  Value* near = b_.CreateSelect(fits, distance, zero);
  if (!right) return b_.CreateSelect(fits, b_.CreateShl(value, near), zero);
  if (!is_signed(dtype)) return b_.CreateSelect(fits, b_.CreateLShr(value, near), zero);
  auto* last = llvm::ConstantInt::get(value->getType(), 8 * static_cast<uint64_t>(runtime::bytes(dtype)) - 1);
  return b_.CreateAShr(value, b_.CreateSelect(fits, distance, last));
}

// --- Conversions ---

Value* ExprEmitter::form(const loop::ExprNode& node, const loop::Convert& form) {
  if (const auto byte = unit_.is_gpu() ? std::nullopt : match_quantization(node))
    return quantization_.emit(*byte, expression(byte->value));
  return convert(form.value->dtype, node.dtype, expression(form.value));
}

Value* ExprEmitter::convert(DType from, DType to, Value* x) {
  if (runtime::kShortFloats.contains(from)) return widen_short_float(b_, unit_.level, from, x);
  if (runtime::kShortFloats.contains(to)) return narrow_to_short_float(b_, unit_.level, to, x);
  llvm::Type* type = frames_.shaped_as(frames_.value_type(to), x);
  auto* zero = llvm::Constant::getNullValue(x->getType());
  if (loop::is_float(from)) {
    if (loop::is_float(to)) return b_.CreateFPCast(x, type);
    return to == DType::kBool ? b_.CreateFCmpUNE(x, zero) : to_integer(from, to, x);
  }
  if (loop::is_float(to)) return is_signed(from) ? b_.CreateSIToFP(x, type) : b_.CreateUIToFP(x, type);
  if (to == DType::kBool) return b_.CreateICmpNE(x, zero);
  return b_.CreateIntCast(x, type, is_signed(from));
}

Value* ExprEmitter::to_integer(DType from, DType to, Value* x) {
  const int bits = 8 * runtime::bytes(to);
  const double low = is_signed(to) ? -std::ldexp(1.0, bits - 1) : 0,
               high = std::ldexp(1.0, is_signed(to) ? bits - 1 : bits);
  // Rounded towards zero: values fit from above `low - 1` on, if the float type represents it, which it does for small
  // integers.
  const int mantissa_bits = from == DType::kF32 ? 24 : 53;
  auto real = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
  Value* above = bits < mantissa_bits ? b_.CreateFCmpOGT(x, real(low - 1)) : b_.CreateFCmpOGE(x, real(low));
  Value* fits = b_.CreateAnd(above, b_.CreateFCmpOLT(x, real(high)));
  frames_.fail_if(b_.CreateNot(fits), TN_FAULT_CONVERSION, x, i64(static_cast<int64_t>(to)));
  if (frame().mask) x = b_.CreateSelect(fits, x, real(0));
  llvm::Type* type = frames_.shaped_as(frames_.value_type(to), x);
  return is_signed(to) ? b_.CreateFPToSI(x, type) : b_.CreateFPToUI(x, type);
}

// --- Selects ---

Value* ExprEmitter::form(const loop::ExprNode&, const loop::Select& form) {
  Value* condition = expression(form.condition);
  const size_t outer_loads = known_loads_.size();
  record_loads(form.condition);
  Value* result = select_value(condition, form.then, form.otherwise);
  known_loads_.resize(outer_loads);
  return result;
}

Value* ExprEmitter::select_value(Value* condition, const Expr& then, const Expr& otherwise) {
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(condition))
    return expression(constant->isOne() ? then : otherwise);
  if (Value* loaded = load_under_condition(condition, then, otherwise)) return loaded;
  const bool safe[] = {speculatable(then), speculatable(otherwise)};
  if (safe[0] && safe[1]) {
    Value *a = expression(then), *b = expression(otherwise);
    frames_.match_lanes(a, b);
    if (condition->getType()->isVectorTy()) a = frames_.splat(a), b = frames_.splat(b);
    return b_.CreateSelect(condition, a, b);
  }
  if (!condition->getType()->isVectorTy()) return select_branch(condition, then, otherwise);
  Value* a = select_side(condition, safe[0], then);
  Value* b = select_side(b_.CreateNot(condition), safe[1], otherwise);
  return b_.CreateSelect(condition, a, b);
}

// One operand of a select, evaluated for the lanes of the mask only.
Value* ExprEmitter::select_side(Value* mask, bool is_speculatable, const Expr& expr) {
  if (is_speculatable) return frames_.splat(expression(expr));
  Value* result = nullptr;
  const auto outer_subexpressions = subexpressions_;
  const auto [before, after] = control_.under_mask(mask, [&] { result = frames_.splat(expression(expr)); });
  subexpressions_ = outer_subexpressions;
  auto* join = b_.CreatePHI(result->getType(), 2);
  join->addIncoming(result, after);
  join->addIncoming(llvm::Constant::getNullValue(result->getType()), before);
  return join;
}

// A select by a scalar condition, with a block for each operand.
Value* ExprEmitter::select_branch(Value* condition, const Expr& then, const Expr& otherwise) {
  auto* yes = block("then");
  auto* no = block("else");
  auto* done = block("done");
  b_.CreateCondBr(condition, yes, no);
  Value* values[2];
  llvm::BasicBlock* ends[2];
  for (const auto& [i, side, expr] : {std::tuple(0, yes, &then), std::tuple(1, no, &otherwise)}) {
    frames_.continue_at(side);
    frames_.open_scope(true);
    const auto outer_subexpressions = subexpressions_;
    values[i] = expression(*expr);
    subexpressions_ = outer_subexpressions;
    frames_.close_scope();
    if (frame().lanes > 0) values[i] = frames_.splat(values[i]);
    ends[i] = b_.GetInsertBlock();
    b_.CreateBr(done);
  }
  frames_.continue_at(done);
  auto* join = b_.CreatePHI(values[0]->getType(), 2);
  for (int i : {0, 1}) join->addIncoming(values[i], ends[i]);
  return join;
}

// A load in some lanes, and a constant in the others: one masked load. Returns nullptr if the operands are different.
Value* ExprEmitter::load_under_condition(Value* condition, const Expr& then, const Expr& otherwise) {
  const auto* load = std::get_if<loop::Load>(&then->form);
  const auto* lane_type = llvm::dyn_cast<llvm::FixedVectorType>(condition->getType());
  if (!load || !lane_type || then->dtype == DType::kBool || !std::holds_alternative<loop::Literal>(otherwise->form))
    return nullptr;
  const Dims indices = indices_.resolve(load->indices);
  if (is_ragged(function().buffer(load->buffer)) ||
      !std::ranges::all_of(indices, [&](Dim dim) { return speculatable(dim); }))
    return nullptr;
  auto* fill =
      llvm::ConstantVector::getSplat(lane_type->getElementCount(), llvm::cast<llvm::Constant>(expression(otherwise)));
  if (const auto* constant = llvm::dyn_cast<llvm::Constant>(condition)) {
    if (constant->isNullValue()) return fill;
    if (constant->isAllOnesValue()) return frames_.splat(expression(then));
  }
  if (std::ranges::none_of(indices, [&](Dim dim) { return indices_.varies(dim); }))
    return nullptr;  // a scalar has no mask
  Value* const outer = frame().mask;
  frame().mask = outer ? b_.CreateAnd(outer, condition) : condition;
  Value* loaded = memory_.load(load->buffer, indices, fill);
  frame().mask = outer;
  return loaded;
}

bool ExprEmitter::speculatable(Dim dim) {
  bool safe = true;
  const std::function<void(Dim)> visit = [&](Dim part) {
    for (const DimTerm& term : part.node->terms) {
      for (const DimAtom* factor : term.factors) {
        safe &= factor->kind != DimAtom::Kind::kApply &&
                (factor->kind != DimAtom::Kind::kFloorDivide || factor->args[1].constant());
        std::ranges::for_each(factor->args, visit);
      }
    }
  };
  visit(dim);
  return safe;
}

bool ExprEmitter::speculatable(const Expr& expr) {
  if (subexpressions_.contains(expr)) return true;  // computed already
  const loop::ExprNode& node = *expr;
  if (const auto* value = std::get_if<loop::IndexValue>(&node.form); value && !speculatable(value->value)) return false;
  if (const auto* load = std::get_if<loop::Load>(&node.form); load && !is_in_bounds(*load)) return false;
  if (std::holds_alternative<loop::LetIndex>(node.form)) return false;
  if (const auto* from = std::get_if<loop::Convert>(&node.form);
      from && loop::is_float(from->value->dtype) && !loop::is_float(node.dtype) && node.dtype != DType::kBool)
    return false;
  if (const auto* binary = std::get_if<loop::Binary>(&node.form);
      binary && (binary->op == BinaryOp::kDivide || binary->op == BinaryOp::kRemainder) &&
      !loop::is_float(node.dtype)) {
    const auto* divisor = std::get_if<loop::Literal>(&binary->right->form);
    if (!divisor || divisor->integer == 0) return false;
  }
  return std::ranges::all_of(loop::operands(node), [&](const Expr& operand) { return speculatable(operand); });
}

// An element that the condition has loaded, or whose indices are axes of the stage that are not longer than the
// buffer's.
bool ExprEmitter::is_in_bounds(const loop::Load& load) {
  for (Dim index : load.indices) {
    if (!speculatable(index)) return false;
  }
  if (std::ranges::find(known_loads_, std::pair(load.buffer, indices_.resolve(load.indices))) != known_loads_.end())
    return true;
  const loop::Buffer& buffer = function().buffer(load.buffer);
  for (size_t axis = 0; axis < load.indices.size(); ++axis) {
    const Dim size = buffer.axes[axis].extent;
    if (const auto constant = load.indices[axis].constant()) {
      if (*constant >= 0 && size.constant() && *constant < *size.constant()) continue;
      return false;
    }
    const auto var = load.indices[axis].variable();
    if (!var || !frames_.stage() || is_ragged(buffer)) return false;
    const auto stage_axis = std::ranges::find(frames_.stage()->axes, *var, &loop::Axis::var);
    if (stage_axis == frames_.stage()->axes.end()) return false;
    const auto axis_size = stage_axis->extent.constant(), buffer_size = size.constant();
    if (stage_axis->extent != size && !(axis_size && buffer_size && *axis_size <= *buffer_size)) return false;
    bool has_loop = false;  // a loop's variable in the size may have another value in the stage
    for_each_variable(
        size, [&](Symbol part) { has_loop |= std::ranges::find(function().dims, part) == function().dims.end(); });
    if (has_loop) return false;
  }
  return true;
}

void ExprEmitter::record_loads(const Expr& expr) {
  std::visit(
      [&](const auto& form) {
        using Form = std::remove_cvref_t<decltype(form)>;
        if constexpr (std::same_as<Form, loop::Load>) {
          known_loads_.emplace_back(form.buffer, indices_.resolve(form.indices));
        } else if constexpr (std::same_as<Form, loop::Unary> || std::same_as<Form, loop::Convert>) {
          record_loads(form.value);
        } else if constexpr (std::same_as<Form, loop::Binary>) {
          record_loads(form.left);
          if (form.op != BinaryOp::kAnd && form.op != BinaryOp::kOr) record_loads(form.right);
        } else if constexpr (std::same_as<Form, loop::Select>) {
          record_loads(form.condition);
        }
      },
      expr->form);
}

// --- Computed indices ---

void ExprEmitter::bind_root_index(Symbol var, Dim extent, const Expr& expr, FunctionRef<void()> run) {
  subexpressions_.clear();
  bind_index(var, extent, expr, run);
}

void ExprEmitter::bind_index(Symbol var, Dim extent, const Expr& expr, FunctionRef<void()> run) {
  Value* index = indices_.to_index(expr->dtype, expression(expr));
  const Dim size = indices_.resolve(extent);
  indices_.check_divisions(size);
  Value *a = index, *b = indices_.value(size);
  frames_.match_lanes(a, b);
  auto* zero = llvm::Constant::getNullValue(a->getType());
  frames_.fail_if(b_.CreateOr(b_.CreateICmpSLT(a, zero), b_.CreateICmpSGE(a, b)), TN_FAULT_INDEX, a, b);
  frames_.open_scope(false);
  const IndexEmitter::Env outside = indices_.env();
  const auto outer_subexpressions = std::exchange(subexpressions_, {});
  indices_.env()[var] = frames_.new_variable(index);
  run();
  indices_.env() = outside;
  subexpressions_ = outer_subexpressions;
  frames_.close_scope();
}

Value* ExprEmitter::form(const loop::ExprNode&, const loop::LetIndex& form) {
  Value* result = nullptr;
  bind_index(form.var, form.extent, form.value, [&] { result = expression(form.body); });
  return result;
}

}  // namespace tenon::compiler::native
