// start, finish and read_counters with every answer that an accelerator can give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/simulated.h"
#include "tests/driver/scripted_simulator.h"

namespace tenon::driver {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;
using spec::Engine;
using spec::StopCode;

struct ControlTest : testing::Test {
  ControlTest() {
    auto owned = std::make_unique<ScriptedSimulator>(spec::load_config("tiny").value(), 1 << 20);
    simulator = owned.get();
    accelerator = make_simulated("scripted:tiny", std::move(owned), false);
  }

  Launch launch_of(const std::vector<spec::Instruction>& instructions) {
    const spec::Isa isa(simulator->config());
    std::vector<spec::Slot> slots;
    for (const auto& instruction : instructions) EXPECT_TRUE(isa.encode(instruction, slots));
    const Buffer buffer = accelerator->allocate(slots.size() * spec::kSlotBytes).value();
    EXPECT_TRUE(accelerator->write(buffer, 0, std::as_bytes(std::span(slots))));
    return {.instructions = buffer.address, .count = static_cast<uint32_t>(slots.size())};
  }

  void set_tokens(Engine producer, Engine consumer, uint32_t count) {
    const int i = spec::kEngines * static_cast<int>(producer) + static_cast<int>(consumer);
    simulator->words[spec::reg::kTokens + 4 * (i / 4)] |= count << (8 * (i % 4));
  }

  ScriptedSimulator* simulator;
  std::unique_ptr<Accelerator> accelerator;
};

TEST_F(ControlTest, StartWritesEveryArgument) {
  Launch launch{.profile = spec::Profile::kNative, .instructions = 0x1'2345'6780, .count = 77};
  for (size_t i = 0; i < launch.bases.size(); ++i) launch.bases[i] = (i << 32) + 64 * i;
  ASSERT_TRUE(start(*accelerator, launch));
  auto& words = simulator->words;
  EXPECT_EQ(words[spec::reg::kInstructions], 0x23456780u);
  EXPECT_EQ(words[spec::reg::kInstructions + 4], 1u);
  EXPECT_EQ(words[spec::reg::kCount], 77u);
  EXPECT_EQ(words[spec::reg::kMode], spec::kModeNative);
  for (uint32_t i = 0; i < spec::kBases; ++i) {
    EXPECT_EQ(words[spec::reg::kBase0 + 8 * i], 64 * i);
    EXPECT_EQ(words[spec::reg::kBase0 + 8 * i + 4], i);
  }
  EXPECT_TRUE(finish(*accelerator, 1ms));
  EXPECT_EQ(simulator->soft_resets, 0);
}

TEST_F(ControlTest, ASecondStartWhileBusyIsAnError) {
  simulator->cycles = 100;
  ASSERT_TRUE(start(*accelerator, {}));
  const auto status = start(*accelerator, {});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().str(), HasSubstr("the accelerator is busy with another launch"));
  EXPECT_TRUE(finish(*accelerator, 1ms));
  EXPECT_TRUE(start(*accelerator, {}));
}

TEST_F(ControlTest, ADeviceOfAnotherConfigurationIsAnError) {
  simulator->write_words(spec::reg::kConfigHash, 0x1234);
  const auto status = start(*accelerator, {});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().str(), HasSubstr("configuration hash is 0000000000001234, configuration tiny has"));
}

TEST_F(ControlTest, AnAddressBeyondTheMemoryPortIsAnError) {
  spec::Config narrow = spec::load_config("tiny").value();
  narrow.address_bits = 32;
  const auto device = make_simulated("scripted:tiny", std::make_unique<ScriptedSimulator>(narrow, 1 << 20), false);
  Launch launch;
  launch.bases[3] = uint64_t{1} << 32;
  const auto status = start(*device, launch);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().str(),
              HasSubstr("base address 3 is 0x100000000, and configuration tiny has addresses of 32 bits"));
}

TEST_F(ControlTest, AStreamOfMoreSlotsThanTheCountHoldsIsAnError) {
  spec::Config narrow = spec::load_config("tiny").value();
  narrow.address_bits = 14;
  const auto device = make_simulated("scripted:tiny", std::make_unique<ScriptedSimulator>(narrow, 1 << 13), false);
  Launch launch;
  launch.count = 2048;
  const auto status = start(*device, launch);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().str(), HasSubstr("the stream has 2048 slots, and configuration tiny counts 2047 at most: "
                                              "its addresses have 14 bits"));
}

TEST_F(ControlTest, AStopNamesCodeInstructionTokensAndExplanation) {
  simulator->code = StopCode::kDeadlock;
  simulator->explanation = "queues: gemm 1";
  const Launch launch =
      launch_of({spec::native::Sync{{.wait = spec::bit(Engine::kLdi), .signal = 0}, 0}, spec::native::Sync{}});
  simulator->words[spec::reg::kErrorIndex] = 0;
  simulator->words[spec::reg::kTokenWait] = spec::bit(Engine::kGemm) | spec::bit(Engine::kSt);
  set_tokens(Engine::kLdi, Engine::kGemm, 3);
  set_tokens(Engine::kSt, Engine::kSt, 255);
  ASSERT_TRUE(start(*accelerator, launch));
  const auto status = finish(*accelerator, 1ms);
  ASSERT_FALSE(status);
  const std::string text = status.error().str();
  EXPECT_THAT(text, HasSubstr("scripted:tiny: error: the accelerator stopped: deadlock: every engine"));
  EXPECT_THAT(text, HasSubstr("(code 8), instruction 0 (sync wait=ldi"));
  EXPECT_THAT(text, HasSubstr("engines that wait for tokens: gemm, st; tokens: ldi->gemm 3, st->st 255"));
  EXPECT_THAT(text, HasSubstr("queues: gemm 1"));
  EXPECT_EQ(simulator->soft_resets, 1);  // the next launch must not inherit the tokens
}

