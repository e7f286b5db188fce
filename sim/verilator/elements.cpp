#include "sim/verilator/elements.h"

#include <cstring>

namespace tenon::sim {

using spec::Memory;

ElementWriter::ElementWriter(const spec::Config& config) : lanes_(static_cast<size_t>(config.block_out)) {
  for (size_t i = 0; i < pads_.size(); ++i) {
    const auto memory = static_cast<Memory>(i);
    pads_[i].unit_bytes = static_cast<size_t>(config.unit_bytes(memory));
    pads_[i].units = static_cast<size_t>(config.units_per_element(memory));
    pads_[i].copy.resize(static_cast<size_t>(config.bytes[i]));
  }
}

// An address out of bounds is an error of the program; the instruction stops with an error, so any valid index serves.
std::byte* ElementWriter::at(Pad& pad, uint64_t address) {
  const size_t bytes = pad.units * pad.unit_bytes;
  return pad.copy.size() < bytes ? nullptr : pad.copy.data() + address % (pad.copy.size() / bytes) * bytes;
}

void ElementWriter::report(Memory memory, uint32_t instruction, uint64_t address, const std::byte* data, size_t bytes) {
  if (observer_ != nullptr) observer_->on_write({instruction, memory, address, {data, bytes}});
}

void ElementWriter::flush(Memory memory) {
  Pad& p = pad(memory);
  if (!p.open) return;
  p.open = false;
  if (const std::byte* data = at(p, p.address)) report(memory, p.instruction, p.address, data, p.units * p.unit_bytes);
}

void ElementWriter::unit(Memory memory, uint32_t instruction, uint64_t unit, const std::byte* data) {
  Pad& p = pad(memory);
  const uint64_t address = unit / p.units, part = unit % p.units;
  if (p.open && (p.address != address || p.instruction != instruction)) flush(memory);
  std::byte* copy = at(p, address);
  if (copy == nullptr) return;
  std::memcpy(copy + part * p.unit_bytes, data, p.unit_bytes);
  p.open = true;
  p.instruction = instruction;
  p.address = address;
  if (part == p.units - 1) flush(memory);
}

void ElementWriter::element(Memory memory, uint32_t instruction, uint64_t address, const std::byte* data) {
  Pad& p = pad(memory);
  const size_t bytes = p.units * p.unit_bytes;
  if (std::byte* copy = at(p, address)) std::memcpy(copy, data, bytes);
  report(memory, instruction, address, data, bytes);
}

void ElementWriter::widen(uint32_t instruction, uint64_t address, const std::byte* data) {
  std::array<int32_t, 64> lanes{};
  for (size_t i = 0; i < lanes_; ++i) lanes[i] = static_cast<int8_t>(data[i]);
  element(Memory::kAcc, instruction, address, reinterpret_cast<const std::byte*>(lanes.data()));
}

void ElementWriter::dram(uint32_t instruction, uint64_t address, const std::byte* data, uint32_t bytes) {
  report(Memory::kDram, instruction, address, data, bytes);
}

void ElementWriter::forget() {
  for (Pad& p : pads_) p.open = false;
}

void ElementWriter::done(uint32_t instruction) {
  for (size_t i = 0; i < pads_.size(); ++i) {
    if (pads_[i].open && pads_[i].instruction == instruction) flush(static_cast<Memory>(i));
  }
  if (observer_ != nullptr) observer_->on_done(instruction);
}

}  // namespace tenon::sim
