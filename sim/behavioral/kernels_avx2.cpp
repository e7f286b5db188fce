// The AVX2 kernel set: int16 pairs through vpmaddwd, which is exact (vpmaddubsw would saturate).
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "sim/behavioral/kernels.h"

namespace tenon::sim::kernels {
namespace {

// Packed inputs: int16, padded to pairs. Packed weights: per 8 output lanes, per pair of inputs, 8 x 2 int16.
int pairs(const Shape& s) { return (s.block_in + 1) / 2; }
int lane_blocks(const Shape& s) { return (s.block_out + 7) / 8; }
size_t inp_bytes(const Shape& s) { return static_cast<size_t>(pairs(s)) * 4; }
size_t wgt_bytes(const Shape& s) { return static_cast<size_t>(lane_blocks(s) * pairs(s)) * 32; }

void pack_inp(const Shape& s, const std::byte* from, std::byte* to) {
  for (int k = 0; k < 2 * pairs(s); ++k) {
    const int16_t v = k < s.block_in ? static_cast<int8_t>(from[k]) : 0;
    std::memcpy(to + 2 * k, &v, 2);
  }
}

void pack_wgt(const Shape& s, const std::byte* from, std::byte* to) {
  std::memset(to, 0, wgt_bytes(s));
  for (int lane = 0; lane < s.block_out; ++lane) {
    for (int k = 0; k < s.block_in; ++k) {
      const int16_t v = static_cast<int8_t>(from[lane * s.block_in + k]);
      std::memcpy(to + ((lane / 8 * pairs(s) + k / 2) * 8 + lane % 8) * 4 + k % 2 * 2, &v, 2);
    }
  }
}

// kPairs > 0 fixes the number of pairs, so that the weights of a block stay in registers.
template <int kPairs>
__attribute__((target("avx2"))) void gemm_block(const GemmRun& run, int pairs, const std::byte* weights, int first_lane,
                                                __m256i mask) {
  const int n = kPairs > 0 ? kPairs : pairs;
  const auto* w = reinterpret_cast<const __m256i*>(weights);
  for (int64_t y = 0; y < run.ny; ++y) {
    for (int64_t x = 0; x < run.nx; ++x) {
      int32_t* acc = run.acc + y * run.acc_y + x * run.acc_x + first_lane;
      const std::byte* inp = run.inp + y * run.inp_y + x * run.inp_x;
      __m256i sum = run.overwrite ? _mm256_setzero_si256() : _mm256_maskload_epi32(acc, mask);
      __m256i odd = _mm256_setzero_si256();
      for (int p = 0; p < n; ++p) {
        int32_t pair;
        std::memcpy(&pair, inp + 4 * p, 4);
        const __m256i product = _mm256_madd_epi16(_mm256_set1_epi32(pair), _mm256_loadu_si256(w + p));
        if (p % 2 == 0) sum = _mm256_add_epi32(sum, product);
        else odd = _mm256_add_epi32(odd, product);
      }
      _mm256_maskstore_epi32(acc, mask, _mm256_add_epi32(sum, odd));
    }
  }
}

__attribute__((target("avx2"))) void gemm(const Shape& s, const GemmRun& run) {
  const int n = pairs(s);
  for (int block = 0; block < lane_blocks(s); ++block) {
    const int lanes = std::min(8, s.block_out - 8 * block);
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    const std::byte* weights = run.wgt + static_cast<size_t>(block * n) * 32;
    if (n == 8) gemm_block<8>(run, n, weights, 8 * block, mask);
    else gemm_block<0>(run, n, weights, 8 * block, mask);
  }
}

}  // namespace

const KernelSet avx2 = {"avx2",    [] { return static_cast<bool>(__builtin_cpu_supports("avx2")); },
                        inp_bytes, wgt_bytes,
                        pack_inp,  pack_wgt,
                        gemm,      portable.requantize};

}  // namespace tenon::sim::kernels
#endif
