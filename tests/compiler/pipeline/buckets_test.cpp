// Models of unknown sizes on an accelerator whose programs have fixed sizes: each run takes the program of its sizes,
// one of more rows, or the CPU, and the results are those of the quantized model bit for bit.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/partition/buckets.h"
#include "compiler/pipeline/compare.h"
#include "compiler/pipeline/pipeline.h"
#include "driver/accelerator.h"
#include "runtime/vm/session.h"
#include "support/file.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;
using BucketShapes = std::vector<std::map<std::string, int64_t>>;

// The elements of a constant in the text form: `count` numbers between -1 and 1.
std::string constants(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}{:.3f}", i == 0 ? "" : ", ", std::sin(i * 1.7));
  return text;
}

class Buckets : public testing::Test {
 protected:
  void SetUp() override {
    auto accelerator = driver::open("behavioral:tiny");
    ASSERT_TRUE(accelerator) << accelerator.error().str();
    accelerator_ = std::move(*accelerator);
  }
  void load(const std::string& file) {
    auto model = load_model(file, {});
    ASSERT_TRUE(model) << model.error().str();
    model_.emplace(std::move(*model));
  }
  // A model in the text form.
  void parse(const std::string& text) {
    const std::string file = testing::TempDir() + "buckets_model.tn";
    ASSERT_TRUE(write_file(file, "#[version = \"1\"]\n" + text));
    load(file);
  }
  Tensor values(runtime::Shape shape) {
    Tensor tensor(DType::kF32, std::move(shape));
    std::uniform_real_distribution<float> unit(-1, 1);
    for (float& value : tensor.data<float>()) value = unit(random_);
    return tensor;
  }
  // Quantized by samples of the shape, unless it is empty.
  Expected<Compilation> try_compile(const runtime::Shape& calibration_shape, const BucketShapes& buckets) {
    calibration_.clear();
    for (int i = 0; i < 4 && !calibration_shape.empty(); ++i) calibration_.push_back({values(calibration_shape)});
    return compile(*model_, {.accelerators = {{accelerator_->info().config}},
                             .buckets = buckets,

                             .calibration = calibration_.empty() ? nullptr : &calibration_});
  }
  void compile_model(const runtime::Shape& calibration_shape, const BucketShapes& buckets) {
    auto compiled = try_compile(calibration_shape, buckets);
    ASSERT_TRUE(compiled) << compiled.error().str();
    compiled_.emplace(std::move(*compiled));
    auto session =
        runtime::Session::create(compiled_->executable, {.accelerators = {accelerator_.get()}, .hook = hook()});
    ASSERT_TRUE(session) << session.error().str();
    session_.emplace(std::move(*session));
  }
  runtime::Hook hook() {
    comparison_.emplace(*model_, *compiled_);
    return comparison_->hook();
  }
  // The number of layers that the accelerator computed for this input, whose result is the quantized model's.
  int64_t layers_on_accelerator(const runtime::Shape& shape) {
    const Tensor input = values(shape);
    const int64_t before = comparison_->layers();
    const auto expected = interpret(*model_->context, compiled_->quantized, model_->entry, std::span(&input, 1));
    EXPECT_TRUE(expected) << expected.error().str();
    const auto found = session_->run(std::span(&input, 1));
    EXPECT_TRUE(found) << found.error().str();
    if (expected && found) {
      EXPECT_EQ(*expected, *found);
    }
    return comparison_->layers() - before;
  }

  std::mt19937 random_{test_seed(17)};
  std::unique_ptr<driver::Accelerator> accelerator_;
  std::optional<Model> model_;
  std::optional<Compilation> compiled_;
  Samples calibration_;
  std::optional<Comparison> comparison_;
  std::optional<runtime::Session> session_;
};

TEST_F(Buckets, FewerImagesThanAProgramHasArePaddedAndMoreAreTheCpus) {
  load(TENON_SOURCE_DIR "/tests/models/tiny_digits.onnx");
  compile_model({1, 1, 28, 28}, {{{"N", 3}}, {{"N", 1}}});
  EXPECT_EQ(compiled_->executable.programs.size(), 2u);
  EXPECT_EQ(compiled_->notes,
            "@accel_sizes_0: 13 operators of unknown sizes, on accel up to N = 1 or N = 3; others on the CPU\n");
  EXPECT_TRUE(compiled_->interpreted.empty()) << "the padding is added and cut off by native kernels";
  for (const int64_t images : {1, 2, 3, 0}) EXPECT_EQ(layers_on_accelerator({images, 1, 28, 28}), 5) << images;
  EXPECT_EQ(layers_on_accelerator({4, 1, 28, 28}), 0);
}

