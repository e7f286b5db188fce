#include "compiler/pipeline/work.h"

#include <gmock/gmock.h>

#include "compiler/ir/text.h"

namespace tenon::compiler {
namespace {

int64_t macs(const std::string& body) {
  Context context;
  const std::string text = "#[version = \"1\"]\ndef @main(" + body + "\n";
  const auto module = parse(context, text, {}, "m.tn");
  EXPECT_TRUE(module) << module.error().str();
  if (!module) return -1;
  const auto counts = macs_by_target(*module);
  return counts.contains("") ? counts.at("") : 0;
}

TEST(Work, EveryOperatorThatMultipliesIsCounted) {
  EXPECT_EQ(macs("%a: Tensor[(5, 2, 3), f32], %b: Tensor[(3, 4), f32]) { matmul(%a, %b) }"), 5 * 2 * 3 * 4);
  EXPECT_EQ(macs("%a: Tensor[(2, 3), f32], %w: Tensor[(4, 3), f32]) { dense(%a, %w) }"), 2 * 3 * 4);
  EXPECT_EQ(macs("%a: Tensor[(1, 6, 5, 5), f32], %w: Tensor[(8, 3, 3, 3), f32]) { conv2d(%a, %w, groups=2) }"),
            8 * 3 * 3 * 3 * 3 * 3);
  EXPECT_EQ(macs("%a: Tensor[(1, 6, 5), f32], %w: Tensor[(6, 2, 3), f32]) { conv1d_transpose(%a, %w) }"),
            6 * 5 * 2 * 3);
  EXPECT_EQ(
      macs("%a: Tensor[(2, 3, 4), f32], %b: Tensor[(2, 4, 5), f32]) { einsum(%a, %b, equation=\"bij,bjk->bik\") }"),
      2 * 3 * 4 * 5);
  EXPECT_EQ(macs("%a: Tensor[(2, 3), f32]) { einsum(%a, equation=\"ij->i\") }"), 0);
  EXPECT_EQ(macs("%a: Tensor[(2, 3), f32]) { relu(%a) }"), 0);
}

TEST(Work, RecurrentLayersAreCounted) {
  const auto layer = [](const std::string& op, int64_t gates, const std::string& more) {
    const std::string g = std::to_string(gates * 6);
    return macs("%x: Tensor[(7, 2, 5), f32], %w: Tensor[(1, " + g + ", 5), f32], %r: Tensor[(1, " + g +
                ", 6), f32], %b: Tensor[(1, " + std::to_string(gates * 12) + "), f32], %h: Tensor[(1, 2, 6), f32]) { " +
                op + "(%x, %w, %r, %b, %h" + more + ") }");
  };
  EXPECT_EQ(layer("gru", 3, ""), 7 * 2 * 18 * (5 + 6));
  EXPECT_EQ(layer("lstm", 4, ", %h"), 7 * 2 * 24 * (5 + 6));
  EXPECT_EQ(layer("rnn", 1, ""), 7 * 2 * 6 * (5 + 6));
}

TEST(Work, WhatIsNotCountedIsSaid) {
  Context context;
  const auto module = parse(context, R"(#[version = "1"]
extern @halve(Tensor[(2,), f32]) -> Tensor[(2,), f32] = "halve";
def @main(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] { @halve(%x) }
)",
                            {}, "m.tn");
  ASSERT_TRUE(module) << module.error().str();
  EXPECT_EQ(summarize(*module, {}), "  the MACs of 1 call of loop functions and libraries are not known\n");
}

}  // namespace
}  // namespace tenon::compiler
