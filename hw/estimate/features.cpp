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

// RAM of 16 words, which iCE40 makes of registers. A queue of one command is a register; in order there are none.
Feature command_queues(Family family, const spec::Config& config) {
  constexpr std::string_view kName = "command queues";
  const double depth = config.queue_depth;
  const bool one = config.queue_depth <= 1;
  if (config.in_order) return {kName, 0, 0};
  if (family == Family::kIce40) return {kName, one ? 0 : depth, depth};
  const double words = std::max(1.0, depth / 16);
  return {kName, one ? 0 : words, words};
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
  // In order, transfers move byte by byte.
  const double inputs = engines * shifter(config.block_in, beat), others = shifter(loaded, beat),
               results = shifter(config.block_out, beat);
  const double windows = config.in_order ? 0 : inputs + others + results;
  const double products = static_cast<double>(config.macs_per_cycle());
  const double native = config.native ? 1 : 0;
  return {{"frame", 1},
          {"native profile", native},
          {"both profiles", config.base ? native : 0},
          {"concurrent modules", config.in_order ? 0.0 : 1.0},
          {"lanes in order", config.in_order ? lanes : 0},
          {"windows of bytes", windows},
          command_queues(family, config),
          lane_multipliers(family, config),
          {"accumulator engine", config.accumulator_engine ? 1.0 : 0.0},
          {"counters", config.counters ? 1.0 : 0.0},
          {"address bits", config.in_order ? 0 : config.address_bits - 12.0},
          {"ALU lanes", config.base && !config.in_order ? lanes / config.alu_passes : 0},
          {"requantizer lanes", native * lanes / config.requantizer_passes},
          {"products", config.serial_products ? 0 : products},
          {"serial products", config.serial_products ? products : 0}};
}

}  // namespace tenon::estimate
