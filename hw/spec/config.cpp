// Legal configurations: the limit of every field with its reason, and the sizes that follow from the fields.
#include "hw/spec/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>

#include "hw/spec/config_limits.h"
#include "support/try.h"

namespace tenon::spec {
namespace {

constexpr std::array<std::string_view, kScratchpads + 1> kMemoryNames = {"uop", "wgt", "inp", "acc",
                                                                         "out", "par", "res", "dram"};

// The maximum depth of a scratchpad, from the width of the fields that address it.
struct DepthLimit {
  Memory memory;
  int64_t max;
  std::string_view reason;
};
constexpr DepthLimit kDepthLimits[] = {
    {Memory::kUop, 8192, "uop_begin and uop_end share the first word of a GEMM with two trip counts"},
    {Memory::kWgt, 16384, "wgt_base has 14 bits"},
    {Memory::kInp, 16384, "src_base has 14 bits"},
    {Memory::kAcc, 16384, "dst_base has 14 bits"},
    {Memory::kOut, 16384, "out_base has 14 bits"},
    {Memory::kPar, 4096, "par_base has 12 bits"},
    {Memory::kRes, 16384, "res_base has 14 bits"},
};

Status check_limits(const Config& config, std::span<const Limit> limits, std::string_view prefix,
                    std::string_view where) {
  for (const Limit& limit : limits) {
    const int value = config.*limit.member;
    const bool fits = value >= limit.min && value <= limit.max &&
                      (!limit.power_of_two || std::has_single_bit(static_cast<unsigned>(value)));
    if (!fits) {
      return broken_limit(
          where, fmt::format("{}{}", prefix, limit.key), std::to_string(value),
          fmt::format("{}{} .. {}", limit.power_of_two ? "a power of two in " : "", limit.min, limit.max),
          limit.reason);
    }
  }
  return {};
}

// Combinations of extensions that no hardware implements.
Status check_extensions(const Config& config, std::string_view where) {
  const auto refuse = [&](std::string what, std::string help) {
    return error(std::move(what), std::string(where), std::move(help));
  };
  if (!config.weight_engine && config.native) {
    return refuse("extensions.weight_engine is false, and the native profile loads inputs and weights at a time",
                  "set it to true, or leave \"native\" out of \"profiles\"");
  }
  if (!config.accumulator_engine && config.weight_engine) {
    return refuse(
        "extensions.accumulator_engine is false, and weight_engine is true: one engine that loads everything "
        "else comes first",
        "set accumulator_engine to true, or weight_engine to false");
  }
  if (config.in_order && config.native) {
    return refuse("extensions.in_order is true, and the native profile's engines run free of each other",
                  "set it to false, or leave \"native\" out of \"profiles\"");
  }
  if (config.in_order && config.queue_depth != 1) {
    return refuse(fmt::format("extensions.in_order is true, and queue_depth is {}: nothing waits in a queue then",
                              config.queue_depth),
                  "set queue_depth to 1");
  }
  if (config.serial_products && config.packed_products) {
    return refuse("extensions.serial_products is true, which has no multipliers, and packed_products is true",
                  "set one of them to false");
  }
  if (config.in_order && config.overlapping_stores) {
    return refuse(
        "extensions.in_order is true, and overlapping_stores is true: no instruction begins before the last ends",
        "set one of them to false");
  }
  if (config.own_lanes && !config.native) {
    return refuse("extensions.own_lanes is true, and only the native profile has the instruction that uses them",
                  "set it to false, or add \"native\" to \"profiles\"");
  }
  if (config.own_lanes && config.block_in != config.block_out) {
    return refuse(fmt::format("extensions.own_lanes is true, and block_in is {}, block_out {}: input lane l belongs to "
                              "output lane l, so both must be equal",
                              config.block_in, config.block_out),
                  "set it to false, or make the blocks equal");
  }
  if (config.own_lanes && config.depth(Memory::kInp) < kInputBanks) {
    return refuse(
        fmt::format("extensions.own_lanes is true, and inp has {} vectors, must be at least {}: it is divided "
                    "into {} banks, so that the rows of a window are read at a time",
                    config.depth(Memory::kInp), kInputBanks, kInputBanks),
        "set it to false, or make buffers.inp larger");
  }
  if (config.results_to_inp && !config.native) {
    return refuse("extensions.results_to_inp is true, and only the native profile has a requantizer",
                  "set it to false, or add \"native\" to \"profiles\"");
  }
  if (config.results_to_inp && config.block_in != config.block_out) {
    return refuse(
        fmt::format("extensions.results_to_inp is true, and block_in is {}, block_out {}: a vector of results "
                    "becomes a vector of inp, so both must be equal",
                    config.block_in, config.block_out),
        "set it to false, or make the blocks equal");
  }
  if (config.window_maximum && !config.native) {
    return refuse("extensions.window_maximum is true, and only the native profile has a requantizer",
                  "set it to false, or add \"native\" to \"profiles\"");
  }
  if (config.read_beats != 0) {
    const int least = std::max(32, config.max_burst_beats);
    if (config.read_beats < least || !std::has_single_bit(static_cast<unsigned>(config.read_beats))) {
      return refuse(fmt::format("extensions.read_beats is {}, must be 0 or a power of two in {} .. 1024: the FIFO of a "
                                "load engine is addressed by bits, and has room for a burst",
                                config.read_beats, least),
                    "use 0 for two bursts of max_burst_beats");
    }
  }
  if (config.alu_passes > config.block_out) {
    return refuse(fmt::format("extensions.alu_passes is {}, must be at most block_out = {}: a pass takes a lane",
                              config.alu_passes, config.block_out),
                  "use fewer passes");
  }
  if (config.alu_passes > 1 && !config.base) {
    return refuse("extensions.alu_passes is set, and only the base profile has an ALU",
                  "remove it, or add \"base\" to \"profiles\"");
  }
  if (config.alu_passes > 1 && config.alu_multiply_passes == 2) {
    return refuse("extensions.alu_multiply_passes is 2, which multiplies whole elements, and alu_passes is set",
                  "set one of them to 1, or alu_multiply_passes to 0");
  }
  if (config.requantizer_passes > config.block_out) {
    return refuse(
        fmt::format("extensions.requantizer_passes is {}, must be at most block_out = {}: a pass takes a lane",
                    config.requantizer_passes, config.block_out),
        "use fewer passes");
  }
  if (config.requantizer_passes > 1 && !config.native) {
    return refuse("extensions.requantizer_passes is set, and only the native profile has a requantizer",
                  "remove it, or add \"native\" to \"profiles\"");
  }
  if (config.requantizer_passes > 1 && config.base && config.alu_multiply_passes == 2) {
    return refuse(fmt::format("extensions.alu_multiply_passes is 2, which requires a multiplier for each of the {} "
                              "lanes, and requantizer_passes leaves {}",
                              config.block_out, config.block_out / config.requantizer_passes),
                  "set one of them to 1, or alu_multiply_passes to 0");
  }
  if (config.alu_multiply_passes != 1 && !config.base) {
    return refuse("extensions.alu_multiply_passes is set, and only the base profile has an ALU",
                  "remove it, or add \"base\" to \"profiles\"");
  }
  return {};
}

}  // namespace

std::unexpected<Diagnostic> broken_limit(std::string_view where, std::string_view key, const std::string& found,
                                         const std::string& constraint, std::string_view reason) {
  return error(fmt::format("{} is {}, must be {}: {}", key, found, constraint, reason), std::string(where),
               fmt::format("change \"{}\"", key));
}

std::string_view name(Memory memory) { return kMemoryNames[static_cast<size_t>(memory)]; }

int Config::element_bytes(Memory memory) const {
  switch (memory) {
    case Memory::kUop: return 4;
    case Memory::kWgt: return block_in * block_out;
    case Memory::kInp: return block_in;
    case Memory::kAcc: return block_out * 4;
    case Memory::kOut: return block_out;
    case Memory::kPar: return block_out * 8;
    case Memory::kRes: return block_out;
    case Memory::kDram: return 1;
  }
  return 1;
}

int Config::unit_bytes(Memory memory) const {
  switch (memory) {
    case Memory::kUop: return 4;
    case Memory::kWgt:
    case Memory::kInp: return block_in;
    case Memory::kAcc:
    case Memory::kOut:
    case Memory::kPar:
    case Memory::kRes: return block_out;
    case Memory::kDram: return 1;
  }
  return 1;
}

int Config::index_bits(Memory memory) const {
  return std::bit_width(static_cast<uint64_t>(std::max<int64_t>(depth(memory), 1))) - 1;
}

Status validate(const Config& config, std::string_view where) {
  if (config.name.empty() ||
      config.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
          std::string::npos) {
    return broken_limit(where, "name", '"' + config.name + '"', "letters, digits, '-', '_' and '.'",
                        "it becomes part of file names");
  }
  TENON_TRY(check_limits(config, kLimits, "", where));
  TENON_TRY(check_limits(config, kExtensionLimits, "extensions.", where));
  if (!config.base && !config.native) {
    return error("profiles is empty: an accelerator requires at least one instruction set", std::string(where),
                 "list \"base\", \"native\" or both");
  }
  TENON_TRY(check_extensions(config, where));
  for (const DepthLimit& limit : kDepthLimits) {
    const auto key = fmt::format("buffers.{}", name(limit.memory));
    const int64_t bytes = config.bytes[static_cast<size_t>(limit.memory)];
    const int element = config.element_bytes(limit.memory);
    if (bytes < 2 * element || bytes % element != 0 || !std::has_single_bit(static_cast<uint64_t>(bytes / element))) {
      return broken_limit(
          where, key,
          fmt::format("{} bytes ({} elements of {} bytes)", bytes, static_cast<double>(bytes) / element, element),
          "a power of two of elements, at least 2", "addresses are plain bit fields");
    }
    if (bytes / element > limit.max) {
      return broken_limit(where, key, fmt::format("{} elements of {} bytes", bytes / element, element),
                          fmt::format("at most {} elements", limit.max), limit.reason);
    }
  }
  if (config.base) {
    const int source = std::max(config.index_bits(Memory::kInp), config.index_bits(Memory::kAcc));
    const int bits = config.index_bits(Memory::kAcc) + source + config.index_bits(Memory::kWgt);
    if (bits > 32) {
      return error(fmt::format("a micro-op needs {} bits (acc {}, inp or acc {}, wgt {}), must be at most 32", bits,
                               config.index_bits(Memory::kAcc), source, config.index_bits(Memory::kWgt)),
                   std::string(where), "make these buffers smaller, or leave \"base\" out of \"profiles\"");
    }
    if (config.index_bits(Memory::kAcc) + source > 22) {
      return error(fmt::format("the factors of an ALU instruction need 2 x ({} + {}) bits, must be at most 44",
                               config.index_bits(Memory::kAcc), source),
                   std::string(where), "make acc or inp smaller, or leave \"base\" out of \"profiles\"");
    }
  }
  return {};
}

}  // namespace tenon::spec
