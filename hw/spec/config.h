// The configuration of an accelerator: the single input of hardware, simulators, driver and compiler.
//
// Units: buffers in bytes, as in data sheets; depths in elements. An element is the data at one address of a
// scratchpad: a micro-op (4 bytes), an input vector (block_in bytes), a weight matrix (block_out x
// block_in bytes), an accumulator vector (block_out x 4 bytes), a residual or output vector (block_out bytes), a
// parameter vector (block_out x 8 bytes).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::spec {

inline constexpr int kConfigVersion = 1;

// Scratchpads, in the order in which references and dumps list them. kDram is not a scratchpad, but instructions write
// to it as well.
enum class Memory : uint8_t { kUop, kWgt, kInp, kAcc, kOut, kPar, kRes, kDram };
inline constexpr int kScratchpads = 7;
std::string_view name(Memory memory);  // "uop", "wgt", ...
inline constexpr int kInputBanks = 4;  // of inp with own_lanes, by the low bits of an address

struct Config {
  std::string name;
  int block_in = 16;         // lanes of an input vector
  int block_out = 16;        // lanes of an accumulator vector
  int axi_data_bits = 64;    // width of the memory port
  int max_burst_beats = 64;  // beats of an AXI burst
  int queue_depth = 32;      // commands that an engine's queue holds
  bool base = true;          // VTA's instruction set
  bool native = true;        // the native instruction set
  // Extensions: what an accelerator can do without, or do more slowly, in fewer cells. The file may leave each out.
  bool counters = true;            // performance counters; without them their registers read 0
  bool weight_engine = true;       // weights have a load engine of their own; else that of inputs loads them
  bool accumulator_engine = true;  // so have micro-ops and accumulators
  bool in_order = false;           // instructions run one after the other: no queues, slower decode
  bool progress = true;            // registers that tell the progress of a launch; without it they read 0
  bool packed_products = false;    // two int8 products in each multiplier of a DSP48
  bool serial_products = false;    // a bit of the inputs a cycle, eight for a step of GEMM: no multipliers
  int address_bits = 64;  // width of the memory port's addresses, and so of counts; upper bits of registers read 0
  int alu_multiply_passes = 1;      // cycles of a base MUL: 0 refuses it, 2 uses the requantizer's multipliers
  int alu_passes = 1;               // of an element through the ALU, which has block_out / passes lanes
  int requantizer_passes = 1;       // cycles of a vector in the requantizer, which has block_out / passes lanes
  bool overlapping_stores = false;  // a store begins while the memory has not answered the one before
  bool own_lanes = false;           // lanes multiply windows of their own channel: `own` in mac
  bool results_to_inp = false;      // RQ writes to inp, from which GEMM reads them: `to_inp` in rq
  bool window_maximum = false;      // RQ results in the maximum over a window (max pooling): `win_rows` in rq
  int read_beats = 0;               // beats of each load engine's FIFO; 0: two bursts, at least 32
  // Scratchpad sizes in bytes, by Memory.
  std::array<int64_t, kScratchpads> bytes{};

  bool operator==(const Config&) const = default;

  int element_bytes(Memory memory) const;  // bytes of one element in the scratchpad
  int unit_bytes(Memory memory) const;     // bytes of one DMA unit, a vector of MOVE
  int units_per_element(Memory memory) const { return element_bytes(memory) / unit_bytes(memory); }
  int64_t depth(Memory memory) const { return bytes[static_cast<size_t>(memory)] / element_bytes(memory); }
  int index_bits(Memory memory) const;  // log2 of the depth
  int axi_bytes() const { return axi_data_bits / 8; }
  int slot_bits() const { return address_bits < 35 ? address_bits - 3 : 32; }  // of a slot's index, and of the count
  int base_addresses() const { return native ? 8 : 5; }  // registers; the base profile has five memories
  int read_fifo_beats() const { return read_beats != 0 ? read_beats : std::max(32, 2 * max_burst_beats); }
  // Of these, those that a load engine requests at a time in the base profile, whose programs were scheduled for an
  // accelerator that waits for each load: two deep readers would delay each other.
  int base_read_beats() const { return std::min(read_fifo_beats(), std::max(32, 2 * max_burst_beats)); }
  uint64_t address_mask() const { return address_bits == 64 ? ~uint64_t{0} : (uint64_t{1} << address_bits) - 1; }
  int64_t macs_per_cycle() const { return int64_t{block_in} * block_out; }
};

// Reads a configuration from JSON text; `where` names the text in messages. Every unknown key, missing key and broken
// limit is an error that states the limit and its reason. Only members of "extensions" may be missing.
Expected<Config> parse_config(std::string_view json, std::string_view where);

// Finds a configuration by name ("default") in the directories of config_path(), or by path ("my.json").
Expected<Config> load_config(std::string_view name_or_path);

// The directories with named configurations: TENON_CONFIG_PATH (colon separated), then those of
// data_path("hw/configs").
std::vector<std::filesystem::path> config_path();

// The names that load_config accepts, sorted.
std::vector<std::string> named_configs();

// Checks all limits. parse_config calls it; makers of configurations that are not parsed (random ones) must call it.
Status validate(const Config& config, std::string_view where);

// Canonical JSON: parse_config(to_json(c)) == c, and equal configurations have equal text.
std::string to_json(const Config& config);

// Ties program, driver and bitstream together: 64-bit FNV-1a over the canonical JSON without the name, and the
// versions of ISA and register map.
uint64_t hash(const Config& config);

// The fields in which two configurations differ, one "field: A here, B there" a line; empty if none.
std::string difference(const Config& a, const Config& b);

}  // namespace tenon::spec
