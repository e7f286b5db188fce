// Module `compute` against compute_model.h: every write to acc and out, in order, and the data that the store reads
// afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <utility>

#include "tests/hw/rtl/compute_random.h"

namespace tenon::rtl_test {
namespace {

using spec::Memory;

const spec::Config& config() {
  static const spec::Config loaded = spec::load_config(TENON_TEST_CONFIG).value();
  return loaded;
}

std::string describe(const Write& write) {
  std::string text = "instruction " + std::to_string(write.index) + ", element " + std::to_string(write.address) + ":";
  for (int32_t lane : write.lanes) text += " " + std::to_string(lane);
  return text;
}

void expect_equal(const std::vector<Write>& got, const std::vector<Write>& want, std::string_view memory) {
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    ASSERT_TRUE(got[i] == want[i]) << memory << " write " << i << "\n got  " << describe(got[i]) << "\n want "
                                   << describe(want[i]);
  }
  ASSERT_EQ(got.size(), want.size()) << memory;
}

// The scenarios of a test run one after another on the same accelerator and the same model.
class ComputeTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSeed = 20261121;

  void load(const std::vector<LoadItem>& items) {
    for (const LoadItem& item : items) {
      model.load(item.memory, item.unit, item.bytes, item.sign_extended);
      bench.loads.push_back(item);
    }
  }
  void load_everything() {
    load(random.fill(random.whole(), {Memory::kWgt, Memory::kInp, Memory::kAcc, Memory::kPar, Memory::kRes}));
    ASSERT_TRUE(bench.run());
  }
  // Compares all writes since the last call, and the bytes that the store has read.
  void check() {
    ASSERT_NO_FATAL_FAILURE(expect_equal(bench.acc_writes, model.acc_writes, "acc"));
    ASSERT_NO_FATAL_FAILURE(expect_equal(bench.out_writes, model.out_writes, "out"));
    ASSERT_NO_FATAL_FAILURE(expect_equal(bench.inp_writes, model.inp_writes, "inp"));
    check_store_results();
    for (auto* writes : {&bench.acc_writes, &bench.out_writes, &bench.inp_writes, &model.acc_writes, &model.out_writes,
                         &model.inp_writes}) {
      writes->clear();
    }
  }
  void check_store_results() {
    for (const StoreResult& result : bench.store_results) {
      for (int o = 0; o < config().block_out; ++o) {
        const size_t offset = static_cast<size_t>(result.item.address) * config().block_out + o;
        const auto want = static_cast<uint8_t>(result.item.from_acc ? model.acc[offset] : model.out[offset]);
        ASSERT_EQ(result.bytes[o], want) << (result.item.from_acc ? "acc " : "out ") << result.item.address << " lane "
                                         << o;
      }
    }
    bench.store_results.clear();
  }
  void read_all_of_acc() {
    for (uint32_t i = 0; i < config().depth(Memory::kAcc); ++i) bench.stores.push_back({true, i});
    ASSERT_TRUE(bench.run());
    ASSERT_NO_FATAL_FAILURE(check_store_results());
  }

  Model model{config()};
  Bench bench{config(), kSeed};
  Random random{config(), kSeed};
  std::vector<uint32_t> written_;  // elements of out that hold a result
};

TEST_F(ComputeTest, NativeGemmEqualsSequentialExecution) {
  load_everything();
  for (int scenario = 0; scenario < 400; ++scenario) {
    SCOPED_TRACE("scenario " + std::to_string(scenario));
    bench.gap_percent = scenario % 2 ? 0 : 30;
    for (uint32_t i = 0; i < 8; ++i) {
      bench.gemm.push_back(random.native_gemm(random.whole(), scenario * 16 + i));
      ASSERT_TRUE(model.execute(bench.gemm.back()));
    }
    ASSERT_TRUE(bench.run());
    ASSERT_EQ(bench.gemm_done.size(), 8u * (scenario + 1));
    ASSERT_NO_FATAL_FAILURE(check());
  }
  read_all_of_acc();
}

