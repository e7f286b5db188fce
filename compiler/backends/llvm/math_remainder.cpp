#include "compiler/backends/llvm/math_remainder.h"

#include <cstdint>

namespace tenon::compiler::native {
namespace {

using llvm::Value;

// Floats as integers: mantissas with the leading bit, and biased exponents.
class FloatBits {
 public:
  FloatBits(llvm::IRBuilder<>& b, llvm::Type* type)
      : b_(b),
        is_f32_(type->getScalarType()->isFloatTy()),
        mantissa_bits_(is_f32_ ? 23 : 52),
        type(type),
        integer(type->getWithNewType(is_f32_ ? b.getInt32Ty() : b.getInt64Ty())) {}

  llvm::Constant* number(int64_t value) const { return llvm::ConstantInt::getSigned(integer, value); }

  // Positive values; subnormal ones are shifted like all others, and have exponents below 1.
  struct Parts {
    Value *mantissa, *exponent;
  };
  Parts split(Value* x) const {
    Value* bits = b_.CreateBitCast(x, integer);
    Value* exponent = b_.CreateLShr(bits, number(mantissa_bits_));
    Value* mantissa = b_.CreateOr(b_.CreateAnd(bits, number(leading_bit() - 1)), number(leading_bit()));
    Value* is_subnormal = b_.CreateICmpEQ(exponent, number(0));
    Value* shift = leading_zeros(bits);
    return {b_.CreateSelect(is_subnormal, b_.CreateShl(bits, shift), mantissa),
            b_.CreateSelect(is_subnormal, b_.CreateSub(number(1), shift), exponent)};
  }
  // The inverse, of any mantissa whose value is a float.
  Value* join(const Parts& parts) const {
    Value* shift = leading_zeros(parts.mantissa);
    Value* mantissa = b_.CreateShl(parts.mantissa, shift);
    Value* exponent = b_.CreateSub(parts.exponent, shift);
    Value* normal =
        b_.CreateAdd(b_.CreateSub(mantissa, number(leading_bit())), b_.CreateShl(exponent, number(mantissa_bits_)));
    Value* subnormal = b_.CreateLShr(mantissa, b_.CreateSub(number(1), exponent));
    Value* bits = b_.CreateSelect(b_.CreateICmpSGT(exponent, number(0)), normal, subnormal);
    bits = b_.CreateSelect(b_.CreateICmpEQ(parts.mantissa, number(0)), number(0), bits);
    return b_.CreateBitCast(bits, type);
  }

 private:
  int64_t leading_bit() const { return int64_t{1} << mantissa_bits_; }
  // Above the bit where a mantissa begins.
  Value* leading_zeros(Value* x) const {
    Value* all = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x, b_.getFalse());
    return b_.CreateSub(all, number((is_f32_ ? 31 : 63) - mantissa_bits_));
  }

  llvm::IRBuilder<>& b_;
  bool is_f32_;
  int64_t mantissa_bits_;

 public:
  llvm::Type *type, *integer;
};

// left * 2^steps modulo right, for left < 2 * right; each lane stops after its own number of steps.
Value* divide(llvm::IRBuilder<>& b, const FloatBits& floats, Value* left, Value* right, Value* steps) {
  llvm::LLVMContext& context = b.getContext();
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  // A difference below 0 wraps to a large number.
  const auto subtract = [&](Value* x) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, x, b.CreateSub(x, right));
  };
  const bool is_vector = floats.integer->isVectorTy();
  llvm::Type* const scalar = floats.integer->getScalarType();
  Value* const last = is_vector ? b.CreateIntMaxReduce(steps, true) : steps;
  Value* const begin = subtract(left);
  auto *entry = b.GetInsertBlock(), *loop = llvm::BasicBlock::Create(context, "loop", function),
       *step = llvm::BasicBlock::Create(context, "step", function),
       *done = llvm::BasicBlock::Create(context, "done", function);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  auto *counter = b.CreatePHI(scalar, 2), *remaining = b.CreatePHI(floats.integer, 2);
  b.CreateCondBr(b.CreateICmpSLT(counter, last), step, done);
  b.SetInsertPoint(step);
  Value* counters = counter;
  if (is_vector)
    counters = b.CreateVectorSplat(llvm::cast<llvm::FixedVectorType>(floats.integer)->getElementCount(), counter);
  Value* next = subtract(b.CreateShl(remaining, floats.number(1)));
  next = b.CreateSelect(b.CreateICmpSLT(counters, steps), next, remaining);
  counter->addIncoming(llvm::ConstantInt::get(scalar, 0), entry);
  counter->addIncoming(b.CreateAdd(counter, llvm::ConstantInt::get(scalar, 1)), step);
  remaining->addIncoming(begin, entry);
  remaining->addIncoming(next, step);
  b.CreateBr(loop);
  b.SetInsertPoint(done);
  return remaining;
}

}  // namespace

Value* remainder(llvm::IRBuilder<>& b, const Values& params) {
  const FloatBits floats(b, params[0]->getType());
  Value* const x = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, params[0]);
  Value* const y = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, params[1]);
  Value* divides = b.CreateAnd(b.CreateFCmpOGE(x, y), b.CreateFCmpOGT(y, llvm::ConstantFP::get(floats.type, 0)));
  divides = b.CreateAnd(divides, b.CreateFCmpOLT(x, llvm::ConstantFP::getInfinity(floats.type)));
  const auto left = floats.split(x), right = floats.split(y);
  Value* const steps = b.CreateSelect(divides, b.CreateSub(left.exponent, right.exponent), floats.number(0));
  Value* result = floats.join({divide(b, floats, left.mantissa, right.mantissa, steps), right.exponent});
  result = b.CreateSelect(divides, result, llvm::ConstantFP::getNaN(floats.type));
  result = b.CreateSelect(b.CreateFCmpOLT(x, y), x, result);
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, params[0]);
}

}  // namespace tenon::compiler::native
