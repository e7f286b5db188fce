// Models that come quantized: their integer layers differ from the float operators by at most one step.
#include "compiler/quantize/qdq.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "compiler/ir/builder.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/operator.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Shape;
using runtime::Tensor;

class QdqTest : public testing::Test {
 protected:
  int64_t draw(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random_); }
  double draw_scale(double around) {
    return static_cast<float>(around * std::exp2(std::uniform_real_distribution<>(-0.7, 0.7)(random_)));
  }
  Atom apply(const char* op, Atoms args, Attrs attrs = {}) {
    auto atom = builder_.apply(op, std::move(args), std::move(attrs), op);
    EXPECT_TRUE(atom) << atom.error().str();
    return *atom;
  }
  struct Format {
    double scale = 1;
    int64_t zero = 0;
    bool is_unsigned = false;
  };
  Format format(double around) {
    const bool is_unsigned = draw(0, 1) == 1;
    return {draw_scale(around), draw(-3, 3) * 30 + (is_unsigned ? 128 : 0), is_unsigned};
  }
  // quantize and dequantize, as they stand around a value of such a model.
  Atom quantize(Atom x, const Format& format) {
    return apply("quantize", {x},
                 {{"scale", std::vector<double>{format.scale}},
                  {"zero_point", std::vector<int64_t>{format.zero}},
                  {"dtype", std::string(format.is_unsigned ? "u8" : "i8")}});
  }
  Atom dequantize(Atom x, const Format& format) {
    return apply("dequantize", {x},
                 {{"scale", std::vector<double>{format.scale}}, {"zero_point", std::vector<int64_t>{format.zero}}});
  }
  Atom qdq(Atom x, const Format& format) { return dequantize(quantize(x, format), format); }
  Atom input(const Shape& shape, const Format& format) {
    shapes_.push_back(shape);
    return qdq(builder_.param(context_.tensor(shape, DType::kF32), "x"), format);
  }
  // Dequantized weights, per channel along `axis` or per tensor.
  Atom weights(const Shape& shape, int64_t axis, double around) {
    const bool per_channel = draw(0, 1) == 1, is_unsigned = draw(0, 1) == 1;
    Tensor values(is_unsigned ? DType::kU8 : DType::kI8, shape);
    const auto fill = [&](auto data) {
      for (auto& value : data)
        value = static_cast<std::decay_t<decltype(value)>>(draw(-127, 127) + (is_unsigned ? 128 : 0));
    };
    is_unsigned ? fill(values.data<uint8_t>()) : fill(values.data<int8_t>());
    std::vector<double> scales;
    for (int64_t i = 0; i < (per_channel ? shape[static_cast<size_t>(axis)] : 1); ++i)
      scales.push_back(draw_scale(around));
    return apply("dequantize", {builder_.constant(std::move(values))},
                 {{"scale", scales}, {"zero_point", std::vector<int64_t>{is_unsigned ? 128 : 0}}, {"axis", axis}});
  }
  Atom bias(int64_t channels, double step) {
    std::vector<int32_t> values;
    for (int64_t i = 0; i < channels; ++i) values.push_back(static_cast<int32_t>(draw(-9000, 9000)));
    return apply("dequantize", {builder_.constant(Shape{channels}, values)}, {{"scale", std::vector<double>{step}}});
  }

  // Rewrites what was built and compares the results, of floats that are steps of `step`, or of bytes.
  void expect_within_a_step(Atom result, double step) {
    ASSERT_NO_FATAL_FAILURE(rewrite(result));
    EXPECT_LT(difference(step), 1.01);
  }
  void rewrite(Atom result) {
    builder_.finish(result);
    module_.globals.emplace(main_, std::move(function_));
    auto rewritten = requantize_layers(context_, clone(module_));
    ASSERT_TRUE(rewritten) << rewritten.error().str();
    rewritten_ = std::move(*rewritten);
  }
  // The largest difference of the results, in steps.
  double difference(double step) {
    double most = 0;
    for (int i = 0; i < 3; ++i) {
      std::vector<Tensor> inputs;
      for (const Shape& shape : shapes_) {
        Tensor tensor(DType::kF32, shape);
        std::normal_distribution<float> normal(0, 1.5);
        for (float& value : tensor.data<float>()) value = normal(random_);
        inputs.push_back(std::move(tensor));
      }
      const auto real = interpret(context_, module_, main_, std::span<const Tensor>(inputs));
      const auto integer = interpret(context_, rewritten_, main_, std::span<const Tensor>(inputs));
      EXPECT_TRUE(real) << real.error().str();
      EXPECT_TRUE(integer) << integer.error().str();
      if (!real || !integer) return HUGE_VAL;
      const Tensor &a = (*real)[0], &b = (*integer)[0];
      EXPECT_EQ(a.shape(), b.shape());
      EXPECT_EQ(a.dtype(), b.dtype());
      for (int64_t k = 0; k < a.size(); ++k) {
        const auto at = static_cast<size_t>(k);
        const double difference = a.dtype() == DType::kF32 ? (a.data<float>()[at] - b.data<float>()[at]) / step
                                                           : a.data<uint8_t>()[at] - b.data<uint8_t>()[at];
        most = std::max(most, std::abs(difference));
      }
    }
    return most;
  }
  // The operators on which the result depends.
  std::map<std::string, int> operators() {
    const Function& function = *rewritten_.function(main_);
    std::vector<bool> live(function.vars.size());
    const auto use = [&](const Atom& atom) {
      if (const auto* var = std::get_if<VarId>(&atom)) live[index(*var)] = true;
    };
    use(function.body.result);
    std::map<std::string, int> count;
    const auto& bindings = function.body.bindings;
    for (size_t i = bindings.size(); i-- > 0;) {
      if (!live[index(bindings[i].var)]) continue;
      for_each_operand(bindings[i].value, use);
      const auto& apply = std::get<Apply>(bindings[i].value);
      if (!(apply.op->is(ops::kDequantize) && std::holds_alternative<ConstId>(apply.args[0]))) ++count[apply.op->name];
    }
    return count;
  }
  using Count = std::map<std::string, int>;

  std::mt19937 random_{test_seed(7)};
  Context context_;
  Module module_, rewritten_;
  Function function_;
  Builder builder_{context_, module_, function_};
  Symbol main_ = context_.symbol("main");
  std::vector<Shape> shapes_;
};

