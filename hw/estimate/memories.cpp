#include "hw/estimate/memories.h"

#include <algorithm>
#include <span>

#include "hw/spec/isa.h"

namespace tenon::estimate {
namespace {

using spec::Memory;

int64_t quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A way to use a block: words of `width` bits, `depth` of them. `size` is in the family's larger block.
struct Geometry {
  int64_t width, depth;
  double size;
};
constexpr Geometry kIce40[] = {{16, 256, 1}, {8, 512, 1}, {4, 1024, 1}, {2, 2048, 1}, {1, 4096, 1}};
constexpr Geometry kEcp5[] = {{36, 512, 1}, {18, 1024, 1}, {9, 2048, 1}, {4, 4096, 1}, {2, 8192, 1}, {1, 16384, 1}};
constexpr Geometry kXilinx[] = {{36, 512, .5}, {18, 1024, .5}, {9, 2048, .5}, {4, 4096, .5},
                                {2, 8192, .5}, {72, 512, 1},   {36, 1024, 1}, {18, 2048, 1},
                                {9, 4096, 1},  {4, 8192, 1},   {2, 16384, 1}, {1, 32768, 1}};

std::span<const Geometry> geometries(Family family) {
  switch (family) {
    case Family::kIce40: return kIce40;
    case Family::kEcp5: return kEcp5;
    case Family::kXilinx: break;
  }
  return kXilinx;
}

// Cells that hold a memory without block RAM: registers on an iCE40, on others RAM in look-up tables (TRELLIS_DPR16X4;
// RAM32M and RAM64M).
int64_t cells(Family family, const MemoryShape& memory) {
  const int64_t width = memory.width, depth = memory.depth;
  switch (family) {
    case Family::kIce40: return width * depth;
    case Family::kEcp5: return quotient(width, 4) * quotient(depth, 16);
    case Family::kXilinx: break;
  }
  return depth > 32 ? quotient(width, 3) * quotient(depth, 64) : quotient(width, 6);
}

// Whether these are cheaper than `blocks`, by the costs of yosys's memory_libmap. Registers are taken at the same cost.
bool in_look_up_tables(Family family, const MemoryShape& memory, double blocks) {
  constexpr double kBlock[] = {64, 32, 40};  // cells that cost as much as a block
  const auto cost = static_cast<double>(cells(family, memory)), limit = kBlock[static_cast<size_t>(family)] * blocks;
  return family == Family::kIce40 ? cost <= limit : cost < limit;
}

// Blocks of one instance, whether or not cells are cheaper: all, and those that are read.
struct Blocks {
  double all = 0, read = 0;
};

// The fields of a micro-op, which lie one after the other.
int64_t uop_bits(const spec::Config& config) {
  int64_t bits = 0;
  for (const spec::Field& field : spec::Isa(config).uop_fields()) bits += field.width;
  return bits;
}

// A lane's parameters are 32 bits of bias, 16 of multiplier and 6 of shift in 64 bits. An eighth of a word is written
// at once, which is a part of a lane or several lanes.
void add_parameters(const spec::Config& config, std::vector<MemoryShape>& list) {
  constexpr int64_t kLaneBits = 64, kReadBits = 54;
  const int64_t depth = config.depth(Memory::kPar), width = config.block_out * int64_t{8};
  if (width >= kLaneBits) return list.push_back({width, depth, 8, kReadBits, kLaneBits});
  for (int64_t bit = 0; bit < kLaneBits; bit += width)
    list.push_back({width, depth, config.block_out, std::clamp<int64_t>(kReadBits - bit, 0, width), width});
}

// The columns of `width` bits that have a bit which is read.
int64_t columns(const MemoryShape& memory, int64_t width) {
  if (memory.period == 0) return quotient(memory.width, width);
  int64_t count = 0;
  for (int64_t begin = 0; begin < memory.width; begin += width) {
    const int64_t end = std::min(begin + width, memory.width), offset = begin % memory.period;
    if (offset < memory.read_bits || offset + (end - begin) > memory.period) ++count;
  }
  return count;
}

Blocks blocks(Family family, const MemoryShape& memory) {
  Blocks best;
  for (const auto [width, depth, size] : geometries(family)) {
    const double column = static_cast<double>(quotient(memory.depth, depth)) * size;
    const double need = static_cast<double>(quotient(memory.width, width)) * column;
    if (best.all != 0 && need > best.all) continue;  // of equal ones the deepest, which requires fewest multiplexers
    best = {need, static_cast<double>(columns(memory, width)) * column};
  }
  return best;
}

}  // namespace

std::vector<MemoryShape> memories(const spec::Config& config) {
  const int64_t in = config.block_in, out = config.block_out;
  const int64_t banks = config.own_lanes ? spec::kInputBanks : 1;
  std::vector<MemoryShape> list = {{in * 8, config.depth(Memory::kInp) / banks, banks},
                                   {in * 8, config.depth(Memory::kWgt), out},
                                   {out * 8, config.depth(Memory::kAcc), 4}};
  if (config.base) list.push_back({32, config.depth(Memory::kUop), 1, uop_bits(config), 32});
  if (config.native) {
    add_parameters(config, list);
    list.push_back({out * 8, config.depth(Memory::kRes), 1});
    list.push_back({out * 8, config.depth(Memory::kOut), 1});
  }
  // The FIFOs of the readers hold a beat and whether it is in error, which those of loads in order do not need.
  list.push_back({config.axi_data_bits + 1, 32, 1});
  const int readers = 1 + config.weight_engine + config.accumulator_engine;
  list.push_back({config.axi_data_bits + (config.in_order ? 0 : 1), config.read_fifo_beats(), readers});
  return list;
}

double block_rams(Family family, const MemoryShape& memory) {
  const Blocks needed = blocks(family, memory);
  return in_look_up_tables(family, memory, needed.all) ? 0 : needed.read * static_cast<double>(memory.count);
}

double memory_luts(Family family, const MemoryShape& memory) {
  if (!in_look_up_tables(family, memory, blocks(family, memory).all)) return 0;
  const auto count = static_cast<double>(memory.count), used = static_cast<double>(cells(family, memory));
  switch (family) {
    case Family::kIce40: return count * used;
    case Family::kEcp5: {
      // Six look-up tables a cell, and a multiplexer of half a one for each bit of each further 16 words.
      const auto further = static_cast<double>(memory.width * (quotient(memory.depth, 16) - 1));
      return count * (6 * used + further / 2);
    }
    case Family::kXilinx: break;
  }
  return count * 4 * used;
}

}  // namespace tenon::estimate
