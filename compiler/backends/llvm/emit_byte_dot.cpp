#include "compiler/backends/llvm/emit_byte_dot.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::compiler::native {
namespace {

using llvm::Value;

unsigned lanes_of(const Value* vector) {
  return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

// The first `count` of the indices.
std::vector<int> iota(unsigned count) {
  std::vector<int> indices;
  for (unsigned i = 0; i < count; ++i) indices.push_back(static_cast<int>(i));
  return indices;
}

// A dot product of one vector register, or of a half or a quarter of one: at least 4 lanes.
class RegisterDot {
 public:
  RegisterDot(llvm::IRBuilderBase& b, unsigned lanes)
      : b_(b),
        lanes_(lanes),
        bytes_(llvm::FixedVectorType::get(b.getInt8Ty(), 4 * lanes)),
        halves_(llvm::FixedVectorType::get(b.getInt16Ty(), 2 * lanes)) {}

  // vpdpbusd: u8 and i8.
  Value* vnni(Value* sum, Value* x, Value* y) {
    const auto id = lanes_ == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                    : lanes_ == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                  : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
    return b_.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>{}, {sum, x, y});
  }

  // vpmaddwd on the even and on the odd bytes, extended to 16 bits: the sum of two products of bytes fits into 32 bits,
  // but not into 16.
  Value* multiply_add_pairs(Value* sum, Value* x, Value* y, bool x_signed, bool y_signed) {
    const auto half = [&](Value* value, bool sign, bool odd) -> Value* {
      value = b_.CreateBitCast(value, halves_);
      if (odd) return sign ? b_.CreateAShr(value, constant(halves_, 8)) : b_.CreateLShr(value, constant(halves_, 8));
      if (!sign) return b_.CreateAnd(value, constant(halves_, 0xff));
      return b_.CreateAShr(b_.CreateShl(value, constant(halves_, 8)), constant(halves_, 8));
    };
    for (const bool odd : {false, true})
      sum = b_.CreateAdd(sum, multiply_add(half(x, x_signed, odd), half(y, y_signed, odd)));
    return sum;
  }

  // vpmaddubsw, and vpmaddwd by ones: u8 and i8.
  Value* saturating_pairs(Value* sum, Value* x, Value* y) {
    const auto id = lanes_ == 16  ? llvm::Intrinsic::x86_avx512_pmaddubs_w_512
                    : lanes_ == 8 ? llvm::Intrinsic::x86_avx2_pmadd_ub_sw
                                  : llvm::Intrinsic::x86_ssse3_pmadd_ub_sw_128;
    Value* pairs = b_.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>{}, {as_bytes(x), as_bytes(y)});
    return b_.CreateAdd(sum, multiply_add(pairs, constant(halves_, 1)));
  }

  // vpmaddwd on i16.
  Value* int16_pairs(Value* sum, Value* x, Value* y) {
    return b_.CreateAdd(sum, multiply_add(b_.CreateBitCast(x, halves_), b_.CreateBitCast(y, halves_)));
  }
  // In 32 bits, for all other processors.
  Value* generic_int16_pairs(Value* sum, Value* x, Value* y) {
    const auto halves = [&](Value* value) {
      Value* high = b_.CreateAShr(value, constant(value->getType(), 16));
      return std::pair(
          b_.CreateAShr(b_.CreateShl(value, constant(value->getType(), 16)), constant(value->getType(), 16)), high);
    };
    const auto [x_low, x_high] = halves(x);
    const auto [y_low, y_high] = halves(y);
    return b_.CreateAdd(b_.CreateAdd(sum, b_.CreateMul(x_low, y_low)), b_.CreateMul(x_high, y_high));
  }

