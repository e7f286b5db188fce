// The integer fields of a configuration as a table, which validate() and the JSON form iterate over.
#pragma once

#include <string>
#include <string_view>

#include "hw/spec/config.h"

namespace tenon::spec {

// One integer field of the file: its member, its legal values, and their reason.
struct Limit {
  std::string_view key;
  int Config::*member;
  int min, max;
  bool power_of_two;
  std::string_view reason;
};
inline constexpr Limit kLimits[] = {
    {"block_in", &Config::block_in, 2, 64, true,
     "an input vector is fetched in whole bytes of a power-of-two address space"},
    {"block_out", &Config::block_out, 2, 64, true, "accumulator lanes are addressed by bits of a DMA unit's index"},
    {"axi_data_bits", &Config::axi_data_bits, 32, 512, true,
     "AXI4 has no other widths, and registers are 32 bits wide"},
    {"max_burst_beats", &Config::max_burst_beats, 1, 256, true, "AXI4 INCR bursts have at most 256 beats"},
    {"queue_depth", &Config::queue_depth, 1, 64, true, "a queue is a small FIFO in look-up tables"},
};

// The members of "extensions": each may be missing from the file, and is its default then.
inline constexpr Limit kExtensionLimits[] = {
    {"address_bits", &Config::address_bits, 12, 64, false,
     "bursts stay inside pages of 4 KiB, and registers have 64 bits"},
    {"alu_multiply_passes", &Config::alu_multiply_passes, 0, 2, false,
     "MUL is absent, or takes one pass on its own multipliers or two on the requantizer's"},
    {"alu_passes", &Config::alu_passes, 1, 4, true, "a pass writes an equal part of an accumulator's four DMA units"},
    {"requantizer_passes", &Config::requantizer_passes, 1, 64, true, "each pass takes an equal part of a vector"},
    {"read_beats", &Config::read_beats, 0, 1024, false,
     "256 beats hide reads of 200 cycles, and deeper FIFOs let one load engine get ahead of the others"},
};
struct Switch {
  std::string_view key;
  bool Config::*member;
};
inline constexpr Switch kExtensionSwitches[] = {
    {"counters", &Config::counters},
    {"weight_engine", &Config::weight_engine},
    {"accumulator_engine", &Config::accumulator_engine},
    {"packed_products", &Config::packed_products},
    {"serial_products", &Config::serial_products},
    {"in_order", &Config::in_order},
    {"progress", &Config::progress},
    {"overlapping_stores", &Config::overlapping_stores},
    {"own_lanes", &Config::own_lanes},
    {"results_to_inp", &Config::results_to_inp},
    {"window_maximum", &Config::window_maximum},
};

std::unexpected<Diagnostic> broken_limit(std::string_view where, std::string_view key, const std::string& found,
                                         const std::string& constraint, std::string_view reason);

}  // namespace tenon::spec
