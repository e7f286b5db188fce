// What every transport must do, whatever is behind it: data, registers, tokens, errors, time-outs, resets in mid-run.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "driver/accelerator.h"
#ifdef TENON_XRT_SHIM
#include "driver/xrt/xclbin.h"
#endif

namespace tenon::driver {
namespace {

namespace base = spec::base;
namespace reg = spec::reg;
using namespace std::chrono_literals;
using spec::Engine;
using spec::StopCode;
using testing::AllOf;
using testing::HasSubstr;

#ifdef TENON_XRT_SHIM
// A file with that many accelerators of configuration tiny.
std::string design(int units) {
  Xclbin xclbin =
      make_xclbin(spec::load_config("tiny").value(), {.units = units, .memory_bytes = 1 << 20, .bitstream = {}});
  const auto bytes = to_bytes(xclbin);
  const auto file = std::filesystem::temp_directory_path() / fmt::format("tenon-{}-{}.xclbin", getpid(), units);
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return file;
}
#endif

struct ConformanceTest : testing::TestWithParam<const char*> {
  ConformanceTest() : accelerator(open(uri()).value()), config(accelerator->info().config) {
    source = accelerator->allocate(kBytes + 1).value();
    target = accelerator->allocate(kBytes + 1).value();
    stream = accelerator->allocate(1 << 14).value();
    data.resize(kBytes);
    for (size_t i = 0; i < data.size(); ++i) data[i] = std::byte(i * 37 + i / 256);
    EXPECT_TRUE(accelerator->write(source, 0, data));
  }

  // The transport with 1 MiB of memory.
  static std::string uri() {
    const std::string_view scheme = GetParam();
#ifdef TENON_XRT_SHIM
    if (scheme.starts_with("xrt:")) {
      setenv("XILINX_XRT", TENON_XRT_SHIM, 1);
      setenv("TENON_XRT_MODEL", scheme.ends_with("rtl") ? "rtl" : "behavioral", 1);
      return "xrt:0?xclbin=" + design(1);
    }
#endif
    return fmt::format("{}memory=1M", scheme);
  }

  // Copies kElements accumulators' low bytes: a load of type ACC8 and a store, tied by one token, `times` over.
  std::vector<spec::Instruction> copy(int times = 1) const {
    std::vector<spec::Instruction> program;
    for (int i = 0; i < times; ++i) {
      base::Load load;
      load.memory_type = static_cast<int64_t>(base::MemoryType::kAcc8);
      load.y_size = 1, load.x_size = kElements, load.x_stride = kElements;
      load.push_next = 1;
      load.pop_next = i > 0;
      base::Store store;
      store.memory_type = static_cast<int64_t>(base::MemoryType::kOut);
      store.y_size = 1, store.x_size = kElements, store.x_stride = kElements;
      store.pop_prev = 1;
      store.push_prev = i + 1 < times;
      program.insert(program.end(), {load, store});
    }
    program.emplace_back(base::Finish{});
    return program;
  }

  Launch launch(const std::vector<spec::Instruction>& program) {
    const spec::Isa isa(config);
    std::vector<spec::Slot> slots;
    for (const auto& instruction : program) EXPECT_TRUE(isa.encode(instruction, slots));
    EXPECT_TRUE(accelerator->write(stream, 0, std::as_bytes(std::span(slots))));
    Launch launch{
        .profile = spec::Profile::kBase, .instructions = stream.address, .count = static_cast<uint32_t>(slots.size())};
    launch.bases.fill(source.address);
    launch.bases[spec::kBaseOut] = target.address;
    return launch;
  }

  Status run(const Launch& what, std::chrono::nanoseconds limit = 10ms) {
    if (auto status = start(*accelerator, what); !status) return status;
    return finish(*accelerator, limit);
  }

  void expect_works() {
    const std::vector<std::byte> dirt(kBytes, std::byte{0xdd});
    ASSERT_TRUE(accelerator->write(target, 0, dirt));
    const auto status = run(launch(copy()));
    ASSERT_TRUE(status) << status.error().str();
    std::vector<std::byte> found(kBytes);
    ASSERT_TRUE(accelerator->read(target, 0, found));
    ASSERT_EQ(found, data);
  }