  // sdot and udot. For u8 and i8, x = (x - 128) + 128, and the sum of 128 * y is twice the sum of 64 * y.
  Value* neon(Value* sum, Value* x, Value* y, bool x_signed, bool y_signed) {
    const auto dot = [&](Value* to, Value* a, Value* b, bool sign) {
      const auto id = sign ? llvm::Intrinsic::aarch64_neon_sdot : llvm::Intrinsic::aarch64_neon_udot;
      return b_.CreateIntrinsic(id, {to->getType(), bytes_}, {to, as_bytes(a), as_bytes(b)});
    };
    if (x_signed == y_signed) return dot(sum, x, y, x_signed);
    Value* shifted = b_.CreateXor(as_bytes(x), constant(bytes_, 0x80));
    Value* zero = llvm::Constant::getNullValue(sum->getType());
    Value* half = dot(zero, y, constant(bytes_, 64), true);
    return b_.CreateAdd(dot(sum, shifted, y, true), b_.CreateShl(half, constant(sum->getType(), 1)));
  }

  // In 32 bits, for all other processors.
  Value* generic(Value* sum, Value* x, Value* y, bool x_signed, bool y_signed, bool saturates) {
    auto* wide = llvm::FixedVectorType::get(b_.getInt32Ty(), 4 * lanes_);
    Value* products =
        b_.CreateMul(b_.CreateIntCast(as_bytes(x), wide, x_signed), b_.CreateIntCast(as_bytes(y), wide, y_signed));
    const auto nth = [&](int k) {
      std::vector<int> from;
      for (unsigned lane = 0; lane < lanes_; ++lane) from.push_back(static_cast<int>(4 * lane) + k);
      return b_.CreateShuffleVector(products, from);
    };
    for (const int k : {0, 2}) {
      Value* pair = b_.CreateAdd(nth(k), nth(k + 1));
      if (saturates) {
        pair = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, pair, constant(pair->getType(), INT16_MAX));
        pair = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, pair,
                                        llvm::ConstantInt::getSigned(pair->getType(), INT16_MIN));
      }
      sum = b_.CreateAdd(sum, pair);
    }
    return sum;
  }

 private:
  // vpmaddwd.
  Value* multiply_add(Value* x, Value* y) {
    const auto id = lanes_ == 16  ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                    : lanes_ == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                  : llvm::Intrinsic::x86_sse2_pmadd_wd;
    return b_.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>{}, {x, y});
  }
  static llvm::Constant* constant(llvm::Type* type, uint64_t value) { return llvm::ConstantInt::get(type, value); }
  Value* as_bytes(Value* value) { return b_.CreateBitCast(value, bytes_); }

  llvm::IRBuilderBase& b_;
  unsigned lanes_;
  llvm::Type *bytes_, *halves_;
};

Value* register_dot(llvm::IRBuilderBase& b, const Level& level, Value* sum, Value* x, Value* y, bool x_signed,
                    bool y_signed) {
  RegisterDot dot(b, lanes_of(sum));
  if (x_signed && !y_signed) std::swap(x, y), std::swap(x_signed, y_signed);
  if (level.family == Machine::Family::kX86 && level.dot && !x_signed && y_signed) return dot.vnni(sum, x, y);
  if (level.family == Machine::Family::kX86) return dot.multiply_add_pairs(sum, x, y, x_signed, y_signed);
  if (level.family == Machine::Family::kArm && level.dot) return dot.neon(sum, x, y, x_signed, y_signed);
  return dot.generic(sum, x, y, x_signed, y_signed, false);
}

// Registers of sums, of x and of y to those of the new sums.
using RegisterFunction = std::function<Value*(Value* sum, Value* x, Value* y)>;

// Concatenates registers of non-increasing length to a vector of `lanes`; lanes of the last one may be unused.
Value* concatenated(llvm::IRBuilderBase& b, const std::vector<Value*>& registers, unsigned lanes) {
  Value* result = nullptr;
  unsigned done = 0;
  for (Value* next : registers) {
    const unsigned width = lanes_of(next), count = std::min(width, lanes - done);
    if (!result) {
      result = next;
    } else {
      const unsigned length = lanes_of(result);
      std::vector<int> padded(length, -1), joined = iota(done);
      for (unsigned i = 0; i < std::min(width, length); ++i) padded[i] = static_cast<int>(i);
      if (width != length) next = b.CreateShuffleVector(next, padded);
      for (unsigned i = 0; i < count; ++i) joined.push_back(static_cast<int>(length + i));
      result = b.CreateShuffleVector(result, next, joined);
    }
    done += count;
  }
  return lanes_of(result) == lanes ? result : b.CreateShuffleVector(result, iota(lanes));
}

