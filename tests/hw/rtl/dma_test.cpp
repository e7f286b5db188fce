// The DMA engines against the rule of MOVE: random transfers under random memories, and cases that are rare in random
// tests.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "hw/spec/config.h"
#include "tests/hw/rtl/dma_bench.h"
#include "tests/seed.h"

namespace tenon::rtl_test {
namespace {

using spec::Memory;
using spec::native::Move;

constexpr uint64_t kBase = 3;  // bases need no alignment

class Dma : public testing::Test {
 protected:
  spec::Config config_ = *spec::load_config(TENON_TEST_CONFIG);
  std::mt19937_64 random_{test_seed(1)};

  int64_t draw(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return draw(0, 99) < percent; }

  Memory memory_of(const Move& m) {
    constexpr Memory kMemories[] = {Memory::kInp, Memory::kWgt, Memory::kPar, Memory::kRes, Memory::kOut};
    return kMemories[m.function];
  }

  // Rows that are contiguous in DRAM from `address` on.
  Move dense(int64_t function, int64_t rows, int64_t vectors, int64_t address) {
    Move m;
    m.function = function;
    const int64_t unit = config_.unit_bytes(memory_of(m));
    m.offset = address - static_cast<int64_t>(kBase);
    m.rows = m.source_rows = rows;
    m.vectors = vectors;
    m.x_step = unit;
    m.y_step = m.row_bytes = vectors * unit;
    return m;
  }

  Move random_move() {
    Move m;
    m.function = draw(0, 4);
    const Memory memory = memory_of(m);
    const int64_t unit = config_.unit_bytes(memory);
    const int64_t units = config_.depth(memory) * config_.units_per_element(memory);
    m.rows = draw(1, std::min<int64_t>(6, units));
    m.vectors = draw(1, std::min<int64_t>(24, units / m.rows));
    const int64_t elements =
        (m.rows * m.vectors + config_.units_per_element(memory) - 1) / config_.units_per_element(memory);
    m.sram_base = draw(0, config_.depth(memory) - elements);
    m.offset = chance(30) ? 4096 - draw(0, 64) : draw(0, 9000);
    m.x_step = chance(50) ? unit : chance(60) ? draw(0, unit) : draw(0, 4 * unit);
    m.row_bytes = chance(60) ? m.vectors * unit : draw(0, 400);
    m.y_step = chance(50) ? m.row_bytes : draw(0, 2500);
    m.left = chance(50) ? 0 : draw(-40, 40);
    m.top = chance(60) ? 0 : draw(0, 3);
    m.source_rows = chance(60) ? m.rows : draw(0, 6);
    m.pad_value = draw(-128, 127);
    m.valid = chance(60) ? 0 : draw(0, unit + 3);
    return m;
  }

  spec::base::Transfer random_transfer(Memory memory, int64_t elements, bool pads) {
    spec::base::Transfer t;
    t.x_size = draw(0, 9);
    t.y_size = draw(0, 5);
    t.x_stride = chance(50) ? t.x_size : draw(0, 20);
    if (pads && chance(50)) {
      t.y_pad_top = draw(0, 2), t.y_pad_bottom = draw(0, 2);
      t.x_pad_left = draw(0, 15), t.x_pad_right = draw(0, 15);
    }
    const int64_t count = (t.y_pad_top + t.y_size + t.y_pad_bottom) * (t.x_pad_left + t.x_size + t.x_pad_right);
    if (count > elements) return random_transfer(memory, elements, pads);
    t.sram_base = draw(0, elements - count);
    t.dram_base = draw(0, 8000 / config_.element_bytes(memory));
    return t;
  }

  spec::Instruction random_load() {
    constexpr Memory kTargets[] = {Memory::kUop, Memory::kWgt, Memory::kInp, Memory::kAcc, Memory::kOut, Memory::kAcc};
    const int64_t types[] = {0, 1, 2, 3, 5};
    const int64_t type = types[draw(0, 4)];
    spec::base::Load load{random_transfer(kTargets[type], config_.depth(kTargets[type]), true)};
    load.memory_type = type;
    return load;
  }

