// Errors of the behavioral simulator and their messages; registers and tokens between launches.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/sim/behavioral/machine.h"

namespace tenon::sim {
namespace {

using spec::Engine;
using spec::StopCode;
using testing::Machine;
namespace reg = spec::reg;

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

constexpr const char* kLoads = R"(
move signal=gemm function=0 rows=1 vectors=4 x_step=4 row_bytes=16 source_rows=1
move signal=gemm function=1 rows=1 vectors=4 x_step=4 row_bytes=16 source_rows=1
)";

TEST(Deadlock, names_the_waiting_instructions_and_the_tokens) {
  auto m = Machine::tiny();
  EXPECT_EQ(m.run("sync signal=rq engine=gemm\nsync wait=gemm engine=st\nsync wait=st engine=ldi\nsync engine=ldi"),
            StopCode::kDeadlock);
  EXPECT_EQ(m.index(), 2u);  // the oldest waiting instruction
  EXPECT_SAYS(m.why(), "st: instruction 2 (sync wait=gemm engine=st) waits for tokens of gemm; 0 more in its queue");
  EXPECT_SAYS(m.why(), "ldi: instruction 4 (sync wait=st engine=ldi) waits for tokens of st; 1 more in its queue");
  EXPECT_SAYS(m.why(), "tokens: gemm->rq: 1");
  EXPECT_EQ(m.simulator->read_register(reg::kTokenWait), spec::bit(Engine::kSt) | spec::bit(Engine::kLdi));
}

TEST(Deadlock, a_full_queue_that_hides_the_giver_is_a_deadlock) {
  auto m = Machine::tiny();  // queues of 8
  std::string text = "sync wait=gemm engine=ldi\n";
  for (int i = 0; i < 7; ++i) text += "sync engine=ldi\n";
  EXPECT_EQ(m.run(text + "sync signal=ldi engine=gemm"), StopCode::kNone) << m.why();
  EXPECT_EQ(m.run(text + "sync engine=ldi\nsync signal=ldi engine=gemm"), StopCode::kDeadlock);
  EXPECT_SAYS(m.why(), "fetch: instruction 16 (sync engine=ldi) finds the queue of ldi full");
}

TEST(Deadlock, a_counter_at_255_stalls_its_giver) {
  auto m = Machine::tiny();
  std::string text;
  for (int i = 0; i < 255; ++i) text += "sync signal=st engine=gemm\n";
  EXPECT_EQ(m.run(text), StopCode::kNone);
  EXPECT_EQ(m.tokens(Engine::kGemm, Engine::kSt), 255u);
  EXPECT_EQ(m.run("sync signal=st engine=gemm"), StopCode::kDeadlock);
  EXPECT_SAYS(m.why(), "cannot give its tokens to st");
  EXPECT_EQ(m.run("sync signal=st engine=gemm\nsync wait=gemm engine=st"), StopCode::kNone) << m.why();
  EXPECT_EQ(m.tokens(Engine::kGemm, Engine::kSt), 255u);
}

TEST(Race, read_after_write_names_both_instructions_and_the_region) {
  auto m = Machine::tiny();
  EXPECT_EQ(m.run(std::string(kLoads) + "mac wait=ldw first=1 r0=1 r1=1 r2=1 y=1 x=2 src_base=1 src_x=1 dst_x=1"),
            StopCode::kRace);
  EXPECT_EQ(m.index(), 4u);
  EXPECT_SAYS(m.why(), "instruction 4 (mac wait=ldw first=1");
  EXPECT_SAYS(m.why(), "on gemm reads inp[1..2], which instruction 0 (move signal=gemm rows=1");
  EXPECT_SAYS(m.why(), "on ldi writes, and no token orders the two");
}

TEST(Race, write_after_read_is_a_race_even_if_the_result_is_right) {
  auto m = Machine::tiny();
  const std::string text = std::string(kLoads) +
                           "mac wait=ldi,ldw {} first=1 r0=1 r1=1 r2=1 y=1 x=4 src_x=1 dst_x=1\n"
                           "move {} function=0 sram_base=3 rows=1 vectors=1 x_step=4 row_bytes=4 source_rows=1\n";
  const auto fill = [&](std::string a, std::string b) {
    std::string t = text;
    t.replace(t.find("{}"), 2, a);
    t.replace(t.find("{}"), 2, b);
    return t;
  };
  EXPECT_EQ(m.run(fill("signal=ldi", "wait=gemm")), StopCode::kNone) << m.why();
  EXPECT_EQ(m.run(fill("", "")), StopCode::kRace);
  EXPECT_SAYS(m.why(), "inp[3]");
}

// Both loads and the requantizer write inp.
TEST(Race, results_in_inp_are_ordered_with_loads_and_products) {
  const auto program = [](std::string_view rq, std::string_view load, std::string_view mac) {
    return std::string(kLoads) + "move signal=rq function=2 rows=1 vectors=8\n" +
           "mac wait=ldi,ldw signal=rq first=1 r0=1 r1=1 r2=1 y=1 x=4 src_x=1 dst_x=1\n" +
           fmt::format("rq wait=ldm,gemm signal={} to_inp=1 rows=1 cols=2 acc_step=1 out_base=2\n", rq) +
           fmt::format("move {} function=0 sram_base=3 rows=1 vectors=1\n", load) +
           fmt::format("mac {} first=1 r0=1 r1=1 r2=1 y=1 x=1 src_base=2\n", mac);
  };
  auto m = Machine::tiny();
  EXPECT_EQ(m.run(program("ldi,gemm", "wait=rq", "wait=rq")), StopCode::kNone) << m.why();
  EXPECT_EQ(m.run(program("gemm", "", "wait=rq")), StopCode::kRace);
  EXPECT_SAYS(m.why(), "inp[3]");
  EXPECT_EQ(m.run(program("ldi", "wait=rq", "")), StopCode::kRace);
  EXPECT_SAYS(m.why(), "on gemm reads inp[2], which instruction 8 (rq");
}

// A window at the end of acc goes on at its beginning, which another product writes.
TEST(Race, windows_that_cross_the_end_of_acc_are_ordered_with_products) {
  auto m = Machine::tiny();
  const auto last = spec::load_config("tiny")->depth(spec::Memory::kAcc) - 1;
  const auto program = [&](int64_t cols, std::string_view signal, std::string_view wait) {
    return std::string(kLoads) + "move signal=rq function=2 rows=1 vectors=8\n" +
           fmt::format("mac wait=ldi,ldw signal=rq first=1 r0=1 r1=1 r2=1 y=1 x=2 dst_x={}\n", last) +
           fmt::format("rq wait=ldm,gemm {} rows=1 cols=1 acc_base={} win_cols={}\n", signal, last, cols) +
           fmt::format("mac {} first=1 r0=1 r1=1 r2=1 y=1 x=1\n", wait);
  };
  EXPECT_EQ(m.run(program(2, "signal=gemm", "wait=rq")), StopCode::kNone) << m.why();
  EXPECT_EQ(m.run(program(2, "", "")), StopCode::kRace);
  EXPECT_SAYS(m.why(), "acc[0]");
  EXPECT_EQ(m.run(program(1, "", "")), StopCode::kNone) << m.why();
  EXPECT_EQ(m.run(program(3, "signal=gemm", "wait=rq")), StopCode::kUninitialised);  // acc[1]
  EXPECT_SAYS(m.why(), "acc[1]");
}

TEST(Race, order_through_a_third_engine_counts) {
  auto m = Machine::tiny();
  EXPECT_EQ(m.run("move signal=st function=0 rows=1 vectors=1 x_step=4 row_bytes=4 source_rows=1\n"
                  "move signal=gemm function=1 rows=1 vectors=4 x_step=4 row_bytes=16 source_rows=1\n"
                  "sync wait=ldi signal=gemm engine=st\n"
                  "mac wait=st,ldw first=1 r0=1 r1=1 r2=1 y=1 x=1"),
            StopCode::kNone)
      << m.why();
}

constexpr const char* kStoreThenLoad = R"(
move signal=gemm,rq function=0 rows=1 vectors=1 x_step=4 row_bytes=4 source_rows=1
move signal=gemm function=1 rows=1 vectors=4 x_step=4 row_bytes=16 source_rows=1
move signal=rq function=2 rows=1 vectors=8 x_step=4 row_bytes=32 source_rows=1
mac wait=ldi,ldw signal=rq first=1 r0=1 r1=1 r2=1 y=1 x=1
rq wait=ldm,gemm,ldi signal=st rows=1 cols=1 par_base=0
move wait=rq {} function=4 offset=256 rows=1 vectors=1 x_step=4 row_bytes=4 source_rows=1
)";

