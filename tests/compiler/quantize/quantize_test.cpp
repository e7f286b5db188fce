#include "compiler/quantize/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>

#include "compiler/ir/builder.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/quantize/chains.h"
#include "compiler/quantize/layers.h"
#include "compiler/quantize/measured.h"
#include "compiler/quantize/parameters.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Shape;
using runtime::Tensor;

class QuantizeTest : public testing::Test {
 protected:
  Tensor random_tensor(const Shape& shape, float scale) {
    Tensor tensor(DType::kF32, shape);
    std::normal_distribution<float> normal(0, scale);
    for (float& value : tensor.data<float>()) value = normal(random_);
    return tensor;
  }
  Atom param(const Shape& shape) {
    shape_ = shape;
    return builder_.param(context_.tensor(shape, DType::kF32), "x");
  }
  Atom apply(const char* op, Atoms args, Attrs attrs = {}) {
    auto atom = builder_.apply(op, std::move(args), std::move(attrs));
    EXPECT_TRUE(atom) << atom.error().str();
    return *atom;
  }
  Atom conv(Atom x, int64_t in, int64_t out, int64_t kernel, float scale = 0.2f) {
    const int64_t pad = kernel / 2;
    const Atom y = apply("conv2d", {x, builder_.constant(random_tensor({out, in, kernel, kernel}, scale))},
                         {{"padding", std::vector<int64_t>{pad, pad, pad, pad}}});
    return apply("bias_add", {y, builder_.constant(random_tensor({out}, 0.3f))});
  }

  // Quantizes what was built, runs both on the same samples, and returns the largest difference over the largest value.
  double relative_error(Atom result, const QuantizeOptions& options = {}) {
    builder_.finish(result);
    module_.globals.emplace(main_, std::move(function_));
    for (int i = 0; i < 8; ++i) samples_.push_back({random_tensor(shape_, 1)});
    const auto ranges = calibrate(context_, module_, main_, samples_);
    EXPECT_TRUE(ranges) << ranges.error().str();
    ranges_ = *ranges;
    auto quantized = quantize(context_, module_, main_, ranges_, options);
    EXPECT_TRUE(quantized) << quantized.error().str();
    quantized_ = std::move(*quantized);
    expect_same_trained(options);
    double most = 0, difference = 0;
    for (const auto& sample : samples_) {
      const auto real = interpret(context_, module_, main_, std::span<const Tensor>(sample));
      const auto integer = interpret(context_, quantized_, main_, std::span<const Tensor>(sample));
      EXPECT_TRUE(integer) << integer.error().str();
      const auto a = (*real)[0].data<float>(), b = (*integer)[0].data<float>();
      for (size_t i = 0; i < a.size(); ++i) {
        most = std::max(most, static_cast<double>(std::abs(a[i])));
        difference = std::max(difference, static_cast<double>(std::abs(a[i] - b[i])));
      }
    }
    return difference / most;
  }
  // The function that is trained has the same results, to the bit.
  void expect_same_trained(QuantizeOptions options) {
    options.trained = true;
    options.means.clear();
    const auto plain =
        quantize(context_, module_, main_, ranges_,
                 {.symmetric = options.symmetric, .weight_limit = options.weight_limit, .keep = options.keep});
    const auto trained = quantize(context_, module_, main_, ranges_, options);
    ASSERT_TRUE(trained) << trained.error().str();
    const Status status = verify(context_, *trained);
    ASSERT_TRUE(status) << status.error().str();
    for (const auto& sample : samples_) {
      const auto wanted = interpret(context_, *plain, main_, std::span<const Tensor>(sample));
      const auto found = interpret(context_, *trained, main_, std::span<const Tensor>(sample));
      ASSERT_TRUE(found) << found.error().str();
      EXPECT_EQ(*found, *wanted);
    }
  }
  std::map<std::string, int> operators() {
    std::map<std::string, int> count;
    for (const Binding& binding : quantized_.function(main_)->body.bindings) {
      if (const auto* apply = std::get_if<Apply>(&binding.value)) ++count[apply->op->name];
    }
    return count;
  }