// The height and width of maps are no rows: a program computes its own size alone.
TEST_F(Buckets, MapsOfAProgramsSizeAreTheAcceleratorsOthersTheCpus) {
  parse("const $w: Tensor[(4, 3, 3, 3), f32] = [" + constants(108) +
        "];\n"
        "def @main[N, H, W](%x: Tensor[(N, 3, H, W), f32]) -> Tensor[(N, 4, H, W), f32] {\n"
        "  relu(conv2d(%x, $w, padding=[1, 1, 1, 1]))\n}\n");
  compile_model({1, 3, 8, 8}, {{{"N", 1}, {"H", 8}, {"W", 8}}, {{"N", 1}, {"H", 6}, {"W", 10}}});
  EXPECT_EQ(compiled_->executable.programs.size(), 2u);
  EXPECT_EQ(layers_on_accelerator({1, 3, 8, 8}), 1);
  EXPECT_EQ(layers_on_accelerator({1, 3, 6, 10}), 1);
  for (const runtime::Shape& shape : {runtime::Shape{1, 3, 10, 6}, {2, 3, 8, 8}, {1, 3, 7, 8}})
    EXPECT_EQ(layers_on_accelerator(shape), 0);
}

// Products of a batch of sequences are products of rows, however many of them a sequence has.
TEST_F(Buckets, RowsOfSequencesAreCounted) {
  parse("const $w: Tensor[(6, 5), f32] = [" + constants(30) +
        "];\n"
        "const $v: Tensor[(5, 6), f32] = [" +
        constants(30) +
        "];\n"
        "def @main[N, T](%x: Tensor[(N, T, 6), f32]) -> Tensor[(N, T, 6), f32] {\n"
        "  matmul(relu(matmul(%x, $w)), $v)\n}\n");
  compile_model({1, 4, 6}, {{{"N", 1}, {"T", 8}}, {{"N", 1}, {"T", 2}}, {{"N", 4}, {"T", 2}}});
  EXPECT_EQ(compiled_->notes.find("N * T = 2 or N * T = 8"), compiled_->notes.find("N * T")) << compiled_->notes;
  for (const runtime::Shape& shape : {runtime::Shape{1, 8, 6}, {2, 4, 6}, {8, 1, 6}, {1, 2, 6}, {1, 5, 6}})
    EXPECT_GE(layers_on_accelerator(shape), 2);
  EXPECT_EQ(layers_on_accelerator({3, 3, 6}), 0);
}

// Bytes between dequantize and quantize, as ONNX's quantizers write them.
TEST_F(Buckets, AModelThatComesQuantizedHasThemToo) {
  std::string bytes;
  for (int i = 0; i < 30; ++i) bytes += fmt::format("{}{}", i == 0 ? "" : ", ", i * 37 % 255 - 127);
  const std::string activation = "scale=[0.02], zero_point=[120]";
  parse("const $w: Tensor[(6, 5), i8] = [" + bytes + "];\n" +
        "def @main[N, T](%x: Tensor[(N, T, 6), f32]) -> Tensor[(N, T, 5), f32] {\n  let %a = dequantize(quantize(%x, " +
        activation + ", dtype=\"u8\"), " + activation + ");\n  let %y = matmul(%a, dequantize($w, scale=[0.01]));\n" +
        "  dequantize(quantize(%y, " + activation + ", dtype=\"u8\"), " + activation + ")\n}\n");
  compile_model({}, {{{"N", 1}, {"T", 4}}, {{"N", 2}, {"T", 4}}});
  EXPECT_EQ(compiled_->executable.programs.size(), 2u) << compiled_->notes;
  for (const runtime::Shape& shape : {runtime::Shape{1, 4, 6}, {2, 4, 6}, {3, 2, 6}, {1, 1, 6}})
    EXPECT_EQ(layers_on_accelerator(shape), 1);
  EXPECT_EQ(layers_on_accelerator({3, 3, 6}), 0);
}