  static bool is_store(const spec::Instruction& i) {
    const auto* move = std::get_if<Move>(&i);
    return std::holds_alternative<spec::base::Store>(i) || (move != nullptr && move->function == 4);
  }

  // Runs the instructions one after another, as fast as the engines take them, and compares all writes and memory.
  void check(DmaBench& bench, const std::vector<spec::Instruction>& program) {
    // Loads and stores do not overlap in memory, as tokens see to it elsewhere; stores may follow each other.
    std::vector<UnitWrite> expected;
    std::vector<uint8_t> memory = bench.memory;
    bench.writes.clear();
    bench.dones.clear();
    size_t started = 0;
    for (uint32_t i = 0; i < program.size(); ++i) {
      const bool store = is_store(program[i]);
      if (store) {
        expected_store(config_, program[i], kBase, bench.source, memory);
      } else {
        for (UnitWrite& write : expected_writes(config_, program[i], i, kBase, memory))
          expected.push_back(std::move(write));
      }
      if (store && (i == 0 || !is_store(program[i - 1]))) {
        ASSERT_TRUE(bench.wait(started)) << "instruction " << i;  // loads read the old contents
      }
      const std::string refusal = bench.issue(program[i], i, kBase);
      ASSERT_THAT(refusal, testing::AnyOf("", "empty")) << "instruction " << i;
      if (refusal.empty()) ++started;
      if (store && i + 1 < program.size() && !is_store(program[i + 1])) {
        ASSERT_TRUE(bench.wait(started)) << "instruction " << i;
      }
    }
    ASSERT_TRUE(bench.wait(started));
    ASSERT_THAT(bench.violations, testing::IsEmpty());
    // Two engines write at their own pace: compare by instruction.
    const auto by_instruction = [](const UnitWrite& a, const UnitWrite& b) { return a.instruction < b.instruction; };
    std::stable_sort(bench.writes.begin(), bench.writes.end(), by_instruction);
    const spec::Isa isa(config_);
    ASSERT_EQ(bench.writes.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      if (bench.writes[i].memory < 0) bench.writes[i].memory = expected[i].memory;
      ASSERT_EQ(bench.writes[i].instruction, expected[i].instruction);
      const std::string text = isa.disassemble(program[expected[i].instruction]);
      ASSERT_EQ(bench.writes[i].unit, expected[i].unit) << text;
      ASSERT_EQ(bench.writes[i].memory, expected[i].memory) << text;
      ASSERT_EQ(bench.writes[i].bytes, expected[i].bytes) << text << "\nunit " << expected[i].unit;
    }
    for (size_t i = 0; i < memory.size(); ++i) {
      ASSERT_EQ(bench.memory[i], memory[i])
          << "byte " << i << " of memory; the last store: " << isa.disassemble(program.back());
    }
    for (const DmaDone& done : bench.dones) EXPECT_FALSE(done.error);
  }
};

TEST_F(Dma, MovesFollowTheRuleUnderRandomMemories) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(seed);
    DmaBench bench(config_, seed);
    bench.stall_percent = seed % 3 == 0 ? 0 : static_cast<int>(draw(1, 80));
    bench.latency = static_cast<int>(draw(0, 90));
    bench.data_first = chance(30);
    std::vector<spec::Instruction> program;
    for (int i = 0; i < 12; ++i) program.push_back(random_move());
    check(bench, program);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Dma, BaseLoadsAndStoresFollowTheRule) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(seed + 1000);
    DmaBench bench(config_, seed);
    bench.stall_percent = seed % 3 == 0 ? 0 : static_cast<int>(draw(1, 80));
    bench.latency = static_cast<int>(draw(0, 90));
    bench.data_first = chance(30);
    std::vector<spec::Instruction> program;
    for (int i = 0; i < 8; ++i) program.push_back(random_load());
    spec::base::Store store{random_transfer(Memory::kOut, config_.depth(Memory::kAcc), false)};
    store.memory_type = static_cast<int>(spec::base::MemoryType::kOut);
    program.push_back(store);
    check(bench, program);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Dma, DenseLoadsAndStoresRunAtTheRateOfTheBus) {
  DmaBench bench(config_, 1);
  const int64_t units = config_.depth(Memory::kInp) / 2;
  const Move load = dense(0, 4, units / 4, 4096);
  check(bench, {load});
  const auto beats = static_cast<uint64_t>(units * config_.block_in / config_.axi_bytes());
  EXPECT_EQ(bench.read_beats, beats);
  RecordProperty("load_cycles", static_cast<int>(bench.cycle));
  const auto rate = [](uint64_t beats_of_bus, int64_t vectors) {
    return std::max<uint64_t>(beats_of_bus, static_cast<uint64_t>(vectors));
  };
  EXPECT_LE(bench.cycle, rate(beats, units) + 30);

  const uint64_t begin = bench.cycle;
  const int64_t outs = config_.depth(Memory::kOut);
  const Move store = dense(4, 1, outs, 4096);
  check(bench, {store});
  const auto out_beats = static_cast<uint64_t>(outs * config_.block_out / config_.axi_bytes());
  EXPECT_EQ(bench.write_beats, out_beats);
  // A burst needs the response of an earlier one for room, which costs time with short bursts.
  EXPECT_LE(bench.cycle - begin,
            rate(out_beats, outs) + 30 + 6 * (out_beats / static_cast<uint64_t>(config_.max_burst_beats)));
}

