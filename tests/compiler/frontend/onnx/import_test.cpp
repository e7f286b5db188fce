// Models from real exporters: what they mean is what the ONNX project's reference evaluator says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "compiler/frontend/onnx.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "runtime/npy.h"

namespace tenon::compiler {
namespace {

const std::filesystem::path kModels = std::filesystem::path(TENON_SOURCE_DIR) / "tests/models";

runtime::Tensor digits(int64_t count) {
  auto data = runtime::load_npz(kModels / "resnet8_digits_test.npz");
  EXPECT_TRUE(data) << data.error().str();
  runtime::Tensor x(DType::kF32, {count, 1, 28, 28});
  auto from = data->at("x").data<uint8_t>();
  std::ranges::transform(from.first(x.size()), x.data<float>().begin(), [](uint8_t v) { return v / 255.0f; });
  return x;
}

class DigitModel : public testing::TestWithParam<std::string> {};

TEST_P(DigitModel, GivesTheLogitsOfTheReferenceEvaluator) {
  Context context;
  auto module = load_onnx(context, kModels / (GetParam() + ".onnx"));
  ASSERT_TRUE(module) << module.error().str();
  ASSERT_TRUE(verify(context, *module)) << verify(context, *module).error().str();
  auto expected = runtime::load_npy(kModels / (GetParam() + "_logits.npy"));
  ASSERT_TRUE(expected) << expected.error().str();
  auto logits = interpret(context, *module, context.symbol("main"), std::vector{digits(8)});
  ASSERT_TRUE(logits) << logits.error().str();
  auto want = expected->data<float>(), have = logits->at(0).data<float>();
  ASSERT_EQ(want.size(), have.size());
  // A quantized model rounds at each layer: a sum that differs in its last bit may move a value by a step.
  const float tolerance = GetParam().find("int8") != std::string::npos ? 0.5f : 2e-4f;
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(want[i], have[i], tolerance) << i;
}

TEST_P(DigitModel, SurvivesThePrintedForm) {
  Context context;
  auto module = load_onnx(context, kModels / (GetParam() + ".onnx"));
  ASSERT_TRUE(module) << module.error().str();
  const Text text = print(context, *module, {.spans = true});
  auto again = parse(context, text.text, text.side, "again.tn");
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_TRUE(equal(*module, *again));
  EXPECT_THAT(text.text, testing::HasSubstr(GetParam() + ".onnx: Conv '"));
}

INSTANTIATE_TEST_SUITE_P(All, DigitModel, testing::Values("resnet8_digits", "tiny_digits", "resnet8_digits_int8_qdq"));

TEST(Import, SizesAreVariablesUntilTheyAreBound) {
  Context context;
  auto open = load_onnx(context, kModels / "resnet8_digits.onnx");
  ASSERT_TRUE(open);
  EXPECT_EQ(context.str(open->function(context.symbol("main"))->result), "Tensor[(N, 10), f32]");
  auto shapes = parse_shapes("N=4");
  ASSERT_TRUE(shapes);
  auto bound = load_onnx(context, kModels / "resnet8_digits.onnx", *shapes);
  ASSERT_TRUE(bound);
  EXPECT_EQ(context.str(bound->function(context.symbol("main"))->result), "Tensor[(4, 10), f32]");
  auto wrong = load_onnx(context, kModels / "resnet8_digits.onnx", {{"M", 1}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().str(), "resnet8_digits.onnx: error: the model has no unknown size 'M'\n  help: it has N");
}

TEST(Import, ShapesOfTheCommandLineAreChecked) {
  for (const char* text : {"N", "=1", "N=", "N=x", "N=-1", "N=1,T"}) {
    auto shapes = parse_shapes(text);
    ASSERT_FALSE(shapes) << text;
    EXPECT_EQ(shapes.error().fault, Fault::kUsage);
    EXPECT_THAT(shapes.error().what, testing::AnyOf(testing::HasSubstr("is not NAME=SIZE"),
                                                    testing::HasSubstr("must be an integer from 0 to 2147483647")));
  }
  EXPECT_EQ(parse_shapes("N=1,T=64")->at("T"), 64);
}

TEST(Import, AWrongInputIsRefusedWithBothShapes) {
  Context context;
  auto module = load_onnx(context, kModels / "tiny_digits.onnx");
  ASSERT_TRUE(module);
  auto result =
      interpret(context, *module, context.symbol("main"), std::vector{runtime::Tensor(DType::kF32, {1, 3, 28, 28})});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what,
            "@main: input 'input' must be Tensor[(N, 1, 28, 28), f32], found Tensor[(1, 3, 28, 28), f32]");
}

TEST(Import, AMissingFileIsAnError) {
  Context context;
  auto module = load_onnx(context, kModels / "no_such.onnx");
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().str(), testing::HasSubstr("no_such.onnx"));
}

}  // namespace
}  // namespace tenon::compiler
