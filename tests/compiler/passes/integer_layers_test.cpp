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

// Maxima and moved elements of dequantized bytes are those of the bytes, and no float is left before a quantization by
// the same scale.
TEST(IntegerLayers, MaximaAreThoseOfBytes) {
  const std::string dequantized = "dequantize(%x, scale=[0.1], zero_point=[3])",
                    pooled = "max_pool2d(" + dequantized + ", kernel=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])",
                    moved = "transpose(" + pooled + ", axes=[0, 2, 3, 1])";
  const auto quantized = [](const std::string& value, const std::string& scale) {
    return "quantize(" + value + ", scale=[" + scale + "], zero_point=[3], dtype=\"u8\")";
  };
  for (const auto& [value, floats] : {std::pair(quantized(pooled, "0.1"), false),
                                      {quantized(moved, "0.1"), false},
                                      {quantized(pooled, "0.2"), true}}) {
    Context context;
    auto module = parse(context, "#[version = \"1\"]\ndef @main(%x: Tensor[(1, 2, 5, 7), u8]) { " + value + " }\n");
    ASSERT_TRUE(module) << module.error().str();
    runtime::Tensor x(runtime::DType::kU8, {1, 2, 5, 7});
    for (size_t i = 0; i < x.data<uint8_t>().size(); ++i) x.data<uint8_t>()[i] = static_cast<uint8_t>(i * 97);
    const auto expected = interpret(context, *module, context.symbol("main"), std::vector{x});
    ASSERT_TRUE(expected) << expected.error().str();
    const auto integers = integer_layers(context, std::move(*module));
    ASSERT_TRUE(integers) << integers.error().str();
    const std::string text = print(context, *integers).text;
    EXPECT_EQ(text.find("quantize") != std::string::npos, floats) << text;
    const Function& main = *integers->function(context.symbol("main"));
    for (const Binding& binding : main.body.bindings) {
      const auto* apply = std::get_if<Apply>(&binding.value);
      if (apply && apply->op->is(ops::kMaxPool2d)) {
        EXPECT_EQ(main.type(binding.var).tensor()->dtype, DType::kU8) << text;
      }
    }
    const auto found = interpret(context, *integers, context.symbol("main"), std::vector{x});
    ASSERT_TRUE(found) << found.error().str();
    EXPECT_TRUE((*found)[0] == (*expected)[0]) << text;
  }
}

}  // namespace
}  // namespace tenon::compiler
