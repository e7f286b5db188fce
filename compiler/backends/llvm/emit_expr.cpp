// Scalar expressions, or vectors of them.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "compiler/backends/llvm/emit.h"
#include "compiler/backends/llvm/math.h"
#include "compiler/loop/expr.h"

namespace tenon::compiler::native {

using loop::BinaryOp;
using loop::UnaryOp;

// --- Lanes ---

llvm::Type* FunctionEmitter::shaped_as(llvm::Type* type, Value* value) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector ? llvm::FixedVectorType::get(type, vector->getNumElements()) : type;
}
llvm::Value* FunctionEmitter::widen(Value* value) {
  if (value->getType()->isVectorTy()) return value;
  Made* const here = llvm::isa<llvm::Constant>(value) ? nullptr : made();
  if (!here) return b_.CreateVectorSplat(frame().lanes, value);
  Value*& known = here->wide[{value, frame().lanes}];
  if (!known) known = b_.CreateVectorSplat(frame().lanes, value);
  return known;
}
void FunctionEmitter::same_lanes(Value*& a, Value*& b) {
  if (a->getType()->isVectorTy() == b->getType()->isVectorTy()) return;
  a = widen(a), b = widen(b);
}
llvm::Value* FunctionEmitter::any(Value* lanes) {
  if (const auto* known = llvm::dyn_cast<llvm::Constant>(lanes)) return b_.getInt1(!known->isNullValue());
  return b_.CreateOrReduce(lanes);
}
llvm::Value* FunctionEmitter::all_lanes() { return b_.CreateVectorSplat(frame().lanes, b_.getTrue()); }

// --- Leaves ---

Dims FunctionEmitter::resolve(const Dims& dims) {
  Dims resolved;
  for (Dim dim : dims) resolved.push_back(resolve(dim));
  return resolved;
}

// What is mentioned several times, as what a quantization clamps, is computed once: a chain of them would grow
// exponentially otherwise.
llvm::Value* FunctionEmitter::expression(const Expr& expr) {
  if (const auto known = shared_.find(expr); known != shared_.end()) return known->second;
  Value* const value = std::visit([&](const auto& one) { return form(*expr, one); }, expr->form);
  if (expr.use_count() > 1) shared_.emplace(expr, value);
  return value;
}
llvm::Value* FunctionEmitter::whole(const Expr& expr) {
  shared_.clear();
  return expression(expr);
}

llvm::Value* FunctionEmitter::form(const loop::ExprNode& node, const loop::Literal& form) {
  llvm::Type* type = value_type(node.dtype);
  if (loop::is_float(node.dtype)) return llvm::ConstantFP::get(type, form.real);
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(form.integer), is_signed(node.dtype));
}

llvm::Value* FunctionEmitter::form(const loop::ExprNode&, const loop::IndexValue& form) {
  const Dim dim = resolve(form.value);
  check_divisions(dim);
  return value(dim);
}

llvm::Value* FunctionEmitter::form(const loop::ExprNode&, const loop::Load& form) {
  const Dims indices = resolve(form.indices);
  for (Dim one : indices) check_divisions(one);
  return load(form.buffer, indices);
}

// --- Operations ---