class QdqLayers : public QdqTest, public testing::WithParamInterface<int> {};

TEST_P(QdqLayers, AConvolutionIsOneRequantization) {
  const Format in = format(0.03), out = format(0.4);
  const int64_t groups = draw(0, 1) == 1 ? 1 : 6, stride = draw(1, 2);
  const Atom x = input({2, 6, 7, 5}, in);
  Atom y = apply("conv2d", {x, weights({6, 6 / groups, 3, 3}, 0, 0.01)},
                 {{"padding", std::vector<int64_t>{1, 0, 1, 2}},
                  {"strides", std::vector<int64_t>{stride, 1}},
                  {"groups", groups}});
  if (draw(0, 1)) y = apply("bias_add", {y, bias(6, in.scale * 0.01)});
  if (draw(0, 1)) y = apply("clip", {y}, {{"min", 0.0}, {"max", 6.0}});
  expect_within_a_step(qdq(y, out), out.scale);
  EXPECT_EQ(operators(), (Count{{"quantize", 1}, {"conv2d", 1}, {"requantize", 1}, {"dequantize", 1}}));
}

TEST_P(QdqLayers, AMatrixProductIsADenseLayer) {
  const Format in = format(0.03), out = format(0.5);
  const Atom x = input({2, 3, 20}, in);
  Atom w = weights({20, 9}, 1, 0.01);
  if (draw(0, 1)) w = apply("transpose", {weights({9, 20}, 0, 0.01)}, {{"axes", std::vector<int64_t>{1, 0}}});
  Atom y = apply("matmul", {x, w});
  if (draw(0, 1)) {
    std::vector<float> values;
    for (int i = 0; i < 9; ++i) values.push_back(static_cast<float>(draw(-30, 30)) / 10);
    y = apply("add", {builder_.constant(Shape{9}, values), y});
  }
  expect_within_a_step(qdq(y, out), out.scale);
  EXPECT_EQ(operators(), (Count{{"quantize", 1}, {"reshape", 2}, {"dense", 1}, {"requantize", 1}, {"dequantize", 1}}));
}