TEST(Race, dram_is_checked_byte_by_byte) {
  const auto store = [](std::string signal) {
    std::string t = kStoreThenLoad;
    return t.replace(t.find("{}"), 2, signal);
  };
  const std::string load = "move {} function=3 offset=253 rows=1 vectors=1 x_step=4 row_bytes={} source_rows=1\n";
  const auto loads = [&](std::string wait, std::string bytes) {
    std::string t = load;
    t.replace(t.find("{}"), 2, wait);
    return t.replace(t.find("{}"), 2, bytes);
  };
  auto m = Machine::tiny();
  EXPECT_EQ(m.run(store("") + loads("", "3")), StopCode::kNone) << m.why();  // bytes 253..255, the store has 256..259
  EXPECT_EQ(m.run(store("signal=ldm") + loads("wait=st", "4")), StopCode::kNone) << m.why();
  EXPECT_EQ(m.run(store("") + loads("", "4")), StopCode::kRace);
  EXPECT_SAYS(m.why(), "dram[0x100..0x100]");
}

TEST(Race, a_store_into_instructions_that_are_not_fetched_yet_is_a_race) {
  auto m = Machine::tiny();
  std::string t = kStoreThenLoad;
  t.replace(t.find("{}"), 2, "");
  t.replace(t.find("offset=256"), 10, "offset=" + std::to_string(Machine::kStream + 12 * 16));
  EXPECT_EQ(m.run(t + "sync engine=ldi"), StopCode::kRace);
  EXPECT_SAYS(m.why(), "which instruction 12 (sync engine=ldi) on the fetcher reads");
  EXPECT_EQ(m.run(t), StopCode::kNone) << m.why();  // after the end of the stream
}

