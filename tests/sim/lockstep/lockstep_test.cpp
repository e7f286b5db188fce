// Lockstep of two behavioral simulators: equal simulators agree, and each kind of difference is detected and named.
#include "sim/lockstep/lockstep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "hw/spec/registers.h"
#include "sim/behavioral/behavioral.h"

namespace tenon::sim {
namespace {

namespace native = spec::native;
namespace reg = spec::reg;
using spec::Engine;
using spec::Memory;
using spec::StopCode;
using testing::AllOf;
using testing::HasSubstr;

// Forwards every call to another simulator, and corrupts the results that a test selects.
class Spoiled final : public Simulator, public WriteObserver {
 public:
  explicit Spoiled(std::unique_ptr<Simulator> inner) : inner_(std::move(inner)) { inner_->observe(this); }

  Memory memory_kind = Memory::kDram;
  int64_t address = -1;            // of the corrupted write
  bool drop = false;               // omits the write instead
  int64_t silent = -1;             // the instruction whose end is not reported
  int64_t byte = -1;               // of memory, corrupted without a write
  uint32_t register_offset = ~0u;  // of the register that reads its value plus one
  std::string rule;                // that it says it broke

  const spec::Config& config() const override { return inner_->config(); }
  uint32_t read_register(uint32_t offset) override {
    return inner_->read_register(offset) + (offset == register_offset ? 1 : 0);
  }
  void write_register(uint32_t offset, uint32_t value) override { inner_->write_register(offset, value); }
  std::span<std::byte> memory() override { return inner_->memory(); }
  bool advance(uint64_t cycles) override {
    const bool busy = inner_->advance(cycles);
    if (!busy && byte >= 0) inner_->memory()[static_cast<size_t>(byte)] = std::byte{0x5a};
    return busy;
  }
  std::string explain() override { return rule.empty() ? inner_->explain() : rule; }
  void observe(WriteObserver* observer) override { observer_ = observer; }
  void record_timeline(bool on) override { inner_->record_timeline(on); }
  std::span<const Interval> timeline() const override { return inner_->timeline(); }

  void on_write(const Write& write) override {
    Write copy = write;
    std::vector<std::byte> value(write.value.begin(), write.value.end());
    const bool dram = write.memory == Memory::kDram;
    const auto at = static_cast<int64_t>(write.address);
    if (write.memory == memory_kind &&
        (dram ? at <= address && address < at + static_cast<int64_t>(value.size()) : at == address)) {
      if (drop) return;
      value[static_cast<size_t>(dram ? address - at : 1)] ^= std::byte{1};
    }
    copy.value = value;
    observer_->on_write(copy);
  }
  void on_done(uint32_t instruction) override {
    if (instruction != silent) observer_->on_done(instruction);
  }

 private:
  std::unique_ptr<Simulator> inner_;
  WriteObserver* observer_ = nullptr;
};

struct LockstepTest : testing::Test {
  static constexpr uint64_t kStream = 0x1000, kData = 0x2000, kResult = 0x3000;

  LockstepTest() {
    const auto config = spec::load_config("tiny").value();
    auto tested = std::make_unique<Spoiled>(make_behavioral(config, {.memory_bytes = 1 << 16}).value());
    spoiled = tested.get();
    both = Lockstep::make({"left", std::move(tested)},
                          {"right", make_behavioral(config, {.memory_bytes = 1 << 16}).value()})
               .value();
    both->set_note([](uint32_t instruction) { return instruction == 0 ? "the load" : ""; });
    // Loads four input vectors; the first token is taken, the second remains.
    native::Move load;
    load.signal = spec::bit(Engine::kLdw);
    load.rows = 1, load.vectors = 4, load.x_step = 4, load.row_bytes = 16, load.source_rows = 1, load.offset = kData;
    native::Sync wait;
    wait.engine = static_cast<int64_t>(Engine::kLdw);
    wait.wait = spec::bit(Engine::kLdi);
    wait.signal = spec::bit(Engine::kLdm);  // remains at the end
    program = {load, wait, native::Finish{}};
  }

  // Runs the program and returns the status code.
  StopCode run(Lockstep& simulator) {
    const spec::Isa isa(simulator.config());
    std::vector<spec::Slot> slots;
    for (const auto& instruction : program) EXPECT_TRUE(isa.encode(instruction, slots));
    std::memcpy(simulator.memory().data() + kStream, slots.data(), slots.size() * sizeof(spec::Slot));
    for (size_t i = 0; i < 16; ++i) simulator.memory()[kData + i] = std::byte(i + 1);
    simulator.write_register(reg::kInstructions, kStream);
    simulator.write_register(reg::kCount, static_cast<uint32_t>(slots.size()));
    simulator.write_register(reg::kMode, spec::kModeNative);
    simulator.write_register(reg::kControl, spec::kApStart);
    int calls = 0;
    while (simulator.advance(1000)) EXPECT_LT(++calls, 1000);
    return static_cast<StopCode>(simulator.read_register(reg::kStatus));
  }