llvm::Value* FunctionEmitter::form(const loop::ExprNode& node, const loop::Unary& form) {
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
    // As the mode says, which is to even for all operations here; LLVM cannot do roundeven on ARMv7's vectors.
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

llvm::Value* FunctionEmitter::form(const loop::ExprNode&, const loop::Binary& form) {
  if (form.op == BinaryOp::kAnd || form.op == BinaryOp::kOr) {
    if (!harmless(form.right)) {  // the right side only where the left one does not decide
      const bool conjunction = form.op == BinaryOp::kAnd;
      Value* left = expression(form.left);
      const Expr decided = loop::integer_literal(DType::kBool, conjunction ? 0 : 1);
      return conjunction ? choose(left, form.right, decided) : choose(left, decided, form.right);
    }
  } else if (Value* fused = contracted(form)) {
    return fused;
  } else if (Value* dot = dot_added(form)) {
    return dot;
  }
  Value *a = expression(form.left), *b = expression(form.right);
  same_lanes(a, b);
  // LLVM folds vectors lane by lane, which takes long where each tap of a window asks the same.
  const std::tuple key(form.op, a, b);
  const bool is_condition = form.left->dtype == DType::kI64 || form.left->dtype == DType::kBool;
  const bool folds =
      is_condition && a->getType()->isVectorTy() && llvm::isa<llvm::Constant>(a) && llvm::isa<llvm::Constant>(b);
  if (folds) {
    if (const auto known = folded_.find(key); known != folded_.end()) return known->second;
  }
  Value* const result = computed(form, a, b);
  if (auto* constant = folds ? llvm::dyn_cast<llvm::Constant>(result) : nullptr) folded_.emplace(key, constant);
  return result;
}

llvm::Value* FunctionEmitter::computed(const loop::Binary& form, Value* a, Value* b) {
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
    case BinaryOp::kMax: return extreme(form.op == BinaryOp::kMax, dtype, a, b);
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
    case BinaryOp::kByteDot: break;  // dot_added()
  }
  assert(false);
  return a;
}

// a * b + c, or c + a * b, rounded once.
llvm::Value* FunctionEmitter::contracted(const loop::Binary& form) {
  if (!unit_.contract || !unit_.level.fma || form.op != BinaryOp::kAdd || !loop::is_float(form.left->dtype))
    return nullptr;
  for (const auto& [product, sum] : {std::pair(&form.right, &form.left), std::pair(&form.left, &form.right)}) {
    const auto* multiply = std::get_if<loop::Binary>(&(*product)->form);
    if (!multiply || multiply->op != BinaryOp::kMultiply) continue;
    Value* c = expression(*sum);
    Value *a = expression(multiply->left), *b = expression(multiply->right);
    for (Value** one : {&a, &b}) same_lanes(*one, c);
    same_lanes(a, c), same_lanes(b, c);
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {c->getType()}, {a, b, c});
  }
  return nullptr;
}

// A dot product of bytes, and what it is added to.
llvm::Value* FunctionEmitter::dot_added(const loop::Binary& form) {
  const auto make = [&](const loop::Binary& dot, Value* sum) {
    Value *x = expression(dot.left), *y = expression(dot.right);
    if (!sum) sum = llvm::Constant::getNullValue((x->getType()->isVectorTy() ? x : y)->getType());
    if (x->getType()->isVectorTy() || y->getType()->isVectorTy()) sum = widen(sum);
    return byte_dot(sum, x, y, false, true);
  };
  if (form.op == BinaryOp::kByteDot) return make(form, nullptr);
  if (form.op != BinaryOp::kAdd) return nullptr;
  for (const auto& [dot, sum] : {std::pair(&form.right, &form.left), std::pair(&form.left, &form.right)}) {
    const auto* two = std::get_if<loop::Binary>(&(*dot)->form);
    if (two && two->op == BinaryOp::kByteDot) return make(*two, expression(*sum));
  }
  return nullptr;
}

llvm::Value* FunctionEmitter::divide(BinaryOp op, DType dtype, Value* a, Value* b) {
  const bool quotient = op == BinaryOp::kDivide, sign = is_signed(dtype);
  auto number = [&](int64_t value) { return llvm::ConstantInt::getSigned(b->getType(), value); };
  Value* minus = nullptr;  // the divisor -1, by which the smallest number is no quotient for the processor
  const auto* constant = llvm::dyn_cast<llvm::Constant>(b);
  if (const auto* all = constant && b->getType()->isVectorTy() ? constant->getSplatValue() : constant;
      const auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(all)) {
    if (known->isMinusOne() && sign) return quotient ? b_.CreateNeg(a) : number(0);
    if (known->isZero()) {
      fail_if(frame().mask ? static_cast<Value*>(frame().mask) : b_.getTrue(), TN_FAULT_DIVISION, i64(0), i64(0));
      return number(0);
    }
  } else {
    Value* zero = b_.CreateICmpEQ(b, number(0));
    fail_if(zero, TN_FAULT_DIVISION, i64(0), i64(0));
    if (sign) minus = b_.CreateICmpEQ(b, number(-1));
    if (Value* replaced = minus && frame().mask ? b_.CreateOr(zero, minus)
                          : minus               ? minus
                          : frame().mask        ? zero
                                                : nullptr)
      b = b_.CreateSelect(replaced, number(1), b);
  }
  Value* result = quotient ? (sign ? b_.CreateSDiv(a, b) : b_.CreateUDiv(a, b))
                           : (sign ? b_.CreateSRem(a, b) : b_.CreateURem(a, b));
  return minus && quotient ? b_.CreateSelect(minus, b_.CreateNeg(a), result) : result;
}

