#include "compiler/backends/llvm/math.h"

#include <cassert>
#include <initializer_list>
#include <string>

#include "compiler/backends/llvm/math_call.h"
#include "compiler/backends/llvm/math_remainder.h"
#include "compiler/backends/llvm/math_wide.h"

namespace tenon::compiler::native {
namespace {

using llvm::Value;

// Formulas for f32 values of one shape.
class FloatFunctions {
 public:
  FloatFunctions(llvm::IRBuilderBase& b, llvm::Type* type)
      : b_(b), type_(type), bits_(type->getWithNewType(b.getInt32Ty())) {}

  // The result is scaled in two steps, so that subnormal results are rounded once. (Cephes expf.)
  Value* exp(Value* x) {
    Value* y = clamp(x, -104.f, 89.f);
    // Adding 1.5 * 2^23 rounds to an integer, which is then in the lowest bits.
    Value* shifted = b_.CreateFAdd(b_.CreateFMul(y, real(1.44269504088896341f)), real(12582912.f));
    Value* whole = b_.CreateFSub(shifted, real(12582912.f));
    Value* exponent = b_.CreateSub(bits(shifted), integer(0x4b400000));
    Value* r = b_.CreateFSub(b_.CreateFSub(y, b_.CreateFMul(whole, real(0.693359375f))),
                             b_.CreateFMul(whole, real(-2.12194440e-4f)));
    Value* p = polynomial(r, {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f,
                              5.0000001201e-1f});
    p = b_.CreateFAdd(b_.CreateFAdd(b_.CreateFMul(p, b_.CreateFMul(r, r)), r), real(1));
    Value* half = b_.CreateAShr(exponent, 1);
    return b_.CreateFMul(b_.CreateFMul(p, power_of_two(half)), power_of_two(b_.CreateSub(exponent, half)));
  }

  // x = 2^k * (1 + f) with 1 + f around 1; log(1 + f) by s = f / (2 + f). (FreeBSD logf.)
  Value* log(Value* x) {
    Value* tiny = b_.CreateFCmpOLT(x, real(1.17549435e-38f));
    Value* scaled = b_.CreateSelect(tiny, b_.CreateFMul(x, real(8388608.f)), x);
    Value* rounded = b_.CreateAdd(bits(scaled), integer(0x3f800000 - 0x3f3504f3));
    Value* k = b_.CreateSub(b_.CreateAShr(rounded, 23), integer(127));
    k = b_.CreateSub(k, b_.CreateSelect(tiny, integer(23), integer(0)));
    Value* mantissa = b_.CreateAdd(b_.CreateAnd(rounded, integer(0x007fffff)), integer(0x3f3504f3));
    Value* f = b_.CreateFSub(b_.CreateBitCast(mantissa, type_), real(1));
    Value* s = b_.CreateFDiv(f, b_.CreateFAdd(f, real(2)));
    Value *z = b_.CreateFMul(s, s), *w = b_.CreateFMul(z, z);
    Value* t1 = b_.CreateFMul(w, b_.CreateFAdd(b_.CreateFMul(w, real(0.24279078841f)), real(0.40000972152f)));
    Value* t2 = b_.CreateFMul(z, b_.CreateFAdd(b_.CreateFMul(w, real(0.28498786688f)), real(0.66666662693f)));
    Value* half = b_.CreateFMul(b_.CreateFMul(f, f), real(0.5f));
    Value* dk = b_.CreateSIToFP(k, type_);
    Value* sum = b_.CreateFMul(s, b_.CreateFAdd(half, b_.CreateFAdd(t1, t2)));
    sum = b_.CreateFAdd(sum, b_.CreateFMul(dk, real(9.0580006145e-06f)));
    sum = b_.CreateFAdd(b_.CreateFSub(sum, half), f);
    Value* result = b_.CreateFAdd(sum, b_.CreateFMul(dk, real(6.9313812256e-01f)));
    result = b_.CreateSelect(b_.CreateFCmpOEQ(x, real(0)), infinity(true), result);
    // Infinity and NaN are returned unchanged; the logarithm of a negative value is NaN.
    result = b_.CreateSelect(b_.CreateFCmpULT(x, infinity(false)), result, x);
    return b_.CreateSelect(b_.CreateFCmpOLT(x, real(0)), llvm::ConstantFP::getNaN(type_),
                           b_.CreateSelect(b_.CreateFCmpUNO(x, x), x, result));
  }

