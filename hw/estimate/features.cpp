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

// RAM of 16 words, which iCE40 makes of registers. A queue of one command is a register; in order, what decode holds
// instead takes about as much as a queue.
Feature command_queues(Family family, const spec::Config& config) {
  constexpr std::string_view kName = "command queues";
  const double depth = config.queue_depth;
  const bool one = config.queue_depth <= 1;
  if (family == Family::kIce40) return {kName, config.in_order || one ? 0 : depth, config.in_order ? 0 : depth};
  const double words = std::max(1.0, depth / 16);
  return {kName, one && !config.in_order ? 0 : words, words};
}

// The multipliers of base MUL, in look-up tables where a chip has no others.
Feature lane_multipliers(Family family, const spec::Config& config) {
  const bool own = family == Family::kIce40 && config.base && config.alu_multiply_passes == 1;
  return {"multipliers of lanes", own ? static_cast<double>(config.block_out) / config.alu_passes : 0, 0};
}

}  // namespace

std::vector<Feature> features(Family family, const spec::Config& config) {
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
          command_queues(family, config),
          lane_multipliers(family, config),
          {"accumulator engine", config.accumulator_engine ? 1.0 : 0.0},
          {"counters", config.counters ? 1.0 : 0.0},
          {"address bits", config.address_bits - 32.0},
          {"ALU lanes", config.base ? lanes / config.alu_passes : 0},
          {"requantizer lanes", native * lanes / config.requantizer_passes},
          {"products", static_cast<double>(config.macs_per_cycle())}};
}

}  // namespace tenon::estimate
