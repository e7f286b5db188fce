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

// Whether look-up tables are cheaper than `blocks`: iCE40 has no RAM in them and takes registers for tiny memories.
bool in_look_up_tables(Family family, const MemoryShape& memory, double blocks) {
  const int64_t width = memory.width, depth = memory.depth;
  switch (family) {
    case Family::kIce40: return static_cast<double>(width * depth) < 64 * blocks;
    case Family::kEcp5: return static_cast<double>(quotient(width, 4) * quotient(depth, 16)) < 32 * blocks;
    case Family::kXilinx: break;
  }
  const int64_t cells = depth > 32 ? quotient(width, 3) * quotient(depth, 64) : quotient(width, 6);
  return static_cast<double>(cells) < 40 * blocks;
}

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

}  // namespace

std::vector<MemoryShape> memories(const spec::Config& config) {
  const int64_t in = config.block_in, out = config.block_out;
  std::vector<MemoryShape> list = {{in * 8, config.depth(Memory::kInp), 1},
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
  list.push_back({config.axi_data_bits + (config.in_order ? 0 : 1),
                  config.max_burst_beats < 16 ? 32 : 2 * config.max_burst_beats, readers});
  return list;
}

double block_rams(Family family, const MemoryShape& memory) {
  double blocks = 0, read = 0;
  for (const auto [width, depth, size] : geometries(family)) {
    const double column = static_cast<double>(quotient(memory.depth, depth)) * size;
    const double need = static_cast<double>(quotient(memory.width, width)) * column;
    if (blocks != 0 && need > blocks) continue;  // of equal ones the deepest, which requires fewest multiplexers
    blocks = need;
    read = static_cast<double>(columns(memory, width)) * column;
  }
  return in_look_up_tables(family, memory, blocks) ? 0 : read * static_cast<double>(memory.count);
}

}  // namespace tenon::estimate