// Of floats, NaN where one of both is; of equal ones, such as both zeros, the first.
llvm::Value* FunctionEmitter::extreme(bool max, DType dtype, Value* a, Value* b) {
  if (!loop::is_float(dtype)) {
    const auto op = is_signed(dtype) ? (max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                                     : (max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
    return b_.CreateBinaryIntrinsic(op, a, b);
  }
  Value* second = max ? b_.CreateFCmpOLT(a, b) : b_.CreateFCmpOLT(b, a);
  Value* result = b_.CreateSelect(second, b, a);  // a, where one is NaN
  Value* none = b_.CreateFCmpUNO(b, b);           // folded where b is a constant
  if (const auto* constant = llvm::dyn_cast<llvm::Constant>(none); constant && constant->isNullValue()) return result;
  return b_.CreateSelect(none, b, result);
}

llvm::Value* FunctionEmitter::shift(bool right, DType dtype, Value* value, Value* distance) {
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

llvm::Value* FunctionEmitter::form(const loop::ExprNode& node, const loop::Convert& form) {
  return convert(form.value->dtype, node.dtype, expression(form.value));
}

llvm::Value* FunctionEmitter::convert(DType from, DType to, Value* x) {
  llvm::Type* type = shaped_as(value_type(to), x);
  auto* zero = llvm::Constant::getNullValue(x->getType());
  if (loop::is_float(from)) {
    if (loop::is_float(to)) return b_.CreateFPCast(x, type);
    return to == DType::kBool ? b_.CreateFCmpUNE(x, zero) : to_integer(from, to, x);
  }
  if (loop::is_float(to)) return is_signed(from) ? b_.CreateSIToFP(x, type) : b_.CreateUIToFP(x, type);
  if (to == DType::kBool) return b_.CreateICmpNE(x, zero);
  return b_.CreateIntCast(x, type, is_signed(from));
}

llvm::Value* FunctionEmitter::to_integer(DType from, DType to, Value* x) {
  const int bits = 8 * runtime::bytes(to);
  const double low = is_signed(to) ? -std::ldexp(1.0, bits - 1) : 0,
               high = std::ldexp(1.0, is_signed(to) ? bits - 1 : bits);
  // Towards zero: from above the number below the smallest, where the type has that number, which small ones do.
  const int digits = from == DType::kF32 ? 24 : 53;
  auto number = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
  Value* above = bits < digits ? b_.CreateFCmpOGT(x, number(low - 1)) : b_.CreateFCmpOGE(x, number(low));
  Value* fits = b_.CreateAnd(above, b_.CreateFCmpOLT(x, number(high)));
  fail_if(b_.CreateNot(fits), TN_FAULT_CONVERSION, x, i64(static_cast<int64_t>(to)));
  if (frame().mask) x = b_.CreateSelect(fits, x, number(0));
  llvm::Type* type = shaped_as(value_type(to), x);
  return is_signed(to) ? b_.CreateFPToSI(x, type) : b_.CreateFPToUI(x, type);
}

// --- One side of two ---

llvm::Value* FunctionEmitter::form(const loop::ExprNode&, const loop::Select& form) {
  Value* condition = expression(form.condition);
  const size_t known = loaded_.size();
  note_loads(form.condition);
  Value* result = choose(condition, form.then, form.otherwise);
  loaded_.resize(known);
  return result;
}

llvm::Value* FunctionEmitter::choose(Value* condition, const Expr& then, const Expr& otherwise) {
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(condition))
    return expression(constant->isOne() ? then : otherwise);
  if (Value* loaded = load_where(condition, then, otherwise)) return loaded;
  const bool safe[] = {harmless(then), harmless(otherwise)};
  if (safe[0] && safe[1]) {
    Value *a = expression(then), *b = expression(otherwise);
    same_lanes(a, b);
    if (condition->getType()->isVectorTy()) a = widen(a), b = widen(b);
    return b_.CreateSelect(condition, a, b);
  }
  // One side at a time, and where they join, a value of each.
  auto side = [&](Value* wanted, bool harmless, const Expr& expr) -> Value* {
    if (harmless) return widen(expression(expr));
    Value* result = nullptr;
    const auto known = shared_;
    const auto [before, after] = where_lanes(wanted, [&] { result = widen(expression(expr)); });
    shared_ = known;
    auto* join = b_.CreatePHI(result->getType(), 2);
    join->addIncoming(result, after);
    join->addIncoming(llvm::Constant::getNullValue(result->getType()), before);
    return join;
  };
  if (condition->getType()->isVectorTy()) {
    Value* a = side(condition, safe[0], then);
    Value* b = side(b_.CreateNot(condition), safe[1], otherwise);
    return b_.CreateSelect(condition, a, b);
  }
  auto* yes = block("then");
  auto* no = block("else");
  auto* done = block("done");
  b_.CreateCondBr(condition, yes, no);
  Value* values[2];
  llvm::BasicBlock* ends[2];
  for (const auto& [i, at, expr] : {std::tuple(0, yes, &then), std::tuple(1, no, &otherwise)}) {
    continue_at(at);
    open_scope(true);
    const auto known = shared_;
    values[i] = expression(*expr);
    shared_ = known;
    close_scope();
    if (frame().lanes > 0) values[i] = widen(values[i]);
    ends[i] = b_.GetInsertBlock();
    b_.CreateBr(done);
  }
  continue_at(done);
  auto* join = b_.CreatePHI(values[0]->getType(), 2);
  for (int i : {0, 1}) join->addIncoming(values[i], ends[i]);
  return join;
}

// An element that is there in some lanes, and a constant in the others: one load under a mask, however many lanes want
// it. Nothing where it is no such thing.
llvm::Value* FunctionEmitter::load_where(Value* condition, const Expr& then, const Expr& otherwise) {
  const auto* load = std::get_if<loop::Load>(&then->form);
  const auto* lane_type = llvm::dyn_cast<llvm::FixedVectorType>(condition->getType());
  if (!load || !lane_type || then->dtype == DType::kBool || !std::holds_alternative<loop::Literal>(otherwise->form))
    return nullptr;
  const Dims indices = resolve(load->indices);
  if (is_ragged(function_->buffer(load->buffer)) ||
      !std::ranges::all_of(indices, [&](Dim dim) { return harmless(dim); }))
    return nullptr;
  auto* rest =
      llvm::ConstantVector::getSplat(lane_type->getElementCount(), llvm::cast<llvm::Constant>(expression(otherwise)));
  if (const auto* known = llvm::dyn_cast<llvm::Constant>(condition)) {
    if (known->isNullValue()) return rest;
    if (known->isAllOnesValue()) return widen(expression(then));
  }
  if (std::ranges::none_of(indices, [&](Dim dim) { return varies(dim); })) return nullptr;  // no mask stops a scalar
  Value* const outer = frame().mask;
  frame().mask = outer ? b_.CreateAnd(outer, condition) : condition;
  Value* loaded = this->load(load->buffer, indices, rest);
  frame().mask = outer;
  return loaded;
}

bool FunctionEmitter::harmless(Dim dim) {
  bool good = true;
  const std::function<void(Dim)> visit = [&](Dim one) {
    for (const DimTerm& term : one.node->terms) {
      for (const DimAtom* factor : term.factors) {
        good &= factor->kind != DimAtom::Kind::kApply &&
                (factor->kind != DimAtom::Kind::kFloorDivide || factor->args[1].constant());
        std::ranges::for_each(factor->args, visit);
      }
    }
  };
  visit(dim);
  return good;
}

bool FunctionEmitter::harmless(const Expr& expr) {
  if (shared_.contains(expr)) return true;  // it has been computed
  const loop::ExprNode& node = *expr;
  if (const auto* value = std::get_if<loop::IndexValue>(&node.form); value && !harmless(value->value)) return false;
  if (const auto* load = std::get_if<loop::Load>(&node.form); load && !inside(*load)) return false;
  if (std::holds_alternative<loop::LetIndex>(node.form)) return false;
  if (const auto* from = std::get_if<loop::Convert>(&node.form);
      from && loop::is_float(from->value->dtype) && !loop::is_float(node.dtype) && node.dtype != DType::kBool)
    return false;
  if (const auto* two = std::get_if<loop::Binary>(&node.form);
      two && (two->op == BinaryOp::kDivide || two->op == BinaryOp::kRemainder) && !loop::is_float(node.dtype)) {
    const auto* divisor = std::get_if<loop::Literal>(&two->right->form);
    if (!divisor || divisor->integer == 0) return false;
  }
  return std::ranges::all_of(loop::operands(node), [&](const Expr& operand) { return harmless(operand); });
}

// An element that the condition has read, or whose indices are whole axes of the stage that are as long as the
// buffer's.
bool FunctionEmitter::inside(const loop::Load& load) {
  for (Dim one : load.indices) {
    if (!harmless(one)) return false;
  }
  if (std::ranges::find(loaded_, std::pair(load.buffer, resolve(load.indices))) != loaded_.end()) return true;
  const loop::Buffer& buffer = function_->buffer(load.buffer);
  for (size_t axis = 0; axis < load.indices.size(); ++axis) {
    const Dim size = buffer.axes[axis].extent;
    if (const auto constant = load.indices[axis].constant()) {
      if (*constant >= 0 && size.constant() && *constant < *size.constant()) continue;
      return false;
    }
    const auto var = load.indices[axis].variable();
    if (!var || !stage_ || is_ragged(buffer)) return false;
    const auto own = std::ranges::find(stage_->axes, *var, &loop::Axis::var);
    if (own == stage_->axes.end()) return false;
    const auto longest = own->extent.constant(), there = size.constant();
    if (own->extent != size && !(longest && there && *longest <= *there)) return false;
    bool outer = false;  // a size that mentions a loop means another one here
    for_each_variable(size,
                      [&](Symbol one) { outer |= std::ranges::find(function_->dims, one) == function_->dims.end(); });
    if (outer) return false;
  }
  return true;
}

void FunctionEmitter::note_loads(const Expr& expr) {
  std::visit(
      [&](const auto& form) {
        using Form = std::remove_cvref_t<decltype(form)>;
        if constexpr (std::same_as<Form, loop::Load>) {
          loaded_.emplace_back(form.buffer, resolve(form.indices));
        } else if constexpr (std::same_as<Form, loop::Unary> || std::same_as<Form, loop::Convert>) {
          note_loads(form.value);
        } else if constexpr (std::same_as<Form, loop::Binary>) {
          note_loads(form.left);
          if (form.op != BinaryOp::kAnd && form.op != BinaryOp::kOr) note_loads(form.right);
        } else if constexpr (std::same_as<Form, loop::Select>) {
          note_loads(form.condition);
        }
      },
      expr->form);
}

// --- Computed indices ---

void FunctionEmitter::with_index(Symbol var, Dim extent, const Expr& expr, const std::function<void()>& run) {
  Value* number = to_index(expr->dtype, expression(expr));
  const Dim size = resolve(extent);
  check_divisions(size);
  Value *a = number, *b = value(size);
  same_lanes(a, b);
  auto* zero = llvm::Constant::getNullValue(a->getType());
  fail_if(b_.CreateOr(b_.CreateICmpSLT(a, zero), b_.CreateICmpSGE(a, b)), TN_FAULT_INDEX, a, b);
  open_scope(false);
  const Env outside = env_;
  const auto known = std::exchange(shared_, {});
  env_[var] = define(number);
  run();
  env_ = outside;
  shared_ = known;
  close_scope();
}

llvm::Value* FunctionEmitter::form(const loop::ExprNode&, const loop::LetIndex& form) {
  Value* result = nullptr;
  with_index(form.var, form.extent, form.value, [&] { result = expression(form.body); });
  return result;
}

}  // namespace tenon::compiler::native
