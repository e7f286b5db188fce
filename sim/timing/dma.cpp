#include "sim/timing/dma.h"

#include <algorithm>

namespace tenon::sim {
namespace {

using spec::Engine;
using spec::Memory;

Dma base_transfer(const spec::Config& config, const spec::base::Transfer& t, bool store, const Bases& bases) {
  using spec::base::MemoryType;
  Dma dma;
  dma.address_mask = config.address_mask();
  dma.store = store;
  dma.first_unit = t.sram_base;
  if (store) {
    dma.memory = Memory::kAcc;
    dma.engine = Engine::kSt;
    dma.convert = Dma::Convert::kLowByte;
    dma.vector_bytes = config.block_out;
    dma.address = bases[spec::kBaseOut];
  } else {
    switch (static_cast<MemoryType>(t.memory_type)) {
      case MemoryType::kUop:
        dma.memory = Memory::kUop;
        dma.engine = Engine::kLdm;
        dma.address = bases[spec::kBaseUop];
        break;
      case MemoryType::kWgt:
        dma.memory = Memory::kWgt;
        dma.engine = Engine::kLdw;
        dma.address = bases[spec::kBaseWgt];
        break;
      case MemoryType::kInp:
        dma.memory = Memory::kInp;
        dma.engine = Engine::kLdi;
        dma.address = bases[spec::kBaseInp];
        break;
      case MemoryType::kAcc:
      case MemoryType::kAcc8:
      case MemoryType::kOut:  // refused by decode
        dma.memory = Memory::kAcc;
        dma.engine = Engine::kLdm;
        dma.address = bases[spec::kBaseAcc];
        break;
    }
    dma.vector_bytes = config.element_bytes(dma.memory);
    if (static_cast<MemoryType>(t.memory_type) == MemoryType::kAcc8) {
      dma.convert = Dma::Convert::kSignExtend;
      dma.vector_bytes = config.block_out;
    }
  }
  const int64_t v = dma.vector_bytes;
  dma.valid = v;
  dma.address += static_cast<uint64_t>(t.dram_base) * static_cast<uint64_t>(v);
  dma.x_step = v;
  dma.y_step = t.x_stride * v;
  dma.row_bytes = t.x_size * v;
  if (t.x_size == 0) return dma;
  dma.left = t.x_pad_left * v;
  dma.top = t.y_pad_top;
  dma.source_rows = t.y_size;
  dma.rows = t.y_pad_top + t.y_size + t.y_pad_bottom;
  dma.vectors = t.x_pad_left + t.x_size + t.x_pad_right;
  return dma;
}

Dma move(const spec::Config& config, const spec::native::Move& m, const Bases& bases) {
  using spec::native::MoveFunction;
  Dma dma;
  dma.address_mask = config.address_mask();
  switch (static_cast<MoveFunction>(m.function)) {
    case MoveFunction::kInp: dma.memory = Memory::kInp, dma.engine = Engine::kLdi; break;
    case MoveFunction::kWgt: dma.memory = Memory::kWgt, dma.engine = Engine::kLdw; break;
    case MoveFunction::kPar: dma.memory = Memory::kPar, dma.engine = Engine::kLdm; break;
    case MoveFunction::kRes: dma.memory = Memory::kRes, dma.engine = Engine::kLdm; break;
    case MoveFunction::kOut: dma.memory = Memory::kOut, dma.engine = Engine::kSt, dma.store = true; break;
  }
  dma.vector_bytes = config.unit_bytes(dma.memory);
  dma.units_per_element = config.units_per_element(dma.memory);
  dma.first_unit = m.sram_base * dma.units_per_element;
  dma.rows = m.rows;
  dma.vectors = m.vectors;
  dma.address = bases[static_cast<size_t>(m.base)] + static_cast<uint64_t>(m.offset);
  dma.x_step = m.x_step;
  dma.y_step = m.y_step;
  dma.row_bytes = m.row_bytes;
  dma.left = m.left;
  dma.top = m.top;
  dma.source_rows = m.source_rows;
  dma.valid = m.valid == 0 ? dma.vector_bytes : std::min<int64_t>(m.valid, dma.vector_bytes);
  dma.pad_value = static_cast<uint8_t>(m.pad_value);
  return dma;
}

}  // namespace

std::optional<Dma> dma_of(const spec::Config& config, const spec::Instruction& instruction, const Bases& bases) {
  if (const auto* load = std::get_if<spec::base::Load>(&instruction)) return base_transfer(config, *load, false, bases);
  if (const auto* store = std::get_if<spec::base::Store>(&instruction)) {
    return base_transfer(config, *store, true, bases);
  }
  if (const auto* m = std::get_if<spec::native::Move>(&instruction)) return move(config, *m, bases);
  return std::nullopt;
}

void append_row_ranges(const Dma& dma, int64_t y, std::vector<Range>& ranges) {
  if (!dma.row_in_dram(y) || dma.vectors == 0) return;
  const uint64_t row = dma.row_address(y);
  const auto at = [&](int64_t k) { return row + static_cast<uint64_t>(k); };
  if (dma.x_step <= dma.valid) {  // neighboring vectors touch or overlap
    const int64_t begin = std::max<int64_t>(-dma.left, 0);
    const int64_t end = std::min((dma.vectors - 1) * dma.x_step - dma.left + dma.valid, dma.row_bytes);
    if (begin < end) ranges.push_back({at(begin), at(end)});
    return;
  }
  for (int64_t x = 0; x < dma.vectors; ++x) {
    const auto [first, last] = dma.in_dram(x);
    const int64_t k = x * dma.x_step - dma.left;
    if (first < last) ranges.push_back({at(k + first), at(k + last)});
  }
}

Range bounding_range(const Dma& dma) {
  if (dma.vectors == 0) return {};
  // The first and the last vector with a byte in DRAM: strided vectors may all be in the padding.
  int64_t first_vector = 0, last_vector = dma.vectors - 1;
  if (dma.x_step > dma.valid) {
    if (dma.left >= dma.valid) first_vector = (dma.left - dma.valid) / dma.x_step + 1;
    if (dma.row_bytes + dma.left <= 0) return {};
    last_vector = std::min(last_vector, (dma.row_bytes + dma.left - 1) / dma.x_step);
    if (first_vector > last_vector) return {};
  }
  const int64_t begin = std::max<int64_t>(first_vector * dma.x_step - dma.left, 0);
  const int64_t end = std::min(last_vector * dma.x_step - dma.left + dma.valid, dma.row_bytes);
  const int64_t first = std::max<int64_t>(dma.top, 0);
  const int64_t last = std::min(dma.rows, dma.top + dma.source_rows) - 1;
  if (begin >= end || first > last) return {};
  return {dma.row_address(first) + static_cast<uint64_t>(begin), dma.row_address(last) + static_cast<uint64_t>(end)};
}

}  // namespace tenon::sim