  std::mt19937 random_{test_seed(7)};
  Context context_;
  Module module_, quantized_;
  Function function_;
  Builder builder_{context_, module_, function_};
  Symbol main_ = context_.symbol("main");
  Shape shape_;
  Samples samples_;
  Ranges ranges_;
};

TEST_F(QuantizeTest, AResidualBlockIsOneRequantizationAConvolution) {
  const Atom x = param({1, 3, 8, 8});
  const Atom stem = apply("relu", {conv(x, 3, 8, 3)});
  const Atom inner = apply("relu", {conv(stem, 8, 8, 3)});
  const Atom block = apply("relu", {apply("add", {conv(inner, 8, 8, 3), stem})});
  const Atom features = apply("flatten", {apply("global_avg_pool", {block})});
  const Atom logits = apply("dense", {features, builder_.constant(random_tensor({5, 8}, 0.3f))});
  EXPECT_LT(relative_error(apply("bias_add", {logits, builder_.constant(random_tensor({5}, 0.3f))})), 0.04);
  const std::map<std::string, int> expected{{"quantize", 1},       {"conv2d", 3},          {"requantize", 4},
                                            {"requantize_add", 1}, {"global_sum_pool", 1}, {"flatten", 1},
                                            {"dense", 1},          {"dequantize", 1}};
  EXPECT_EQ(operators(), expected);
}

TEST_F(QuantizeTest, OfTwoConvolutionsThatFeedAnAdditionTheLaterOneTakesIt) {
  const Atom x = param({1, 4, 6, 6});
  const Atom a = conv(x, 4, 4, 1), b = conv(x, 4, 4, 3);
  EXPECT_LT(relative_error(apply("add", {a, b})), 0.03);
  EXPECT_EQ(operators()["requantize"], 1);
  EXPECT_EQ(operators()["requantize_add"], 1);
}

TEST_F(QuantizeTest, AReluBeforeTheAdditionIsAClampBeforeIt) {
  const Atom x = param({1, 4, 6, 6});
  const Atom a = conv(x, 4, 4, 1);
  const Atom b = apply("clip", {conv(x, 4, 4, 3)}, {{"min", 0.0}, {"max", 1.5}});
  EXPECT_LT(relative_error(apply("add", {a, b})), 0.03);
  EXPECT_EQ(operators()["clip"], 0);
}

TEST_F(QuantizeTest, AnAdditionWithoutAConvolutionIsARequantizationOfItsOwn) {
  const Atom x = param({1, 4, 6, 6});
  const Atom a = conv(x, 4, 4, 1);
  const Atom pooled =
      apply("max_pool2d", {a}, {{"kernel", std::vector<int64_t>{3, 3}}, {"padding", std::vector<int64_t>{1, 1, 1, 1}}});
  EXPECT_LT(relative_error(apply("relu", {apply("add", {pooled, a})})), 0.03);
  EXPECT_EQ(operators()["cast"], 1);
  EXPECT_EQ(operators()["max_pool2d"], 1);
}

// One sum is for a sigmoid alone, which runs in float; the other one for a convolution too.
TEST_F(QuantizeTest, ASumForFloatOperatorsAloneIsAddedInFloat) {
  const Atom x = param({1, 4, 6, 6});
  const Atom first = apply("sigmoid", {apply("add", {conv(x, 4, 4, 3), x})});
  const Atom sum = apply("add", {conv(first, 4, 4, 3), first});
  const Atom gate = apply("sigmoid", {sum});
  EXPECT_LT(relative_error(apply("multiply", {gate, conv(sum, 4, 4, 1)})), 0.04);
  EXPECT_EQ(operators()["add"], 1);
  EXPECT_EQ(operators()["requantize_add"], 1);
}

TEST_F(QuantizeTest, WhatHasNoIntegerFormRunsInFloat) {
  const Atom x = param({1, 4, 6, 6});
  EXPECT_LT(relative_error(conv(apply("sigmoid", {conv(x, 4, 4, 3)}), 4, 4, 3)), 0.04);
  EXPECT_EQ(operators()["sigmoid"], 1);
  EXPECT_EQ(operators()["dequantize"], 2);
  EXPECT_EQ(operators()["quantize"], 2);
}

