#include "compiler/backends/llvm/math_wide.h"

#include <cstdint>
#include <limits>
#include <utility>

namespace tenon::compiler::native {
namespace {

using llvm::Value;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Adding it rounds to an integer, which is then in the lowest bits.
constexpr double kRounder = 0x1.8p52;

// The operations that the functions share, in f64 and integers of as many lanes as the given type.
class Wide {
 public:
  Wide(llvm::IRBuilder<>& b, llvm::Type* f32)
      : b(b),
        f32(f32),
        f64(f32->getWithNewType(b.getDoubleTy())),
        i32(f32->getWithNewType(b.getInt32Ty())),
        i64(f32->getWithNewType(b.getInt64Ty())) {}

  llvm::Constant* real(double value) const { return llvm::ConstantFP::get(f64, value); }
  llvm::Constant* int32(int64_t value) const { return llvm::ConstantInt::getSigned(i32, value); }
  llvm::Constant* int64(int64_t value) const { return llvm::ConstantInt::getSigned(i64, value); }
  Value* magnitude(Value* x) const { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  // The sign bits of f32 values.
  Value* signs(Value* x) const { return b.CreateAnd(b.CreateBitCast(x, i32), int32(INT32_MIN)); }
  Value* with_signs(Value* x, Value* signs) const {
    return b.CreateBitCast(b.CreateXor(b.CreateBitCast(x, i32), signs), f32);
  }
  // The nearest integer of values below 2^31, as a real and as an integer.
  std::pair<Value*, Value*> rounded(Value* x) const {
    Value* shifted = b.CreateFAdd(x, real(kRounder));
    return {b.CreateFSub(shifted, real(kRounder)), b.CreateTrunc(b.CreateBitCast(shifted, i64), i32)};
  }
  // Horner's scheme; the highest coefficient first.
  Value* polynomial(Value* x, const std::vector<double>& coefficients) const {
    Value* result = real(coefficients[0]);
    for (size_t i = 1; i < coefficients.size(); ++i)
      result = b.CreateFAdd(b.CreateFMul(result, x), real(coefficients[i]));
    return result;
  }

  llvm::IRBuilder<>& b;
  llvm::Type *f32, *f64, *i32, *i64;
};

// --- sin and cos ---

// An angle as a number of quarter turns, of which the last two bits count, and the remaining angle of at most an
// eighth.
struct Reduced {
  Value *turns, *angle;
};

// For magnitudes below 2^17: the product of the first part of pi/2, of 25 bits, is exact.
Reduced reduce(const Wide& w, Value* x) {
  auto& b = w.b;
  const auto [whole, turns] = w.rounded(b.CreateFMul(x, w.real(0x1.45f306dc9c883p-1)));
  Value* angle = b.CreateFSub(x, b.CreateFMul(whole, w.real(0x1.921fb5p0)));
  return {turns, b.CreateFSub(angle, b.CreateFMul(whole, w.real(0x1.110b4611a6263p-26)))};
}

// The words of 2/pi that begin at each of its bytes; the first three begin before the point.
llvm::GlobalVariable* words_of_two_over_pi(llvm::Module& module) {
  constexpr const char* kName = "tn.two_over_pi";
  if (auto* existing = module.getNamedGlobal(kName)) return existing;
  constexpr uint8_t kBytes[] = {0,    0,    0,    0xa2, 0xf9, 0x83, 0x6e, 0x4e, 0x44, 0x15, 0x29, 0xfc, 0x27, 0x57,
                                0xd1, 0xf5, 0x34, 0xdd, 0xc0, 0xdb, 0x62, 0x95, 0x99, 0x3c, 0x43, 0x90, 0x41};
  std::vector<uint32_t> words;
  for (size_t i = 0; i + 4 <= std::size(kBytes); ++i) {
    uint32_t word = 0;
    for (size_t k = 0; k < 4; ++k) word = word << 8 | kBytes[i + k];
    words.push_back(word);
  }
  llvm::Constant* const table = llvm::ConstantDataArray::get(module.getContext(), words);
  return new llvm::GlobalVariable(module, table->getType(), true, llvm::GlobalValue::InternalLinkage, table, kName);
}

// For magnitudes of 2 and more, given as bits of f32: the product with the 96 bits of 2/pi that determine the turns'
// last two bits and a fraction of 62. (Payne and Hanek.)
Reduced reduce_large(const Wide& w, Value* bits) {
  auto& b = w.b;
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  llvm::GlobalVariable* const table = words_of_two_over_pi(module);
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(w.i32);
  Value* const first = b.CreateAnd(b.CreateLShr(bits, 26), w.int32(15));
  const auto word = [&](int after) -> Value* {
    const auto load = [&](Value* index) {
      Value* at = b.CreateZExt(b.CreateAdd(index, b.getInt32(static_cast<uint32_t>(after))), b.getInt64Ty());
      return b.CreateLoad(b.getInt32Ty(), b.CreateInBoundsGEP(table->getValueType(), table, {b.getInt64(0), at}));
    };
    if (!vector) return load(first);
    Value* words = llvm::PoisonValue::get(w.i32);
    for (unsigned lane = 0; lane < vector->getNumElements(); ++lane)
      words = b.CreateInsertElement(words, load(b.CreateExtractElement(first, lane)), lane);
    return words;
  };
  Value* mantissa = b.CreateOr(b.CreateAnd(bits, w.int32(0x7fffff)), w.int32(0x800000));
  mantissa = b.CreateZExt(b.CreateShl(mantissa, b.CreateAnd(b.CreateLShr(bits, 23), w.int32(7))), w.i64);
  const auto product = [&](Value* factor) { return b.CreateMul(mantissa, b.CreateZExt(factor, w.i64)); };
  Value* high = b.CreateShl(product(word(0)), 32);
  Value* sum = b.CreateAdd(b.CreateOr(high, b.CreateLShr(product(word(8)), 32)), product(word(4)));
  Value* turns = b.CreateLShr(b.CreateAdd(sum, w.int64(int64_t{1} << 61)), 62);
  Value* angle = b.CreateSub(sum, b.CreateShl(turns, 62));
  // Halves become reals without a rounding, which all processors have an instruction for.
  Value* upper = b.CreateSIToFP(b.CreateTrunc(b.CreateLShr(angle, 32), w.i32), w.f64);
  Value* lower = b.CreateUIToFP(b.CreateTrunc(angle, w.i32), w.f64);
  Value* fraction = b.CreateFAdd(b.CreateFMul(upper, w.real(0x1p32)), lower);
  return {b.CreateTrunc(turns, w.i32), b.CreateFMul(fraction, w.real(0x1.921fb54442d18p-62))};
}

// Reduces all lanes a second time if one of them is large.
Reduced reduce_any(const Wide& w, Value* size) {
  auto& b = w.b;
  llvm::LLVMContext& context = b.getContext();
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  const Reduced small = reduce(w, b.CreateFPExt(size, w.f64));
  Value* const is_large = b.CreateFCmpOGE(size, llvm::ConstantFP::get(w.f32, 0x1p17));
  auto *before = b.GetInsertBlock(), *large_block = llvm::BasicBlock::Create(context, "large", function),
       *done = llvm::BasicBlock::Create(context, "done", function);
  b.CreateCondBr(w.f32->isVectorTy() ? b.CreateOrReduce(is_large) : is_large, large_block, done);
  b.SetInsertPoint(large_block);
  const Reduced large = reduce_large(w, b.CreateBitCast(size, w.i32));
  const Reduced chosen = {b.CreateSelect(is_large, large.turns, small.turns),
                          b.CreateSelect(is_large, large.angle, small.angle)};
  b.CreateBr(done);
  b.SetInsertPoint(done);
  auto *turns = b.CreatePHI(w.i32, 2), *angle = b.CreatePHI(w.f64, 2);
  turns->addIncoming(small.turns, before), turns->addIncoming(chosen.turns, large_block);
  angle->addIncoming(small.angle, before), angle->addIncoming(chosen.angle, large_block);
  return {turns, angle};
}

// sin(x + quarters * pi/2) of x >= 0; the polynomials are those of FreeBSD's sinf and cosf.
Value* sine_of(const Wide& w, Value* x, int quarters) {
  auto& b = w.b;
  const auto [turns, r] = reduce_any(w, x);
  Value* quadrant = quarters == 0 ? turns : b.CreateAdd(turns, w.int32(quarters));
  Value* z = b.CreateFMul(r, r);
  Value* sine =
      w.polynomial(z, {0x1.6cd878c3b46a7p-19, -0x1.a00f9e2cae774p-13, 0x1.11110896efbb2p-7, -0x1.5555554cbac77p-3, 1});
  Value* cosine =
      w.polynomial(z, {0x1.99342e0ee5069p-16, -0x1.6c087e80f1e27p-10, 0x1.55553e1053a42p-5, -0x1.ffffffd0c5e81p-2, 1});
  Value* is_cosine = b.CreateICmpNE(b.CreateAnd(quadrant, w.int32(1)), w.int32(0));
  Value* result = b.CreateFPTrunc(b.CreateSelect(is_cosine, cosine, b.CreateFMul(sine, r)), w.f32);
  return w.with_signs(result, b.CreateShl(b.CreateAnd(quadrant, w.int32(2)), 30));
}

// Infinity minus itself and NaN are NaN.
Value* finite_or_nan(const Wide& w, Value* x, Value* size, Value* result) {
  Value* is_finite = w.b.CreateFCmpOLT(size, llvm::ConstantFP::getInfinity(w.f32));
  return w.b.CreateSelect(is_finite, result, w.b.CreateFSub(x, x));
}

// --- pow ---

// The binary logarithm of x > 0: the exponent and that of a mantissa m around 1, by the series of s = (m - 1) / (m +
// 1). Of zero and infinity it is infinite.
Value* binary_logarithm(const Wide& w, Value* x) {
  auto& b = w.b;
  Value* bits = b.CreateBitCast(x, w.i64);
  constexpr int64_t kRootOfHalf = 0x3fe6a09e;  // the upper word of sqrt(0.5)
  Value* upper = b.CreateTrunc(b.CreateLShr(bits, 32), w.i32);
  Value* exponent = b.CreateAShr(b.CreateSub(upper, w.int32(kRootOfHalf)), 20);
  Value* mantissa = b.CreateSub(bits, b.CreateShl(b.CreateZExt(b.CreateShl(exponent, 20), w.i64), 32));
  Value* m = b.CreateBitCast(mantissa, w.f64);
  Value* s = b.CreateFDiv(b.CreateFSub(m, w.real(1)), b.CreateFAdd(m, w.real(1)));
  std::vector<double> series;  // |s| < 0.172: the next term is below 2^-49
  for (int n = 17; n > 0; n -= 2) series.push_back(2 * 1.4426950408889634 / n);
  Value* part = b.CreateFMul(s, w.polynomial(b.CreateFMul(s, s), series));
  Value* result = b.CreateFAdd(b.CreateSIToFP(exponent, w.f64), part);
  result = b.CreateSelect(b.CreateFCmpOEQ(x, w.real(0)), w.real(-kInfinity), result);
  return b.CreateSelect(b.CreateFCmpOLT(x, w.real(kInfinity)), result, x);
}

// The power of two; beyond 400 it overflows f32 anyway.
Value* binary_power(const Wide& w, Value* x) {
  auto& b = w.b;
  x = b.CreateSelect(b.CreateFCmpOLT(x, w.real(-400)), w.real(-400), x);
  x = b.CreateSelect(b.CreateFCmpOGT(x, w.real(400)), w.real(400), x);
  const auto [whole, exponent] = w.rounded(x);
  std::vector<double> series{1};  // of |r| <= 0.5: the next term is below 2^-46
  for (int n = 1; n <= 11; ++n) series.insert(series.begin(), series.front() * 0.6931471805599453 / n);
  Value* result = w.polynomial(b.CreateFSub(x, whole), series);
  Value* scale = b.CreateShl(b.CreateZExt(b.CreateAdd(exponent, w.int32(1023)), w.i64), 52);
  return b.CreateFMul(result, b.CreateBitCast(scale, w.f64));
}

}  // namespace

Value* sine(llvm::IRBuilder<>& b, const Values& params) {
  const Wide w(b, params[0]->getType());
  Value* const size = w.magnitude(params[0]);
  return finite_or_nan(w, params[0], size, w.with_signs(sine_of(w, size, 0), w.signs(params[0])));
}

Value* cosine(llvm::IRBuilder<>& b, const Values& params) {
  const Wide w(b, params[0]->getType());
  Value* const size = w.magnitude(params[0]);
  return finite_or_nan(w, params[0], size, sine_of(w, size, 1));
}

Value* power(llvm::IRBuilder<>& b, const Values& params) {
  const Wide w(b, params[0]->getType());
  Value *x = b.CreateFPExt(params[0], w.f64), *y = b.CreateFPExt(params[1], w.f64);
  Value *size = w.magnitude(x), *exponent = w.magnitude(y);
  Value* result = b.CreateFPTrunc(binary_power(w, b.CreateFMul(y, binary_logarithm(w, size))), w.f32);

  // Beyond 2^24 every f32 is an even integer.
  Value* limited = b.CreateSelect(b.CreateFCmpOGT(exponent, w.real(0x1p25)), w.real(0x1p25), exponent);
  const auto [whole, integer] = w.rounded(limited);
  Value* const is_integer = b.CreateFCmpOEQ(whole, limited);
  Value* odd = b.CreateAnd(is_integer, b.CreateICmpNE(b.CreateAnd(integer, w.int32(1)), w.int32(0)));
  result = w.with_signs(result, b.CreateSelect(odd, w.signs(params[0]), w.int32(0)));

  Value* negative = b.CreateAnd(b.CreateFCmpOLT(x, w.real(0)), b.CreateFCmpOGT(x, w.real(-kInfinity)));
  Value* undefined = b.CreateAnd(negative, b.CreateNot(is_integer));
  result = b.CreateSelect(undefined, llvm::ConstantFP::getNaN(w.f32), result);
  Value* of_minus_one = b.CreateAnd(b.CreateFCmpOEQ(x, w.real(-1)), b.CreateFCmpOEQ(exponent, w.real(kInfinity)));
  Value* is_one = b.CreateOr(b.CreateOr(b.CreateFCmpOEQ(x, w.real(1)), b.CreateFCmpOEQ(y, w.real(0))), of_minus_one);
  return b.CreateSelect(is_one, llvm::ConstantFP::get(w.f32, 1), result);
}

}  // namespace tenon::compiler::native