// The vectors are cut into registers.
Value* emit_in_registers(llvm::IRBuilderBase& b, const Level& level, Value* sum, Value* x, Value* y,
                         const RegisterFunction& dot) {
  const bool is_vector = sum->getType()->isVectorTy();
  const unsigned lanes = is_vector ? lanes_of(sum) : 1;
  const auto longest = static_cast<unsigned>(level.vector_bytes / 4);
  std::vector<Value*> registers;
  for (unsigned begin = 0, count = 0; begin < lanes; begin += count) {
    const unsigned remaining = lanes - begin;
    unsigned width = longest;  // of this register, whose last lanes may be unused
    while (width > 4 && width > remaining) width /= 2;
    count = std::min(width, remaining);
    const auto part = [&](Value* value) -> Value* {
      if (!value->getType()->isVectorTy()) return b.CreateVectorSplat(width, value);
      if (count == lanes && width == lanes) return value;
      std::vector<int> from(width, -1);
      for (unsigned i = 0; i < count; ++i) from[i] = static_cast<int>(begin + i);
      return b.CreateShuffleVector(value, from);
    };
    registers.push_back(dot(part(sum), part(x), part(y)));
  }
  if (!is_vector) return b.CreateExtractElement(registers.front(), uint64_t{0});
  return concatenated(b, registers, lanes);
}

// PTX's dp4a, which LLVM has no intrinsic for.
Value* emit_dp4a(llvm::IRBuilderBase& b, Value* sum, Value* x, Value* y, bool x_signed, bool y_signed) {
  const auto type = [](bool sign) { return std::string(sign ? ".s32" : ".u32"); };
  auto* signature = llvm::FunctionType::get(b.getInt32Ty(), {b.getInt32Ty(), b.getInt32Ty(), b.getInt32Ty()}, false);
  const std::string text = "dp4a" + type(x_signed) + type(y_signed) + " $0, $1, $2, $3;";
  return b.CreateCall(llvm::InlineAsm::get(signature, text, "=r,r,r,r", /*hasSideEffects=*/false), {x, y, sum});
}

}  // namespace

Value* emit_byte_dot(llvm::IRBuilderBase& b, const Level& level, Value* sum, Value* x, Value* y, bool x_signed,
                     bool y_signed) {
  if (level.family == Machine::Family::kNvidia && level.dot && !sum->getType()->isVectorTy())
    return emit_dp4a(b, sum, x, y, x_signed, y_signed);
  return emit_in_registers(b, level, sum, x, y, [&](Value* to, Value* left, Value* right) {
    return register_dot(b, level, to, left, right, x_signed, y_signed);
  });
}

Value* emit_byte_dot_saturating(llvm::IRBuilderBase& b, const Level& level, Value* sum, Value* x, Value* y) {
  return emit_in_registers(b, level, sum, x, y, [&](Value* to, Value* left, Value* right) {
    RegisterDot dot(b, lanes_of(to));
    return level.byte_pairs ? dot.saturating_pairs(to, left, right) : dot.generic(to, left, right, false, true, true);
  });
}

Value* emit_int16_dot(llvm::IRBuilderBase& b, const Level& level, Value* sum, Value* x, Value* y) {
  return emit_in_registers(b, level, sum, x, y, [&](Value* to, Value* left, Value* right) {
    RegisterDot dot(b, lanes_of(to));
    return level.int16_pairs ? dot.int16_pairs(to, left, right) : dot.generic_int16_pairs(to, left, right);
  });
}

}  // namespace tenon::compiler::native