TEST_F(QuantizeTest, WhatMovesElementsStaysInteger) {
  const Atom x = param({1, 4, 6, 6});
  const Atom part = apply("slice", {conv(x, 4, 8, 3)},
                          {{"begin", std::vector<int64_t>{0, 2, 1, 1}},
                           {"end", std::vector<int64_t>{1, 6, 5, 5}},
                           {"step", std::vector<int64_t>{1, 1, 1, 1}}});
  const Atom larger = apply("depth_to_space", {part}, {{"block", int64_t{2}}});
  EXPECT_LT(relative_error(conv(larger, 1, 4, 3)), 0.04);
  EXPECT_EQ(operators()["slice"], 1);
  EXPECT_EQ(operators()["depth_to_space"], 1);
  EXPECT_EQ(operators()["dequantize"], 1);
  EXPECT_EQ(operators()["quantize"], 1);
}

// Scores and context: their operands have no zero points, also where a ReLU gives one no negative values; softmax is
// computed in float.
TEST_F(QuantizeTest, AProductOfTwoValuesIsOneRequantization) {
  const Atom x = param({1, 4, 6, 6});
  const Atom q = conv(x, 4, 4, 3), k = conv(x, 4, 4, 1), v = apply("relu", {conv(x, 4, 4, 1)});
  const Atom columns = apply("transpose", {k}, {{"axes", std::vector<int64_t>{0, 1, 3, 2}}});
  const Atom context = apply("matmul", {apply("softmax", {apply("matmul", {q, columns})}), v});
  EXPECT_LT(relative_error(conv(context, 4, 4, 3)), 0.06);
  EXPECT_EQ(operators()["matmul"], 2);
  EXPECT_EQ(operators()["requantize"], 6);
  EXPECT_EQ(operators()["quantize"], 2);  // the input, and the shares
  EXPECT_EQ(operators()["dequantize"], 2);
  const Function& function = *quantized_.function(main_);
  for (const Binding& binding : function.body.bindings) {
    const auto* product = std::get_if<Apply>(&binding.value);
    if (!product || !product->op->is(ops::kMatmul)) continue;
    for (const Atom& arg : product->args) {
      EXPECT_EQ(function.type(std::get<VarId>(arg)).tensor()->dtype, DType::kI8);
      for (const Binding& made : function.body.bindings) {
        const auto* value = std::get_if<Apply>(&made.value);
        if (made.var != std::get<VarId>(arg) || !value) continue;
        if (value->op->is(ops::kRequantize)) {
          EXPECT_EQ(int_attr(value->attrs, "zero"), 0);
        } else if (value->op->is(ops::kQuantize)) {
          EXPECT_EQ(ints_attr(value->attrs, "zero_point"), std::vector<int64_t>{0});
        }
      }
    }
  }
}

TEST_F(QuantizeTest, AProductThatIsKeptStaysInFloat) {
  const Atom x = param({1, 4, 6, 6});
  const Atom y = apply("matmul", {conv(x, 4, 4, 3), conv(x, 4, 4, 1)});
  EXPECT_LT(relative_error(y, {.keep = {{main_, std::get<VarId>(y)}}}), 0.05);
  EXPECT_EQ(operators()["requantize"], 2);
}

// The rows of a product may be of unknown number; its terms may not, unless they are bounded.
TEST_F(QuantizeTest, AProductOfUnknownRowsHasItsParametersAlongColumns) {
  const Symbol rows = context_.symbol("T");
  function_.dims.push_back(rows);
  shape_ = {3, 5, 4};
  const Atom x =
      builder_.param(context_.tensor(Dims{context_.dim(3), context_.dim(rows), context_.dim(4)}, DType::kF32), "x");
  const Atom right = apply("matmul", {apply("transpose", {x}, {{"axes", std::vector<int64_t>{0, 2, 1}}}), x});
  EXPECT_LT(relative_error(apply("matmul", {x, right})), 0.05);
  EXPECT_EQ(operators()["matmul"], 2);
  EXPECT_EQ(operators()["requantize"], 1);  // the other one has unknown terms
  for (const Binding& binding : quantized_.function(main_)->body.bindings) {
    const auto* apply = std::get_if<Apply>(&binding.value);
    if (apply && apply->op->is(ops::kRequantize)) {
      EXPECT_EQ(int_attr(apply->attrs, "axis"), 2);
    }
  }
}

