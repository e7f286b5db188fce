// The memories of a configuration, and what a family of chips makes of each.
//
// Semantics: the geometries and the limit between block RAM and look-up-table RAM are those of yosys's memory_libmap,
// which the estimate equals on every row of the table.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/estimate/table.h"

namespace tenon::estimate {

struct MemoryShape {
  int64_t width = 0, depth = 0, count = 1;
  // The bits of a word that are read: the first `read_bits` of each `period`; 0: all. A block with none of them is
  // removed after mapping.
  int64_t read_bits = 0, period = 0;
};

// One entry for each instance of prim_ram_1r1w, as hw/rtl instantiates it.
std::vector<MemoryShape> memories(const spec::Config& config);

// Block RAM of one memory; 0 where look-up tables hold it.
double block_rams(Family family, const MemoryShape& memory);

// Look-up tables of one memory, and registers on an iCE40; 0 where block RAM holds it.
double memory_luts(Family family, const MemoryShape& memory);

}  // namespace tenon::estimate
