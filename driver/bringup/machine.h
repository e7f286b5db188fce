// The machine of the debugger: a reproducer on a simulator, with its observable state: scratchpads between
// instructions, finished instructions, tokens.
//
// Semantics: all state comes from the Simulator interface, so every simulator is supported. Scratchpads are rebuilt
// from the reported writes; an element without a write since the start is unknown. The decoder's progress is available
// while a launch runs, not after a stop.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/bringup/reproducer.h"
#include "sim/simulator.h"

namespace tenon::driver {

class Machine final : public sim::WriteObserver {
 public:
  struct Event {
    uint32_t instruction = 0;  // slot
    spec::Memory memory = spec::Memory::kDram;
    uint64_t address = 0;
  };
  enum class State : uint8_t { kReady, kRunning, kOver, kStopped };  // kOver: the launch ended without an error

  // The accelerator must be a simulator, and outlive the machine.
  static Expected<std::unique_ptr<Machine>> create(Accelerator& accelerator, Reproducer reproducer);
  ~Machine() override;

  const Reproducer& reproducer() const { return reproducer_; }
  const spec::Isa& isa() const { return isa_; }
  sim::Simulator& simulator() { return simulator_; }
  State state() const { return state_; }
  size_t launch() const { return launch_; }

  Status restart();      // restores the memory of the reproducer, before the first launch
  Status next_launch();  // an error after the last launch
  Status start();
  Status advance(uint64_t cycles);
  std::string stop_reason();

  // State of the launch.
  const std::vector<spec::Decoded>& program() const { return program_; }
  std::optional<size_t> index_of(uint32_t slot) const;  // index into program()
  bool is_done(size_t index) const { return done_[index]; }
  size_t done() const { return done_count_; }
  std::vector<size_t> pending(spec::Engine engine) const;  // indices of instructions that are not done, in order
  unsigned tokens(spec::Engine producer, spec::Engine consumer);
  // Counter (p, c) at kEngines * p + c. On the RTL a register read takes time, so one read returns four counters.
  using TokenCounts = std::array<uint8_t, size_t{spec::kEngines} * spec::kEngines>;
  TokenCounts all_tokens();
  bool waits(spec::Engine engine);
  std::optional<uint32_t> decoded();  // slots whose instructions have entered their queues; while a launch runs

  // The last written value of an element; empty: no instruction has written the element.
  std::span<const std::byte> element(spec::Memory memory, uint64_t index) const;

  // Events since the last call.
  std::vector<uint32_t> take_done() { return std::exchange(newly_done_, {}); }
  std::vector<Event> take_writes() { return std::exchange(newly_written_, {}); }

  void on_write(const sim::Write& write) override;
  void on_done(uint32_t instruction) override;

 private:
  struct Pad {
    size_t element_bytes = 1;
    std::vector<std::byte> bytes;
    std::vector<bool> written;
  };
  Machine(Accelerator& accelerator, Reproducer reproducer);
  void decode();

  Accelerator& accelerator_;
  sim::Simulator& simulator_;
  const Reproducer reproducer_;
  const spec::Isa isa_;
  State state_ = State::kReady;
  size_t launch_ = 0;
  std::vector<spec::Decoded> program_;
  std::vector<bool> done_;
  size_t done_count_ = 0;
  std::array<Pad, spec::kScratchpads> pads_;
  std::vector<uint32_t> newly_done_;
  std::vector<Event> newly_written_;
};

}  // namespace tenon::driver