TEST_F(QuantizeTest, BoundedTermsOfAProductAreMultipliedAsIntegers) {
  const Symbol rows = context_.symbol("T");
  function_.dims.push_back(rows);
  function_.bounds[rows] = {.lo = 1, .hi = kMostTerms};
  shape_ = {3, 5, 4};
  const Atom x =
      builder_.param(context_.tensor(Dims{context_.dim(3), context_.dim(rows), context_.dim(4)}, DType::kF32), "x");
  const Atom columns = apply("transpose", {x}, {{"axes", std::vector<int64_t>{0, 2, 1}}});
  EXPECT_LT(relative_error(apply("matmul", {columns, x})), 0.05);
  EXPECT_EQ(operators()["requantize"], 1);
}

// The sums of so many products of bytes may be beyond i32: neither the product nor the sum before it are integers.
TEST_F(QuantizeTest, ASumBeforeAProductOfTooManyTermsStaysInFloat) {
  const Atom x = param({1, 2, 1, kMostTerms + 1});
  const Atom a = conv(x, 2, 2, 1), b = apply("transpose", {x}, {{"axes", std::vector<int64_t>{0, 1, 3, 2}}});
  relative_error(apply("matmul", {apply("add", {a, x}), b}));
  EXPECT_EQ(operators()["matmul"], 1);
  EXPECT_EQ(operators()["add"], 1);
  EXPECT_EQ(operators()["requantize_add"], 0);
}

TEST_F(QuantizeTest, AConcatenationHasOneScale) {
  const Atom x = param({1, 4, 6, 6});
  const Atom a = conv(x, 4, 4, 3), b = conv(x, 4, 4, 1, 0.01f);
  EXPECT_LT(relative_error(conv(apply("concat", {a, b}, {{"axis", int64_t{1}}}), 8, 4, 3)), 0.04);
  EXPECT_EQ(operators()["concat"], 1);
  EXPECT_EQ(operators()["cast"], 0);
  EXPECT_EQ(operators()["dequantize"], 1);
}

TEST_F(QuantizeTest, ValuesWithOtherUsersAreRequantizedForAConcatenation) {
  const Atom x = param({1, 4, 6, 6});
  const Atom a = conv(x, 4, 4, 3), b = apply("relu", {conv(x, 4, 4, 1, 0.01f)});
  const Atom joined = conv(apply("concat", {a, b}, {{"axis", int64_t{1}}}), 8, 4, 3);
  EXPECT_LT(relative_error(apply("add", {joined, conv(b, 4, 4, 3)})), 0.04);
  EXPECT_EQ(operators()["concat"], 1);
  EXPECT_EQ(operators()["cast"], 1);
  EXPECT_EQ(operators()["dequantize"], 1);
}

TEST_F(QuantizeTest, SymmetricActivationsHaveNoZeroPoint) {
  const Atom x = param({1, 4, 6, 6});
  EXPECT_LT(relative_error(apply("relu", {conv(conv(x, 4, 4, 3), 4, 4, 3)}), {.symmetric = true}), 0.05);
  for (const Binding& binding : quantized_.function(main_)->body.bindings) {
    const auto* apply = std::get_if<Apply>(&binding.value);
    if (apply && apply->op->is(ops::kRequantize)) {
      EXPECT_EQ(int_attr(apply->attrs, "zero"), 0);
    }
  }
}

