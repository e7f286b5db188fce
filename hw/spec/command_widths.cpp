#include "hw/spec/command_widths.h"

#include <algorithm>
#include <bit>

namespace tenon::spec {

CommandWidths command_widths(const Config& config) {
  CommandWidths w;
  w.slot = config.slot_bits();
  w.step = std::min(w.step, config.address_bits);
  if (config.native) return w;
  int64_t units = 0, bytes = 0;
  int index = 0;
  for (const Memory m : {Memory::kUop, Memory::kWgt, Memory::kInp, Memory::kAcc}) {
    units = std::max(units, config.depth(m) * config.units_per_element(m));
    bytes = std::max(bytes, config.bytes[static_cast<size_t>(m)]);
    if (m != Memory::kUop) index = std::max(index, config.index_bits(m));
  }
  const auto bits = [](int64_t value) { return static_cast<int>(std::bit_width(static_cast<uint64_t>(value))); };
  // Rows and vectors have 16 bits in the instructions: in a deep scratchpad these are less than its units.
  for (int* width : {&w.unit, &w.row, &w.vector, &w.total}) *width = std::min(*width, bits(units));
  w.length = bits(bytes);
  w.left = std::min(w.left, std::max(w.length + 1, 8));
  w.end = std::max(w.length + 1, 8);
  w.ahead =
      std::min(w.ahead, std::max(w.length, bits(config.axi_bytes() + std::max(config.block_in, config.block_out))) + 2);
  w.loop = index + 2;
  w.uop = std::min(w.uop, config.index_bits(Memory::kUop) + 2);
  return w;
}

}  // namespace tenon::spec