TEST_F(Buckets, ABucketThatLeavesASizeOpenHasNoProgram) {
  parse("const $w: Tensor[(4, 3, 1, 1), f32] = [" + constants(12) +
        "];\n"
        "def @main[N, W](%x: Tensor[(N, 3, 1, W), f32]) -> Tensor[(N, 4, 1, W), f32] { conv2d(%x, $w) }\n");
  compile_model({1, 3, 1, 8}, {{{"N", 1}}, {{"N", 2}}});
  EXPECT_EQ(compiled_->executable.programs.size(), 0u);
  EXPECT_EQ(compiled_->notes, "no operator of unknown sizes has a program for given ones\n");
  EXPECT_EQ(layers_on_accelerator({1, 3, 1, 8}), 0);
}

// Rows beyond the largest program are halved: each is copied as often as the rows are halved, and calls are as deep.
TEST_F(Buckets, ManyJoinedRowsAreCopiedAsOftenAsTheyAreHalved) {
  parse("const $w: Tensor[(3, 5), f32] = [" + constants(15) +
        "];\ndef @main[t](%x: Tensor[(t, 3), f32]) -> Tensor[(t, 5), f32] { relu(matmul(%x, $w)) }\n");
  for (int i = 0; i < 4; ++i) calibration_.push_back({values({8, 3})});
  const auto compiled =
      compile(*model_, {.accelerators = {{accelerator_->info().config}}, .calibration = &calibration_, .batch = {{}}});
  ASSERT_TRUE(compiled) << compiled.error().str();
  int64_t copied = 0;  // rows of the results of kernels that cut and join
  auto session = runtime::Session::create(
      compiled->executable, {.accelerators = {accelerator_.get()}, .hook = [&](const runtime::Step& step) {
                               if (step.function->name.contains("_rows")) {
                                 for (const Tensor& result : step.results) copied += result.shape().at(0);
                               }
                               return Status();
                             }});
  ASSERT_TRUE(session) << session.error().str();
  const std::vector<Tensor> inputs{values({20'000, 3}), values({3, 3})};
  const std::vector<std::vector<runtime::Value>> instances{{inputs[0]}, {inputs[1]}};
  const auto found = session->run_many(instances);
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_TRUE(found[i]) << found[i].error().str();
    const auto expected = interpret(*model_->context, compiled->quantized, model_->entry, std::span(&inputs[i], 1));
    ASSERT_TRUE(expected) << expected.error().str();
    EXPECT_EQ(found[i]->at(0).tensor(), (*expected)[0]) << i;
  }
  EXPECT_EQ(session->profile().launches.size(), 41u);  // 39 of 512 rows, one of 32, one of 16
  EXPECT_GT(copied, 20'003);
  EXPECT_LT(copied, 20 * 20'003) << "six halvings, with two copies each";
}

// As the importer writes a size "N.0" of a file.
TEST_F(Buckets, SizesMayHaveTheirNamesInTheFile) {
  parse("def @main[N_0 in 1..4](%x: Tensor[(N_0, 3), f32]) -> Tensor[(N_0, 3), f32] { relu(%x) }\n");
  const auto beyond = try_compile({1, 3}, {{{"N.0", 1}}, {{"N.0", 5}}});
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().what, "the size N.0 of @main must be in 1..4, found 5");
  const auto within = try_compile({1, 3}, {{{"N.0", 1}}, {{"N_0", 2}}});
  EXPECT_TRUE(within) << within.error().str();
}

TEST_F(Buckets, SizesThatTheModelDoesNotHaveAreErrors) {
  load(TENON_SOURCE_DIR "/tests/models/tiny_digits.onnx");
  const auto unknown = try_compile({1, 1, 28, 28}, {{{"N", 1}}, {{"M", 2}}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().what, "@main has no unknown size 'M'");
  parse("def @main[N in 1..4](%x: Tensor[(N, 3), f32]) -> Tensor[(N, 3), f32] { relu(%x) }\n");
  const auto beyond = try_compile({1, 3}, {{{"N", 1}}, {{"N", 5}}});
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().what, "the size N of @main must be in 1..4, found 5");
}

}  // namespace
}  // namespace tenon::compiler