TEST_F(ComputeTest, BaseGemmAndAluEqualSequentialExecution) {
  load_everything();
  for (int scenario = 0; scenario < 400; ++scenario) {
    SCOPED_TRACE("scenario " + std::to_string(scenario));
    bench.gap_percent = scenario % 2 ? 0 : 30;
    std::vector<LoadItem> uops;
    if (random.chance(60)) {
      const AluCommand command = random.alu(random.whole(), scenario, uops);
      load(uops);
      ASSERT_TRUE(bench.run());
      bench.alu.push_back(command);
      ASSERT_TRUE(model.execute(command));
    } else {
      const GemmCommand command = random.base_gemm(random.whole(), scenario, uops);
      load(uops);
      ASSERT_TRUE(bench.run());
      bench.gemm.push_back(command);
      ASSERT_TRUE(model.execute(command));
    }
    ASSERT_TRUE(bench.run());
    if (scenario % 16 == 0) {  // fresh values: repeated shifts and minima saturate the old ones
      Windows windows;
      windows.acc = random.part(random.whole(Memory::kAcc));
      load(random.fill(windows, {Memory::kAcc}));
      ASSERT_TRUE(bench.run());
    }
    ASSERT_NO_FATAL_FAILURE(check());
  }
  read_all_of_acc();
}

TEST_F(ComputeTest, RqEqualsRequantize) {
  load_everything();
  for (int scenario = 0; scenario < 1000; ++scenario) {
    SCOPED_TRACE("scenario " + std::to_string(scenario));
    bench.gap_percent = scenario % 2 ? 0 : 30;
    for (uint32_t i = 0; i < 4; ++i) {
      bench.rq.push_back(random.rq(random.whole(), scenario * 16 + i));
      ASSERT_TRUE(model.execute(bench.rq.back()));
    }
    ASSERT_TRUE(bench.run());
    ASSERT_NO_FATAL_FAILURE(check());
  }
  ASSERT_GT(model.out.size(), 0u);
  for (uint32_t i = 0; i < config().depth(Memory::kOut); ++i) {
    // Elements that no command has written are undefined.
    if (std::ranges::any_of(std::span(model.out).subspan(i * config().block_out, config().block_out),
                            [](int8_t v) { return v != 0; }))
      bench.stores.push_back({false, i});
  }
  ASSERT_GT(bench.stores.size(), 0u);
  ASSERT_TRUE(bench.run());
  ASSERT_NO_FATAL_FAILURE(check_store_results());
}

// GEMM works in one half of acc while RQ reads the other, and writes to out or to inp; loads fill the halves of inp and
// wgt that GEMM does not read, and stores read the half of out that RQ does not write. The halves swap from scenario to
// scenario.
TEST_F(ComputeTest, EnginesLoadsAndStoresOverlapOnDisjointAddresses) {
  load_everything();
  const auto half = [](Window window, bool upper) { return Window{upper ? window.size / 2 : 0, window.size / 2}; };
  const Windows whole = random.whole();
  for (int scenario = 0; scenario < 400; ++scenario) {
    SCOPED_TRACE("scenario " + std::to_string(scenario));
    bench.gap_percent = scenario % 3 == 0 ? 0 : 20;
    const bool side = scenario % 2;
    const Windows own_half{whole.uop,
                           half(whole.wgt, side),
                           half(whole.inp, side),
                           half(whole.acc, side),
                           half(whole.out, side),
                           half(whole.par, side),
                           half(whole.res, side)};
    const Windows other_half{whole.uop,
                             half(whole.wgt, !side),
                             half(whole.inp, !side),
                             half(whole.acc, !side),
                             half(whole.out, !side),
                             half(whole.par, !side),
                             half(whole.res, !side)};
    for (uint32_t i = 0; i < 6; ++i) {
      bench.gemm.push_back(random.native_gemm(own_half, scenario * 16 + i));
      ASSERT_TRUE(model.execute(bench.gemm.back()));
    }
    Windows rq = own_half;
    rq.acc = other_half.acc;
    // Results go to a quarter of inp, beside which loads fill another one.
    Windows loaded = other_half;
    loaded.inp.size /= 2;
    rq.inp = {loaded.inp.begin + loaded.inp.size, loaded.inp.size};
    for (uint32_t i = 0; i < 6; ++i) {
      bench.rq.push_back(random.rq(rq, scenario * 16 + i));
      ASSERT_TRUE(model.execute(bench.rq.back()));
    }
    load(random.fill(loaded, {Memory::kInp, Memory::kWgt, Memory::kPar, Memory::kRes}));
    if (scenario > 0) {
      for (const uint32_t address : written_) bench.stores.push_back({false, address});
    }
    written_.clear();
    for (const Write& write : model.out_writes) written_.push_back(write.address);
    ASSERT_TRUE(bench.run());
    ASSERT_NO_FATAL_FAILURE(check());
  }
}