// A product of two values: the operands are perhaps moved between their rounding and the product.
TEST_P(QdqLayers, AProductOfTwoValuesIsOneRequantization) {
  const bool is_unsigned = draw(0, 1) == 1;
  const auto symmetric = [&](double around) { return Format{draw_scale(around), is_unsigned ? 128 : 0, is_unsigned}; };
  const Format a = symmetric(0.03), b = symmetric(0.03), out = format(0.1);
  const Atom x = input({2, 3, 5, 20}, a);
  Atom w = input({2, 3, 9, 20}, b);
  w = apply("transpose", {w}, {{"axes", std::vector<int64_t>{0, 1, 3, 2}}});
  expect_within_a_step(qdq(apply("matmul", {x, w}), out), out.scale);
  EXPECT_EQ(operators(),
            (Count{{"quantize", 2}, {"transpose", 1}, {"matmul", 1}, {"requantize", 1}, {"dequantize", 1}}));
}

TEST_F(QdqTest, AProductOfTooManyTermsStaysInFloat) {
  const Atom x = input({1, 65537}, {.scale = 0.03}), w = input({65537, 1}, {.scale = 0.03});
  expect_within_a_step(qdq(apply("matmul", {x, w}), {.scale = 10}), 10);
  EXPECT_EQ(operators()["requantize"], 0);
}

TEST_F(QdqTest, AProductOfValuesWithZeroPointsStaysInFloat) {
  const Atom x = input({4, 20}, {.scale = 0.03, .zero = 1}), w = input({20, 6}, {.scale = 0.03});
  expect_within_a_step(qdq(apply("matmul", {x, w}), {.scale = 0.1}), 0.1);
  EXPECT_EQ(operators()["requantize"], 0);
  EXPECT_EQ(operators()["matmul"], 1);
}

// A convolution, an addition with a shortcut, a ReLU, each rounded by the model: a difference of a step adds up.
TEST_P(QdqLayers, AResidualBlockIsWithinAStepOfEachRounding) {
  const Format in = format(0.03), middle = format(0.3), sum = format(0.3), out = format(0.3);
  const Atom x = input({1, 4, 5, 5}, in);
  const Atom y = qdq(apply("conv2d", {x, weights({4, 4, 1, 1}, 0, 0.02)}), middle);
  const Atom z = qdq(apply("add", {y, x}), sum);
  ASSERT_NO_FATAL_FAILURE(rewrite(qdq(apply("relu", {z}), out)));
  EXPECT_EQ(operators()["add"] + operators()["relu"], 0);
  EXPECT_EQ(operators()["requantize"], 2);
  EXPECT_EQ(operators()["requantize_add"], 1);
  EXPECT_LT(difference(out.scale), 1.01 + (middle.scale + sum.scale) / out.scale);
}

TEST_P(QdqLayers, AnAverageOverTheMapIsASum) {
  const Format in = format(0.03), out = format(0.01);
  const Atom x = input({2, 5, 6, 7}, in);
  expect_within_a_step(qdq(apply("global_avg_pool", {x}), out), out.scale);
  EXPECT_EQ(operators(), (Count{{"quantize", 1}, {"global_sum_pool", 1}, {"requantize", 1}, {"dequantize", 1}}));
}

INSTANTIATE_TEST_SUITE_P(Random, QdqLayers, testing::Range(0, static_cast<int>(rounds(12))));

// The ReLU becomes a clamp of the layer before it, which needs no rounding; other roundings stay.
TEST_F(QdqTest, AClampByTheSameScaleJoinsTheLayerBeforeIt) {
  const Format in{0.03, 0, false}, out{0.3, -100, false};
  const Atom x = input({1, 4, 5, 5}, in);
  const Atom y = qdq(apply("conv2d", {x, weights({4, 4, 1, 1}, 0, 0.02)}), out);
  const Atom z = qdq(apply("add", {qdq(apply("relu", {y}), out), x}), out);
  expect_within_a_step(qdq(apply("relu", {z}), out), out.scale);
  EXPECT_EQ(
      operators(),
      (Count{
          {"quantize", 1}, {"conv2d", 1}, {"requantize", 1}, {"cast", 1}, {"requantize_add", 1}, {"dequantize", 1}}));
}

TEST_F(QdqTest, AValueWithAnotherUserKeepsItsRounding) {
  const Format in{0.03, 0, false}, middle{0.3, 3, true}, out{0.3, 5, false};
  const Atom x = input({1, 4, 5, 5}, in);
  const Atom y = qdq(apply("conv2d", {x, weights({4, 4, 1, 1}, 0, 0.02)}), middle);
  const Atom z = qdq(apply("add", {y, x}), out);
  expect_within_a_step(apply("maximum", {z, y}), out.scale);
  EXPECT_EQ(operators()["requantize"], 1);
  EXPECT_EQ(operators()["requantize_add"], 1);
}