// The error of a whole model says little: where terms cancel, it is large beside the result however well each layer is
// rounded. So every layer is held against the real one on the layer's own integer inputs.
class QuantizeLayers : public QuantizeTest, public testing::WithParamInterface<int> {
 protected:
  // One operator in float.
  Tensor real(const char* op, const std::vector<Tensor>& args, Attrs attrs = {}) {
    Module module;
    Function function;
    Builder builder{context_, module, function};
    Atoms atoms;
    for (const Tensor& arg : args) {
      atoms.push_back(atoms.empty() ? builder.param(context_.tensor(arg.shape(), DType::kF32), "a")
                                    : builder.constant(arg));
    }
    builder.finish(*builder.apply(op, std::move(atoms), std::move(attrs)));
    module.globals.emplace(main_, std::move(function));
    return interpret(context_, module, main_, std::span<const Tensor>(args).first(1)).value()[0];
  }
  static Tensor dequantized(const Tensor& integers, const Scale& scale) {
    Tensor result(DType::kF32, integers.shape());
    for (int64_t i = 0; i < integers.size(); ++i) {
      result.data<float>()[i] = static_cast<float>(scale.scale * (integers.data<int8_t>()[i] - scale.zero));
    }
    return result;
  }
  static Tensor rounded(const Tensor& weights, std::span<const float> bias, double input_scale) {
    const auto channels = static_cast<size_t>(weights.shape()[0]);
    const QuantizedWeights q = quantize_weights(weights.data<float>(), channels, bias, input_scale);
    Tensor result(DType::kF32, weights.shape());
    for (size_t i = 0; i < q.values.size(); ++i) {
      result.data<float>()[i] = static_cast<float>(q.values[i] * q.scales[i / (q.values.size() / channels)]);
    }
    return result;
  }
  // Half a step for the one rounding, a hundredth for the multiplier's 16 bits and the bias's own step.
  static void expect_one_rounding(const char* layer, const Tensor& found, const Scale& scale, const Tensor& wanted) {
    ASSERT_EQ(found.size(), wanted.size()) << layer;
    for (int64_t i = 0; i < found.size(); ++i) {
      const double lo = scale.scale * (-128 - scale.zero), hi = scale.scale * (127 - scale.zero);
      const double real = std::clamp<double>(wanted.data<float>()[i], lo, hi);
      const double value = scale.scale * (found.data<int8_t>()[i] - scale.zero);
      ASSERT_LE(std::abs(value - real), 0.51 * scale.scale) << layer << ", element " << i << ": " << value;
    }
  }
};

TEST_P(QuantizeLayers, EachIsRoundedOnce) {
  random_.seed(static_cast<unsigned>(GetParam()));
  const int64_t channels = 1 + GetParam() % 20;
  const Tensor kernel = random_tensor({channels, 20, 3, 2}, 0.2f), offset = random_tensor({channels}, 1);
  const Tensor matrix = random_tensor({1 + GetParam() % 3, channels}, 1);
  const Attrs windows{{"padding", std::vector<int64_t>{2, 1, 2, 0}}, {"dilation", std::vector<int64_t>{1, 2}}};
  const Attrs bounds{{"min", GetParam() % 2 ? -1.0 : 0.0}, {"max", 6.0}};

  const Atom x = apply(
      "pad", {param({1, 20, 11, 7})},
      {{"before", std::vector<int64_t>{0, 0, 1, 1}}, {"after", std::vector<int64_t>{0, 0, 1, 0}}, {"value", 1.5}});
  const Atom acc = apply("conv2d", {x, builder_.constant(kernel)}, windows);
  const Atom map = apply("clip", {apply("bias_add", {acc, builder_.constant(offset)})}, bounds);
  const Atom mean = apply("global_avg_pool", {map});
  const Atom logits = apply("dense", {apply("flatten", {mean}), builder_.constant(matrix)});
  relative_error(logits, {.symmetric = GetParam() % 3 == 0});
  const auto scale = [&](const Atom& atom) {
    return scale_for(ranges_.at(main_)[index(std::get<VarId>(atom))], GetParam() % 3 == 0);
  };

  for (const auto& sample : samples_) {
    std::vector<Tensor> found;  // the int8 values in their order
    const auto note = [&](const Function&, VarId, const RunValue& value) {
      if (value.tensor().dtype() == DType::kI8) found.push_back(value.tensor());
    };
    ASSERT_TRUE(interpret(context_, quantized_, main_, std::span<const Tensor>(sample), note));
    ASSERT_EQ(found.size(), 5u);  // quantize, convolution, mean, flatten, dense
    const Tensor sum = real(
        "conv2d", {dequantized(found[0], scale(x)), rounded(kernel, offset.data<float>(), scale(x).scale)}, windows);
    expect_one_rounding("conv2d", found[1], scale(map), real("clip", {real("bias_add", {sum, offset})}, bounds));
    expect_one_rounding("mean", found[2], scale(mean), real("global_avg_pool", {dequantized(found[1], scale(map))}));
    expect_one_rounding("dense", found[4], scale(logits),
                        real("dense", {dequantized(found[3], scale(mean)), rounded(matrix, {}, scale(mean).scale)}));
  }
}
INSTANTIATE_TEST_SUITE_P(Random, QuantizeLayers, testing::Range(0, 24));