  Spoiled* spoiled;
  std::unique_ptr<Lockstep> both;
  std::vector<spec::Instruction> program;
};

TEST_F(LockstepTest, EqualSimulatorsAgree) {
  EXPECT_EQ(run(*both), StopCode::kNone) << both->explain();
  EXPECT_EQ(both->compared_writes(), 4u);
  EXPECT_GE(both->compared_instructions(), 2u);
  EXPECT_EQ(run(*both), StopCode::kNone);  // a second launch
}

TEST_F(LockstepTest, AWrongLaneIsNamedWithInstructionNoteAndValues) {
  spoiled->memory_kind = Memory::kInp;
  spoiled->address = 2;
  EXPECT_EQ(run(*both), StopCode::kDivergence);
  EXPECT_EQ(both->read_register(reg::kErrorIndex), 0u);
  const std::string text = both->explain();
  EXPECT_THAT(text, HasSubstr("left and right differ: instruction 0 (move "));
  EXPECT_THAT(text, HasSubstr(") of the load, inp[0x2] lane 1: left has 11, right has 10; 1 of 4 lanes differ"));
}

TEST_F(LockstepTest, AMissingWriteIsNamed) {
  spoiled->memory_kind = Memory::kInp;
  spoiled->address = 3;
  spoiled->drop = true;
  EXPECT_EQ(run(*both), StopCode::kDivergence);
  EXPECT_THAT(both->explain(), HasSubstr("inp[0x3]: right writes it, left does not"));
}

TEST_F(LockstepTest, AnInstructionThatIsNeverDoneIsNamed) {
  spoiled->silent = 0;
  EXPECT_EQ(run(*both), StopCode::kDivergence);
  EXPECT_THAT(both->explain(), HasSubstr("instruction 0"));
  EXPECT_THAT(both->explain(), HasSubstr("never done there"));
}

TEST_F(LockstepTest, MemoryThatChangedWithoutAWriteIsNamed) {
  spoiled->byte = 0x4321;
  EXPECT_EQ(run(*both), StopCode::kDivergence);
  EXPECT_THAT(both->explain(), HasSubstr("at the end, dram[0x4321]: left has 0x5a, right has 0x00"));
}

TEST_F(LockstepTest, TokensAndCountsAtTheEndAreCompared) {
  spoiled->register_offset = reg::kTokens + 8;
  EXPECT_EQ(run(*both), StopCode::kDivergence);
  EXPECT_THAT(both->explain(), HasSubstr("at the end, tokens (register 0xc8): left has"));
  both->write_register(reg::kCommand, spec::kSoftReset);
  spoiled->register_offset = reg::kInstructionsDone;
  EXPECT_EQ(run(*both), StopCode::kDivergence);
  EXPECT_THAT(both->explain(), HasSubstr("instructions done"));
}

TEST_F(LockstepTest, ABrokenRuleIsReportedBesidesADifference) {
  spoiled->memory_kind = Memory::kInp;
  spoiled->address = 2;
  spoiled->rule = "a rule is broken";
  EXPECT_EQ(run(*both), StopCode::kDivergence);
  EXPECT_THAT(both->explain(), AllOf(HasSubstr("inp[0x2] lane 1"), HasSubstr("\na rule is broken")));
}

TEST_F(LockstepTest, ASoftResetClearsADifference) {
  spoiled->memory_kind = Memory::kInp;
  spoiled->address = 2;
  EXPECT_EQ(run(*both), StopCode::kDivergence);
  both->write_register(reg::kCommand, spec::kSoftReset);
  EXPECT_EQ(both->read_register(reg::kStatus), 0u);
  spoiled->address = -1;
  EXPECT_EQ(run(*both), StopCode::kNone) << both->explain();
}

TEST_F(LockstepTest, ARaceThatOnlyTheReferenceDetectsIsADifference) {
  // The store reads uninitialised elements of out, and only the reference has a race detector.
  const auto config = spec::load_config("tiny").value();
  both = Lockstep::make({"left", make_behavioral(config, {.memory_bytes = 1 << 16, .detect_races = false}).value()},
                        {"right", make_behavioral(config, {.memory_bytes = 1 << 16}).value()})
             .value();
  native::Move store;
  store.function = static_cast<int64_t>(native::MoveFunction::kOut);
  store.rows = 1, store.vectors = 1, store.x_step = 4, store.row_bytes = 4, store.source_rows = 1,
  store.offset = kResult;
  store.valid = 4;
  program = {store, native::Finish{}};
  EXPECT_EQ(run(*both), StopCode::kDivergence);
  EXPECT_THAT(both->explain(), HasSubstr("left finishes; right stops at instruction 0"));
  EXPECT_THAT(both->explain(), HasSubstr("a scratchpad element is read before it is written"));
}

TEST_F(LockstepTest, TheSameErrorOnBothSidesIsNoDifference) {
  native::Move outside;
  outside.rows = 1, outside.vectors = 4, outside.x_step = 4, outside.row_bytes = 16, outside.source_rows = 1;
  outside.sram_base = spoiled->config().depth(Memory::kInp) - 2;
  program = {outside, native::Finish{}};
  EXPECT_EQ(run(*both), StopCode::kScratchpadRange);
}

TEST_F(LockstepTest, DifferentConfigurationsAreAnError) {
  auto left = make_behavioral(spec::load_config("tiny").value(), {.memory_bytes = 1 << 16}).value();
  auto right = make_behavioral(spec::load_config("default").value(), {.memory_bytes = 1 << 16}).value();
  const auto pair = Lockstep::make({"left", std::move(left)}, {"right", std::move(right)});
  ASSERT_FALSE(pair);
  EXPECT_THAT(pair.error().what, HasSubstr("lockstep of two configurations, tiny and default"));
  EXPECT_THAT(pair.error().what, HasSubstr("block_in"));
}

}  // namespace
}  // namespace tenon::sim
