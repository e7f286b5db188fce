// Legal configurations: the limit of every field with its reason, and the sizes that follow from the fields.
#include "hw/spec/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "hw/spec/config_limits.h"

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
  for (const Limit& limit : kLimits) {
    const int value = config.*limit.member;
    const bool fits = value >= limit.min && value <= limit.max &&
                      (!limit.power_of_two || std::has_single_bit(static_cast<unsigned>(value)));
    if (!fits) {
      return broken_limit(
          where, limit.key, std::to_string(value),
          fmt::format("{}{} .. {}", limit.power_of_two ? "a power of two in " : "", limit.min, limit.max),
          limit.reason);
    }
  }
  if (!config.base && !config.native) {
    return error("profiles is empty: an accelerator requires at least one instruction set", std::string(where),
                 "list \"base\", \"native\" or both");
  }
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