TEST_F(QuantizeTest, PercentileCutsOutliers) {
  const Atom x = param({1, 1, 100, 100});
  builder_.finish(apply("relu", {x}));
  module_.globals.emplace(main_, std::move(function_));
  Tensor sample = random_tensor(shape_, 1);
  sample.data<float>()[17] = 1000;
  const auto all = calibrate(context_, module_, main_, {{sample}});
  const auto most =
      calibrate(context_, module_, main_, {{sample}}, {.method = Calibration::kPercentile, .percentile = 0.999});
  ASSERT_TRUE(all && most);
  EXPECT_EQ(all->at(main_)[0].hi, 1000);
  EXPECT_LT(most->at(main_)[0].hi, 10);
}

TEST_F(QuantizeTest, MeasuredCalibrationTakesTheMethodWithTheLeastError) {
  const Atom x = param({1, 1, 100, 100});
  const Atom unit = builder_.constant(Tensor::of<float>({1, 1, 1, 1}, std::array{1.0f}));
  builder_.finish(apply("sigmoid", {apply("conv2d", {x, unit})}));
  module_.globals.emplace(main_, std::move(function_));
  Tensor sample = random_tensor(shape_, 1);
  sample.data<float>()[17] = 1000;
  const auto found = calibrate_by_error(context_, module_, main_, {{sample}}, {.method = Calibration::kMeasured});
  ASSERT_TRUE(found) << found.error().str();
  ASSERT_EQ(found->tried.size(), 6u);
  const auto least = std::ranges::min_element(found->tried, {}, &MeasuredWay::error);
  EXPECT_EQ(describe(found->way), describe(*least));
  EXPECT_NE(report(*found).find(describe(*least)), std::string::npos);
  EXPECT_NE(found->way.method, Calibration::kMinMax);  // whose steps are 1000 / 255
  EXPECT_LT(found->ranges.at(main_)[0].hi, 1000);
  const auto given = calibrate_by_error(context_, module_, main_, {{sample}});
  ASSERT_TRUE(given) << given.error().str();
  EXPECT_EQ(given->ranges.at(main_)[0].hi, 1000);
  EXPECT_TRUE(given->tried.empty() && report(*given).empty());
}

// Of two convolutions, each with its bias and its ReLU, the first one stays in float.
TEST_F(QuantizeTest, LayersThatAreKeptStayInFloat) {
  const auto named = [&](const char* node) {
    builder_.at(module_.add_span({.file = "m.onnx", .node = node, .op = "Conv", .line = 0, .column = 0}));
  };
  named("/in");
  const Atom x = param({1, 4, 6, 6});
  named("/first");
  const Atom first = apply("relu", {conv(x, 4, 4, 3)});
  named("/second");
  const Atom second = apply("relu", {conv(first, 4, 4, 3)});
  named("/out");
  builder_.finish(apply("softmax", {second}, {{"axis", int64_t{1}}}));
  module_.globals.emplace(main_, std::move(function_));
  const std::vector<std::string> names{"/first", "/out"};  // the softmax is in float anyway
  const auto keep = layers_named(context_, module_, main_, names);
  ASSERT_TRUE(keep) << keep.error().str();
  EXPECT_EQ(keep->size(), 1u);
  const auto ranges = calibrate(context_, module_, main_, {{random_tensor(shape_, 1)}});
  ASSERT_TRUE(ranges) << ranges.error().str();
  quantized_ = quantize(context_, module_, main_, *ranges, {.keep = *keep}).value();
  EXPECT_EQ(operators()["bias_add"], 1);
  EXPECT_EQ(operators()["relu"], 1);
  EXPECT_EQ(operators()["quantize"], 1);
  EXPECT_EQ(operators()["requantize"], 1);

  const std::vector<std::string> wrong{"/secnod"}, other{"LayerNormalization_17"};
  const auto unknown = layers_named(context_, module_, main_, wrong),
             far = layers_named(context_, module_, main_, other);
  ASSERT_FALSE(unknown || far);
  EXPECT_NE(unknown.error().str().find("no operator has the name '/secnod'"), std::string::npos);
  EXPECT_NE(unknown.error().str().find("did you mean /second?"), std::string::npos) << unknown.error().str();
  EXPECT_NE(far.error().str().find("--explain lists the model's nodes"), std::string::npos) << far.error().str();
}