// In the base profile stores read acc while GEMM or ALU work elsewhere in it.
TEST_F(ComputeTest, StoresOfAccOverlapWithGemmAndAlu) {
  load_everything();
  const uint32_t half = static_cast<uint32_t>(config().depth(Memory::kAcc)) / 2;
  for (int scenario = 0; scenario < 400; ++scenario) {
    SCOPED_TRACE("scenario " + std::to_string(scenario));
    const bool side = scenario % 2;
    Windows windows = random.whole();
    windows.acc = {side ? half : 0, half};
    std::vector<LoadItem> uops;
    const bool is_gemm = scenario % 4 < 2;
    if (is_gemm) bench.gemm.push_back(random.base_gemm(windows, scenario, uops));
    else bench.alu.push_back(random.alu(windows, scenario, uops));
    const auto gemm = std::exchange(bench.gemm, {});
    const auto alu = std::exchange(bench.alu, {});
    load(uops);
    ASSERT_TRUE(bench.run());
    bench.gemm = gemm, bench.alu = alu;
    ASSERT_TRUE(is_gemm ? model.execute(gemm.front()) : model.execute(alu.front()));
    for (uint32_t i = 0; i < 40; ++i) bench.stores.push_back({true, (side ? 0 : half) + random.below(half)});
    ASSERT_TRUE(bench.run());
    ASSERT_NO_FATAL_FAILURE(check());
  }
}

TEST_F(ComputeTest, IndicesOutsideTheirScratchpadStopTheEngine) {
  load_everything();
  int errors = 0;
  for (int scenario = 0; scenario < 1000; ++scenario) {
    SCOPED_TRACE("scenario " + std::to_string(scenario));
    Windows windows = random.whole();
    // The windows extend beyond the end; micro-ops cannot, but their offsets do.
    for (Window* window : {&windows.wgt, &windows.inp, &windows.acc, &windows.out, &windows.par, &windows.res}) {
      if (random.chance(40)) *window = {window->size - window->size / 4, window->size / 2};
    }
    bool ok = true;
    std::vector<LoadItem> uops;
    const int kind = scenario % 4;
    if (kind == 0) {
      bench.gemm.push_back(random.native_gemm(windows, scenario));
      ok = model.execute(bench.gemm.back());
      bench.gemm.push_back(random.native_gemm(random.whole(), scenario + 1));
      ASSERT_TRUE(!ok || model.execute(bench.gemm.back()));
    } else if (kind == 1) {
      bench.rq.push_back(random.rq(windows, scenario));
      ok = model.execute(bench.rq.back());
    } else {
      GemmCommand gemm = random.base_gemm(random.whole(), scenario, uops);
      AluCommand alu = random.alu(random.whole(), scenario, uops);
      load(uops);
      ASSERT_TRUE(bench.run());
      gemm.dst_y = random.below(1 << 14), gemm.src_x = random.below(1 << 14), gemm.wgt_y = random.below(1 << 14);
      alu.dst_x = random.below(1 << 14), alu.src_y = random.below(1 << 14);
      if (random.chance(20)) gemm.uop_end = alu.uop_end = static_cast<uint32_t>(config().depth(Memory::kUop)) + 1;
      if (kind == 2) bench.gemm.push_back(gemm), ok = model.execute(gemm);
      else bench.alu.push_back(alu), ok = model.execute(alu);
    }
    ASSERT_EQ(bench.run(), ok);
    const uint8_t code = kind == 1   ? bench.rq_done.back().error
                         : kind == 3 ? bench.alu_done.back().error
                                     : bench.gemm_done.back().error;
    ASSERT_EQ(code, static_cast<uint8_t>(ok ? spec::StopCode::kNone : spec::StopCode::kScratchpadRange));
    if (!ok) {
      ++errors;
      for (int i = 0; i < 40; ++i) bench.step();  // nothing may come after the error
      bench.reset();
    }
    ASSERT_NO_FATAL_FAILURE(check());
  }
  EXPECT_GT(errors, 200);
  EXPECT_LT(errors, 900);
}

