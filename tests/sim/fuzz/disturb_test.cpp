// Disturbed runs: the behavioral simulator passes them, and each fault of a simulator is named.
#include "sim/fuzz/disturb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/spec/registers.h"
#include "sim/behavioral/behavioral.h"
#include "sim/fuzz/generator.h"
#include "support/function_ref.h"

namespace tenon::sim::fuzz {
namespace {

namespace reg = spec::reg;
using testing::HasSubstr;

// A behavioral simulator with one fault.
class Faulty final : public Simulator {
 public:
  explicit Faulty(const Program& program)
      : inner_(make_behavioral(program.config, {.memory_bytes = program.memory.size()}).value()) {}

  uint32_t stuck_register = ~0u;  // reads 7 after a soft reset
  bool busy_after_reset = false;
  bool broken = false;          // gives up in each launch
  int64_t corrupted = -1;       // a byte that a soft reset changes
  bool ignores_errors = false;  // ends every launch well

  const spec::Config& config() const override { return inner_->config(); }
  uint32_t read_register(uint32_t offset) override {
    if (reset_ && offset == stuck_register) return 7;
    if (ignores_errors && offset == reg::kStatus) return 0;
    return inner_->read_register(offset);
  }
  void write_register(uint32_t offset, uint32_t value) override {
    inner_->write_register(offset, value);
    if (offset != reg::kCommand || (value & spec::kSoftReset) == 0) return;
    reset_ = true;
    if (corrupted >= 0) memory()[static_cast<size_t>(corrupted)] ^= std::byte{0xff};
  }
  std::span<std::byte> memory() override { return inner_->memory(); }
  bool advance(uint64_t cycles) override { return inner_->advance(cycles) || broken || (reset_ && busy_after_reset); }
  std::string explain() override { return broken ? "a rule is broken" : inner_->explain(); }
  void observe(WriteObserver* observer) override { inner_->observe(observer); }
  void record_timeline(bool on) override { inner_->record_timeline(on); }
  std::span<const Interval> timeline() const override { return inner_->timeline(); }

 private:
  std::unique_ptr<Simulator> inner_;
  bool reset_ = false;
};

struct Disturb : testing::Test {
  const Program program = generate(*spec::load_config("tiny"), 3);

  std::string interrupted(FunctionRef<void(Faulty&)> plant) const {
    Faulty simulator(program);
    plant(simulator);
    const Status status = interrupt(simulator, program, 1, 100'000);
    return status ? "passes" : status.error().str();
  }
};

TEST_F(Disturb, AnInterruptedProgramRunsAgain) {
  Faulty simulator(program);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ASSERT_TRUE(interrupt(simulator, program, seed, 100'000));
    ASSERT_TRUE(run(simulator, program));
  }
}

TEST_F(Disturb, WhatAResetLeavesIsNamed) {
  EXPECT_EQ(interrupted([](Faulty&) {}), "passes");
  EXPECT_THAT(interrupted([](Faulty& f) { f.stuck_register = reg::kTokens + 8; }),
              HasSubstr("after a soft reset, tokens (register 0xc8) is 0x7, must be 0x0"));
  EXPECT_THAT(interrupted([](Faulty& f) { f.stuck_register = reg::kStall0; }),
              HasSubstr("after a soft reset, stalled cycles (register 0x180) is 0x7"));
  EXPECT_THAT(interrupted([](Faulty& f) { f.stuck_register = reg::kControl; }),
              HasSubstr("after a soft reset, control (register 0x0) is 0x7, must be 0x4"));
  EXPECT_THAT(interrupted([](Faulty& f) { f.busy_after_reset = true; }), HasSubstr("still busy 100000 cycles after"));
  EXPECT_THAT(interrupted([](Faulty& f) { f.broken = true; }), HasSubstr("a rule is broken"));
  const auto last = static_cast<int64_t>(program.memory.size()) - 1;  // no store is there
  EXPECT_THAT(interrupted([&](Faulty& f) { f.corrupted = last; }),
              HasSubstr("no store of the launch writes this value"));
}

TEST_F(Disturb, ATransferPastTheEndOfMemoryStopsAtItsInstruction) {
  int planted = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const auto wrong = plant_bus_error(program, seed);
    if (!wrong) continue;
    ++planted;
    Faulty simulator(program);
    const Status status = run_fault(simulator, *wrong, 1'000'000);
    ASSERT_TRUE(status) << status.error().str();
    ASSERT_TRUE(run(simulator, program));
    simulator.ignores_errors = true;
    const Status ignored = run_fault(simulator, *wrong, 1'000'000);
    ASSERT_FALSE(ignored);
    EXPECT_THAT(ignored.error().str(), HasSubstr("the wrong instruction must stop with"));
  }
  EXPECT_GT(planted, 25);
}

TEST_F(Disturb, AnIndexOutsideItsScratchpadStopsAtItsInstruction) {
  int planted = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const auto wrong = plant_range_error(program, seed);
    if (!wrong) continue;
    ++planted;
    EXPECT_EQ(wrong->code, spec::StopCode::kScratchpadRange);
    Faulty simulator(program);
    const Status status = run_fault(simulator, *wrong, 1'000'000);
    ASSERT_TRUE(status) << status.error().str();
    ASSERT_TRUE(run(simulator, program));
  }
  EXPECT_GT(planted, 15);
}

TEST_F(Disturb, ASimulatorThatGivesUpIsNoTimeOut) {
  Faulty simulator(program);
  simulator.broken = true;
  const Status status = run(simulator, program);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().str(), HasSubstr("a rule is broken"));
}

}  // namespace
}  // namespace tenon::sim::fuzz
