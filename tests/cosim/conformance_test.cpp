// Requirements of every transport, whatever its device: buffers, registers, synchronization, tokens, errors, time-outs,
// resets in mid-run, clients that compete or are killed, and hardware of another configuration.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "driver/accelerator.h"
#include "support/try.h"
#include "tests/cosim/conformance_transports.h"

namespace tenon::driver {
namespace {

namespace base = spec::base;
namespace reg = spec::reg;
using namespace std::chrono_literals;
using spec::Engine;
using spec::StopCode;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

struct ConformanceTest : testing::TestWithParam<Column> {
  ConformanceTest() : uri(GetParam().uri()), accelerator(open(uri).value()), config(accelerator->info().config) {
    source = accelerator->allocate(kBytes + 1).value();
    target = accelerator->allocate(kBytes + 1).value();
    stream = accelerator->allocate(1 << 14).value();
    data.resize(kBytes);
    for (size_t i = 0; i < data.size(); ++i) data[i] = std::byte(i * 37 + i / 256);
    EXPECT_TRUE(accelerator->write(source, 0, data));
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

  Status run(const Launch& request, std::chrono::nanoseconds limit = 10ms) {
    TENON_TRY(start(*accelerator, request));
    return finish(*accelerator, limit);
  }

  // Opens the device again, as the next client does.
  void reopen() {
    auto opened = open(uri);
    ASSERT_TRUE(opened) << opened.error().str();
    accelerator = std::move(*opened);
    source = accelerator->allocate(kBytes + 1).value();
    target = accelerator->allocate(kBytes + 1).value();
    stream = accelerator->allocate(1 << 14).value();
    ASSERT_TRUE(accelerator->write(source, 0, data));
  }

  void expect_works() {
    const std::vector<std::byte> dirt(kBytes, std::byte{0xdd});
    ASSERT_TRUE(accelerator->write(target, 0, dirt));
    const auto status = run(launch(copy_program()));
    ASSERT_TRUE(status) << status.error().str();
    std::vector<std::byte> found(kBytes);
    ASSERT_TRUE(accelerator->read(target, 0, found));
    ASSERT_EQ(found, data);
  }

  void expect_stop(const Launch& request, StopCode code, uint32_t index) {
    const auto status = run(request);
    ASSERT_FALSE(status) << spec::describe(code);
    EXPECT_THAT(status.error().what,
                AllOf(HasSubstr(spec::describe(code)), HasSubstr(fmt::format("instruction {}", index))));
    expect_works();
  }

  static constexpr size_t kBytes = kCopied;
  const std::string uri;
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

TEST_P(ConformanceTest, RegistersReportTheConfiguration) {
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
  ASSERT_TRUE(start(*accelerator, launch(copy_program())));
  EXPECT_EQ(accelerator->read_register(reg::kControl).value() & (spec::kApIdle | spec::kApDone), 0u);
  ASSERT_TRUE(accelerator->wait_idle(10ms).value());
  EXPECT_EQ(accelerator->read_register(reg::kControl).value() & (spec::kApIdle | spec::kApDone),
            spec::kApIdle | spec::kApDone);
  EXPECT_EQ(accelerator->read_register(reg::kControl).value() & (spec::kApIdle | spec::kApDone), spec::kApIdle);
}

TEST_P(ConformanceTest, AStreamWithoutInstructionsEnds) {
  Launch empty = launch(copy_program());
  empty.count = 0;
  EXPECT_TRUE(run(empty));
  expect_works();
}

TEST_P(ConformanceTest, TokensSurviveALaunchAndTokenClearZeroesThem) {
  const auto program = copy_program();
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
  ASSERT_TRUE(start(*accelerator, launch(copy_program(20))));
  const auto status = start(*accelerator, launch(copy_program(20)));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what, HasSubstr("busy with another launch"));
  EXPECT_TRUE(finish(*accelerator, 10ms));
}

TEST_P(ConformanceTest, ErrorsNameCodeAndInstructionAndLeaveAWorkingDevice) {
  auto program = copy_program();
  std::get<base::Load>(program[0]).sram_base = config.depth(spec::Memory::kAcc) - kCopiedElements + 1;
  expect_stop(launch(program), StopCode::kScratchpadRange, 0);

  Launch request = launch(copy_program());
  request.bases[spec::kBaseAcc] = 0xffff'ff00;
  expect_stop(request, StopCode::kReadError, 0);

  request = launch(copy_program());
  request.bases[spec::kBaseOut] = GetParam().memory_end - 32;
  expect_stop(request, StopCode::kWriteError, 1);

  request = launch(copy_program());
  request.instructions += 8;
  expect_stop(request, StopCode::kUnaligned, 0);

  request = launch(copy_program());
  request.instructions = GetParam().memory_end;
  expect_stop(request, StopCode::kReadError, 0);

  program = copy_program();
  program.push_back(program[2]);
  expect_stop(launch(program), StopCode::kAfterFinish, 3);

  request = launch(copy_program());
  const spec::Slot bad = {5, 0};  // MOVE, which the base profile lacks
  ASSERT_TRUE(accelerator->write(stream, 16, std::as_bytes(std::span(bad))));
  expect_stop(request, StopCode::kBadOpcode, 1);
}

TEST_P(ConformanceTest, ATimeOutStopsTheRunAndLeavesAWorkingDevice) {
  const auto status = run(launch(copy_program(200)), 20us);
  ASSERT_FALSE(status);
  // The message has the progress: each engine's instruction, the last decoded ones, the outstanding bursts.
  EXPECT_THAT(
      status.error().what,
      AllOf(HasSubstr("still busy after 0.02 ms"), HasSubstr("of a stream of 401 slots are done"),
            ContainsRegex("decoded: [0-9]+ of 401 slots; outstanding bursts: [0-9]+ of reads, [0-9]+ of writes\n"),
            ContainsRegex("  (gemm: instruction [0-9]*[02468] .load .*|st: instruction [0-9]*[13579] .store .*)"
                          "(is in flight|has not started); [0-9]+ more after it\n"),
            ContainsRegex("last decoded instructions:\n    instruction [0-9]+ .(load|store) "),
            HasSubstr("engines that wait for tokens: ")));
  expect_works();
}

TEST_P(ConformanceTest, ASoftResetInAnyCycleLeavesAWorkingDevice) {
  for (int cycles = 1; cycles < 900; cycles += 1 + cycles / 9) {
    ASSERT_TRUE(start(*accelerator, launch(copy_program(10))));
    ASSERT_TRUE(accelerator->wait_idle(std::chrono::nanoseconds(10 * cycles)));
    ASSERT_TRUE(accelerator->write_register(reg::kCommand, spec::kSoftReset));
    ASSERT_TRUE(accelerator->wait_idle(1ms).value()) << cycles;
    EXPECT_EQ(accelerator->read_register(reg::kStatus).value(), 0u);
    expect_works();
    if (HasFatalFailure()) FAIL() << "after " << cycles << " cycles";
  }
}

TEST_P(ConformanceTest, BuffersHaveTheirAlignmentAndTheirBytes) {
  std::vector<Buffer> buffers;
  std::vector<std::vector<std::byte>> contents;
  for (uint64_t alignment = 1; alignment <= 4096; alignment *= 2) {
    const uint64_t bytes = 3 * alignment / 2 + 1;
    const auto buffer = accelerator->allocate(bytes, alignment);
    ASSERT_TRUE(buffer) << buffer.error().str();
    EXPECT_EQ(buffer->address % alignment, 0u);
    EXPECT_EQ(buffer->size, bytes);
    buffers.push_back(*buffer);
    contents.emplace_back(bytes, std::byte(buffers.size()));
    ASSERT_TRUE(accelerator->write(*buffer, 0, contents.back()));
  }
  // Partial writes at arbitrary offsets keep the other bytes.
  for (size_t i = 0; i < buffers.size(); ++i) {
    const size_t begin = contents[i].size() / 3, bytes = contents[i].size() / 2;
    std::fill_n(contents[i].begin() + static_cast<std::ptrdiff_t>(begin), bytes, std::byte(0x80 + i));
    ASSERT_TRUE(accelerator->write(buffers[i], begin, std::span(contents[i]).subspan(begin, bytes)));
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::vector<std::byte> found(contents[i].size());
    ASSERT_TRUE(accelerator->read(buffers[i], 0, found));
    EXPECT_EQ(found, contents[i]) << i;
    std::vector<std::byte> part(found.size() / 2);
    ASSERT_TRUE(accelerator->read(buffers[i], 1, part));
    EXPECT_TRUE(std::ranges::equal(part, std::span(contents[i]).subspan(1, part.size()))) << i;
    accelerator->free(buffers[i]);
  }
}

TEST_P(ConformanceTest, WrongUseOfBuffersIsAnErrorAndHarmless) {
  std::vector<std::byte> bytes(kBytes + 2);
  EXPECT_THAT(accelerator->write(source, 0, bytes).error().what, HasSubstr("of a buffer of 161 bytes"));
  EXPECT_FALSE(accelerator->read(source, 1, std::span(bytes).first(kBytes + 1)));
  EXPECT_FALSE(accelerator->read(source, UINT64_MAX, std::span(bytes).first(1)));
  EXPECT_TRUE(accelerator->read(source, kBytes + 1, {}));
  EXPECT_THAT(accelerator->read({GetParam().memory_end, 16}, 0, std::span(bytes).first(1)).error().what,
              HasSubstr("not alive"));
  EXPECT_FALSE(accelerator->allocate(0));
  EXPECT_FALSE(accelerator->allocate(16, 48));
  EXPECT_FALSE(accelerator->allocate(uint64_t{1} << 40));
  EXPECT_FALSE(accelerator->allocate(UINT64_MAX - 8));
  EXPECT_THAT(accelerator->read_register(2).error().what, HasSubstr("must be a multiple of 4"));
  EXPECT_FALSE(accelerator->write_register(spec::kRegisterSpaceBytes, 0));
  expect_works();
}

TEST_P(ConformanceTest, AllFreedMemoryIsReusable) {
  std::vector<Buffer> buffers;
  for (int round = 0; round < 3; ++round) {
    size_t count = 0;
    for (; count < 1000; ++count) {
      const auto buffer = accelerator->allocate(1 << 16);
      if (!buffer) break;
      buffers.push_back(*buffer);
    }
    EXPECT_GE(count, 12u);  // of 16 in 1 MiB
    EXPECT_LT(count, 1000u);
    for (const Buffer& buffer : buffers) accelerator->free(buffer);
    buffers.clear();
  }
}

// The accelerator's results and bytes of the client share a cache line.
TEST_P(ConformanceTest, AWriteOfAFewBytesKeepsResultsAroundIt) {
  expect_works();
  const std::vector<std::byte> few(3, std::byte{0xee});
  ASSERT_TRUE(accelerator->write(target, 0, std::vector<std::byte>(kBytes, std::byte{0xdd})));
  ASSERT_TRUE(run(launch(copy_program())));
  ASSERT_TRUE(accelerator->write(target, 67, few));
  std::vector<std::byte> found(kBytes), wanted = data;
  std::ranges::copy(few, wanted.begin() + 67);
  ASSERT_TRUE(accelerator->read(target, 0, found));
  EXPECT_EQ(found, wanted);
}

TEST_P(ConformanceTest, WithoutSynchronizationAClientSeesOldBytes) {
  if (GetParam().in_process) GTEST_SKIP() << "the simulator works on the client's own memory";
  if (GetParam().remote) GTEST_SKIP() << "the server synchronizes";
  if (GetParam().coherent) GTEST_SKIP() << "all accesses go to the device's memory";
  expect_works();
  accelerator.reset();
  auto opened = open(uri + "&sync=off");
  ASSERT_TRUE(opened) << opened.error().str();
  accelerator = std::move(*opened);
  source = accelerator->allocate(kBytes).value();
  target = accelerator->allocate(kBytes).value();
  stream = accelerator->allocate(1 << 14).value();
  ASSERT_TRUE(accelerator->write(source, 0, data));
  ASSERT_TRUE(accelerator->write(target, 0, std::vector<std::byte>(kBytes, std::byte{0xdd})));
  (void)run(launch(copy_program()));  // the device may read anything at the stream's address
  std::vector<std::byte> found(kBytes);
  ASSERT_TRUE(accelerator->read(target, 0, found));
  EXPECT_NE(found, data);
}

TEST_P(ConformanceTest, ASecondProcessIsToldThatTheDeviceIsBusy) {
  if (GetParam().in_process) GTEST_SKIP() << "each process has a simulator of its own";
  const auto repeated = open(uri);  // not even this process opens the device twice
  ASSERT_FALSE(repeated);
  EXPECT_THAT(repeated.error().what, HasSubstr("is busy: "));
  expect_works();
  accelerator.reset();
  {
    Holder holder(uri, false);
    ASSERT_TRUE(holder.holds());
    const auto second = open(uri);
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().what, HasSubstr("is busy: "));
  }
  reopen();
  expect_works();
}

TEST_P(ConformanceTest, AClientThatIsKilledInMidRunLeavesAWorkingDevice) {
  if (GetParam().in_process) GTEST_SKIP() << "each process has a simulator of its own";
  for (int i = 0; i < 3; ++i) {
    accelerator.reset();
    Holder holder(uri, true);
    ASSERT_TRUE(holder.holds());
    holder.kill();
    reopen();
    EXPECT_EQ(accelerator->read_register(reg::kStatus).value(), 0u);
    expect_works();
  }
}

TEST_P(ConformanceTest, AClientThatLeavesInMidRunLeavesAWorkingDevice) {
  if (GetParam().one_opening) GTEST_SKIP() << "one process holds one SystemC simulation";
  const Launch request = launch({copy_program()[0], spec::base::Finish{}});  // also leaves a token
  ASSERT_TRUE(run(request));
  ASSERT_TRUE(start(*accelerator, launch(copy_program(200))));
  accelerator.reset();
  reopen();
  expect_works();
}

TEST_P(ConformanceTest, HardwareOfAnotherConfigurationIsRefusedByItsFields) {
  if (GetParam().in_process) GTEST_SKIP() << "the simulator is built from the requested configuration";
  accelerator.reset();
  const auto wrong = open(GetParam().wrong_uri());
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().what,
              AllOf(HasSubstr("the device (here) has configuration"), HasSubstr("block_in: 4 here, 16 there"),
                    HasSubstr("buffers.acc: 4096 here, 131072 there")));
}

INSTANTIATE_TEST_SUITE_P(Device, ConformanceTest, testing::ValuesIn(columns()),
                         [](const auto& info) { return info.param.name; });

#ifdef TENON_XRT_SHIM
TEST(Xrt, AUnitHasOneClientAndTheNextUnitIsFree) {
  const std::string uri = "xrt:0?xclbin=" + xrt_design(2);
  auto first = open(uri);
  ASSERT_TRUE(first) << first.error().str();
  const auto second = open(uri);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().what, HasSubstr("unit tenon_kernel:tenon_1 is busy: another client holds it"));
  const auto other = open(uri + "&unit=2");
  EXPECT_TRUE(other) << other.error().str();
  first->reset();
  const auto again = open(uri);
  EXPECT_TRUE(again) << again.error().str();
}

TEST(Xrt, AnotherDesignIsRefusedWhileUnitsAreHeld) {
  const auto first = open("xrt:0?xclbin=" + xrt_design(1));
  ASSERT_TRUE(first) << first.error().str();
  EXPECT_FALSE(open("xrt:0?xclbin=" + xrt_design(2)));
}
#endif

}  // namespace
}  // namespace tenon::driver
