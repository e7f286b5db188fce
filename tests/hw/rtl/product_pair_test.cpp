// Two products in one multiplier against the plain products: all 2^24 operands.
#include <gtest/gtest.h>

#include <cstdint>

#include "Vprim_product_pair.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace tenon::rtl_test {
namespace {

TEST(ProductPair, BothProductsAreExactForAllOperands) {
  VerilatedContext context;
  Vprim_product_pair dut{&context};
  dut.en_i = 1;
  uint64_t wrong = 0;
  for (int operands = 0; operands < 1 << 24; ++operands) {
    const auto a = static_cast<int8_t>(operands), b0 = static_cast<int8_t>(operands >> 8),
               b1 = static_cast<int8_t>(operands >> 16);
    dut.a_i = static_cast<uint8_t>(a);
    dut.b0_i = static_cast<uint8_t>(b0);
    dut.b1_i = static_cast<uint8_t>(b1);
    dut.clk_i = 0;
    dut.eval();
    dut.clk_i = 1;
    dut.eval();
    const bool right = static_cast<int16_t>(dut.product0_o) == a * b0 && static_cast<int16_t>(dut.product1_o) == a * b1;
    if (!right && ++wrong == 1) {
      ADD_FAILURE() << int{a} << " * " << int{b0} << ", " << int{b1} << " are " << static_cast<int16_t>(dut.product0_o)
                    << ", " << static_cast<int16_t>(dut.product1_o);
    }
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(ProductPair, ProductsStayWithoutTheEnable) {
  VerilatedContext context;
  Vprim_product_pair dut{&context};
  const auto step = [&](int enable, uint8_t a) {
    dut.en_i = static_cast<uint8_t>(enable);
    dut.a_i = a;
    dut.b0_i = 3;
    dut.b1_i = 5;
    dut.clk_i = 0;
    dut.eval();
    dut.clk_i = 1;
    dut.eval();
  };
  step(1, 7);
  step(0, 9);
  EXPECT_EQ(dut.product0_o, 21);
  EXPECT_EQ(dut.product1_o, 35);
}

}  // namespace
}  // namespace tenon::rtl_test