TEST(Race, a_launch_happens_before_the_next) {
  auto m = Machine::tiny();
  EXPECT_EQ(m.run(kLoads), StopCode::kNone);
  EXPECT_EQ(m.run("mac first=1 r0=1 r1=1 r2=1 y=1 x=4 src_x=1 dst_x=1"), StopCode::kNone) << m.why();
}

TEST(Race, is_not_reported_where_the_detector_is_off) {
  Machine m(*spec::load_config("tiny"), {.memory_bytes = 1 << 16, .detect_races = false});
  EXPECT_EQ(m.run(std::string(kLoads) + "mac first=1 r0=1 r1=1 r2=1 y=1 x=4 src_x=1 dst_x=1"), StopCode::kNone)
      << m.why();
}

TEST(Uninitialised, reads_are_named) {
  auto m = Machine::tiny();
  EXPECT_EQ(m.run(std::string(kLoads) + "mac wait=ldi,ldw r0=1 r1=1 r2=1 y=1 x=1 dst_base=9"),
            StopCode::kUninitialised);
  EXPECT_SAYS(m.why(),
              "instruction 4 (mac wait=ldi,ldw r0=1 r1=1 r2=1 y=1 x=1 dst_base=9) on gemm reads acc[9], which no "
              "earlier instruction writes");
  // Three of a weight matrix's four vectors are not a matrix; four in two MOVEs are.
  EXPECT_EQ(m.run("move function=1 sram_base=7 rows=1 vectors=3 x_step=4 row_bytes=12 source_rows=1 signal=gemm\n"
                  "mac wait=ldw first=1 r0=1 r1=1 r2=1 y=1 x=1 wgt_base=7"),
            StopCode::kUninitialised);
  EXPECT_SAYS(m.why(), "wgt[7]");
}