TEST_F(QdqTest, OperatorsThatMoveElementsMoveIntegers) {
  const Format in{0.03, 140, true};
  const Atom x = input({1, 4, 6, 6}, in);
  const Atom padded = qdq(
      apply("pad", {x}, {{"before", std::vector<int64_t>{0, 0, 1, 1}}, {"after", std::vector<int64_t>{0, 0, 1, 1}}}),
      in);
  const Atom pooled = qdq(apply("max_pool2d", {padded}, {{"kernel", std::vector<int64_t>{2, 2}}}), in);
  expect_within_a_step(qdq(apply("concat", {pooled, pooled}, {{"axis", int64_t{1}}}), in), 1e-6);
  EXPECT_EQ(operators(), (Count{{"quantize", 1}, {"pad", 1}, {"max_pool2d", 1}, {"concat", 1}, {"dequantize", 1}}));
}

// As QLinear models have them: bytes cross the boundary, and operators that move elements are on bytes.
TEST_F(QdqTest, BytesOfTheModelStayBytes) {
  const Format in{0.03, 140, true}, out{0.4, 17, true};
  const Atom x = input({1, 4, 6, 6}, in);
  const Atom bytes = quantize(apply("conv2d", {x, weights({4, 4, 1, 1}, 0, 0.02)}), out);
  expect_within_a_step(apply("flatten", {bytes}), 1);
  EXPECT_EQ(operators()["requantize"], 1);
}

// Weights that the model quantizes itself.
TEST_F(QdqTest, QuantizedConstantsAreWeights) {
  const Format in{0.03, 0, false}, out{0.4, 0, false}, of_weights{0.02, 0, false};
  const Atom x = input({1, 2, 3, 3}, in);
  const Atom w = qdq(builder_.constant<float>({2, 2, 1, 1}, {0.5f, -1.5f, 2, 0.25f}), of_weights);
  expect_within_a_step(qdq(apply("conv2d", {x, w}), out), out.scale);
  EXPECT_EQ(operators()["requantize"], 1);
}

// Weights of more than eight bits are the sums of two: their input channels are operands twice.
TEST_P(QdqLayers, WeightsOfAnyZeroPointAreExact) {
  const Format in = format(0.03), out = format(0.5);
  const bool convolution = draw(0, 1) == 1, per_channel = draw(0, 1) == 1;
  Tensor values(DType::kU8, convolution ? Shape{5, 4, 3, 3} : Shape{5, 4});
  for (uint8_t& value : values.data<uint8_t>()) value = static_cast<uint8_t>(draw(20, 255));
  std::vector<int64_t> zeros;
  std::vector<double> scales;
  for (int64_t i = 0; i < (per_channel ? 5 : 1); ++i) {
    zeros.push_back(i == 0 ? 30 : draw(20, 200));
    scales.push_back(draw_scale(0.01));
  }
  values.data<uint8_t>()[0] = 255;
  const Atom w = apply("dequantize", {builder_.constant(std::move(values))},
                       {{"scale", scales}, {"zero_point", zeros}, {"axis", int64_t{0}}});
  const Atom x = input(convolution ? Shape{2, 4, 5, 6} : Shape{3, 4}, in);
  Attrs attrs;
  if (convolution) attrs["padding"] = std::vector<int64_t>{1, 1, 1, 1};
  expect_within_a_step(qdq(apply(convolution ? "conv2d" : "dense", {x, w}, attrs), out), out.scale);
  EXPECT_EQ(operators(), (Count{{"quantize", 1},
                                {"gather", 1},
                                {"concat", 1},
                                {convolution ? "conv2d" : "dense", 1},
                                {"requantize", 1},
                                {"dequantize", 1}}));
}