  // The quotient of an odd and an even polynomial. (Eigen.)
  Value* tanh(Value* x) {
    Value* y = clamp(x, -7.90531110763549805f, 7.90531110763549805f);
    Value* square = b_.CreateFMul(y, y);
    Value* p = polynomial(square,
                          {-2.76076847742355e-16f, 2.00018790482477e-13f, -8.60467152213735e-11f, 5.12229709037114e-08f,
                           1.48572235717979e-05f, 6.37261928875436e-04f, 4.89352455891786e-03f});
    Value* q = polynomial(square,
                          {1.19825839466702e-06f, 1.18534705686654e-04f, 2.26843463243900e-03f, 4.89352518554385e-03f});
    Value* result = b_.CreateFDiv(b_.CreateFMul(y, p), q);
    Value* small = b_.CreateFCmpOLT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x), real(0.0004f));
    return b_.CreateSelect(small, x, clamp(result, -1.f, 1.f));
  }

  // A polynomial near 0; for larger arguments 1 - exp of another polynomial. (N. Juffa.)
  Value* erf(Value* x) {
    Value* size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    Value* t = clamp(size, 0.f, 10.f);
    Value* far = polynomial(t, {-1.72853470e-5f, 3.83197126e-4f, -3.88396438e-3f, 2.42546219e-2f, -1.06777877e-1f,
                                -6.34846687e-1f, -1.28717512e-1f});
    far = exp(b_.CreateFSub(b_.CreateFMul(far, t), t));
    far = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, b_.CreateFSub(real(1), far), x);
    Value* near = polynomial(b_.CreateFMul(x, x), {-5.96761703e-4f, 4.99119423e-3f, -2.67681349e-2f, 1.12819925e-1f,
                                                   -3.76125336e-1f, 1.28379166e-1f});
    near = b_.CreateFAdd(b_.CreateFMul(near, x), x);
    return b_.CreateSelect(b_.CreateFCmpOGT(size, real(0.927734375f)), far, near);
  }

  // For large arguments pi/2 - atan(1/x), for medium ones pi/4 + atan((x - 1) / (x + 1)). (Cephes atanf.)
  Value* atan(Value* x) {
    Value* size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    Value* far = b_.CreateFCmpOGT(size, real(2.414213562373095f));
    Value* middle = b_.CreateFCmpOGT(size, real(0.4142135623730950f));
    Value* over = b_.CreateSelect(far, real(-1), b_.CreateFSub(size, real(1)));
    Value* under = b_.CreateSelect(far, size, b_.CreateFAdd(size, real(1)));
    Value* t = b_.CreateSelect(middle, b_.CreateFDiv(over, under), size);
    Value* z = b_.CreateFMul(t, t);
    Value* p = polynomial(z, {8.05374449538e-2f, -1.38776856032e-1f, 1.99777106478e-1f, -3.33329491539e-1f});
    p = b_.CreateFAdd(b_.CreateFMul(b_.CreateFMul(p, z), t), t);
    Value* begin = b_.CreateSelect(far, real(1.57079632679489662f), real(0.785398163397448309f));
    p = b_.CreateFAdd(p, b_.CreateSelect(middle, begin, real(0)));
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, p, x);
  }

 private:
  llvm::Constant* real(float value) { return llvm::ConstantFP::get(type_, value); }
  llvm::Constant* infinity(bool negative) { return llvm::ConstantFP::getInfinity(type_, negative); }
  llvm::Constant* integer(int32_t value) { return llvm::ConstantInt::getSigned(bits_, value); }
  Value* bits(Value* x) { return b_.CreateBitCast(x, bits_); }
  // NaN is returned unchanged.
  Value* clamp(Value* x, float low, float high) {
    x = b_.CreateSelect(b_.CreateFCmpOLT(x, real(low)), real(low), x);
    return b_.CreateSelect(b_.CreateFCmpOGT(x, real(high)), real(high), x);
  }
  // Horner's scheme; the highest coefficient first.
  Value* polynomial(Value* x, std::initializer_list<float> coefficients) {
    Value* result = nullptr;
    for (float c : coefficients) result = result ? b_.CreateFAdd(b_.CreateFMul(result, x), real(c)) : real(c);
    return result;
  }
  Value* power_of_two(Value* exponent) {
    return b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(exponent, integer(127)), 23), type_);
  }

  llvm::IRBuilderBase& b_;
  llvm::Type *type_, *bits_;
};

