// Configurations that were synthesized: what the model of cells is fitted to.
//
// Semantics: one file for each family of chips, hw/estimate/FAMILY.jsonl, with one configuration a line, as
// `scripts/cells --record` writes it. LUT are counted as nextpnr and Vivado count them: with carries, and with RAM in
// look-up tables. Block RAM is counted in the family's larger block.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/spec/config.h"
#include "support/diagnostic.h"

namespace tenon::estimate {

enum class Family : uint8_t { kIce40, kEcp5, kXilinx };
std::string_view name(Family family);
Expected<Family> find_family(std::string_view name);

struct Cells {
  int64_t lut = 0, ff = 0, dsp = 0;
  double ram = 0;
};

struct Row {
  spec::Config config;
  Cells cells;
  double mhz = 0;  // of the routed netlist; 0: it was not routed
};

Expected<std::vector<Row>> read_table(Family family);
Expected<std::vector<Row>> parse_table(std::string_view text, std::string_view where);

}  // namespace tenon::estimate