TEST_F(QuantizeTest, ANanOfAWeightIsNotBlamedOnTheData) {
  const Atom x = param({1, 4});
  Tensor weight(DType::kF32, {1, 4});
  weight.data<float>()[2] = NAN;
  builder_.finish(apply("add", {x, builder_.constant(weight)}));
  module_.globals.emplace(main_, std::move(function_));
  const auto result = calibrate(context_, module_, main_, {{Tensor(DType::kF32, {1, 4})}});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("is nan during calibration"), std::string::npos) << result.error().what;
  EXPECT_EQ(result.error().help, "a constant of the model has NaN: its weights are damaged");
}

TEST_F(QuantizeTest, BadCalibrationIsAnError) {
  const Atom x = param({1, 4});
  builder_.finish(apply("relu", {x}));
  module_.globals.emplace(main_, std::move(function_));
  const auto message = [](const auto& result) { return result ? std::string("accepted") : result.error().str(); };
  EXPECT_NE(message(calibrate(context_, module_, main_, {})).find("at least one sample"), std::string::npos);
  Tensor sample(DType::kF32, {1, 4});
  sample.data<float>()[0] = NAN;
  EXPECT_NE(message(calibrate(context_, module_, main_, {{sample}})).find("a value of %x is nan during calibration"),
            std::string::npos);
  EXPECT_NE(message(calibrate(context_, module_, main_, {{Tensor(DType::kF32, {1, 5})}})).find("(1, 5)"),
            std::string::npos);
  EXPECT_NE(message(calibrate(context_, module_, main_, {{sample}}, {.percentile = 2})).find("percentile is 2"),
            std::string::npos);
  EXPECT_NE(message(calibrate(context_, module_, main_, {{sample}}, {.method = Calibration::kMeasured}))
                .find("the method is not chosen yet"),
            std::string::npos);
  EXPECT_NE(message(parse_calibration("guess")).find("unknown calibration \"guess\""), std::string::npos);
  EXPECT_NE(message(quantize(context_, module_, main_, {})).find("calibrated on another function"), std::string::npos);
}

