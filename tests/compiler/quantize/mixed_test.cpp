// Mixed precision: the effect of single layers, and which of them stay in float.
#include "compiler/quantize/mixed.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "compiler/ir/builder.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/quantize/results.h"

namespace tenon::compiler {
namespace {

using runtime::Shape;
using runtime::Tensor;

class MixedTest : public testing::Test {
 protected:
  Tensor random_tensor(const Shape& shape, float scale) {
    Tensor tensor(DType::kF32, shape);
    std::normal_distribution<float> normal(0, scale);
    for (float& value : tensor.data<float>()) value = normal(random_);
    return tensor;
  }
  Atom apply(const char* op, Atoms args, const char* name = "", Attrs attrs = {}) {
    auto atom = builder_.apply(op, std::move(args), std::move(attrs), name);
    EXPECT_TRUE(atom) << atom.error().str();
    return *atom;
  }
  Atom conv(Atom x, int64_t in, int64_t out, const char* name) {
    const Atom y = apply("conv2d", {x, builder_.constant(random_tensor({out, in, 3, 3}, 0.3f))}, name,
                         {{"padding", std::vector<int64_t>{1, 1, 1, 1}}});
    return apply("relu", {apply("bias_add", {y, builder_.constant(random_tensor({out}, 0.3f))}, name)}, name);
  }
  // Two convolutions with a residual around the second one, their sum, the mean and the classes.
  void build() {
    const Atom x = builder_.param(context_.tensor(Shape{1, 3, 8, 8}, DType::kF32), "x");
    const Atom stem = conv(x, 3, 8, "stem");
    const Atom pooled = apply("max_pool2d", {conv(stem, 8, 8, "second")}, "pooled",
                              {{"kernel", std::vector<int64_t>{3, 3}}, {"padding", std::vector<int64_t>{1, 1, 1, 1}}});
    const Atom mean = apply("global_avg_pool", {apply("add", {pooled, stem}, "sum")}, "mean");
    const Atom flat = apply("flatten", {mean}, "flat");
    builder_.finish(apply("dense", {flat, builder_.constant(random_tensor({5, 8}, 0.3f))}, "classes"));
    module_.globals.emplace(main_, std::move(function_));
    for (int i = 0; i < 4; ++i) samples_.push_back({random_tensor({1, 3, 8, 8}, 1)});
  }
  Ranges ranges() {
    auto found = calibrate(context_, module_, main_, samples_);
    EXPECT_TRUE(found) << found.error().str();
    return std::move(*found);
  }
  Results results(const Module& module) {
    auto found = run_samples(interpreter(context_), module, main_, samples_, samples_.size());
    EXPECT_TRUE(found) << found.error().str();
    return std::move(*found);
  }

