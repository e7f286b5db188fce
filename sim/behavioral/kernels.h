// The inner loops of the behavioral simulator, one kernel set per instruction-set extension of the host.
//
// A kernel set keeps inputs and weights in its own packed layout; accumulators keep the accelerator's layout,
// contiguous int32 lanes. All kernel sets compute the same bits: products of int8 summed in wrapping int32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "hw/spec/requantize.h"

namespace tenon::sim {

struct Shape {
  int block_in = 16, block_out = 16;
};

// acc[y * acc_y + x * acc_x] (in int32) += inp[y * inp_y + x * inp_x] (in packed bytes) . wgt for all y, x, in that
// order; with `overwrite` the accumulator reads as 0.
struct GemmRun {
  int32_t* acc = nullptr;
  const std::byte* inp = nullptr;
  const std::byte* wgt = nullptr;
  int64_t ny = 1, nx = 1;
  ptrdiff_t acc_y = 0, acc_x = 0, inp_y = 0, inp_x = 0;
  bool overwrite = false;
};

// lanes accumulators, parameters (kChannelParameterBytes a lane) and residuals (or nullptr) to lanes outputs.
struct RequantizeRun {
  const int32_t* acc = nullptr;
  const std::byte* parameters = nullptr;
  const int8_t* residual = nullptr;
  int8_t* out = nullptr;
  int lanes = 16;
};

struct KernelSet {
  std::string_view name;  // "avx512-vnni", "avx2", "portable"
  bool (*supported)();
  size_t (*inp_bytes)(const Shape&);  // of one packed input vector
  size_t (*wgt_bytes)(const Shape&);  // of one packed weight matrix
  void (*pack_inp)(const Shape&, const std::byte* from, std::byte* to);
  void (*pack_wgt)(const Shape&, const std::byte* from, std::byte* to);
  void (*gemm)(const Shape&, const GemmRun&);
  void (*requantize)(const RequantizeRun&, const spec::LayerParameters&);
};

// All kernel sets of this build, fastest first; the last is supported by every machine.
std::span<const KernelSet* const> kernel_sets();
// The kernel set of this name, or the fastest that this machine supports where the name is empty; nullptr where this
// machine does not support it.
const KernelSet* find_kernel_set(std::string_view name);

namespace kernels {
extern const KernelSet portable;
#if defined(__x86_64__)
extern const KernelSet avx2, avx512;
#endif
spec::ChannelParameters channel_parameters(const std::byte* lane);
}  // namespace kernels

}  // namespace tenon::sim
