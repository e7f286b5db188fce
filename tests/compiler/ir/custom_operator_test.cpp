// An example of a custom operator: a record and a kernel. In the tree, the record belongs to
// compiler/ir/operators/FAMILY.cpp and the kernel to runtime/reference/FAMILY.cpp; this test defines both for a context
// of its own.
#include <gtest/gtest.h>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/operators/rules.h"
#include "compiler/ir/text.h"
#include "runtime/reference/map.h"

namespace tenon::compiler {
namespace {

// The kernel for one element, for every supported dtype.
constexpr runtime::reference::Entry kWave = runtime::reference::real<"wave", "height">(
    [](auto x, auto height) { return height * (x - std::floor(x) < 0.5 ? 1 : -1); });

// The record.
Operator wave() {
  return {.name = "wave",
          .documentation = "height where the fraction of x is below a half, else -height.",
          .inputs = {{"x", runtime::kReals}},
          .attributes = {{"height", AttrKind::kFloat, 1.0, "half the difference of the two values"}},
          .rule = same_as_first,
          .pattern = OpPattern::kElementwise,
          .reference = kWave.kernel};
}

TEST(CustomOperator, IsParsedTypedAndRun) {
  Context context;
  context.add_operator(wave());
  auto module = parse(context,
                      "#[version = \"1\"]\n"
                      "def @main[n](%x: Tensor[(n,), f64]) -> Tensor[(n,), f64] { wave(%x, height=2.0) }\n");
  ASSERT_TRUE(module) << module.error().str();
  const runtime::Tensor x = runtime::Tensor::of<double>({3}, std::vector{0.25, 0.75, -0.25});
  auto results = interpret(context, *module, context.symbol("main"), std::vector{x});
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ(results->at(0), runtime::Tensor::of<double>({3}, std::vector{2.0, -2.0, -2.0}));

  auto wrong = parse(context,
                     "#[version = \"1\"]\n"
                     "def @main(%x: Tensor[(3,), i8]) -> Tensor[(3,), i8] { wave(%x) }\n");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().what.find("wave: x must be of f16 or bf16 or f32 or f64, found Tensor[(3,), i8]"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon::compiler