// Layers of arms, recursive functions and closures become integer ones, each in its own block.
class QuantizeBlocks : public QuantizeTest {
 protected:
  // The quantized text differs from the float one by less than `most` of the largest result.
  void expect_close(const std::string& text, double most) {
    auto module = parse(context_, R"(#[version = "1"]
      const $w: Tensor[(4, 4), f32] = [0.3, -0.2, 0.1, 0.4, -0.1, 0.5, 0.2, -0.3, 0.2, 0.2, -0.4, 0.1, 0.1, -0.1, 0.3, 1];
      const $b: Tensor[(4,), f32] = [0.1, -0.2, 0.3, 0];
      type List[A] { Cons(A, List[A]), Nil }
    )" + text);
    ASSERT_TRUE(module) << module.error().str();
    for (int i = 0; i < 8; ++i)
      samples_.push_back({random_tensor({1, 4}, 1), Tensor::of<int64_t>({}, std::array{int64_t{i}})});
    const auto ranges = calibrate(context_, *module, main_, samples_);
    ASSERT_TRUE(ranges) << ranges.error().str();
    auto quantized = quantize(context_, *module, main_, *ranges);
    ASSERT_TRUE(quantized) << quantized.error().str();
    const auto legal = verify(context_, *quantized);
    ASSERT_TRUE(legal) << legal.error().str() << print(context_, *quantized).text;
    quantized_ = std::move(*quantized);
    double largest = 0, difference = 0;
    for (const auto& sample : samples_) {
      const auto real = interpret(context_, *module, main_, std::span<const Tensor>(sample));
      const auto integer = interpret(context_, quantized_, main_, std::span<const Tensor>(sample));
      ASSERT_TRUE(integer) << integer.error().str();
      const auto a = (*real)[0].data<float>(), b = (*integer)[0].data<float>();
      for (size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, static_cast<double>(std::abs(a[i])));
        difference = std::max(difference, static_cast<double>(std::abs(a[i] - b[i])));
      }
    }
    EXPECT_LT(difference, most * largest);
    for_each_function(quantized_, [&](Symbol, const Function& function) {
      for_each_binding(function.body, [&](const Binding& binding) {
        if (const auto* apply = std::get_if<Apply>(&binding.value)) ++count_[apply->op->name];
      });
    });
  }
  std::map<std::string, int> count_;  // of all functions
};

constexpr const char* kMain = "def @main(%x: Tensor[(1, 4), f32], %n: Tensor[(), i64]) -> Tensor[(1, 4), f32] ";

// The integers of a value are those of both arms that use them, and the value outside is real.
TEST_F(QuantizeBlocks, ArmsUseTheIntegersOfValuesOutside) {
  expect_close(std::string(kMain) + R"({
    let %h = relu(bias_add(dense(%x, $w), $b, axis=1));
    let %y = if (%n < 4i64) { dense(%h, $w) } else { if (%n < 6i64) { dense(dense(%h, $w), $w) } else { %h } };
    %y + %h
  })",
               0.06);
  EXPECT_EQ(count_["quantize"], 1);  // of %x
  EXPECT_EQ(count_["requantize"], 4);
  EXPECT_EQ(count_["dense"], 4);
}

TEST_F(QuantizeBlocks, ARecursiveFunctionOverAList) {
  expect_close(R"(
    def @fold[A](%step: fn(A, A) -> A, %start: A, %xs: List[A]) -> A {
      match %xs { Nil => %start, Cons(%x, %rest) => @fold(%step, %step(%start, %x), %rest) }
    }
    def @list(%n: Tensor[(), i64], %x: Tensor[(1, 4), f32]) -> List[Tensor[(1, 4), f32]] {
      if (%n > 0i64) { Cons(%x, @list(%n - 1i64, %x)) } else { Nil }
    }
  )" + std::string(kMain) +
                   R"({
    let %step = fn(%a: Tensor[(1, 4), f32], %b: Tensor[(1, 4), f32]) { tanh(dense(%a, $w) + dense(%b, $w)) };
    @fold(%step, %x, @list(%n, %x))
  })",
               0.08);
  EXPECT_EQ(count_["dense"], 2);
  EXPECT_EQ(count_["quantize"], 2);
  EXPECT_EQ(count_["requantize"] + count_["requantize_add"], 2);
}

TEST_F(QuantizeBlocks, CodeThatNoSampleReachedStaysInFloat) {
  expect_close(std::string(kMain) + "{ if (%n < 100i64) { dense(%x, $w) } else { dense(relu(%x), $w) } }", 0.06);
  EXPECT_EQ(count_["dense"], 2);
  EXPECT_EQ(count_["requantize"], 1);
}

TEST_F(QuantizeBlocks, ReferencesAndCasts) {
  expect_close(std::string(kMain) + R"({
    let %r = ref(dense(%x, $w));
    let %h = match_cast(read(%r), Tensor[(1, 4), f32]);
    write(%r, dense(%h, $w));
    read(%r)
  })",
               0.06);
  EXPECT_EQ(count_["requantize"], 2);
}

}  // namespace
}  // namespace tenon::compiler