TEST(Range, each_operand_is_checked) {
  auto m = Machine::tiny();  // inp 256, wgt 128, acc 256, uop 256, out 256, par 32, res 256 elements
  const auto refused = [&](const std::string& text, uint32_t index, const char* part) {
    EXPECT_EQ(m.run(text), StopCode::kScratchpadRange) << text;
    EXPECT_EQ(m.index(), index);
    EXPECT_SAYS(m.why(), part);
  };
  refused("sync engine=ldi\nmove function=0 sram_base=250 rows=7 vectors=1 x_step=4 row_bytes=4 source_rows=7", 2,
          "accesses inp[256], but inp has 256 elements");
  refused("move function=1 sram_base=127 rows=5 vectors=1 x_step=4 row_bytes=4 source_rows=5", 0, "accesses wgt[128]");
  refused("mac first=1 r0=1 r1=1 r2=1 y=2 x=2 dst_base=100 dst_y=100 dst_x=56", 0, "accesses acc[256]");
  refused("mac first=1 r0=2 r1=1 r2=1 y=1 x=1 src_base=200 src_r0=56", 0, "accesses inp[256]");
  refused("mac first=1 r0=1 r1=1 r2=2 y=1 x=1 wgt_base=1 wgt_r2=127", 0, "accesses wgt[128]");
  refused("rq rows=2 cols=2 acc_pitch=255 acc_step=1", 0, "accesses acc[256]");
  refused("rq rows=1 cols=2 out_base=255", 0, "accesses out[256]");
  refused("rq rows=1 cols=1 par_base=32", 0, "accesses par[32]");
  refused("rq rows=1 cols=2 residual=1 res_base=255", 0, "accesses res[256]");
  refused("load memory_type=3 sram_base=255 y_size=1 x_size=1 x_pad_right=1", 0, "accesses acc[256]");
  refused("gemm reset=1 uop_begin=255 uop_end=257 iter_out=1 iter_in=1", 0, "accesses uop[256]");
  EXPECT_EQ(m.run("mac first=1 r0=0 r1=1 r2=1 y=2 x=2 dst_base=255 dst_y=255"), StopCode::kNone) << "touches nothing";
}

TEST(Dram, outside_is_an_error_of_the_bus) {
  auto m = Machine::tiny();
  EXPECT_EQ(m.run("move function=0 offset=65533 rows=1 vectors=1 x_step=4 row_bytes=4 source_rows=1"),
            StopCode::kReadError);
  EXPECT_SAYS(m.why(), "reads dram[0xfffd..0x10000], but memory has 0x10000 bytes");
  EXPECT_EQ(m.run("move function=0 offset=65533 rows=1 vectors=1 x_step=4 row_bytes=3 source_rows=1"), StopCode::kNone);
  std::string t = kStoreThenLoad;
  t.replace(t.find("{}"), 2, "");
  t.replace(t.find("offset=256"), 10, "offset=65534");
  EXPECT_EQ(m.run(t), StopCode::kWriteError);
  EXPECT_EQ(m.index(), 10u);
}

TEST(Stream, a_decode_error_stops_the_run_at_its_slot) {
  auto m = Machine::tiny();
  const std::vector<spec::Slot> unknown = {{0x7f | 15 << 3, 0}, {0, 0}};
  EXPECT_EQ(m.run(unknown, spec::Profile::kNative), StopCode::kBadOpcode);
  std::vector<spec::Slot> slots;
  ASSERT_TRUE(m.isa.encode(spec::native::Sync{}, slots));
  slots[1][1] = 1;
  EXPECT_EQ(m.run(slots, spec::Profile::kNative), StopCode::kBadField);
  slots[1][1] = 0;
  slots.push_back(slots[0]);
  EXPECT_EQ(m.run(slots, spec::Profile::kNative), StopCode::kTruncated);
  EXPECT_EQ(m.index(), 2u);
  EXPECT_EQ(m.run("end\nsync engine=ldi"), StopCode::kAfterFinish);
  EXPECT_EQ(m.index(), 2u);
  EXPECT_EQ(m.run("finish\nfinish"), StopCode::kAfterFinish);
  EXPECT_EQ(m.index(), 1u);
}

TEST(Stream, its_address_is_checked) {
  auto m = Machine::tiny();
  EXPECT_EQ(m.run("sync engine=ldi", 0x8008), StopCode::kUnaligned);
  EXPECT_EQ(m.run("sync engine=ldi", 0x20000), StopCode::kReadError);
  EXPECT_EQ(m.run("sync engine=ldi\nsync engine=ldi", 0xffe0), StopCode::kReadError);
  EXPECT_EQ(m.index(), 2u);
  EXPECT_EQ(m.run(""), StopCode::kNone);
}

