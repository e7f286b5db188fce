// A bundle on a simulator, with what can be seen from outside of its inside: scratchpads as instructions have left
// them, which instructions are done, tokens.
//
// Semantics: everything comes from the Simulator interface, so every simulator can be looked into. Scratchpads are
// rebuilt from the writes that are reported; an element that no instruction has written since the start is unknown.
// Which instructions have reached their queues is known while a launch runs, not of one that has stopped.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/bringup/bundle.h"
#include "sim/simulator.h"

namespace tenon::driver {

class Machine final : public sim::WriteObserver {
 public:
  struct Event {
    uint32_t instruction = 0;  // slot
    spec::Memory memory = spec::Memory::kDram;
    uint64_t address = 0;
  };
  enum class State : uint8_t { kReady, kRunning, kOver, kStopped };  // kOver: the launch came to its end

  // The accelerator must be a simulator, and outlive the machine.
  static Expected<std::unique_ptr<Machine>> create(Accelerator& accelerator, Bundle bundle);
  ~Machine() override;

  const Bundle& bundle() const { return bundle_; }
  const spec::Isa& isa() const { return isa_; }
  sim::Simulator& simulator() { return simulator_; }
  State state() const { return state_; }
  size_t launch() const { return launch_; }

  Status restart();      // the memory of the bundle, before the first launch
  Status next_launch();  // where the last one is over and there is one more
  Status start();
  Status advance(uint64_t cycles);
  std::string why_stopped();

  // Of the launch.
  const std::vector<spec::Decoded>& program() const { return program_; }
  std::optional<size_t> position(uint32_t slot) const;
  bool is_done(size_t position) const { return done_[position]; }
  size_t done() const { return done_count_; }
  std::vector<size_t> pending(spec::Engine engine) const;  // positions that are not done, in order
  unsigned tokens(spec::Engine producer, spec::Engine consumer);
  // Counter (p, c) at kEngines * p + c; on the RTL time passes with each register that is read, and this reads few.
  using TokenCounts = std::array<uint8_t, size_t{spec::kEngines} * spec::kEngines>;
  TokenCounts all_tokens();
  bool waits(spec::Engine engine);
  std::optional<uint32_t> decoded();  // slots whose instructions have reached their queues; while a launch runs

  // An element as it was written last; empty: nobody has.
  std::span<const std::byte> element(spec::Memory memory, uint64_t index) const;

  // Since the last call.
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
  Machine(Accelerator& accelerator, Bundle bundle);
  void decode();

  Accelerator& accelerator_;
  sim::Simulator& simulator_;
  const Bundle bundle_;
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
