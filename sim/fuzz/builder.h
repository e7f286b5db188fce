// Appends instructions to a program and gives them the tokens without which they would race.
//
// Why it never deadlocks: a token is only taken by an instruction that stands behind its giver in the stream, so the
// stream's own order is a legal execution at any queue depth. Why it never races: a race detector runs along, and each
// conflict that it finds gets a chain of tokens from the last instruction of the other engine.
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

// The token bits of an instruction as masks over engines; only bits that its encoding has.
void set_tokens(spec::Instruction& instruction, spec::TokenMasks masks);

class Builder {
 public:
  Builder(Program& program, Random& random);

  // Instructions from now on belong to a new launch.
  void begin_launch(spec::Profile profile);
  // Appends the instruction, and before it whatever it needs in SYNCs. Its own token bits are chosen here. False, and
  // nothing is appended, where it reaches outside a scratchpad or reads what nobody wrote.
  bool append(spec::Instruction instruction);
  void finish();  // FINISH, or nothing: both end a stream
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
  std::array<int, spec::kEngines> last_{};  // position of an engine's last instruction in this launch, or -1
};

}  // namespace tenon::sim::fuzz