TEST(Stream, a_profile_that_the_configuration_lacks_is_an_error) {
  auto config = *spec::load_config("tiny");
  config.base = false;
  Machine native(config);
  EXPECT_EQ(native.run({{0, 0}}, spec::Profile::kBase), StopCode::kProfileOff);
  EXPECT_SAYS(native.why(), "configuration tiny has no base profile");
}

TEST(Registers, control_follows_the_handshake) {
  auto m = Machine::tiny();
  EXPECT_EQ(m.simulator->read_register(reg::kControl), spec::kApIdle);
  m.simulator->write_register(reg::kInterruptEnable, 1);
  EXPECT_EQ(m.run("sync engine=ldi"), StopCode::kNone);
  EXPECT_EQ(m.simulator->read_register(reg::kInterruptStatus), 1u);
  m.simulator->write_register(reg::kInterruptStatus, 1);
  EXPECT_EQ(m.simulator->read_register(reg::kInterruptStatus), 0u);
  EXPECT_EQ(m.simulator->read_register(reg::kControl), spec::kApIdle | spec::kApDone | spec::kApReady);
  EXPECT_EQ(m.simulator->read_register(reg::kControl), spec::kApIdle);
  EXPECT_EQ(m.simulator->read_register(reg::kVersion), 0x10003u);
  EXPECT_EQ(m.read64(reg::kConfigHash), spec::hash(m.isa.config()));
  EXPECT_EQ(m.simulator->read_register(reg::kCapabilities) & 3, 3u);
}

TEST(Registers, tokens_survive_a_launch_until_they_are_cleared) {
  auto m = Machine::tiny();
  EXPECT_EQ(m.run("sync signal=st engine=gemm\nsync signal=st engine=gemm"), StopCode::kNone);
  EXPECT_EQ(m.tokens(Engine::kGemm, Engine::kSt), 2u);
  EXPECT_EQ(m.run("sync wait=gemm engine=st"), StopCode::kNone);
  EXPECT_EQ(m.tokens(Engine::kGemm, Engine::kSt), 1u);
  m.simulator->write_register(reg::kCommand, spec::kTokenClear);
  EXPECT_EQ(m.tokens(Engine::kGemm, Engine::kSt), 0u);
  EXPECT_EQ(m.run("sync wait=gemm engine=st"), StopCode::kDeadlock);
  m.simulator->write_register(reg::kCommand, spec::kSoftReset);
  EXPECT_EQ(m.code(), StopCode::kNone);
  EXPECT_EQ(m.simulator->read_register(reg::kTokenWait), 0u);
  EXPECT_EQ(m.simulator->read_register(reg::kControl), spec::kApIdle);
}

TEST(Registers, counters_are_those_of_the_last_launch) {
  auto m = Machine::tiny();
  const std::string text =
      std::string(kLoads) + "mac wait=ldi,ldw first=1 r0=1 r1=1 r2=1 y=2 x=2 src_x=1 dst_x=1 dst_y=2";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(m.run(text), StopCode::kNone) << m.why();
    EXPECT_EQ(m.read64(reg::kInstructionsDone), 3u);
    EXPECT_EQ(m.read64(reg::kMacs), 4u * 16);
    EXPECT_EQ(m.read64(reg::kReadBeats), 3 * 8 + 8u);  // six slots of four beats, 32 bytes
    EXPECT_GT(m.read64(reg::kCycles), m.read64(reg::kBusy0 + 8 * 3));
    EXPECT_GT(m.read64(reg::kStall0 + 8 * 3), 0u) << "GEMM waits for its loads";
  }
}

TEST(Options, unsupported_values_are_errors) {
  const auto config = *spec::load_config("tiny");
  const auto kernels = make_behavioral(config, {.kernels = "mmx"});
  ASSERT_FALSE(kernels);
  EXPECT_SAYS(kernels.error().str(), "the kernel set \"mmx\" is not available on this machine");
  const auto memory = make_behavioral(config, {.memory_bytes = uint64_t{1} << 60});
  ASSERT_FALSE(memory);
  EXPECT_SAYS(memory.error().str(), "cannot allocate");
}

}  // namespace
}  // namespace tenon::sim
