// Dma: the common form of every transfer between DRAM and a scratchpad, both profiles' loads and stores as MOVE.
//
// Semantics: vector (y, x), y < rows, x < vectors, is unit first_unit + y * vectors + x of the scratchpad. Its byte j
// has k = x * x_step - left + j and the DRAM address address + (y - top) * y_step + k where 0 <= k < row_bytes and
// 0 <= y - top < source_rows. Only bytes j < valid are read from or written to DRAM. Addresses wrap at 2^address_bits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "hw/spec/config.h"
#include "hw/spec/isa.h"
#include "hw/spec/registers.h"

namespace tenon::sim {

using Bases = std::array<uint64_t, spec::kBases>;

struct Dma {
  // The conversion between a vector in DRAM and a unit of the scratchpad.
  enum class Convert : uint8_t { kNone, kSignExtend, kLowByte };

  spec::Memory memory = spec::Memory::kInp;
  spec::Engine engine = spec::Engine::kLdi;  // the engine that moves the data, in both profiles
  bool store = false;
  Convert convert = Convert::kNone;
  int vector_bytes = 0;  // of one vector in DRAM
  int units_per_element = 1;
  int64_t first_unit = 0, rows = 0, vectors = 0;
  uint64_t address = 0, address_mask = ~uint64_t{0};
  int64_t x_step = 0, y_step = 0, row_bytes = 0, left = 0, top = 0, source_rows = 0, valid = 0;
  uint8_t pad_value = 0;

  int64_t units() const { return rows * vectors; }
  int64_t last_unit() const { return first_unit + units() - 1; }  // requires units() > 0
  // Bytes [first, second) of vector x that are in DRAM (relative to the vector; empty: first >= second).
  std::pair<int64_t, int64_t> in_dram(int64_t x) const {
    const int64_t k = x * x_step - left;
    return {k < 0 ? -k : 0, row_bytes - k < valid ? row_bytes - k : valid};
  }
  bool row_in_dram(int64_t y) const { return y >= top && y - top < source_rows; }
  uint64_t row_address(int64_t y) const { return (address + static_cast<uint64_t>((y - top) * y_step)) & address_mask; }
};

// A range of DRAM bytes, [begin, end).
struct Range {
  uint64_t begin = 0, end = 0;
  bool operator==(const Range&) const = default;
};

// The transfer of an instruction, or nothing for instructions that transfer no data.
std::optional<Dma> dma_of(const spec::Config& config, const spec::Instruction& instruction, const Bases& bases);

// Appends the contiguous ranges of row y in the order of x; ranges of neighboring vectors that touch or overlap are
// merged. A row outside DRAM has no range.
void append_row_ranges(const Dma& dma, int64_t y, std::vector<Range>& ranges);

// A range that contains every byte of the transfer; empty where the transfer has no bytes.
Range bounding_range(const Dma& dma);

}  // namespace tenon::sim