// Calls a scalar function for each element.
Value* call_each(llvm::IRBuilderBase& b, llvm::FunctionCallee callee, std::initializer_list<Value*> args) {
  llvm::Type* type = (*args.begin())->getType();
  auto call = [&](const std::vector<Value*>& values) {
    auto* result = b.CreateCall(callee, values);
    result->setDoesNotThrow();
    result->setDoesNotAccessMemory();
    return result;
  };
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (!vector) return call(args);
  Value* result = llvm::PoisonValue::get(type);
  for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
    std::vector<Value*> values;
    for (Value* arg : args) values.push_back(b.CreateExtractElement(arg, lane));
    result = b.CreateInsertElement(result, call(values), lane);
  }
  return result;
}
// For f64.
Value* call_library(llvm::IRBuilderBase& b, llvm::Module& module, const char* name,
                    std::initializer_list<Value*> args) {
  llvm::Type* scalar = (*args.begin())->getType()->getScalarType();
  const std::vector<llvm::Type*> params(args.size(), scalar);
  return call_each(b, module.getOrInsertFunction(name, llvm::FunctionType::get(scalar, params, false)), args);
}

// The power of integers of that type, by repeated squaring.
llvm::Function* integer_power(llvm::Module& module, llvm::Type* type) {
  const std::string name = "tn.power.i" + std::to_string(type->getIntegerBitWidth());
  if (llvm::Function* existing = module.getFunction(name)) return existing;
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false),
                                          llvm::GlobalValue::InternalLinkage, name, module);
  llvm::LLVMContext& context = module.getContext();
  auto *entry = llvm::BasicBlock::Create(context, "", function),
       *loop = llvm::BasicBlock::Create(context, "", function), *done = llvm::BasicBlock::Create(context, "", function);
  llvm::IRBuilder<> b(entry);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode *result = b.CreatePHI(type, 2), *base = b.CreatePHI(type, 2), *exponent = b.CreatePHI(type, 2);
  result->addIncoming(llvm::ConstantInt::get(type, 1), entry);
  base->addIncoming(function->getArg(0), entry);
  exponent->addIncoming(function->getArg(1), entry);
  Value* odd = b.CreateTrunc(exponent, b.getInt1Ty());
  Value* next = b.CreateSelect(odd, b.CreateMul(result, base), result);
  Value* remaining = b.CreateLShr(exponent, 1);
  result->addIncoming(next, loop);
  base->addIncoming(b.CreateMul(base, base), loop);
  exponent->addIncoming(remaining, loop);
  b.CreateCondBr(b.CreateICmpEQ(remaining, llvm::ConstantInt::get(type, 0)), done, loop);
  b.SetInsertPoint(done);
  b.CreateRet(next);
  return function;
}

}  // namespace

Value* emit_function(llvm::IRBuilderBase& b, llvm::Module& module, loop::UnaryOp op, Value* x) {
  using loop::UnaryOp;
  FloatFunctions floats(b, x->getType());
  const bool is_f32 = x->getType()->getScalarType()->isFloatTy();
  switch (op) {
    case UnaryOp::kExp: return is_f32 ? floats.exp(x) : call_library(b, module, "exp", {x});
    case UnaryOp::kLog: return is_f32 ? floats.log(x) : call_library(b, module, "log", {x});
    case UnaryOp::kTanh: return is_f32 ? floats.tanh(x) : call_library(b, module, "tanh", {x});
    case UnaryOp::kErf: return is_f32 ? floats.erf(x) : call_library(b, module, "erf", {x});
    case UnaryOp::kAtan: return is_f32 ? floats.atan(x) : call_library(b, module, "atan", {x});
    case UnaryOp::kSin:
      return is_f32 ? call_own_function(b, module, "sin", {x}, sine) : call_library(b, module, "sin", {x});
    case UnaryOp::kCos:
      return is_f32 ? call_own_function(b, module, "cos", {x}, cosine) : call_library(b, module, "cos", {x});
    case UnaryOp::kNegate:
    case UnaryOp::kNot:
    case UnaryOp::kAbs:
    case UnaryOp::kSqrt:
    case UnaryOp::kFloor:
    case UnaryOp::kCeil:
    case UnaryOp::kRound: break;
  }
  assert(false && "an instruction, not a function");
  return x;
}

Value* emit_function(llvm::IRBuilderBase& b, llvm::Module& module, loop::BinaryOp op, Value* left, Value* right) {
  llvm::Type* scalar = left->getType()->getScalarType();
  if (scalar->isIntegerTy()) return call_each(b, integer_power(module, scalar), {left, right});
  if (op == loop::BinaryOp::kRemainder) return call_own_function(b, module, "fmod", {left, right}, remainder);
  return scalar->isFloatTy() ? call_own_function(b, module, "pow", {left, right}, power)
                             : call_library(b, module, "pow", {left, right});
}

}  // namespace tenon::compiler::native
