// The race detector: finds accesses that no token orders, and reads of uninitialised scratchpad elements.
//
// Order: instructions of one engine (base profile: of one class) in stream order; the k-th push into a counter before
// the k-th pop from it; a launch before the next. Full queues and full counters do not order instructions: a program
// that depends on them is wrong on an accelerator with deeper queues. One vector clock per engine counts instructions;
// a scratchpad element has the times of its last read and of the last write by each engine that writes it: one, and for
// inp two, LDI and with `to_inp` RQ. It has one reader beside them. DRAM is compared byte by byte between a store and
// the loads that are not ordered with it, transfer by transfer. A store into later slots of the running stream races
// with their fetch.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "hw/spec/isa.h"
#include "sim/behavioral/footprint.h"

namespace tenon::sim {

struct Conflict {
  bool race = true;     // false: an uninitialised read
  bool writes = false;  // whether this instruction writes
  bool other_writes = false;
  spec::Engine other_engine = spec::Engine::kLdi;
  uint32_t other = 0;       // slot of the other instruction
  bool with_fetch = false;  // the other side is the fetch of slot `other`
  std::string region;       // "inp[4..7]", "dram[0x1000..0x103f]"
};

class RaceDetector {
 public:
  using Clock = std::array<uint32_t, spec::kEngines>;

  explicit RaceDetector(const spec::Config& config);

  // All earlier launches happen before this launch; `stream` is the range of its instructions in DRAM.
  void begin_launch(spec::Profile profile, Range stream);
  void clear_tokens();
  // A token of counter (producer, consumer) is pushed after the producer's instruction and popped before the
  // consumer's.
  void push(spec::Engine producer, spec::Engine consumer);
  void pop(spec::Engine producer, spec::Engine consumer);

  // Executes the engine's next instruction with its footprint: returns the first conflict and records the accesses in
  // any case.
  std::optional<Conflict> access(spec::Engine engine, uint32_t slot, const Footprint& footprint);
  // The conflict that access() would return; records no access.
  std::optional<Conflict> check(spec::Engine engine, uint32_t slot, const Footprint& footprint) const;

  // Whether all scratchpad elements that the footprint reads were written.
  bool initialised(const Footprint& footprint) const;

  const Clock& clock(spec::Engine engine) const { return clocks_[static_cast<size_t>(engine)]; }

 private:
  struct Transfer {
    uint32_t time, slot;
    Range bounds;
    Dma dma;
  };
  struct Shadow {                                   // of one scratchpad
    std::vector<uint32_t> write_times, read_times;  // by element
    std::vector<uint32_t> second_write_times;       // of the second writer, where the scratchpad has one
    Bitmap initialised, units;
    int per_element = 1;
  };
  spec::Engine writer(spec::Memory memory) const;
  std::optional<spec::Engine> second_writer(spec::Memory memory) const;
  spec::Engine reader(spec::Memory memory) const;
  std::optional<Conflict> check_elements(spec::Engine engine, const Footprint& footprint) const;
  std::optional<Conflict> check_dram(spec::Engine engine, uint32_t slot, const Footprint& footprint) const;
  void record(spec::Engine engine, uint32_t slot, const Footprint& footprint);
  std::string describe(spec::Memory memory, size_t index, const Bitmap& set) const;

  const spec::Config config_;
  spec::Profile profile_ = spec::Profile::kNative;
  Range stream_;
  std::array<Clock, spec::kEngines> clocks_{};
  std::array<std::array<std::deque<Clock>, spec::kEngines>, spec::kEngines> tokens_;
  std::array<Shadow, spec::kScratchpads> shadows_;
  std::array<std::vector<uint32_t>, spec::kEngines> history_;    // slot by time
  std::array<std::vector<Transfer>, spec::kEngines> transfers_;  // DRAM accesses by engine, in the order of their times
};

}  // namespace tenon::sim