// The cycles of a product: one bit of the inputs each, where there are no multipliers.
uint32_t cycles_a_product() { return config().serial_products ? 8 : 1; }

// Cycle counts are deterministic: one step, vector or element a cycle, and a fixed latency.
TEST_F(ComputeTest, RatesAreOneStepACycle) {
  load_everything();
  GemmCommand gemm;
  gemm.r0 = 4, gemm.y = 4, gemm.x = 8, gemm.dst_x = 0;  // always the same dst: the worst case of forwarding
  for (int i = 0; i < 3; ++i) {
    bench.gemm.push_back(gemm);
    ASSERT_TRUE(model.execute(gemm));
  }
  uint64_t start = bench.cycle;
  ASSERT_TRUE(bench.run());
  EXPECT_EQ(bench.gemm_done.back().cycle - start, 3 * 128u * cycles_a_product() + (config().serial_products ? 6 : 8));
  EXPECT_EQ(bench.active_cycles, 3 * 128u);

  const auto passes = static_cast<uint32_t>(config().requantizer_passes);
  RqCommand rq;
  rq.rows = 4, rq.cols = 16, rq.acc_pitch = 16, rq.acc_step = 1, rq.out_pitch = 16;
  bench.rq.push_back(rq);
  ASSERT_TRUE(model.execute(rq));
  start = bench.cycle;
  ASSERT_TRUE(bench.run());
  EXPECT_EQ(bench.rq_done.back().cycle - start, 64u * passes + 10);

  if (config().results_to_inp) {
    rq.to_inp = true;
    bench.rq.push_back(rq);
    ASSERT_TRUE(model.execute(rq));
    start = bench.cycle;
    ASSERT_TRUE(bench.run());
    EXPECT_EQ(bench.rq_done.back().cycle - start, 64u * passes + 10 + 1);
  }

  if (config().window_maximum) {  // an accumulator a cycle
    rq.to_inp = false;
    rq.rows = 2, rq.cols = 4, rq.acc_step = 2, rq.win_rows = 3, rq.win_cols = 2, rq.win_pitch = 16, rq.win_carry = true;
    bench.rq.push_back(rq);
    ASSERT_TRUE(model.execute(rq));
    start = bench.cycle;
    ASSERT_TRUE(bench.run());
    EXPECT_EQ(bench.rq_done.back().cycle - start, 2u * 4 * 3 * 2 * passes + 10);
  }

  load({{Memory::kUop, 0, {0, 0, 0, 0}, false}});
  ASSERT_TRUE(bench.run());
  AluCommand alu;
  alu.uop_end = 1, alu.y = 4, alu.x = 8, alu.dst_y = 8, alu.dst_x = 1, alu.src_y = 8, alu.src_x = 1, alu.use_imm = true;
  bench.alu.push_back(alu);
  ASSERT_TRUE(model.execute(alu));
  start = bench.cycle;
  ASSERT_TRUE(bench.run());
  EXPECT_EQ(bench.alu_done.back().cycle - start, 32u + 5);
  alu.use_imm = false;
  bench.alu.push_back(alu);
  ASSERT_TRUE(model.execute(alu));
  start = bench.cycle;
  ASSERT_TRUE(bench.run());
  EXPECT_EQ(bench.alu_done.back().cycle - start, 64u + 5);
  ASSERT_NO_FATAL_FAILURE(check());
}

