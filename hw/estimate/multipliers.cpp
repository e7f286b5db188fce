// Multipliers: those of the tensor core, the ALU, the requantizer and decode.
#include "hw/estimate/estimate.h"

namespace tenon::estimate {
namespace {

// Two int8 products with one operand in common, and decode's products: rows by vectors and vectors by their distance,
// which have 16 bits each in the native profile and more in both profiles.
struct Multipliers {
  int64_t pair, native_decode, both_decode;
};
constexpr Multipliers kEcp5Multipliers{.pair = 2, .native_decode = 2, .both_decode = 4};
constexpr Multipliers kXilinxMultipliers{.pair = 1, .native_decode = 2, .both_decode = 2};
// The ALU's 32 by 32 bits in three parts; the requantizer's 32 by 17 bits in two, and 9 by 17 bits.
constexpr int64_t kAluLane = 3, kRequantizerLane = 3;

}  // namespace

int64_t multipliers(Family family, const spec::Config& config) {
  if (family == Family::kIce40) return 0;  // synthesis without SB_MAC16: mapping to it is not faithful
  const Multipliers& cost = family == Family::kEcp5 ? kEcp5Multipliers : kXilinxMultipliers;
  const int64_t products = config.macs_per_cycle(), lanes = config.block_out;
  int64_t sum = config.serial_products ? 0 : config.packed_products ? products / 2 * cost.pair : products;
  if (config.base && config.alu_multiply_passes == 1) sum += lanes / config.alu_passes * kAluLane;
  if (config.native) sum += lanes / config.requantizer_passes * kRequantizerLane;
  // The base profile alone has the widths of its scratchpads, and dense vectors, whose distance is the bytes of a unit.
  if (!config.native) return sum + 1;
  return sum + (config.base ? cost.both_decode : cost.native_decode);
}

}  // namespace tenon::estimate
