// A simulator whose behavior a test defines: registers are plain words, a launch runs for `cycles` and ends with
// `code`. So the driver's protocol can be tested with every answer of the hardware, including answers that the models
// never give.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hw/spec/isa.h"
#include "hw/spec/registers.h"
#include "sim/simulator.h"

namespace tenon::driver {

class ScriptedSimulator final : public sim::Simulator {
 public:
  ScriptedSimulator(spec::Config config, size_t memory_bytes) : config_(std::move(config)), memory_(memory_bytes) {
    write_words(spec::reg::kConfigHash, spec::hash(config_));
  }

  uint64_t cycles = 1;  // of the next launch
  spec::StopCode code = spec::StopCode::kNone;
  bool resets = true;  // whether a soft reset works
  std::string explanation;
  std::map<uint32_t, uint32_t> words;
  uint64_t advanced = 0;
  int soft_resets = 0;

  void write_words(uint32_t offset, uint64_t value) {
    words[offset] = static_cast<uint32_t>(value);
    words[offset + 4] = static_cast<uint32_t>(value >> 32);
  }

  const spec::Config& config() const override { return config_; }
  uint32_t read_register(uint32_t offset) override {
    if (offset == spec::reg::kStatus) return remaining_ > 0 ? spec::kStatusBusy : words[offset];
    return words[offset];
  }
  void write_register(uint32_t offset, uint32_t value) override {
    if (offset == spec::reg::kControl && (value & spec::kApStart)) {
      remaining_ = cycles;
      words[spec::reg::kStatus] = 0;
    } else if (offset == spec::reg::kCommand) {
      if (value & spec::kSoftReset) ++soft_resets;
      if (resets) remaining_ = 0;
    } else {
      words[offset] = value;
    }
  }
  std::span<std::byte> memory() override { return memory_; }
  bool advance(uint64_t n) override {
    const uint64_t step = std::min(n, remaining_);
    advanced += n;
    if (step > 0 && (remaining_ -= step) == 0) words[spec::reg::kStatus] = static_cast<uint32_t>(code);
    return remaining_ > 0;
  }
  std::string explain() override { return explanation; }
  void observe(sim::WriteObserver*) override {}
  void record_timeline(bool) override {}
  std::span<const sim::Interval> timeline() const override { return {}; }

 private:
  spec::Config config_;
  std::vector<std::byte> memory_;
  uint64_t remaining_ = 0;
};

}  // namespace tenon::driver