TEST_F(Dma, RandomStoresFollowEachOther) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(seed + 3000);
    DmaBench bench(config_, seed);
    bench.stall_percent = seed % 3 == 0 ? 0 : static_cast<int>(draw(1, 80));
    bench.latency = static_cast<int>(draw(0, 90));
    bench.data_first = chance(30);
    std::vector<spec::Instruction> program;
    while (program.size() < 12) {
      if (const Move move = random_move(); move.function == 4) program.push_back(move);
    }
    check(bench, program);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Dma, OverlappingStoresLeaveTheBusIdleForAtMostEightCyclesEach) {
  if (!config_.overlapping_stores) GTEST_SKIP() << "stores of this configuration do not overlap";
  DmaBench bench(config_, 1);
  bench.latency = 40;
  constexpr int kStores = 10;
  const int64_t outs = config_.depth(Memory::kOut);
  const std::vector<spec::Instruction> program(kStores, dense(4, 1, outs, 4096));
  check(bench, program);
  const auto beats = static_cast<uint64_t>(kStores * outs * config_.block_out / config_.axi_bytes());
  EXPECT_EQ(bench.write_beats, beats);
  const uint64_t work = std::max(beats, static_cast<uint64_t>(kStores * outs));
  const uint64_t alone = 40 + 20;  // the first beat, and the last response
  EXPECT_LE(bench.cycle, work + 8 * kStores + alone);
  RecordProperty("idle_cycles", static_cast<int>(bench.cycle - work));
}

TEST_F(Dma, UnitsBeyondTheScratchpadAreRefusedBeforeMemoryIsRead) {
  DmaBench bench(config_, 1);
  for (int64_t function = 0; function < 5; ++function) {
    Move m = dense(function, 1, 1, 4096);
    const Memory memory = memory_of(m);
    const int64_t depth = config_.depth(memory), units = config_.units_per_element(memory);
    m.sram_base = depth - 1;
    m.vectors = units + 1;
    EXPECT_EQ(bench.issue(m, 0, kBase), "range") << function;
    m.vectors = 65535, m.rows = 65535, m.sram_base = 0;
    EXPECT_EQ(bench.issue(m, 0, kBase), "range") << function;
    m.vectors = 1, m.rows = 1, m.sram_base = 65535;
    EXPECT_EQ(bench.issue(m, 0, kBase), "range") << function;
    m.rows = 0;
    EXPECT_EQ(bench.issue(m, 0, kBase), "empty") << function;
  }
  for (int i = 0; i < 50; ++i) bench.step();
  EXPECT_EQ(bench.read_beats, 0U);
}