TEST_F(ControlTest, AnInstructionThatCannotBeReadBackIsNamedByIndex) {
  simulator->code = StopCode::kReadError;
  simulator->words[spec::reg::kErrorIndex] = 5;
  ASSERT_TRUE(start(*accelerator, {.instructions = uint64_t{1} << 40, .count = 10}));
  const auto status = finish(*accelerator, 1ms);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what, HasSubstr("(code 4), instruction 5\n"));
}

TEST_F(ControlTest, ATimeOutNamesTheProgressAndStopsTheRun) {
  simulator->cycles = 1'000'000;
  simulator->write_words(spec::reg::kInstructionsDone, 42);
  ASSERT_TRUE(start(*accelerator, {.count = 100}));
  const auto status = finish(*accelerator, 1ms);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what,
              HasSubstr("still busy after 1 ms; 42 instructions of a stream of 100 slots are done"));
  EXPECT_EQ(simulator->soft_resets, 1);
  EXPECT_TRUE(start(*accelerator, {}));
}

TEST_F(ControlTest, ATimeOutNamesTheInstructionOfEachEngine) {
  simulator->cycles = 1'000'000;
  spec::native::Sync on_ldi{{.wait = 0, .signal = spec::bit(Engine::kSt)}, static_cast<int64_t>(Engine::kLdi)};
  spec::native::Sync on_st{{.wait = spec::bit(Engine::kLdi), .signal = 0}, static_cast<int64_t>(Engine::kSt)};
  Launch launch = launch_of({on_ldi, on_st, on_st, on_ldi, on_st, on_ldi});
  launch.profile = spec::Profile::kNative;
  auto& words = simulator->words;
  words[spec::reg::kActivity] = spec::bit(Engine::kLdi) | spec::bit(Engine::kSt) | spec::bit(Engine::kLdi) << 8;
  words[spec::reg::kHead0 + 4 * static_cast<uint32_t>(Engine::kLdi)] = 6;
  words[spec::reg::kHead0 + 4 * static_cast<uint32_t>(Engine::kSt)] = 2;
  words[spec::reg::kDecoded] = 10;
  words[spec::reg::kOutstanding] = 3 << 16 | 1;
  ASSERT_TRUE(start(*accelerator, launch));
  const auto status = finish(*accelerator, 1ms);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what,
              HasSubstr("\n  decoded: 10 of 12 slots; outstanding bursts: 1 of reads, 3 of writes"
                        "\n  ldi: instruction 6 (sync signal=st engine=ldi) is in flight; 0 more after it"
                        "\n  st: instruction 2 (sync wait=ldi engine=st) has not started; 2 more after it"
                        "\n  last decoded instructions:"
                        "\n    instruction 2 (sync wait=ldi engine=st)"
                        "\n    instruction 4 (sync wait=ldi engine=st)"
                        "\n    instruction 6 (sync signal=st engine=ldi)"
                        "\n    instruction 8 (sync wait=ldi engine=st)\n"));
  // The registers may have nonsensical values, and the stream may be in no buffer.
  words[spec::reg::kDecoded] = UINT32_MAX;
  words[spec::reg::kHead0] = UINT32_MAX - 1;
  launch.instructions = uint64_t{1} << 40;
  ASSERT_TRUE(start(*accelerator, launch));
  EXPECT_THAT(finish(*accelerator, 1ms).error().what, HasSubstr("\n  st: instruction 2 has not started\n"));
}

TEST_F(ControlTest, ADeviceThatDoesNotResetIsReported) {
  simulator->cycles = UINT64_MAX;
  simulator->resets = false;
  ASSERT_TRUE(start(*accelerator, {}));
  const auto status = finish(*accelerator, 1ms);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what, HasSubstr("still busy after 1 ms; 0 instructions of a stream of 0 slots are done"));
  EXPECT_THAT(status.error().what, HasSubstr("\n  and the accelerator does not become idle after a soft reset"));
  EXPECT_EQ(status.error().fault, Fault::kInternal);
}

TEST_F(ControlTest, CountersHaveSixtyFourBits) {
  simulator->write_words(spec::reg::kCycles, 0x100000002);
  simulator->write_words(spec::reg::kMacs, 3);
  simulator->write_words(spec::reg::kBusy0 + 8 * 6, 0x500000000);
  simulator->write_words(spec::reg::kStall0, 7);
  const Counters counters = read_counters(*accelerator).value();
  EXPECT_EQ(counters.cycles, 0x100000002u);
  EXPECT_EQ(counters.macs, 3u);
  EXPECT_EQ(counters.busy[6], 0x500000000u);
  EXPECT_EQ(counters.stall[0], 7u);
}

}  // namespace
}  // namespace tenon::driver
