// ElementWriter: combines the DMA units that loads write to the elements that observers receive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/spec/config.h"
#include "sim/simulator.h"

namespace tenon::sim {

// Keeps a copy of the scratchpads whose elements have several units. The units of one instruction are written in
// ascending order, so an element is complete when its last unit is written, when the next unit belongs to another
// element, or when its instruction is done.
class ElementWriter {
 public:
  explicit ElementWriter(const spec::Config& config);

  void set_observer(WriteObserver* observer) { observer_ = observer; }
  void unit(spec::Memory memory, uint32_t instruction, uint64_t unit, const std::byte* data);
  void element(spec::Memory memory, uint32_t instruction, uint64_t address, const std::byte* data);
  // Writes an accumulator element from one signed byte per lane.
  void widen(uint32_t instruction, uint64_t address, const std::byte* data);
  void dram(uint32_t instruction, uint64_t address, const std::byte* data, uint32_t bytes);
  void done(uint32_t instruction);
  void forget();  // drops the incomplete elements of an aborted run

 private:
  struct Pad {
    size_t unit_bytes = 1, units = 1;
    std::vector<std::byte> copy;
    bool open = false;  // the element `address` has unreported units of `instruction`
    uint32_t instruction = 0;
    uint64_t address = 0;
  };
  Pad& pad(spec::Memory memory) { return pads_[static_cast<size_t>(memory)]; }
  std::byte* at(Pad& pad, uint64_t address);
  void report(spec::Memory memory, uint32_t instruction, uint64_t address, const std::byte* data, size_t bytes);
  void flush(spec::Memory memory);

  std::array<Pad, spec::kScratchpads> pads_;
  size_t lanes_;
  WriteObserver* observer_ = nullptr;
};

}  // namespace tenon::sim