// As Gemm has them: alpha * x * w + beta * b, and of a layer with a scale of its own.
TEST_P(QdqLayers, ConstantsThatScaleALayerJoinIt) {
  const Format in = format(0.03), out = format(0.5);
  const Atom x = input({3, 20}, in);
  Atom y = apply("dense", {x, weights({9, 20}, 0, 0.01)});
  y = apply("multiply", {y, builder_.constant<float>({}, {0.5f})});
  const Atom b = apply("multiply", {bias(9, in.scale * 0.01), builder_.constant<float>({}, {3})});
  y = draw(0, 1) ? apply("bias_add", {y, b}) : apply("add", {b, y});
  if (draw(0, 1)) {
    std::vector<float> factors;
    for (int i = 0; i < 9; ++i) factors.push_back(static_cast<float>(draw(1, 20)) / 10);
    y = apply("multiply", {builder_.constant(Shape{9}, factors), y});
  }
  if (draw(0, 1)) y = apply("relu", {y});
  expect_within_a_step(qdq(y, out), out.scale);
  EXPECT_EQ(operators(), (Count{{"quantize", 1}, {"dense", 1}, {"requantize", 1}, {"dequantize", 1}}));
}

// Rounding and clamps never decrease, so they may come before what selects or moves elements.
TEST_P(QdqLayers, WhatSelectsOrMovesElementsFollowsTheRounding) {
  const Format in = format(0.03), out = format(0.4);
  const Atom x = input({1, 4, 6, 6}, in);
  Atom y = apply("conv2d", {x, weights({4, 4, 3, 3}, 0, 0.01)});
  if (draw(0, 1)) y = apply("relu", {y});
  y = apply("max_pool2d", {y}, {{"kernel", std::vector<int64_t>{2, 2}}, {"padding", std::vector<int64_t>{0, 0, 1, 1}}});
  if (draw(0, 1)) y = apply("clip", {y}, {{"min", -1.0}, {"max", 6.0}});
  y = apply("flatten", {y});
  expect_within_a_step(qdq(y, out), out.scale);
  EXPECT_EQ(
      operators(),
      (Count{{"quantize", 1}, {"conv2d", 1}, {"requantize", 1}, {"max_pool2d", 1}, {"flatten", 1}, {"dequantize", 1}}));
}

TEST_P(QdqLayers, AMovedOperandIsMovedAsIntegers) {
  const Format in = format(0.03), out = format(0.4);
  const Atom x = apply("transpose", {input({20, 3}, in)}, {{"axes", std::vector<int64_t>{1, 0}}});
  expect_within_a_step(qdq(apply("dense", {x, weights({9, 20}, 0, 0.01)}), out), out.scale);
  EXPECT_EQ(operators(),
            (Count{{"quantize", 1}, {"transpose", 1}, {"dense", 1}, {"requantize", 1}, {"dequantize", 1}}));
}

// Concatenated operands of two scales would be rounded once more.
TEST_F(QdqTest, AConcatenationOfTwoScalesIsNoOperandInIntegers) {
  const Format in{0.03, 0, false}, other{0.05, 0, false}, out{0.4, 0, false};
  const Atom x = apply("concat", {input({1, 2, 3, 3}, in), input({1, 2, 3, 3}, other)}, {{"axis", int64_t{1}}});
  expect_within_a_step(qdq(apply("conv2d", {x, weights({4, 4, 1, 1}, 0, 0.01)}), out), 1e-6);
  EXPECT_EQ(operators()["requantize"], 0);
}

TEST_P(QdqLayers, ALeakyReluIsTheLargerOfTwoRequantizations) {
  const Format in = format(0.03), out = format(0.3);
  const bool convolution = draw(0, 1) == 1;
  const Atom x = input(convolution ? Shape{1, 4, 6, 6} : Shape{3, 20}, in);
  Atom y = convolution ? apply("bias_add", {apply("conv2d", {x, weights({5, 4, 3, 3}, 0, 0.01)}), bias(5, 3e-4)})
                       : apply("dense", {x, weights({5, 20}, 0, 0.01)});
  if (draw(0, 1)) {
    y = apply("leaky_relu", {y}, {{"alpha", 0.1}});
  } else {
    y = apply("prelu",
              {y, builder_.constant<float>(convolution ? Shape{5, 1, 1} : Shape{5}, {0.1f, 0.25f, 1, 0.5f, 0.01f})});
  }
  if (draw(0, 1)) y = apply("clip", {y}, {{"min", -0.5}, {"max", 6.0}});
  expect_within_a_step(qdq(y, out), out.scale);
  EXPECT_EQ(operators(), (Count{{"quantize", 1},
                                {convolution ? "conv2d" : "dense", 1},
                                {"requantize", 1},
                                {"slice", 2},
                                {"maximum", 1},
                                {"dequantize", 1}}));
}