TEST_F(Dma, AnErrorOfMemoryComesWithTheInstructionThatMetIt) {
  DmaBench bench(config_, 1);
  bench.bad_address = 5000;
  const auto move = [&](int64_t function, int64_t address) {
    Move m = dense(function, 1, 2, address);
    m.x_step = 2;
    m.row_bytes = 8;
    return m;
  };
  EXPECT_EQ(bench.issue(move(0, 4000), 0, kBase), "");
  EXPECT_EQ(bench.issue(move(0, 4998), 1, kBase), "");
  EXPECT_EQ(bench.issue(move(0, 6000), 2, kBase), "");
  ASSERT_TRUE(bench.wait(3));
  EXPECT_FALSE(bench.dones[0].error);
  EXPECT_TRUE(bench.dones[1].error);
  EXPECT_FALSE(bench.dones[2].error);
  EXPECT_EQ(bench.issue(move(4, 4998), 3, kBase), "");
  ASSERT_TRUE(bench.wait(4));
  EXPECT_TRUE(bench.dones[3].error);
  EXPECT_EQ(bench.issue(move(4, 6000), 4, kBase), "");
  ASSERT_TRUE(bench.wait(5));
  EXPECT_FALSE(bench.dones[4].error);
}

TEST_F(Dma, AnErrorOfMemoryComesWithTheStoreThatMetItAmongOthers) {
  for (int bad = 0; bad < 6; ++bad) {
    SCOPED_TRACE(fmt::format("store {}", bad));
    DmaBench bench(config_, 1);
    bench.latency = 30 * (bad % 3);
    bench.bad_address = static_cast<uint64_t>(8192 + 4096 * bad + 4);
    for (int64_t i = 0; i < 6; ++i) {
      ASSERT_EQ(bench.issue(dense(4, 1, 2, 8192 + 4096 * i), static_cast<uint32_t>(i), kBase), "");
    }
    ASSERT_TRUE(bench.wait(6));
    for (int i = 0; i < 6; ++i) EXPECT_EQ(bench.dones[static_cast<size_t>(i)].error, i == bad) << "store " << i;
  }
}

TEST_F(Dma, AHaltLeavesNothingOutstandingAndTheEnginesUsable) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(seed + 2000);
    DmaBench bench(config_, seed);
    bench.stall_percent = static_cast<int>(draw(0, 60));
    bench.latency = static_cast<int>(draw(0, 60));
    const Move store = dense(4, 1, config_.depth(Memory::kOut), 4096);
    const Move load = dense(0, 1, config_.depth(Memory::kInp), 30000);
    const std::vector<uint8_t> before = bench.memory;
    std::vector<uint8_t> stored = before;
    expected_store(config_, store, kBase, bench.source, stored);
    const Move next = dense(4, 1, config_.depth(Memory::kOut), 16384);
    const bool both = chance(50);
    if (both) expected_store(config_, next, kBase, bench.source, stored);
    bench.data_first = chance(30);
    EXPECT_EQ(bench.issue(load, 0, kBase), "");
    EXPECT_EQ(bench.issue(store, 1, kBase), "");
    if (both) {
      EXPECT_EQ(bench.issue(next, 2, kBase), "");
    }
    for (int64_t i = draw(0, 150); i > 0; --i) bench.step();
    ASSERT_TRUE(bench.halt_and_clear());
    // The bursts that were open have ended with strobes 0: a byte is old, or a store's.
    for (size_t i = 0; i < before.size(); ++i) {
      ASSERT_TRUE(bench.memory[i] == before[i] || bench.memory[i] == stored[i]) << "byte " << i << " of memory";
    }
    check(bench, {random_move(), random_load(), random_move()});
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tenon::rtl_test
