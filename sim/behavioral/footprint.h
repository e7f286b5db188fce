// The footprint of an instruction: the elements that it reads and writes in each scratchpad, and its transfer.
//
// Semantics: a read counts only where it sees a value of another instruction; a read after the instruction's own first
// write of the element does not count. Indices are element indices, and for wgt and par written by DMA also unit
// indices (`written_units`), since a MOVE may fill an element only in part. A footprint depends on no data but the base
// profile's micro-ops.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "hw/spec/config.h"
#include "hw/spec/isa.h"
#include "sim/behavioral/bitmap.h"
#include "sim/timing/dma.h"

namespace tenon::sim {

inline constexpr size_t index_of(spec::Memory memory) { return static_cast<size_t>(memory); }

struct Footprint {
  explicit Footprint(const spec::Config& config);

  std::array<Bitmap, spec::kScratchpads> reads, writes;
  std::array<bool, spec::kScratchpads> reading{}, writing{};  // whether the set of the scratchpad is not empty
  std::pair<int64_t, int64_t> written_units{0, 0};            // of the transfer's memory
  std::optional<Dma> dma;
  uint64_t macs = 0;

  void clear();
};

// A message that names the first scratchpad in which the instruction is out of bounds.
struct RangeError {
  std::string message;
};

// Fills `footprint`; `uops` is the whole micro-op scratchpad. An element outside its scratchpad is an error, and leaves
// the footprint incomplete.
std::optional<RangeError> find_footprint(const spec::Isa& isa, const spec::Instruction& instruction, const Bases& bases,
                                         std::span<const uint32_t> uops, Footprint& footprint);

}  // namespace tenon::sim
