// Requantization from int32 accumulators to int8: the one definition for interpreter, CPU back end and accelerator.
//
// Semantics, per element of channel c:
//   t = wrap32(acc + bias[c])
//   p = t * multiplier[c]                                        exact: 48 bits hold it
//   v = clamp(p >> shift[c], 256 * v_lo, 256 * v_hi)             a clamp before the residual is added
//   w = residual ? sat20(((r - r_zero) * r_multiplier) >> r_shift) : 0
//   out = clamp(zero + ((v + w + 128) >> 8), lo, hi)
// Shifts are arithmetic (floor); wrap32 is two's complement; sat20 saturates to [-2^19, 2^19 - 1]; clamp(x, lo, hi)
// is min(max(x, lo), hi), also where lo > hi. There is one rounding, halves up; v and w carry eight fractional bits.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::spec {

// The parameters of one channel. In a parameter vector each lane has 8 bytes, little endian: bias in
// bytes 0-3, multiplier in 4-5, shift in the low six bits of 6; all other bits are ignored.
struct ChannelParameters {
  int32_t bias = 0;
  uint16_t multiplier = 0;  // 0 or 2^15 .. 2^16 - 1
  uint8_t shift = 0;        // 0 .. 39 from the compiler; the hardware takes 0 .. 63

  bool operator==(const ChannelParameters&) const = default;
};
inline constexpr int kChannelParameterBytes = 8;
inline constexpr int kMaxShift = 39;
inline constexpr int kMaxResidualShift = 31;

// The parameters that all elements of a layer share.
struct LayerParameters {
  int16_t v_lo = -2048;  // 12 bits, signed
  int16_t v_hi = 2047;
  int8_t zero = 0;
  int8_t lo = -128;
  int8_t hi = 127;
  bool residual = false;
  int8_t r_zero = 0;
  uint16_t r_multiplier = 0;
  uint8_t r_shift = 0;  // 0 .. 31

  bool operator==(const LayerParameters&) const = default;
};

inline int64_t clamp(int64_t x, int64_t lo, int64_t hi) { return std::min(std::max(x, lo), hi); }

inline int8_t requantize(int32_t acc, const ChannelParameters& channel, const LayerParameters& layer,
                         int8_t residual = 0) {
  const auto t = static_cast<int32_t>(static_cast<uint32_t>(acc) + static_cast<uint32_t>(channel.bias));
  const int64_t p = int64_t{t} * channel.multiplier;
  const int64_t v = clamp(p >> channel.shift, 256 * int64_t{layer.v_lo}, 256 * int64_t{layer.v_hi});
  int64_t w = 0;
  if (layer.residual) {
    const int64_t scaled = (int64_t{residual} - layer.r_zero) * layer.r_multiplier;
    w = clamp(scaled >> layer.r_shift, -(1 << 19), (1 << 19) - 1);
  }
  const int64_t out = layer.zero + ((v + w + 128) >> 8);
  return static_cast<int8_t>(clamp(out, layer.lo, layer.hi));
}

}  // namespace tenon::spec
