#include "compiler/backends/llvm/emit_short_float.h"

#include <llvm/IR/Constants.h>

namespace tenon::compiler::native {
namespace {

using llvm::Value;
using runtime::DType;

constexpr uint32_t kSign = 0x80000000, kInfinity = 0x7f800000;

// Integer arithmetic on floats, lane by lane.
class Bits {
 public:
  Bits(llvm::IRBuilderBase& b, llvm::Type* shape) : b_(b) {
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape);
    const auto shaped = [&](llvm::Type* type) -> llvm::Type* {
      return vector ? llvm::FixedVectorType::get(type, vector->getNumElements()) : type;
    };
    short_ = shaped(b.getInt16Ty()), word_ = shaped(b.getInt32Ty()), real_ = shaped(b.getFloatTy());
    half_ = shaped(b.getHalfTy());
  }

  Value* constant(uint32_t value) const { return llvm::ConstantInt::get(word_, value); }
  Value* word(Value* bits) { return b_.CreateZExt(bits, word_); }
  Value* shortened(Value* word) { return b_.CreateTrunc(word, short_); }
  Value* as_word(Value* real) { return b_.CreateBitCast(real, word_); }
  Value* as_real(Value* word) { return b_.CreateBitCast(word, real_); }
  Value* real_constant(double value) const { return llvm::ConstantFP::get(real_, value); }
  llvm::Type* short_type() const { return short_; }
  llvm::Type* half_type() const { return half_; }
  llvm::Type* real_type() const { return real_; }

 private:
  llvm::IRBuilderBase& b_;
  llvm::Type *short_, *word_, *real_, *half_;
};

// A finite f16 is the float with its exponent and fraction, which is smaller by the difference of the biases.
Value* widen_f16(llvm::IRBuilderBase& b, Value* short_bits) {
  Bits bits(b, short_bits->getType());
  Value* whole = bits.word(short_bits);
  Value* sign = b.CreateShl(b.CreateAnd(whole, bits.constant(0x8000)), bits.constant(16));
  Value* magnitude = b.CreateShl(b.CreateAnd(whole, bits.constant(0x7fff)), bits.constant(13));
  Value* finite = bits.as_word(b.CreateFMul(bits.as_real(magnitude), bits.real_constant(0x1p112)));
  Value* is_finite = b.CreateICmpULT(magnitude, bits.constant(0x7c00u << 13));
  return bits.as_real(
      b.CreateOr(b.CreateSelect(is_finite, finite, b.CreateOr(magnitude, bits.constant(kInfinity))), sign));
}

// (F. Giesen, "float->half variants", 2012: float_to_half_fast3_rtne.)
Value* narrow_to_f16(llvm::IRBuilderBase& b, Value* value) {
  Bits bits(b, value->getType());
  Value* whole = bits.as_word(value);
  Value* sign = b.CreateLShr(b.CreateAnd(whole, bits.constant(kSign)), bits.constant(16));
  Value* magnitude = b.CreateAnd(whole, bits.constant(~kSign));
  // The addition of 0.5 rounds to multiples of 2^-24, the smallest f16 above zero.
  Value* subnormal = b.CreateSub(bits.as_word(b.CreateFAdd(bits.as_real(magnitude), bits.real_constant(0.5))),
                                 bits.constant(0x3f000000));
  Value* odd = b.CreateAnd(b.CreateLShr(magnitude, bits.constant(13)), bits.constant(1));
  Value* rounded = b.CreateAdd(b.CreateAdd(magnitude, bits.constant(0xc8000fff)), odd);
  Value* normal = b.CreateLShr(rounded, bits.constant(13));
  Value* finite = b.CreateSelect(b.CreateICmpULT(magnitude, bits.constant(0x38800000)), subnormal, normal);
  Value* special = b.CreateSelect(b.CreateICmpUGT(magnitude, bits.constant(kInfinity)), bits.constant(0x7e00),
                                  bits.constant(0x7c00));
  Value* is_special = b.CreateICmpUGE(magnitude, bits.constant(0x47800000));
  return bits.shortened(b.CreateOr(b.CreateSelect(is_special, special, finite), sign));
}

Value* narrow_to_bf16(llvm::IRBuilderBase& b, Value* value) {
  Bits bits(b, value->getType());
  Value* whole = bits.as_word(value);
  Value* odd = b.CreateAnd(b.CreateLShr(whole, bits.constant(16)), bits.constant(1));
  Value* rounded = b.CreateAdd(b.CreateAdd(whole, bits.constant(0x7fff)), odd);
  Value* is_nan = b.CreateICmpUGT(b.CreateAnd(whole, bits.constant(~kSign)), bits.constant(kInfinity));
  Value* quiet = b.CreateOr(whole, bits.constant(0x00400000));
  return bits.shortened(b.CreateLShr(b.CreateSelect(is_nan, quiet, rounded), bits.constant(16)));
}

}  // namespace

Value* widen_short_float(llvm::IRBuilderBase& b, const Machine& level, DType from, Value* short_bits) {
  Bits bits(b, short_bits->getType());
  if (from == DType::kBF16) return bits.as_real(b.CreateShl(bits.word(short_bits), bits.constant(16)));
  if (level.half) return b.CreateFPExt(b.CreateBitCast(short_bits, bits.half_type()), bits.real_type());
  return widen_f16(b, short_bits);
}

Value* narrow_to_short_float(llvm::IRBuilderBase& b, const Machine& level, DType to, Value* value) {
  Bits bits(b, value->getType());
  if (to == DType::kBF16) return narrow_to_bf16(b, value);
  if (level.half) return b.CreateBitCast(b.CreateFPTrunc(value, bits.half_type()), bits.short_type());
  return narrow_to_f16(b, value);
}

}  // namespace tenon::compiler::native
