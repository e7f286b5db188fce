// Ends of launches, equal on each device: instructions that decode refuses, errors that stop a run, the state that
// survives it, and a next launch without traces of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "driver/accelerator.h"
#include "tests/cosim/conformance_transports.h"

namespace tenon::driver {
namespace {

using spec::StopCode;
namespace reg = spec::reg;
using namespace std::chrono_literals;

class Stops : public testing::TestWithParam<Column> {
 protected:
  void SetUp() override {
    auto opened = open(GetParam().uri());
    ASSERT_TRUE(opened) << opened.error().str();
    accelerator_ = std::move(*opened);
    isa_ = std::make_unique<spec::Isa>(accelerator_->info().config);
    code_ = *accelerator_->allocate(1 << 16, 4096);
    data_ = *accelerator_->allocate(1 << 16, 4096);
  }

  uint32_t read(uint32_t offset) { return *accelerator_->read_register(offset); }
  void write(uint32_t offset, uint32_t value) { ASSERT_TRUE(accelerator_->write_register(offset, value)); }
  void write64(uint32_t offset, uint64_t value) {
    write(offset, static_cast<uint32_t>(value));
    write(offset + 4, static_cast<uint32_t>(value >> 32));
  }
  uint32_t token(spec::Engine p, spec::Engine c) {
    const unsigned byte = spec::kEngines * static_cast<unsigned>(p) + static_cast<unsigned>(c);
    return read(reg::kTokens + byte / 4 * 4) >> 8 * (byte % 4) & 0xff;
  }

  std::vector<spec::Slot> assemble(std::string_view text) {
    auto instructions = isa_->assemble_all(text, "test");
    EXPECT_TRUE(instructions) << instructions.error().str();
    std::vector<spec::Slot> slots;
    if (!instructions) return slots;
    for (const auto& instruction : *instructions) {
      const auto status = isa_->encode(instruction, slots);
      EXPECT_TRUE(status) << status.error().str();
    }
    return slots;
  }

  void begin(const std::vector<spec::Slot>& slots, bool native, uint64_t skew = 0) {
    if (!slots.empty()) {
      ASSERT_TRUE(accelerator_->write(code_, skew, std::as_bytes(std::span(slots))));
    }
    write64(reg::kInstructions, code_.address + skew);
    write(reg::kCount, static_cast<uint32_t>(slots.size()));
    write(reg::kMode, native ? spec::kModeNative : 0);
    for (uint32_t i = 0; i < spec::kBases; ++i) write64(reg::kBase0 + 8 * i, data_.address);
    write(reg::kControl, spec::kApStart);
  }
  // Runs and returns "CODE at INDEX", or "ok" without an error.
  std::string run(const std::vector<spec::Slot>& slots, bool native, uint64_t skew = 0) {
    begin(slots, native, skew);
    const auto idle = accelerator_->wait_idle(2ms);
    if (!idle) return idle.error().str();
    if (!*idle) return "does not end";
    const uint32_t control = read(reg::kControl);
    if ((control & (spec::kApDone | spec::kApReady | spec::kApIdle)) !=
        (spec::kApDone | spec::kApReady | spec::kApIdle)) {
      return fmt::format("control is {:#x}", control);
    }
    if (read(reg::kControl) & spec::kApDone) return "ap_done outlives a read";
    const uint32_t code = read(reg::kStatus) & 0xff;
    return code == 0 ? "ok" : fmt::format("{} at {}", code, read(reg::kErrorIndex));
  }
  std::string run(std::string_view text, bool native = true) { return run(assemble(text), native); }
  static std::string stop(StopCode code, uint32_t index) {
    return fmt::format("{} at {}", static_cast<int>(code), index);
  }

  // Runs valid programs, which fail if a previous run left state.
  void expect_usable() {
    write(reg::kCommand, spec::kTokenClear);
    EXPECT_EQ(run(kValidProgram), "ok");
    EXPECT_EQ(run("load memory_type=2 y_size=1 x_size=2 x_stride=2\nfinish", false), "ok");
  }
  static constexpr const char* kValidProgram =
      "move function=0 rows=1 vectors=4 x_step=4 row_bytes=16 source_rows=1 signal=ldw\n"
      "move function=1 wait=ldi rows=1 vectors=4 x_step=4 row_bytes=16 source_rows=1\n"
      "end";

