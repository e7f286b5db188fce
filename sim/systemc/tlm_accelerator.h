// The accelerator as a TLM-2.0 model, approximately timed: the engines, queues and tokens as concurrent processes.
//
// Semantics: status codes, error indices, tokens and final memory are the hardware's. An instruction takes effect at
// its end, at once, through the memory socket. Its duration follows sim/timing: the same parameters and the same burst
// plans, but the accumulators' ports are not modelled, and the store's bursts never wait for each other. Launches whose
// tokens order all conflicting accesses leave the same bits as on every other simulator; there is no race detector.
//
// Processes: the fetch process fetches, decodes and fills the engines' queues; each engine has a process that starts
// instructions and a process that ends them in order, so that two instructions are in flight, as in the RTL. Every
// state change notifies one event, and waiting processes test their condition again: so a deadlock is a predicate over
// the state, and is detected exactly.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "hw/spec/isa.h"
#include "hw/spec/registers.h"
#include "sim/behavioral/executor.h"
#include "sim/behavioral/footprint.h"
#include "sim/behavioral/register_file.h"
#include "sim/systemc/accelerator.h"
#include "sim/timing/model.h"
#include "sim/timing/tokens.h"
#include "support/function_ref.h"

namespace tenon::sim::systemc {

class TlmAccelerator final : public AcceleratorModule, private RegisterFile::Run {
 public:
  // `window` is the accelerator's private image of its address range, through which data passes between the memory
  // socket and the executor. Addresses past its end are answered as addresses without memory.
  TlmAccelerator(const sc_core::sc_module_name& name, const spec::Config& config, const KernelSet& kernels,
                 std::span<std::byte> window, const timing::Parameters& parameters);

  void power_on() override;
  std::string explain() override { return explanation_; }
  void observe(WriteObserver* observer) override { observer_ = observer; }
  void record_timeline(bool on) override { record_ = on; }
  std::span<const Interval> timeline() const override { return timeline_; }

 private:
  struct Abandoned {};  // the launch that a process worked for is over

  struct Flight {
    size_t instruction;
    timing::Unit unit;
    uint64_t begin, due;
    bool done = false;
  };
  struct Engine {
    std::deque<size_t> queue;  // indices into program_
    std::deque<Flight> flights;
    bool starting = false;  // an instruction between its queue and its flight
    uint64_t retired_at = 0;
  };

  uint32_t read_register(uint32_t offset) override;
  void write_register(uint32_t offset, uint32_t value) override;
  const timing::Result& counters() override;
  uint64_t instructions_done() override { return instructions_done_; }
  uint64_t macs() override { return macs_; }
  RegisterFile::Progress progress() override;
  void start();
  void abandon();  // ends the current launch, if any
  void end(spec::StopCode code, uint32_t slot);
  void stop(spec::StopCode code, uint32_t slot, std::string why);

  // Waits of processes; each throws Abandoned where the launch ends meanwhile.
  void process(FunctionRef<void()> body);
  void until(FunctionRef<bool()> ready);
  void pause(uint64_t count);
  void pause_until(uint64_t cycle);
  void changed() { changed_.notify(sc_core::SC_ZERO_TIME); }

  void fetch();
  bool fetch_slots(uint64_t first, uint32_t count);
  void start_next(size_t e);
  void retire_next(size_t e);
  void load(const Dma& dma, size_t instruction, uint64_t& due);
  void store(const Dma& dma, size_t instruction, uint64_t& due);
  void execute(size_t instruction);
  bool move_ranges(const Dma& dma);
  uint64_t take_channel(uint32_t beats);  // reserves the read channel; returns the cycle of the first beat

  bool can_start(const Engine& k, size_t e) const;
  bool has_tokens(const Engine& k, size_t e) const;
  bool has_room(size_t engine) const;  // in the queue, for the next instruction
  bool quiet() const;
  void check_quiet();
  std::string describe(size_t instruction) const;
  void record(size_t e, Interval::Kind kind, size_t instruction, uint64_t begin, uint64_t end);

  const spec::Isa isa_;
  const timing::Parameters parameters_;
  std::span<std::byte> window_;
  const KernelSet& kernels_;
  std::optional<Executor> executor_;
  Footprint footprint_;
  WriteObserver* observer_ = nullptr;
  bool record_ = false;
  sc_core::sc_event changed_, over_;

  RegisterFile registers_;
  std::string explanation_;
  Tokens tokens_;

  // State of the launch.
  uint64_t launch_ = 0;  // counts launches and resets: a process that sees another count abandons its work
  uint64_t begin_ = 0;
  spec::Profile profile_ = spec::Profile::kBase;
  uint64_t stream_ = 0;
  Bases bases_{};
  std::vector<spec::Decoded> program_;
  bool fetched_ = true;                     // the whole stream is fetched
  uint32_t decoded_ = 0;                    // slots
  std::optional<size_t> fetch_blocked_on_;  // the engine whose queue is full
  std::array<Engine, spec::kEngines> engines_;
  uint64_t channel_free_ = 0;  // the cycle at which the read channel is free
  timing::Result counters_;
  uint64_t instructions_done_ = 0, macs_ = 0;
  std::vector<Interval> timeline_;
};

}  // namespace tenon::sim::systemc
