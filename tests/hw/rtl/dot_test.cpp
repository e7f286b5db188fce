// The dot product of a lane, and of a pair of lanes, against a plain sum, for every number of lanes: the array that is
// synthesized, and the one that simulators prefer (TENON_FAST_DOT).
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <random>

#include "Vdot_bench.h"
#include "tests/seed.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace tenon::rtl_test {
namespace {

constexpr int kMaxLanes = 64, kSizes = 6, kDots = 3;  // one alone, and a pair
using Operand = std::array<int8_t, kMaxLanes>;
using Sums = std::array<int32_t, kDots * kSizes>;

// Operand b of a pair's second dot product.
Operand second(const Operand& b) {
  Operand result{};
  for (size_t lane = 0; lane < kMaxLanes; ++lane) result[lane] = static_cast<int8_t>(b[lane ^ 1] ^ 0x5a);
  return result;
}

Sums expected(const Operand& a, const Operand& b) {
  const std::array<Operand, kDots> operands = {b, b, second(b)};
  Sums sums{};
  for (size_t dot = 0; dot < kDots; ++dot) {
    for (size_t size = 0; size < kSizes; ++size) {
      for (size_t lane = 0; lane < size_t{2} << size; ++lane) {
        sums[dot * kSizes + size] += a[lane] * operands[dot][lane];
      }
    }
  }
  return sums;
}

class Dot : public testing::Test {
 protected:
  // One clock edge with the stages enabled by bits: 1 products, 2 groups, 4 sums.
  void step(unsigned stages) {
    dut_.product_en_i = stages & 1;
    dut_.group_en_i = stages >> 1 & 1;
    dut_.sum_en_i = stages >> 2 & 1;
    dut_.clk_i = 0;
    dut_.eval();
    dut_.clk_i = 1;
    dut_.eval();
  }
  void drive(const Operand& a, const Operand& b) {
    std::memcpy(&dut_.a_i, a.data(), a.size());
    std::memcpy(&dut_.b_i, b.data(), b.size());
    const Operand b1 = second(b);
    std::memcpy(&dut_.b1_i, b1.data(), b1.size());
  }
  Sums sums() const {
    Sums sums{};
    std::memcpy(sums.data(), &dut_.sum_o, sizeof sums / kDots);
    std::memcpy(&sums[kSizes], &dut_.pair_sum0_o, sizeof sums / kDots);
    std::memcpy(&sums[2 * kSizes], &dut_.pair_sum1_o, sizeof sums / kDots);
    return sums;
  }
  Sums run(const Operand& a, const Operand& b) {
    drive(a, b);
    for (const unsigned stage : {1u, 2u, 4u}) step(stage);
    return sums();
  }

  VerilatedContext context_;
  Vdot_bench dut_{&context_};
  std::mt19937_64 random_{test_seed(5)};
};

// One product at a time: a tree that loses or repeats a lane, or takes another lane's operand, shows with its number.
TEST_F(Dot, EveryLaneCountsOnce) {
  for (size_t lane = 0; lane < kMaxLanes; ++lane) {
    Operand a{}, b{};
    a.fill(0);
    b.fill(1);
    a[lane] = static_cast<int8_t>(lane + 1);
    EXPECT_EQ(run(a, b), expected(a, b)) << "lane " << lane;
    std::swap(a, b);
    EXPECT_EQ(run(a, b), expected(a, b)) << "lane " << lane;
  }
}

TEST_F(Dot, TheExtremesAreExact) {
  for (const int x : {-128, -127, -1, 0, 1, 127}) {
    for (const int y : {-128, -127, -1, 0, 1, 127}) {
      Operand a{}, b{};
      a.fill(static_cast<int8_t>(x));
      b.fill(static_cast<int8_t>(y));
      EXPECT_EQ(run(a, b), expected(a, b)) << x << " * " << y;
    }
  }
}

TEST_F(Dot, RandomOperandsFlowThroughThePipeline) {
  std::array<Sums, 4> stages{};  // what the registers hold, oldest last
  for (int i = 0; i < 3000; ++i) {
    Operand a{}, b{};
    for (size_t lane = 0; lane < kMaxLanes; ++lane) {
      a[lane] = static_cast<int8_t>(random_());
      b[lane] = static_cast<int8_t>(random_());
    }
    drive(a, b);
    const auto enables = static_cast<unsigned>(random_() % 4 == 0 ? random_() % 8 : 7);
    if (enables & 4) stages[2] = stages[1];
    if (enables & 2) stages[1] = stages[0];
    if (enables & 1) stages[0] = expected(a, b);
    step(enables);
    if (i > 50) {  // by then each stage has been enabled
      ASSERT_EQ(sums(), stages[2]) << "step " << i;
    }
  }
}

}  // namespace
}  // namespace tenon::rtl_test