  std::unique_ptr<Accelerator> accelerator_;
  std::unique_ptr<spec::Isa> isa_;
  Buffer code_, data_;
};

TEST_P(Stops, ValidProgramsEndWithoutError) { expect_usable(); }

TEST_P(Stops, AnEmptyStreamIsDoneAtOnce) { EXPECT_EQ(run(std::vector<spec::Slot>{}, true), "ok"); }

TEST_P(Stops, AStreamWithoutFinishIsCompleteWhenItsQueuesAreEmpty) {
  EXPECT_EQ(run("sync engine=0 signal=gemm\nsync engine=3 wait=ldi"), "ok");
  EXPECT_EQ(read(reg::kInstructionsDone), 2U);
}

TEST_P(Stops, AnUnalignedStreamIsRefused) {
  EXPECT_EQ(run(assemble(kValidProgram), true, 8), stop(StopCode::kUnaligned, 0));
  expect_usable();
}

TEST_P(Stops, UnknownAndForeignOpcodesAreRefusedWithTheirSlot) {
  const auto native = [&](uint64_t word) {
    auto slots = assemble("sync engine=0\nsync engine=0");
    slots.insert(slots.begin() + 2, {spec::Slot{word, 0}, spec::Slot{0, 0}});
    return run(slots, true);
  };
  for (uint64_t opcode : {0, 1, 2, 4}) EXPECT_EQ(native(opcode), stop(StopCode::kBadOpcode, 2)) << opcode;
  EXPECT_EQ(native(5 | 5 << 3), stop(StopCode::kBadOpcode, 2));   // MOVE without a target
  EXPECT_EQ(native(6 | 1 << 3), stop(StopCode::kBadOpcode, 2));   // DW is absent
  EXPECT_EQ(native(7 | 12 << 3), stop(StopCode::kBadOpcode, 2));  // SYNC of DW
  EXPECT_EQ(native(7 | 15 << 3), stop(StopCode::kBadOpcode, 2));
  EXPECT_EQ(native(3 | 1 << 3), stop(StopCode::kBadOpcode, 2));
  for (uint64_t opcode : {5, 6, 7}) {
    EXPECT_EQ(run({spec::Slot{3, 0}, spec::Slot{opcode, 0}}, false), stop(StopCode::kAfterFinish, 1)) << opcode;
    EXPECT_EQ(run({spec::Slot{opcode, 0}, spec::Slot{3, 0}}, false), stop(StopCode::kBadOpcode, 0)) << opcode;
  }
  expect_usable();
}

TEST_P(Stops, ReservedBitsAndExcludedFieldsAreRefused) {
  for (const char* text : {"sync engine=0", "move function=0", "mac", "rq", "end"}) {
    auto slots = assemble(text);
    slots[1][1] |= uint64_t{1} << 63;  // bit 255
    slots[0][0] |=
        std::string_view(text) == "rq" || std::string_view(text) == "move function=0" ? 0 : uint64_t{1} << 31;
    EXPECT_EQ(run(slots, true), stop(StopCode::kBadField, 0)) << text;
  }
  auto dw = assemble("sync engine=0");
  dw[0][0] |= uint64_t{1} << (7 + 4);
  EXPECT_EQ(run(dw, true), stop(StopCode::kBadField, 0));
  const auto base = [&](uint64_t low, uint64_t high) { return run({spec::Slot{low, high}}, false); };
  EXPECT_EQ(base(0 | 4 << 7, uint64_t{1} << 16), stop(StopCode::kBadField, 0));      // LOAD of out
  EXPECT_EQ(base(0 | 4 << 7, 0), "ok");                                              // moves nothing
  EXPECT_EQ(base(1 | 3 << 7, uint64_t{1} << 16 | 1), stop(StopCode::kBadField, 0));  // STORE of acc
  EXPECT_EQ(base(1 | 4 << 7, uint64_t{1} << 16 | 1 | uint64_t{1} << 48), stop(StopCode::kBadField, 0));  // with a pad
  expect_usable();
}

// A window of own lanes that does not fit, or on lanes that have none, stops; the assembler refuses it as well.
TEST_P(Stops, WindowsThatOwnLanesCannotHoldAreRefused) {
  const spec::Config& config = accelerator_->info().config;
  const auto with_own = [&](const std::string& fields) {
    auto slots = assemble("sync engine=0\nmac " + fields);
    slots[2][0] |= uint64_t{1} << 22;
    return run(slots, true);
  };
  const std::string fits = config.own_lanes ? "ok" : stop(StopCode::kBadField, 2);
  EXPECT_EQ(with_own("r0=1 r1=1 r2=1 y=0"), fits);
  EXPECT_EQ(with_own(fmt::format("r0=0 r1=1 r2={}", (config.block_in - 1) / 3 + 1)), fits);
  EXPECT_EQ(with_own("r0=2 r1=1 r2=1 y=0"), stop(StopCode::kBadField, 2));
  EXPECT_EQ(with_own("r0=1 r1=4 r2=1 y=0"), stop(StopCode::kBadField, 2));
  EXPECT_EQ(with_own(fmt::format("r0=1 r1=1 r2={} y=0", (config.block_in - 1) / 3 + 2)), stop(StopCode::kBadField, 2));
  EXPECT_EQ(with_own("r0=1 r1=1 r2=1023 y=0"), stop(StopCode::kBadField, 2));
  if (!config.own_lanes) return expect_usable();
  // The last row of a window is outside inp.
  const int64_t last = config.depth(spec::Memory::kInp) - 1;
  const auto window = [&](int64_t base) {
    return run(fmt::format("sync engine=0\nmac own=1 first=1 r0=1 r1=2 r2=1 y=1 x=1 src_base={} src_r1=3", base));
  };
  EXPECT_EQ(window(last - 2), stop(StopCode::kScratchpadRange, 2));
  expect_usable();
}

// Results for inp, where RQ does not write there, or outside of inp.
TEST_P(Stops, ResultsThatInpDoesNotTakeAreRefused) {
  const spec::Config& config = accelerator_->info().config;
  const auto to_inp = [&](int64_t base) {
    auto slots =
        assemble(fmt::format("move function=0 rows=1 vectors=1 signal=gemm\n"
                             "move function=1 rows=1 vectors={} signal=gemm\n"
                             "move function=2 rows=1 vectors=8 signal=rq\n"
                             "mac first=1 r0=1 r1=1 r2=1 y=1 x=2 dst_x=1 wait=ldi,ldw signal=rq\n"
                             "rq rows=1 cols=2 acc_step=1 out_base={} wait=ldm,gemm",
                             config.block_out, base));
    slots[9][1] |= uint64_t{1} << 29;
    return run(slots, true);
  };
  const int64_t depth = config.depth(spec::Memory::kInp);
  EXPECT_EQ(to_inp(depth - 2), config.results_to_inp ? "ok" : stop(StopCode::kBadField, 8));
  EXPECT_EQ(to_inp(depth - 1), stop(config.results_to_inp ? StopCode::kScratchpadRange : StopCode::kBadField, 8));
  expect_usable();
}

// Windows where the requantizer has none, with a residual, and beyond the end of acc, where they go on at its
// beginning.
TEST_P(Stops, WindowsOfAccumulatorsThatCannotBeAreRefused) {
  const spec::Config& config = accelerator_->info().config;
  constexpr int kResidual = 21, kWinRows = 222, kWinCols = 225, kWinPitch = 228, kWinCarry = 240;
  const auto depth = config.depth(spec::Memory::kAcc);
  const auto window = [&](std::initializer_list<std::pair<int, uint64_t>> fields, int64_t base) {
    auto slots =
        assemble(fmt::format("move function=0 rows=1 vectors=1 signal=gemm\n"
                             "move function=1 rows=1 vectors={0} signal=gemm\n"
                             "move function=2 rows=1 vectors=8 signal=rq\n"
                             "mac first=1 r0=1 r1=1 r2=1 y=1 x=2 dst_x={1} wait=ldi,ldw signal=rq\n"
                             "rq rows=1 cols=1 acc_base={2} wait=ldm,gemm",
                             config.block_out, depth - 1, base));
    for (const auto& [bit, value] : fields) slots[8 + bit / 128][bit / 64 % 2] |= value << bit % 64;
    return run(slots, true);
  };
  const std::string off = stop(StopCode::kBadField, 8);
  const std::string good = config.window_maximum ? "ok" : off;
  EXPECT_EQ(window({{kWinRows, 1}}, 0), good);
  EXPECT_EQ(window({{kWinCols, 1}}, 0), good);
  EXPECT_EQ(window({{kWinPitch, 1}}, 0), good);
  EXPECT_EQ(window({{kWinCarry, 1}}, 0), good);
  EXPECT_EQ(window({{kWinCols, 2}}, depth - 1), good);  // elements depth - 1 and 0
  for (const int bit : {kWinRows, kWinCols, kWinPitch, kWinCarry})
    EXPECT_EQ(window({{bit, 1}, {kResidual, 1}}, 0), off);
  EXPECT_EQ(window({{kWinCarry + 1, 1}}, 0), off);  // reserved
  expect_usable();
}

TEST_P(Stops, AnInstructionAfterFinishIsAnError) {
  EXPECT_EQ(run("sync engine=0\nend\nsync engine=0"), stop(StopCode::kAfterFinish, 4));
  EXPECT_EQ(run("finish\nfinish", false), stop(StopCode::kAfterFinish, 1));
  expect_usable();
}

TEST_P(Stops, HalfAnInstructionIsAnError) {
  auto slots = assemble("sync engine=0\nsync engine=1");
  slots.pop_back();
  EXPECT_EQ(run(slots, true), stop(StopCode::kTruncated, 2));
  expect_usable();
}

TEST_P(Stops, UnitsOutsideTheirScratchpadStop) {
  const std::string sync = "sync engine=0\n";
  const auto& config = accelerator_->info().config;
  const auto depth = [&](spec::Memory memory) { return config.depth(memory); };
  const auto move = [&](const char* function, int64_t element) {
    return fmt::format("{}move function={} sram_base={} rows=1 vectors=1 x_step=4 row_bytes=4 source_rows=1", sync,
                       function, element);
  };
  EXPECT_EQ(run(move("0", depth(spec::Memory::kInp))), stop(StopCode::kScratchpadRange, 2));
  EXPECT_EQ(run(move("1", depth(spec::Memory::kWgt))), stop(StopCode::kScratchpadRange, 2));
  EXPECT_EQ(run(move("2", depth(spec::Memory::kPar))), stop(StopCode::kScratchpadRange, 2));
  EXPECT_EQ(run(move("3", depth(spec::Memory::kRes))), stop(StopCode::kScratchpadRange, 2));
  EXPECT_EQ(run(move("4", depth(spec::Memory::kOut))), stop(StopCode::kScratchpadRange, 2));
  EXPECT_EQ(
      run(fmt::format("load memory_type=3 sram_base={} y_size=1 x_size=2 x_stride=2", depth(spec::Memory::kAcc) - 1),
          false),
      stop(StopCode::kScratchpadRange, 0));
  EXPECT_EQ(
      run(fmt::format("store memory_type=4 sram_base={} y_size=1 x_size=2 x_stride=2", depth(spec::Memory::kAcc) - 1),
          false),
      stop(StopCode::kScratchpadRange, 0));
  expect_usable();
}

TEST_P(Stops, MissingMemoryStopsWithTheInstruction) {
  constexpr uint64_t kUnmapped = uint64_t{1} << 44;
  const auto run_again = [&] {
    write(reg::kControl, spec::kApStart);
    const auto idle = accelerator_->wait_idle(2ms);
    EXPECT_TRUE(idle && *idle);
    read(reg::kControl);
    return fmt::format("{} at {}", read(reg::kStatus) & 0xff, read(reg::kErrorIndex));
  };
  EXPECT_EQ(run("sync engine=0\nmove function=0 rows=1 vectors=1 x_step=4 row_bytes=4 source_rows=1"), "ok");
  write64(reg::kBase0, kUnmapped);
  EXPECT_EQ(run_again(), stop(StopCode::kReadError, 2));
  write64(reg::kInstructions, kUnmapped);
  EXPECT_EQ(run_again(), stop(StopCode::kReadError, 0));
  EXPECT_EQ(run("load memory_type=3 y_size=1 x_size=1 x_stride=1 push_next=1\n"
                "store memory_type=4 y_size=1 x_size=1 x_stride=1 pop_prev=1",
                false),
            "ok");
  write64(reg::kBase0 + 8 * spec::kBaseOut, kUnmapped);
  EXPECT_EQ(run_again(), stop(StopCode::kWriteError, 1));
  expect_usable();
}

TEST_P(Stops, AnInstructionInErrorGivesNoTokens) {
  const auto& config = accelerator_->info().config;
  const auto stops = [&](const std::string& text, StopCode code, uint64_t base) {
    SCOPED_TRACE(text);
    write(reg::kCommand, spec::kTokenClear);
    begin(assemble(text), true);
    ASSERT_TRUE(*accelerator_->wait_idle(2ms));
    read(reg::kControl);
    write(reg::kCommand, spec::kTokenClear);
    write64(reg::kBase0, base);
    write(reg::kControl, spec::kApStart);
    ASSERT_TRUE(*accelerator_->wait_idle(2ms));
    read(reg::kControl);
    EXPECT_EQ(read(reg::kStatus), static_cast<uint32_t>(code));
    for (uint32_t i = 0; i < spec::kEngines * spec::kEngines; i += 4) EXPECT_EQ(read(reg::kTokens + i), 0U) << i;
  };
  constexpr uint64_t kUnmapped = uint64_t{1} << 44;
  const std::string transfer = "rows=1 vectors=1 x_step=4 row_bytes=4 source_rows=1 signal=ldi,gemm,st";
  for (const int function : {0, 1, 2, 3}) {
    stops(fmt::format("move function={} {}", function, transfer), StopCode::kReadError, kUnmapped);
  }
  stops("move function=4 " + transfer, StopCode::kWriteError, kUnmapped);
  stops(fmt::format("move function=0 sram_base={} {}", config.depth(spec::Memory::kInp), transfer),
        StopCode::kScratchpadRange, data_.address);
  const int64_t last = config.depth(spec::Memory::kAcc) - 1;
  stops(fmt::format("mac first=1 r0=1 r1=1 r2=1 y=1 x=4 dst_base={} dst_x=1 signal=ldi,st", last),
        StopCode::kScratchpadRange, data_.address);
  stops(fmt::format("rq rows=1 cols=4 acc_base={} acc_step=1 signal=ldi,st", last), StopCode::kScratchpadRange,
        data_.address);
  expect_usable();
}

TEST_P(Stops, HeadsThatWaitForeverAreADeadlock) {
  EXPECT_EQ(run("sync engine=0 wait=gemm"), stop(StopCode::kDeadlock, 0));
  EXPECT_EQ(read(reg::kTokenWait), 1U);  // the engine that waited
  EXPECT_EQ(run("sync engine=1\nsync engine=3 wait=ldi\nsync engine=0 wait=gemm signal=gemm"),
            stop(StopCode::kDeadlock, 2));
  EXPECT_EQ(run("finish pop_prev=1", false), stop(StopCode::kDeadlock, 0));
  expect_usable();
}

TEST_P(Stops, AFullQueueBeforeItsTokenProducerIsADeadlock) {
  std::string text = "sync engine=0 wait=ldw\n";
  for (int i = 0; i < 2 * accelerator_->info().config.queue_depth; ++i) text += "sync engine=0\n";
  text += "sync engine=1 signal=ldi";
  EXPECT_EQ(run(text), stop(StopCode::kDeadlock, 0));
  expect_usable();
}

TEST_P(Stops, ACounterHolds255AndTheNextPushWaits) {
  std::string pushes;
  for (int i = 0; i < 255; ++i) pushes += "sync engine=0 signal=gemm\n";
  EXPECT_EQ(run(pushes), "ok");
  EXPECT_EQ(token(spec::Engine::kLdi, spec::Engine::kGemm), 255U);
  EXPECT_EQ(run("sync engine=0 signal=gemm\nsync engine=3 wait=ldi"), "ok");
  EXPECT_EQ(token(spec::Engine::kLdi, spec::Engine::kGemm), 255U);
  EXPECT_EQ(run("sync engine=0 signal=gemm"), stop(StopCode::kDeadlock, 0));
  EXPECT_EQ(token(spec::Engine::kLdi, spec::Engine::kGemm), 255U);
  expect_usable();
}

TEST_P(Stops, TokensSurviveALaunchAndBothCommandsClearThem) {
  EXPECT_EQ(run("sync engine=0 signal=gemm,st"), "ok");
  EXPECT_EQ(token(spec::Engine::kLdi, spec::Engine::kGemm), 1U);
  EXPECT_EQ(run("sync engine=3 wait=ldi"), "ok");
  EXPECT_EQ(token(spec::Engine::kLdi, spec::Engine::kGemm), 0U);
  EXPECT_EQ(token(spec::Engine::kLdi, spec::Engine::kSt), 1U);
  write(reg::kCommand, spec::kTokenClear);
  EXPECT_EQ(token(spec::Engine::kLdi, spec::Engine::kSt), 0U);
  EXPECT_EQ(run("sync engine=0 signal=gemm,st"), "ok");
  write(reg::kCommand, spec::kSoftReset);
  ASSERT_TRUE(*accelerator_->wait_idle(1ms));
  EXPECT_EQ(token(spec::Engine::kLdi, spec::Engine::kSt), 0U);
  expect_usable();
}

TEST_P(Stops, ASoftResetEndsARunAtAnyMoment) {
  // Loads, stores and a GEMM of 10^12 cycles.
  std::string text = "mac r0=1000 r1=1000 r2=1000 y=1000 x=1 first=1\n";
  for (int i = 0; i < 8; ++i) {
    text +=
        "move function=0 rows=1 vectors=64 x_step=4 row_bytes=256 source_rows=1\n"
        "move function=4 rows=1 vectors=64 x_step=4 row_bytes=256 source_rows=1 offset=4096\n";
  }
  for (int cycles = 1; cycles < 400; cycles += 7) {
    SCOPED_TRACE(cycles);
    begin(assemble(text), true);
    ASSERT_TRUE(accelerator_->wait_idle(std::chrono::nanoseconds(10 * cycles)));
    write(reg::kCommand, spec::kSoftReset);
    ASSERT_TRUE(*accelerator_->wait_idle(1ms));
    EXPECT_EQ(read(reg::kControl), spec::kApIdle);
    EXPECT_EQ(read(reg::kStatus), 0U);
    EXPECT_EQ(read(reg::kCycles), 0U);
    for (uint32_t offset = reg::kHead0; offset <= reg::kOutstanding; offset += 4) EXPECT_EQ(read(offset), 0U);
  }
  expect_usable();
}

TEST_P(Stops, AnInterruptComesWithEachEndAndGoesWhenItIsAcknowledged) {
  for (const uint32_t enabled : {1, 1, 2, 3, 3}) {  // bit 0 ap_done, bit 1 ap_ready
    write(reg::kInterruptEnable, enabled);
    EXPECT_EQ(run(kValidProgram), "ok");
    EXPECT_EQ(read(reg::kInterruptStatus), enabled);
    write(reg::kInterruptStatus, enabled);
    EXPECT_EQ(read(reg::kInterruptStatus), 0U);
  }
  write(reg::kInterruptEnable, 0);
  EXPECT_EQ(run(kValidProgram), "ok");
  EXPECT_EQ(read(reg::kInterruptStatus), 0U);
}

TEST_P(Stops, ArgumentsAndIdentityReadBack) {
  for (uint32_t i = 0; i < spec::kBases; ++i) write64(reg::kBase0 + 8 * i, 0x0123456789abcdefULL * (i + 1));
  for (uint32_t i = 0; i < spec::kBases; ++i) {
    EXPECT_EQ(read(reg::kBase0 + 8 * i), static_cast<uint32_t>(0x0123456789abcdefULL * (i + 1)));
    EXPECT_EQ(read(reg::kBase0 + 8 * i + 4), static_cast<uint32_t>(0x0123456789abcdefULL * (i + 1) >> 32));
  }
  const uint64_t hash = spec::hash(accelerator_->info().config);
  EXPECT_EQ(read(reg::kConfigHash), static_cast<uint32_t>(hash));
  EXPECT_EQ(read(reg::kConfigHash + 4), static_cast<uint32_t>(hash >> 32));
  EXPECT_EQ(read(reg::kVersion),
            static_cast<uint32_t>(spec::kIsaVersion) << 16 | static_cast<uint32_t>(spec::kRegisterMapVersion));
  EXPECT_EQ(read(reg::kCapabilities), 0x81406fdfU);
}

INSTANTIATE_TEST_SUITE_P(Device, Stops, testing::ValuesIn(columns()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tenon::driver
