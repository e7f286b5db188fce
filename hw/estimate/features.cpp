#include "hw/estimate/features.h"

#include <algorithm>
#include <bit>

namespace tenon::estimate {
namespace {

// Multiplexers of a window of bytes that shifts by whole bytes: its bits, for each stage of the shifter.
double shifter(int unit_bytes, int beat_bytes) {
  const int window = unit_bytes + beat_bytes;
  return 8.0 * window * std::bit_width(static_cast<unsigned>(window));
}

}  // namespace

std::vector<Feature> features(const spec::Config& config) {
  const int beat = config.axi_bytes(), loaded = std::max(config.block_out, 4);
  const double lanes = config.block_out, engines = config.weight_engine ? 2 : 1;
  // Modules that work one after another share a window.
  const double inputs = engines * shifter(config.block_in, beat), others = shifter(loaded, beat),
               results = shifter(config.block_out, beat);
  const double windows = config.in_order ? std::max({inputs, others, results}) : inputs + others + results;
  const double native = config.native ? 1 : 0;
  return {{"frame", 1},
          {"native profile", native},
          {"both profiles", config.base ? native : 0},
          {"concurrent modules", config.in_order ? 0.0 : 1.0},
          {"windows of bytes", windows},
          {"command queues", std::max(1.0, config.queue_depth / 16.0)},  // RAM of 16 words
          {"accumulator engine", config.accumulator_engine ? 1.0 : 0.0},
          {"counters", config.counters ? 1.0 : 0.0},
          {"address bits", config.address_bits - 32.0},
          {"ALU lanes", config.base ? lanes / config.alu_passes : 0},
          {"requantizer lanes", native * lanes / config.requantizer_passes},
          {"products", static_cast<double>(config.macs_per_cycle())}};
}

}  // namespace tenon::estimate