// Constants that would take long to compute, or that scale a layer to nothing, leave it in float.
TEST_F(QdqTest, ConstantsOfAModelAreEvaluatedWithinBounds) {
  const Format in{0.03, 0, false}, out{0.4, 0, false};
  const Atom x = input({1, 4, 3, 3}, in);
  const auto layer = [&] { return apply("conv2d", {x, weights({4, 4, 1, 1}, 0, 0.01)}); };
  Atom doubled = bias(4, 1e-3);
  for (int i = 0; i < 60; ++i) doubled = apply("multiply", {doubled, apply("add", {doubled, doubled})});
  const Atom a = qdq(apply("bias_add", {layer(), doubled}), out);
  Atom tiny = layer();
  for (int i = 0; i < 9; ++i) tiny = apply("multiply", {tiny, builder_.constant<float>({}, {1e-38f})});
  ASSERT_NO_FATAL_FAILURE(rewrite(apply("maximum", {a, qdq(tiny, out)})));
  EXPECT_EQ(operators()["requantize"], 0);
}

TEST_F(QdqTest, ALayerWithoutInputChannelsStaysInFloat) {
  const Format in{0.03, 0, false}, out{0.4, 0, false};
  const Atom x = input({2, 0}, in);
  const Atom w = apply("dequantize", {builder_.constant<int8_t>({3, 0}, {})}, {{"scale", std::vector<double>{0.1}}});
  expect_within_a_step(qdq(apply("dense", {x, w}), out), 1e-6);
  EXPECT_EQ(operators()["requantize"], 0);
}

TEST_F(QdqTest, SlopesThatAreNegativeOrAboveOneStayInFloat) {
  const Format in{0.03, 0, false}, out{0.4, 0, false};
  const Atom x = input({1, 4, 3, 3}, in);
  const auto leaky = [&](double alpha) {
    return qdq(apply("leaky_relu", {apply("conv2d", {x, weights({4, 4, 1, 1}, 0, 0.01)})}, {{"alpha", alpha}}), out);
  };
  const Atom negative = leaky(-0.1), steep = leaky(1.5);
  expect_within_a_step(apply("maximum", {negative, steep}), 1e-6);
  EXPECT_EQ(operators()["requantize"], 0);
}

TEST_F(QdqTest, WeightsThatDoNotFitStayAsTheyAre) {
  const Format in{0.03, 0, false}, out{0.4, 0, false};
  const Atom x = input({1, 2, 3, 3}, in);
  const Atom w = apply("dequantize", {builder_.constant<uint8_t>({1, 2, 1, 1}, {255, 3})},
                       {{"scale", std::vector<double>{0.1}}, {"zero_point", std::vector<int64_t>{0}}});
  expect_within_a_step(qdq(apply("conv2d", {x, w}), out), 1e-6);
  EXPECT_EQ(operators()["requantize"], 0);
}

// As ONNX Runtime's quantizer writes a channel whose weights are almost 0: a tiny scale, and a bias of 32 bits.
TEST_F(QdqTest, ABiasOf32BitsTakesCoarserWeights) {
  const Format in{0.03, 5, false}, out{0.1, 0, false};
  const Atom x = input({1, 2, 3, 3}, in);
  const double scale = 1e-7, step = static_cast<float>(in.scale) * static_cast<float>(scale);
  const Atom w = apply("dequantize", {builder_.constant<int8_t>({2, 2, 1, 1}, {127, -100, 3, 90})},
                       {{"scale", std::vector<double>{scale}}});
  const Atom b = apply("dequantize", {builder_.constant<int32_t>({2}, {INT32_MAX, INT32_MIN + 1})},
                       {{"scale", std::vector<double>{step}}});
  expect_within_a_step(qdq(apply("bias_add", {apply("conv2d", {x, w}), b}), out), out.scale);
  EXPECT_EQ(operators()["requantize"], 1);
}

TEST_F(QdqTest, ABiasThatOverflowsTheAccumulatorsStaysInFloat) {
  const Format in{1e-4, 0, false}, out{1e-5, 0, false};
  const Atom x = input({1, 2, 3, 3}, in);
  const Atom y = apply("conv2d", {x, weights({2, 2, 1, 1}, 0, 1e-4)});
  const Atom z = apply("bias_add", {y, builder_.constant<float>({2}, {3e5, -3e5})});
  expect_within_a_step(qdq(z, out), 1e-6);
  EXPECT_EQ(operators()["requantize"], 0);
}

}  // namespace
}  // namespace tenon::compiler
