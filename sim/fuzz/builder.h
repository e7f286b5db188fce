// Appends instructions to a program, with the tokens that keep them free of races.
//
// Why a program never deadlocks: an instruction only takes tokens of instructions before it in the stream, so stream
// order is a legal execution at any queue depth. Why a program never races: a race detector checks each new
// instruction, and each conflict gets a chain of tokens from the last instruction of the other engine.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "hw/spec/isa.h"
#include "sim/behavioral/footprint.h"
#include "sim/behavioral/race.h"
#include "sim/fuzz/program.h"
#include "support/random.h"

namespace tenon::sim::fuzz {

// Sets the token bits of an instruction from masks over engines; bits without an encoding are ignored.
void set_tokens(spec::Instruction& instruction, spec::TokenMasks masks);

class Builder {
 public:
  Builder(Program& program, Random& random);

  // Starts a new launch, to which later instructions belong.
  void begin_launch(spec::Profile profile);
  // Appends the instruction after the SYNCs that it requires, and sets its token bits. Returns false, and appends
  // nothing, where the instruction is out of bounds in a scratchpad or reads uninitialised elements.
  bool append(spec::Instruction instruction);
  void finish();  // appends FINISH or nothing: a stream may end either way
  size_t length() const { return launch().instructions.size(); }
  std::span<const uint32_t> uops() const { return uops_; }

 private:
  using Engine = spec::Engine;
  Launch& launch() const { return program_.launches.back(); }
  bool adjacent(Engine from, Engine to) const;
  spec::Instruction make_sync(Engine engine);
  void order(Engine from, Engine to, unsigned& wait);
  void take(Engine from, Engine to, unsigned& wait);
  void append_sync(Engine engine, unsigned wait, unsigned signal);
  void commit(spec::Instruction instruction, Engine engine, unsigned wait, unsigned signal);
  void run_uop_load(const Dma& dma);

  Program& program_;
  Random& random_;
  spec::Isa isa_;
  RaceDetector races_;
  Footprint footprint_;
  std::vector<uint32_t> uops_;
  std::array<std::array<int, spec::kEngines>, spec::kEngines> tokens_{};
  std::array<int, spec::kEngines> last_{};  // index of an engine's last instruction in this launch, or -1
};

}  // namespace tenon::sim::fuzz
