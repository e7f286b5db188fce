// Layers that come quantized, computed on integers.
#include <gtest/gtest.h>

#include "compiler/frontend/onnx.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/passes.h"
#include "tests/compiler/ir/operators/cases.h"

namespace tenon::compiler {
namespace {

// Bit by bit what ONNX Runtime computes.
TEST(IntegerLayers, QuantizedOperatorsAreExact) {
  int count = 0;
  for (const auto& [name, one] : operator_cases()) {
    if (!name.starts_with("qlinear")) continue;
    ++count;
    Context context;
    auto module = import_onnx(context, std::as_bytes(std::span(one.model)), {.file = name, .shapes = {}});
    ASSERT_TRUE(module) << module.error().str();
    auto integers = integer_layers(context, std::move(*module));
    ASSERT_TRUE(integers) << integers.error().str();
    ASSERT_TRUE(verify(context, *integers)) << verify(context, *integers).error().str();
    const Function& main = *integers->function(context.symbol("main"));
    bool sums = false;
    for (const Binding& binding : main.body.bindings) {
      auto* apply = std::get_if<Apply>(&binding.value);
      const bool layer = apply && (apply->op->is(ops::kConv2d) || apply->op->is(ops::kMatmul));
      sums |= layer && main.type(binding.var).tensor()->dtype == DType::kI32;
      // Weights are wider numbers when they are compiled, not in each run.
      if (apply && apply->op->is(ops::kCast)) {
        EXPECT_FALSE(constant_of(*integers, apply->args[0])) << name;
      }
    }
    EXPECT_TRUE(sums) << print(context, *integers).text;
    auto results = interpret(context, *integers, context.symbol("main"), one.inputs);
    ASSERT_TRUE(results) << results.error().str();
    EXPECT_TRUE((*results)[0] == one.results[0]) << name;
  }
  EXPECT_GE(count, 6);
}

}  // namespace
}  // namespace tenon::compiler