  std::mt19937 random_{11};  // fixed: which layers hurt, and how much, depends on the weights
  Context context_;
  Module module_;
  Function function_;
  Builder builder_{context_, module_, function_};
  Symbol main_ = context_.symbol("main");
  Samples samples_;
};

TEST_F(MixedTest, SensitivityIsTheErrorWithOneLayerQuantized) {
  build();
  const Ranges ranges = this->ranges();
  const auto found = sensitivities(context_, module_, main_, samples_, ranges, {}, {});
  ASSERT_TRUE(found) << found.error().str();
  const std::vector<Layer> layers = find_layers(context_, module_, main_);
  ASSERT_EQ(layers.size(), 5u);
  ASSERT_EQ(found->size(), 5u);
  for (size_t i = 0; i < found->size(); ++i) {
    const Sensitivity& layer = (*found)[i];
    EXPECT_LE(layer.error, (*found)[i == 0 ? 0 : i - 1].error);
    // A sum alone has no integer operands, so it is float in such a module.
    if (layer.layer.name == "sum" || layer.layer.name == "mean") continue;
    QuantizeOptions others;
    for (const Layer& other : layers) {
      if (other.root != layer.layer.root) others.keep.emplace(main_, other.root);
    }
    const auto alone = quantize(context_, module_, main_, ranges, others);
    ASSERT_TRUE(alone) << alone.error().str();
    const double expected = relative_error(results(*alone), results(module_));
    EXPECT_GT(expected, 0) << layer.layer.name;
    EXPECT_NEAR(layer.error, expected, 1e-3 * expected) << layer.layer.name;
  }
}

TEST_F(MixedTest, TheLayerThatHurtsStaysInFloat) {
  build();
  samples_[3][0].data<float>()[5] = 3000;  // the steps of the input and of the first results become coarse
  const Ranges coarse = ranges();
  samples_.pop_back();
  const auto found = choose_precision(context_, module_, main_, samples_, coarse, {.least = 0.9}, {}, {});
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_LT(found->quantized, 0.9);
  EXPECT_GE(found->reached, 0.9);
  ASSERT_FALSE(found->kept.empty());
  EXPECT_LT(found->kept.size(), 5u);
  EXPECT_EQ(found->kept.size(), found->keep.size());
  const auto mixed = quantize(context_, module_, main_, coarse, {.keep = found->keep});
  ASSERT_TRUE(mixed && verify(context_, *mixed));
  EXPECT_EQ(mean_cosine(results(*mixed), results(module_)), found->reached);
  const std::string text = report(*found, {.least = 0.9}, samples_.size());
  EXPECT_NE(text.find("required 0.9, with"), std::string::npos) << text;
  EXPECT_NE(text.find(found->kept[0].layer.name + ": quantized alone"), std::string::npos) << text;

  const auto met = choose_precision(context_, module_, main_, samples_, ranges(), {.least = 0.5}, {}, {});
  ASSERT_TRUE(met) << met.error().str();
  EXPECT_TRUE(met->kept.empty());
  EXPECT_NE(report(*met, {.least = 0.5}, 3).find("required: 0.5"), std::string::npos);

  const auto never = choose_precision(context_, module_, main_, samples_, coarse, {.least = 1}, {}, {});
  ASSERT_FALSE(never);
  EXPECT_NE(never.error().str().find("an accuracy of 1 is not reached: of 5 layers, quantizing one gives a cosine"),
            std::string::npos)
      << never.error().str();
}

TEST_F(MixedTest, AgreementsOfResults) {
  const auto row = [](float a, float b, float c) { return Tensor::of<float>({1, 3}, std::array{a, b, c}); };
  const Results expected{{row(1, 2, 0)}, {row(0, 0, 3)}};
  EXPECT_DOUBLE_EQ(mean_cosine(expected, expected), 1);
  EXPECT_DOUBLE_EQ(mean_cosine({{row(2, 4, 0)}, {row(3, 0, 0)}}, expected), 0.5);
  EXPECT_DOUBLE_EQ(mean_cosine({{row(0, 0, 0)}}, {{row(0, 0, 0)}}), 1);
  EXPECT_DOUBLE_EQ(top1_agreement({{row(2, 1, 0)}, {row(0, 0, 1)}}, expected), 0.5);
  EXPECT_DOUBLE_EQ(relative_error({{row(1, 2, 0)}, {row(0, 0, 4)}}, expected), 1.0 / 14);
}

TEST_F(MixedTest, BadTargetsAreErrors) {
  build();
  const Ranges ranges = this->ranges();
  const auto above = choose_precision(context_, module_, main_, samples_, ranges, {.least = 1.5}, {}, {});
  ASSERT_FALSE(above);
  EXPECT_NE(above.error().str().find("the accuracy is 1.5, must be above 0 and at most 1"), std::string::npos);
  const auto agreement = parse_agreement("l2");
  ASSERT_FALSE(agreement);
  EXPECT_NE(agreement.error().str().find("unknown agreement \"l2\""), std::string::npos);

  const auto branch = parse(context_, R"(#[version = "1"]
    def @main(%x: Tensor[(1, 2), f32], %c: Tensor[(), bool]) -> Tensor[(1, 2), f32] { if (%c) { relu(%x) } else { %x } })");
  ASSERT_TRUE(branch) << branch.error().str();
  const auto flow = choose_precision(context_, *branch, main_, {}, {}, {.least = 0.9}, {}, {});
  ASSERT_FALSE(flow);
  EXPECT_NE(flow.error().str().find("choose the layers that stay in float by --keep"), std::string::npos);
}

}  // namespace
}  // namespace tenon::compiler
