#include "hw/estimate/features.h"

#include <algorithm>
#include <bit>

#include "hw/estimate/memories.h"
#include "hw/spec/command_widths.h"
#include "hw/spec/isa.h"

namespace tenon::estimate {
namespace {

using spec::Config;

// What the transfers and the units are built for.
struct Structure {
  explicit Structure(const Config& config)
      : widths(spec::command_widths(config)),
        loads(1 + config.accumulator_engine + config.weight_engine),
        classes(config.native ? 6 : 3),
        concurrent(config.in_order ? 0 : 1) {}

  spec::CommandWidths widths;
  double loads;       // engines
  double classes;     // of instructions
  double concurrent;  // 0 where instructions run one after the other
};

double fields(const spec::Isa& isa, std::string_view mnemonic) {
  double bits = 0;
  for (const spec::Format& format : isa.formats()) {
    if (format.mnemonic != mnemonic) continue;
    for (const spec::Field& field : format.fields) bits += field.width;
  }
  return bits;
}

// The bits of a command that differ, without the slot's index, which only a trace reads.
double transfer_bits(const Config& config, const spec::CommandWidths& w) {
  constexpr double kMemory = 3;
  // Bytes of a unit and its distance are powers of two in the base profile, and padding has four bits.
  constexpr double kNative = 7 + 7 + 8 + 8 + 16, kBase = 3 + 4;
  return kMemory + w.unit + 2 * w.row + w.vector + w.total + config.address_bits + w.length + w.step + w.left + w.end +
         (config.native ? kNative : kBase);
}
double gemm_bits(const Config& config, const spec::Isa& isa) {
  return std::max(config.base ? fields(isa, "gemm") : 0, config.native ? fields(isa, "mac") : 0);
}
double post_bits(const Config& config, const spec::Isa& isa) {
  return std::max(config.base ? fields(isa, "alu") : 0, config.native ? fields(isa, "rq") : 0);
}
double entry_bits(const Config& config, const spec::CommandWidths& w) {
  constexpr double kNative = 18, kBase = 7;  // tokens, the unit, whether it is in error
  return w.slot + (config.native ? kNative : kBase);
}

// A queue's cells for each of its bits. An iCE40 has no RAM in look-up tables: prim_fifo of 1, 2, 4, 8 and 16 words of
// 64 bits is 70, 210, 480, 936 and 1914 logic cells there. Others have a RAM of 16 (ECP5) or 32 words, at least.
struct Queue {
  double luts, ffs;
};
Queue queue(Family family, int depth) {
  const double words = depth;
  if (family == Family::kIce40) return {depth <= 1 ? 1 : 1.9 * words - 0.8, words};
  constexpr double kLuts = 1.5;  // of a bit of RAM: six for four bits
  const int ram = family == Family::kEcp5 ? 16 : 32;
  return depth <= 1 ? Queue{0, 1} : Queue{kLuts * ((depth + ram - 1) / ram), 0};
}

// The cells of commands that wait, and of the FIFOs of the memory ports: beats, addresses, runs of bytes.
Feature queues(Family family, const Config& config, const Structure& s) {
  const spec::Isa isa(config);
  const Queue commands = queue(family, config.queue_depth), beats = queue(family, 4), addresses = queue(family, 2);
  const double transfers = (s.loads + 2) * transfer_bits(config, s.widths),
               computations = gemm_bits(config, isa) + post_bits(config, isa),
               entries = s.classes * entry_bits(config, s.widths);  // whose first one is in registers, too
  const double command_bits = transfers + computations + entries;
  // Each reader of memory, with the fetch; the store's units, and its beats with a strobe a byte.
  const double beat_bits =
      (s.loads + 1) * (config.axi_data_bits + 1) + config.block_out * 8 + config.axi_data_bits * 9.0 / 8;
  const double address_bits =
      (s.loads + 1) * (config.address_bits + 8) + (s.loads + 2) * (config.address_bits + s.widths.length);
  const auto sum = [&](double Queue::*cells, double of_first_entry) {
    return s.concurrent * (commands.*cells * command_bits + beats.*cells * beat_bits + addresses.*cells * address_bits +
                           of_first_entry * entries);
  };
  return {"queues", sum(&Queue::luts, family == Family::kIce40 ? 1 : 0), sum(&Queue::ffs, 1)};
}

// The windows of bytes: multiplexers, a window's bits for each stage of its shifter, and registers.
Feature windows(const Config& config, const Structure& s) {
  Feature sum{"windows of bytes", 0, 0};
  const auto add = [&](int unit_bytes) {
    const int window = unit_bytes + config.axi_bytes();
    sum.luts += s.concurrent * 8 * window * std::bit_width(static_cast<unsigned>(window));
    sum.ffs += s.concurrent * 8 * window;
  };
  add(config.block_in);
  if (config.weight_engine) add(config.block_in);
  if (config.accumulator_engine) add(std::max(config.block_out, 4));
  add(config.block_out);
  return sum;
}

// Cells of alu_lane, synthesized alone. Passes share the shifter of a lane; own multipliers are look-up tables where a
// chip has no others.
Feature alu(Family family, const Config& config) {
  constexpr std::string_view kName = "ALU lanes";
  if (!config.base) return {kName, 0};
  const bool own = config.alu_multiply_passes == 1, shared = config.alu_multiply_passes == 2,
             logic = family == Family::kIce40;
  const double lane = config.alu_passes == 1 ? 607 : 528, ffs = 70;
  const double product = own ? (logic ? 1324 : 40) : shared ? 97 : 0, product_ffs = own && logic ? 64 : shared ? 33 : 0;
  const double lanes = static_cast<double>(config.block_out) / config.alu_passes;
  return {kName, lanes * (lane + product), lanes * (ffs + product_ffs)};
}

// Operands and accumulators that wait a cycle in registers of their own. An iCE40's register without logic before it
// takes a cell.
Feature operands(Family family, const Config& config, const Structure& s) {
  const double weights = config.serial_products ? 0 : static_cast<double>(config.macs_per_cycle()) * 8;
  const double bits = s.concurrent * (weights + config.block_in * 8 + config.block_out * 64);
  return {"operands", family == Family::kIce40 ? bits : 0, bits};
}

Feature counters(const Config& config, const Structure& s) {
  // Seven and two a class; a unit that is absent has none, but in order.
  const double number = 7 + 2 * (config.in_order ? 7 : s.classes);
  return {"counters", config.counters ? number : 0};
}

Feature small_memories(Family family, const Config& config) {
  double luts = 0;
  for (const MemoryShape& memory : memories(config)) luts += memory_luts(family, memory);
  return {"memories in look-up tables", luts, family == Family::kIce40 ? luts : 0};
}

}  // namespace

std::vector<Feature> features(Family family, const Config& config) {
  const Structure s(config);
  const double lanes = config.block_out, native = config.native ? 1 : 0;
  const double products = static_cast<double>(config.macs_per_cycle());
  // Two products in a multiplier of 25 by 18 bits, which is larger than both where it is made of look-up tables.
  const double packed = family == Family::kIce40 && config.packed_products ? 1.2 : 1;
  const double ports = s.loads + 2;  // the fetch and the store have one as well
  return {{"frame", 1},
          {"native profile", native},
          {"both profiles", config.base ? native : 0},
          {"concurrent modules", s.concurrent},
          {"load engines", s.concurrent * s.loads},
          queues(family, config, s),
          windows(config, s),
          {"address bits", config.address_bits * ports},
          {"bursts", config.max_burst_beats > 1 ? ports : 0},
          {"command bits", transfer_bits(config, s.widths)},
          small_memories(family, config),
          operands(family, config, s),
          {"products", config.serial_products ? 0 : products * packed},
          {"serial products", config.serial_products ? products * 9 + lanes * 43 : 0},
          alu(family, config),
          {"lanes", lanes},
          {"requantizer lanes", native * lanes / config.requantizer_passes},
          counters(config, s),
          {"progress", !config.progress  ? 0
                       : config.in_order ? 1
                                         : s.classes}};
}

}  // namespace tenon::estimate