// A window of own lanes takes a cycle a vector where it moves by a column, two where it moves by two, and more where
// its rows are in the same bank of inp, or where two lanes take turns.
TEST_F(ComputeTest, AColumnOfAWindowEntersACycle) {
  if (!config().own_lanes || config().block_in < 8) GTEST_SKIP() << "the lanes have no windows of 3 x 2";
  load_everything();
  const auto cycles = [&](const GemmCommand& gemm) {
    bench.gemm.push_back(gemm);
    EXPECT_TRUE(model.execute(gemm));
    const uint64_t start = bench.cycle;
    EXPECT_TRUE(bench.run());
    return bench.gemm_done.back().cycle - start - (config().serial_products ? 6 : 8);
  };
  // Of `columns` that enter, each with so many reads of a bank, and of the products of 32 vectors.
  const uint32_t turns = config().packed_products ? 2 : 1;
  const auto expected = [&](uint32_t columns, uint32_t reads) {
    return columns * (reads - 1 + turns) + 32 * (cycles_a_product() - 1);
  };
  GemmCommand gemm;
  gemm.own = gemm.first = true;
  gemm.r1 = 3, gemm.r2 = 2, gemm.y = 4, gemm.x = 8, gemm.dst_y = 8, gemm.dst_x = 1;
  gemm.src_r1 = gemm.src_y = 21, gemm.src_r2 = gemm.src_x = 1;
  EXPECT_EQ(cycles(gemm), expected(4 * (8 + 1), 1));
  EXPECT_EQ(bench.active_cycles, 4 * 8u * turns);
  gemm.src_r1 = 22;  // the third row is in the first one's bank
  EXPECT_EQ(cycles(gemm), expected(4 * (8 + 1), 2));
  gemm.src_r1 = 24;
  EXPECT_EQ(cycles(gemm), expected(4 * (8 + 1), 3));
  gemm.src_r1 = 21, gemm.src_x = 2;  // no column in common
  EXPECT_EQ(cycles(gemm), expected(4 * 8 * 2, 1));
  gemm.r1 = 2, gemm.r2 = 3;
  EXPECT_EQ(cycles(gemm), expected(4 * (7 * 2 + 3), 1));
  gemm.src_x = 3;
  EXPECT_EQ(cycles(gemm), expected(4 * 8 * 3, 1));
  ASSERT_NO_FATAL_FAILURE(check());
}

TEST_F(ComputeTest, NoReaderStarvesAtThePortOfAcc) {
  if (config().serial_products) GTEST_SKIP() << "GEMM reads acc once in eight cycles";
  load_everything();
  GemmCommand gemm;
  gemm.r0 = 64, gemm.y = 4, gemm.x = 8, gemm.dst_y = 8, gemm.dst_x = 1;
  bench.gemm.push_back(gemm);
  ASSERT_TRUE(model.execute(gemm));
  RqCommand rq;
  rq.rows = 2, rq.cols = 16, rq.acc_base = 40, rq.acc_step = 0;
  bench.rq.push_back(rq);
  ASSERT_TRUE(model.execute(rq));
  for (uint32_t i = 0; i < 32; ++i) bench.stores.push_back({true, 40});
  const uint64_t start = bench.cycle;
  ASSERT_TRUE(bench.run());
  ASSERT_NO_FATAL_FAILURE(check());
  // GEMM reads acc in every cycle: each other reader goes first once it was refused eight times.
  EXPECT_EQ(bench.longest_refusal, 8u);
  const uint64_t reads = 32 * static_cast<uint64_t>(config().requantizer_passes);
  EXPECT_GE(bench.rq_done.front().cycle - start, 8 * reads - 16);
  EXPECT_LE(bench.rq_done.front().cycle - start, 9 * reads + 16);
  EXPECT_LT(bench.rq_done.back().cycle, bench.gemm_done.back().cycle);
  EXPECT_LE(bench.gemm_done.back().cycle - bench.rq_done.front().cycle, 2048u);
}

}  // namespace
}  // namespace tenon::rtl_test
