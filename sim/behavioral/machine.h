// The simulator that make_behavioral() returns: its registers and the state of a launch. Private to this folder.
#pragma once

#include <array>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hw/spec/registers.h"
#include "sim/behavioral/behavioral.h"
#include "sim/behavioral/executor.h"
#include "sim/behavioral/footprint.h"
#include "sim/behavioral/race.h"
#include "sim/behavioral/register_file.h"
#include "sim/timing/tokens.h"

namespace tenon::sim {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Dram = std::unique_ptr<std::byte[], Free>;

class Behavioral final : public Simulator, private RegisterFile::Run {
 public:
  Behavioral(const spec::Config& config, BehavioralOptions options, const KernelSet& kernels, Dram dram)
      : isa_(config),
        options_(std::move(options)),
        dram_(std::move(dram)),
        executor_(isa_, kernels, memory()),
        footprint_(config),
        races_(config),
        registers_(config) {}

  const spec::Config& config() const override { return isa_.config(); }
  std::span<std::byte> memory() override {
    return dram_ ? std::span(dram_.get(), static_cast<size_t>(options_.memory_bytes)) : options_.memory;
  }
  void observe(WriteObserver* observer) override { observer_ = observer; }
  void record_timeline(bool on) override { record_timeline_ = on; }
  std::string explain() override { return explanation_; }
  std::span<const Interval> timeline() const override {
    return record_timeline_ ? const_cast<Behavioral*>(this)->counters().timeline : std::span<const Interval>{};
  }

  uint32_t read_register(uint32_t offset) override;
  void write_register(uint32_t offset, uint32_t value) override;
  bool advance(uint64_t cycles) override;

 private:
  using Engine = spec::Engine;
  using StopCode = spec::StopCode;

  struct Queue {
    std::deque<uint32_t> instructions;  // indices into program_; an instruction leaves the queue when it starts
    std::optional<uint32_t> giving;     // the executed instruction whose tokens wait for a full counter
    bool empty() const { return instructions.empty() && !giving; }
  };

  void start();
  void stop(StopCode code, uint32_t slot, std::string why);
  void decode_stream();
  void clear_queues();
  void dispatch();
  bool step(size_t engine);  // returns whether the engine made progress
  bool execute(const spec::Decoded& d, Engine engine);
  void report_deadlock();
  std::string describe(uint32_t slot) const;
  const timing::Result& counters() override;
  uint64_t instructions_done() override { return instructions_done_; }
  uint64_t macs() override { return macs_; }
  RegisterFile::Progress progress() override;

  const spec::Isa isa_;
  const BehavioralOptions options_;
  Dram dram_;
  Executor executor_;
  Footprint footprint_;
  RaceDetector races_;
  Tokens tokens_, tokens_at_start_;
  WriteObserver* observer_ = nullptr;
  bool record_timeline_ = false;

  RegisterFile registers_;
  std::string explanation_;

  // State of the launch.
  spec::Profile profile_ = spec::Profile::kBase;
  uint64_t stream_ = 0;
  Bases bases_{};
  std::vector<spec::Decoded> program_;
  std::optional<spec::DecodeError> decode_error_;  // of the slot after the last of program_
  size_t dispatched_ = 0;
  std::array<Queue, spec::kEngines> queues_;
  size_t next_engine_ = 0;
  uint64_t instructions_done_ = 0, macs_ = 0, executed_steps_ = 0;
  std::optional<timing::Result> timing_;
  timing::Result running_;
};

}  // namespace tenon::sim