  void expect_stop(const Launch& what, StopCode code, uint32_t index) {
    const auto status = run(what);
    ASSERT_FALSE(status) << spec::describe(code);
    EXPECT_THAT(status.error().what,
                AllOf(HasSubstr(spec::describe(code)), HasSubstr(fmt::format("instruction {}", index))));
    expect_works();
  }

  static constexpr size_t kElements = 40, kBlock = 4, kBytes = kElements * kBlock;  // tiny: four lanes
  std::unique_ptr<Accelerator> accelerator;
  const spec::Config config;
  Buffer source, target, stream;
  std::vector<std::byte> data;
};

TEST_P(ConformanceTest, CopiesDataAndCounts) {
  expect_works();
  const Counters counters = read_counters(*accelerator).value();
  EXPECT_GT(counters.cycles, kBytes / 4);
  EXPECT_EQ(counters.instructions, 3u);
  EXPECT_EQ(counters.macs, 0u);
  EXPECT_GE(counters.read_beats, kBytes / 4 + 3 * 4);
  EXPECT_EQ(counters.write_beats, kBytes / 4);
  EXPECT_GE(counters.write_bursts, 1u);
}

TEST_P(ConformanceTest, RegistersSayWhatIsThere) {
  EXPECT_EQ(accelerator->read_register(reg::kVersion).value(),
            uint32_t{spec::kIsaVersion} << 16 | spec::kRegisterMapVersion);
  EXPECT_EQ(accelerator->read_register(reg::kCapabilities).value() & 3, 3u);
  const uint64_t hash = accelerator->read_register(reg::kConfigHash).value() |
                        uint64_t{accelerator->read_register(reg::kConfigHash + 4).value()} << 32;
  EXPECT_EQ(hash, spec::hash(config));
  for (const uint32_t offset :
       {reg::kInstructions, reg::kInstructions + 4, reg::kCount, reg::kBase0, reg::kBase0 + 60}) {
    ASSERT_TRUE(accelerator->write_register(offset, 0x89abcdef ^ offset));
    EXPECT_EQ(accelerator->read_register(offset).value(), 0x89abcdef ^ offset);
  }
}

TEST_P(ConformanceTest, DoneIsSeenOnceAndIdleStays) {
  EXPECT_EQ(accelerator->read_register(reg::kControl).value() & spec::kApIdle, spec::kApIdle);
  ASSERT_TRUE(start(*accelerator, launch(copy())));
  EXPECT_EQ(accelerator->read_register(reg::kControl).value() & (spec::kApIdle | spec::kApDone), 0u);
  ASSERT_TRUE(accelerator->wait_idle(10ms).value());
  EXPECT_EQ(accelerator->read_register(reg::kControl).value() & (spec::kApIdle | spec::kApDone),
            spec::kApIdle | spec::kApDone);
  EXPECT_EQ(accelerator->read_register(reg::kControl).value() & (spec::kApIdle | spec::kApDone), spec::kApIdle);
}

TEST_P(ConformanceTest, AStreamOfNothingEnds) {
  Launch nothing = launch(copy());
  nothing.count = 0;
  EXPECT_TRUE(run(nothing));
  expect_works();
}

TEST_P(ConformanceTest, TokensSurviveALaunchAndTokenClearTakesThem) {
  const auto program = copy();
  const std::vector<spec::Instruction> first = {program[0], program[2]}, second = {program[1], program[2]};
  ASSERT_TRUE(run(launch(first)));
  auto status = run(launch(second));
  EXPECT_TRUE(status) << status.error().str();
  ASSERT_TRUE(run(launch(first)));
  ASSERT_TRUE(accelerator->write_register(reg::kCommand, spec::kTokenClear));
  status = run(launch(second));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what, HasSubstr("deadlock"));
  EXPECT_THAT(status.error().what, HasSubstr("engines that wait for tokens: st"));
  expect_works();
}

TEST_P(ConformanceTest, ASecondStartIsRefused) {
  ASSERT_TRUE(start(*accelerator, launch(copy(20))));
  const auto status = start(*accelerator, launch(copy(20)));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what, HasSubstr("busy with another launch"));
  EXPECT_TRUE(finish(*accelerator, 10ms));
}

