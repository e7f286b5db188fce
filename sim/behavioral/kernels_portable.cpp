// The portable kernel set: plain loops, the definition against which the vector kernels are tested and the fallback on
// other machines.
#include <array>
#include <cstring>

#include "sim/behavioral/kernels.h"

namespace tenon::sim {
namespace kernels {

spec::ChannelParameters channel_parameters(const std::byte* lane) {
  spec::ChannelParameters p;
  std::memcpy(&p.bias, lane, 4);
  std::memcpy(&p.multiplier, lane + 4, 2);
  p.shift = static_cast<uint8_t>(lane[6]) & 63;
  return p;
}

namespace {

// Packed weights: int16, input lane by input lane, so that the inner loop runs along output lanes.
size_t inp_bytes(const Shape& s) { return static_cast<size_t>(s.block_in); }
size_t wgt_bytes(const Shape& s) { return static_cast<size_t>(s.block_in * s.block_out) * 2; }
void pack_inp(const Shape& s, const std::byte* from, std::byte* to) { std::memcpy(to, from, inp_bytes(s)); }
void pack_wgt(const Shape& s, const std::byte* from, std::byte* to) {
  for (int k = 0; k < s.block_in; ++k) {
    for (int lane = 0; lane < s.block_out; ++lane) {
      const auto w = static_cast<int16_t>(static_cast<int8_t>(from[lane * s.block_in + k]));
      std::memcpy(to + 2 * (k * s.block_out + lane), &w, 2);
    }
  }
}

void gemm(const Shape& s, const GemmRun& run) {
  std::array<uint32_t, 64> sum;
  const auto lanes = static_cast<size_t>(s.block_out);
  for (int64_t y = 0; y < run.ny; ++y) {
    for (int64_t x = 0; x < run.nx; ++x) {
      int32_t* acc = run.acc + y * run.acc_y + x * run.acc_x;
      const std::byte* inp = run.inp + y * run.inp_y + x * run.inp_x;
      for (size_t lane = 0; lane < lanes; ++lane) sum[lane] = run.overwrite ? 0 : static_cast<uint32_t>(acc[lane]);
      for (int k = 0; k < s.block_in; ++k) {
        const int32_t a = static_cast<int8_t>(inp[k]);
        const auto* w = reinterpret_cast<const int16_t*>(run.wgt) + static_cast<size_t>(k) * lanes;
        for (size_t lane = 0; lane < lanes; ++lane) sum[lane] += static_cast<uint32_t>(a * w[lane]);
      }
      for (size_t lane = 0; lane < lanes; ++lane) acc[lane] = static_cast<int32_t>(sum[lane]);
    }
  }
}

void requantize(const RequantizeRun& run, const spec::LayerParameters& layer) {
  for (int lane = 0; lane < run.lanes; ++lane) {
    const auto channel = channel_parameters(run.parameters + lane * spec::kChannelParameterBytes);
    run.out[lane] =
        spec::requantize(run.acc[lane], channel, layer, run.residual != nullptr ? run.residual[lane] : int8_t{0});
  }
}

}  // namespace

const KernelSet portable = {"portable", [] { return true; }, inp_bytes, wgt_bytes, pack_inp, pack_wgt,
                            gemm,       requantize};

}  // namespace kernels

namespace {
constexpr const KernelSet* kKernelSets[] = {
#if defined(__x86_64__)
    &kernels::avx512, &kernels::avx2,
#endif
    &kernels::portable};
}  // namespace

std::span<const KernelSet* const> kernel_sets() { return kKernelSets; }

const KernelSet* find_kernel_set(std::string_view name) {
  for (const KernelSet* set : kKernelSets) {
    if (set->supported() && (name.empty() || name == set->name)) return set;
  }
  return nullptr;
}

}  // namespace tenon::sim
