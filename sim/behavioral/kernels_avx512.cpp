// The AVX-512 VNNI kernel set: vpdpbusd multiplies unsigned by signed bytes, so packed inputs have 128 added and each
// packed weight matrix has -128 times its row sums as a correction. All sums wrap, so the result is exact.
#if defined(__x86_64__)
// GCC 12 warns about the undefined operand that its own headers pass to unmasked builtins.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "sim/behavioral/kernels.h"

namespace tenon::sim::kernels {
namespace {

// Packed inputs: bytes ^ 0x80, padded to four. Packed weights: per 16 output lanes the corrections (16 int32), then per
// four inputs 16 x 4 bytes.
int quads(const Shape& s) { return (s.block_in + 3) / 4; }
int lane_blocks(const Shape& s) { return (s.block_out + 15) / 16; }
size_t inp_bytes(const Shape& s) { return static_cast<size_t>(quads(s)) * 4; }
size_t wgt_bytes(const Shape& s) { return static_cast<size_t>(lane_blocks(s) * (quads(s) + 1)) * 64; }

void pack_inp(const Shape& s, const std::byte* from, std::byte* to) {
  for (int k = 0; k < s.block_in; ++k) to[k] = from[k] ^ std::byte{0x80};
  for (int k = s.block_in; k < 4 * quads(s); ++k) to[k] = std::byte{0};
}

void pack_wgt(const Shape& s, const std::byte* from, std::byte* to) {
  std::memset(to, 0, wgt_bytes(s));
  for (int lane = 0; lane < s.block_out; ++lane) {
    std::byte* block = to + static_cast<size_t>(lane / 16 * (quads(s) + 1)) * 64;
    int32_t sum = 0;
    for (int k = 0; k < s.block_in; ++k) {
      const std::byte w = from[lane * s.block_in + k];
      sum += static_cast<int8_t>(w);
      block[64 + (k / 4 * 16 + lane % 16) * 4 + k % 4] = w;
    }
    sum *= -128;
    std::memcpy(block + lane % 16 * 4, &sum, 4);
  }
}

// kQuads > 0 fixes the number of quads, so that the weights of a block stay in registers.
template <int kQuads>
__attribute__((target("avx512f,avx512bw,avx512vnni"))) void gemm_block(const GemmRun& run, int quads,
                                                                       const std::byte* weights, int first_lane,
                                                                       __mmask16 mask) {
  const int n = kQuads > 0 ? kQuads : quads;
  const __m512i correction = _mm512_loadu_si512(weights);
  constexpr int kHeld = kQuads > 0 ? kQuads : 1;
  __m512i held[kHeld];
  for (int q = 0; q < kHeld; ++q) held[q] = _mm512_loadu_si512(weights + 64 * (q + 1));
  for (int64_t y = 0; y < run.ny; ++y) {
    int32_t* acc = run.acc + y * run.acc_y + first_lane;
    const std::byte* inp = run.inp + y * run.inp_y;
    for (int64_t x = 0; x < run.nx; ++x, acc += run.acc_x, inp += run.inp_x) {
      __m512i sum = correction;
      if (!run.overwrite) sum = _mm512_add_epi32(sum, _mm512_maskz_loadu_epi32(mask, acc));
      for (int q = 0; q < n; ++q) {
        int32_t quad;
        std::memcpy(&quad, inp + 4 * q, 4);
        const __m512i w = kQuads > 0 ? held[kQuads > 0 ? q : 0] : _mm512_loadu_si512(weights + 64 * (q + 1));
        sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi32(quad), w);
      }
      _mm512_mask_storeu_epi32(acc, mask, sum);
    }
  }
}

__attribute__((target("avx512f,avx512bw,avx512vnni"))) void gemm(const Shape& s, const GemmRun& run) {
  const int n = quads(s);
  for (int block = 0; block < lane_blocks(s); ++block) {
    const int lanes = std::min(16, s.block_out - 16 * block);
    const auto mask = static_cast<__mmask16>((1u << lanes) - 1);
    const std::byte* weights = run.wgt + static_cast<size_t>(block * (n + 1)) * 64;
    switch (n) {
      case 1: gemm_block<1>(run, n, weights, 16 * block, mask); break;
      case 2: gemm_block<2>(run, n, weights, 16 * block, mask); break;
      case 4: gemm_block<4>(run, n, weights, 16 * block, mask); break;
      case 8: gemm_block<8>(run, n, weights, 16 * block, mask); break;
      default: gemm_block<0>(run, n, weights, 16 * block, mask); break;
    }
  }
}

// Requantizes eight lanes at a time, in 64-bit arithmetic.
__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))) void requantize(const RequantizeRun& run,
                                                                              const spec::LayerParameters& layer) {
  int lane = 0;
  for (; lane + 8 <= run.lanes; lane += 8) {
    const __m512i p = _mm512_loadu_si512(run.parameters + lane * spec::kChannelParameterBytes);
    const __m256i bias = _mm512_cvtepi64_epi32(p);
    const __m512i multiplier = _mm512_and_si512(_mm512_srli_epi64(p, 32), _mm512_set1_epi64(0xffff));
    const __m512i shift = _mm512_and_si512(_mm512_srli_epi64(p, 48), _mm512_set1_epi64(63));
    const __m256i acc = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(run.acc + lane));
    const __m512i t = _mm512_cvtepi32_epi64(_mm256_add_epi32(acc, bias));
    __m512i v = _mm512_srav_epi64(_mm512_mul_epi32(t, multiplier), shift);
    v = _mm512_min_epi64(_mm512_max_epi64(v, _mm512_set1_epi64(256 * int64_t{layer.v_lo})),
                         _mm512_set1_epi64(256 * int64_t{layer.v_hi}));
    if (run.residual != nullptr && layer.residual) {
      const __m512i r = _mm512_cvtepi8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(run.residual + lane)));
      const __m512i scaled =
          _mm512_mul_epi32(_mm512_sub_epi64(r, _mm512_set1_epi64(layer.r_zero)), _mm512_set1_epi64(layer.r_multiplier));
      const __m512i w = _mm512_sra_epi64(scaled, _mm_cvtsi32_si128(layer.r_shift));
      v = _mm512_add_epi64(
          v, _mm512_min_epi64(_mm512_max_epi64(w, _mm512_set1_epi64(-(1 << 19))), _mm512_set1_epi64((1 << 19) - 1)));
    }
    v = _mm512_add_epi64(_mm512_srai_epi64(_mm512_add_epi64(v, _mm512_set1_epi64(128)), 8),
                         _mm512_set1_epi64(layer.zero));
    v = _mm512_min_epi64(_mm512_max_epi64(v, _mm512_set1_epi64(layer.lo)), _mm512_set1_epi64(layer.hi));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(run.out + lane), _mm512_cvtepi64_epi8(v));
  }
  if (lane < run.lanes) {
    RequantizeRun tail = run;
    tail.acc += lane, tail.out += lane, tail.lanes -= lane;
    tail.parameters += lane * spec::kChannelParameterBytes;
    if (tail.residual != nullptr) tail.residual += lane;
    portable.requantize(tail, layer);
  }
}

bool supported() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

}  // namespace

const KernelSet avx512 = {"avx512-vnni", supported, inp_bytes, wgt_bytes, pack_inp, pack_wgt, gemm, requantize};

}  // namespace tenon::sim::kernels
#endif