TEST_P(ConformanceTest, ErrorsNameCodeAndInstructionAndLeaveAWorkingDevice) {
  auto program = copy();
  std::get<base::Load>(program[0]).sram_base = config.depth(spec::Memory::kAcc) - static_cast<int64_t>(kElements) + 1;
  expect_stop(launch(program), StopCode::kScratchpadRange, 0);

  Launch what = launch(copy());
  what.bases[spec::kBaseAcc] = 0xffff'ff00;
  expect_stop(what, StopCode::kReadError, 0);

  what = launch(copy());
  what.bases[spec::kBaseOut] = (1 << 20) - 32;
  expect_stop(what, StopCode::kWriteError, 1);

  what = launch(copy());
  what.instructions += 8;
  expect_stop(what, StopCode::kUnaligned, 0);

  what = launch(copy());
  what.instructions = 1 << 20;
  expect_stop(what, StopCode::kReadError, 0);

  program = copy();
  program.push_back(program[2]);
  expect_stop(launch(program), StopCode::kAfterFinish, 3);

  what = launch(copy());
  const spec::Slot bad = {5, 0};  // MOVE, which the base profile has not
  ASSERT_TRUE(accelerator->write(stream, 16, std::as_bytes(std::span(bad))));
  expect_stop(what, StopCode::kBadOpcode, 1);
}

TEST_P(ConformanceTest, ATimeOutStopsTheRunAndLeavesAWorkingDevice) {
  const auto status = run(launch(copy(200)), 2us);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what, HasSubstr("still busy after 0.002 ms"));
  expect_works();
}

TEST_P(ConformanceTest, ASoftResetInAnyCycleLeavesAWorkingDevice) {
  for (int cycles = 1; cycles < 900; cycles += 1 + cycles / 9) {
    ASSERT_TRUE(start(*accelerator, launch(copy(10))));
    ASSERT_TRUE(accelerator->wait_idle(std::chrono::nanoseconds(10 * cycles)));
    ASSERT_TRUE(accelerator->write_register(reg::kCommand, spec::kSoftReset));
    ASSERT_TRUE(accelerator->wait_idle(1ms).value()) << cycles;
    EXPECT_EQ(accelerator->read_register(reg::kStatus).value(), 0u);
    expect_works();
    if (HasFatalFailure()) FAIL() << "after " << cycles << " cycles";
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, ConformanceTest,
                         testing::Values("behavioral:tiny?", "verilator:tiny?",
                                         "verilator:tiny?stalls=40&interleave=on&",
                                         "verilator:tiny?latency=300&outstanding=1&", "lockstep:tiny?stalls=10&"));

// A build without SystemC lacks the transport, and one process holds one SystemC simulation.
#ifdef TENON_SYSTEMC
INSTANTIATE_TEST_SUITE_P(SystemC, ConformanceTest,
                         testing::Values("systemc:tiny?", "systemc:tiny?dmi=off&", "systemc:tiny?model=rtl&"));
#endif

#ifdef TENON_XRT_SHIM
INSTANTIATE_TEST_SUITE_P(Xrt, ConformanceTest, testing::Values("xrt:behavioral", "xrt:rtl"));

TEST(Xrt, AUnitHasOneClientAndTheNextUnitIsFree) {
  setenv("XILINX_XRT", TENON_XRT_SHIM, 1);
  const std::string uri = "xrt:0?xclbin=" + design(2);
  auto first = open(uri);
  ASSERT_TRUE(first) << first.error().str();
  const auto second = open(uri);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().what, HasSubstr("unit tenon:tenon_1 is busy: another client holds it"));
  const auto other = open(uri + "&unit=2");
  EXPECT_TRUE(other) << other.error().str();
  first->reset();
  const auto again = open(uri);
  EXPECT_TRUE(again) << again.error().str();
}

TEST(Xrt, AnotherDesignIsRefusedWhileUnitsAreHeld) {
  setenv("XILINX_XRT", TENON_XRT_SHIM, 1);
  const auto first = open("xrt:0?xclbin=" + design(1));
  ASSERT_TRUE(first) << first.error().str();
  EXPECT_FALSE(open("xrt:0?xclbin=" + design(2)));
}
#endif

}  // namespace
}  // namespace tenon::driver
