// Control flow around the accelerator: a recursive model is calibrated and quantized, its layers are launches of the
// accelerator, and its recursion runs in the virtual machine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "compiler/ir/interpreter.h"
#include "compiler/pipeline/compare.h"
#include "compiler/pipeline/layer_errors.h"
#include "compiler/pipeline/pipeline.h"
#include "driver/accelerator.h"
#include "runtime/run/results.h"
#include "runtime/vm/session.h"
#include "support/file.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

// A random binary tree of `words` leaves in postfix order: the number of a word, or -1 to join the last two trees.
Tensor random_sentence(std::mt19937& random, int words) {
  std::vector<int64_t> codes;
  for (int trees = 0; words > 0 || trees > 1;) {
    const bool join = trees > 1 && (words == 0 || random() % 2 == 0);
    codes.push_back(join ? -1 : static_cast<int64_t>(random() % 20));
    trees += join ? -1 : 1;
    words -= join ? 0 : 1;
  }
  return Tensor::of<int64_t>({static_cast<int64_t>(codes.size()), 1}, codes);
}

class TreeLstm : public testing::Test {
 protected:
  void SetUp() override {
    auto model = load_model(TENON_SOURCE_DIR "/tests/examples/tree_lstm.tn", {});
    ASSERT_TRUE(model) << model.error().str();
    model_.emplace(std::move(*model));
    auto accelerator = driver::open("behavioral:tiny");
    ASSERT_TRUE(accelerator) << accelerator.error().str();
    accelerator_ = std::move(*accelerator);
    for (int words = 1; words <= 16; ++words) calibration_.push_back({random_sentence(random_, words)});
  }
  void compile_model(bool native) {
    auto compiled = compile(
        *model_,
        {.accelerators = {{accelerator_->info().config}}, .calibration = &calibration_, .cpu = {.native = native}});
    ASSERT_TRUE(compiled) << compiled.error().str();
    compiled_.emplace(std::move(*compiled));
  }
  std::vector<float> floats(const Expected<std::vector<Tensor>>& results) {
    EXPECT_TRUE(results) << results.error().str();
    if (!results) return {};
    const auto values = (*results)[0].data<float>();
    return {values.begin(), values.end()};
  }

  std::mt19937 random_{test_seed(11)};
  std::optional<Model> model_;
  std::unique_ptr<driver::Accelerator> accelerator_;
  Samples calibration_;
  std::optional<Compilation> compiled_;
};

TEST_F(TreeLstm, ItsCellsRunOnTheAcceleratorBitForBit) {
  compile_model(false);
  for (const Placement& placement : compiled_->placements) {
    if (placement.op == "dense" || placement.op.starts_with("requantize")) {
      EXPECT_EQ(placement.target, "accel") << placement.op << ": " << placement.reason;
    }
  }
  EXPECT_GE(compiled_->executable.programs.size(), 3u);  // of a leaf, of a node, of the classes
  Comparison comparison(*model_, *compiled_);
  auto session = runtime::Session::create(compiled_->executable,
                                          {.accelerators = {accelerator_.get()}, .hook = comparison.hook()});
  ASSERT_TRUE(session) << session.error().str();
  size_t launches = 0;
  for (const int words : {1, 2, 3, 7, 20, 40}) {
    const std::vector<Tensor> sentence{random_sentence(random_, words)};
    const auto expected = interpret(*model_->context, compiled_->quantized, model_->entry, sentence);
    const auto found = session->run(sentence);
    ASSERT_TRUE(expected) << expected.error().str();
    ASSERT_TRUE(found) << found.error().str();
    EXPECT_EQ(*found, *expected) << words;
    const auto real = floats(interpret(*model_->context, model_->module, model_->entry, sentence)),
               scores = floats(found);
    for (size_t i = 0; i < real.size(); ++i) EXPECT_NEAR(scores[i], real[i], 0.05) << words;
    const size_t before = std::exchange(launches, session->profile().launches.size());
    EXPECT_GE(launches - before, 2u * static_cast<size_t>(words));  // a leaf's, all nodes' and the classes'
  }
}

TEST_F(TreeLstm, ItsLayersHaveNoSingleValueToCompare) {
  compile_model(false);
  const auto errors = LayerErrors::create(*model_, *compiled_);
  ASSERT_FALSE(errors);
  EXPECT_NE(errors.error().str().find("has control flow, so a layer may have several values"), std::string::npos)
      << errors.error().str();
}

// Kernels of the CPU round functions as sigmoid otherwise than the reference, so the results are compared by value;
// each launch is still compared bit for bit on its own inputs.
TEST_F(TreeLstm, NativeKernelsBetweenItsLaunches) {
  compile_model(true);
  Comparison comparison(*model_, *compiled_);
  auto session = runtime::Session::create(compiled_->executable,
                                          {.accelerators = {accelerator_.get()}, .hook = comparison.hook()});
  ASSERT_TRUE(session) << session.error().str();
  for (const int words : {1, 5, 30}) {
    const std::vector<Tensor> sentence{random_sentence(random_, words)};
    const auto expected = floats(interpret(*model_->context, compiled_->quantized, model_->entry, sentence)),
               found = floats(session->run(sentence));
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 0.02) << words;
  }
  EXPECT_GT(comparison.layers(), 36);
}

// As the importer makes a sequence of an ONNX model whose length is computed.
TEST(Sequences, OfResultsAreTheirElementsByIndex) {
  const auto file = std::filesystem::temp_directory_path() / ("sequence" + std::to_string(getpid()) + ".tn");
  ASSERT_TRUE(write_file(file, std::string_view(R"(#[version = "1"]
type Sequence[A] { Empty, Append(Sequence[A], A) }
def @main(%x: Tensor[(2,), f32], %more: Tensor[(), bool]) -> (Sequence[Tensor[(2,), f32]], Tensor[(2,), f32]) {
  let %two = Append(Append(Empty, %x), negate(%x));
  let %all = if (%more) { Append(%two, %x * 3f32) } else { Empty };
  let %y = exp(%x);
  (%all, %y)
}
)")));
  const auto model = load_model(file, {});
  std::filesystem::remove(file);
  ASSERT_TRUE(model) << model.error().str();
  const auto compiled = compile(*model, {.accelerators = {}});
  ASSERT_TRUE(compiled) << compiled.error().str();
  auto session = runtime::Session::create(compiled->executable, {});
  ASSERT_TRUE(session) << session.error().str();
  const auto names_with = [&](bool more) {
    const std::vector<runtime::Value> inputs{Tensor::of<float>({2}, std::vector<float>{1, 2}),
                                             Tensor::of<bool>({}, std::array{more})};
    const auto results = session->run_values(inputs);
    EXPECT_TRUE(results) << results.error().str();
    const auto tensors = runtime::tensors_by_name(compiled->executable, *results);
    EXPECT_TRUE(tensors) << tensors.error().str();
    std::vector<std::string> names;
    for (const auto& [name, tensor] : *tensors) names.push_back(name);
    if (more) {
      EXPECT_EQ(tensors->at("all.2"), Tensor::of<float>({2}, std::vector<float>{3, 6}));
    }
    return names;
  };
  EXPECT_EQ(names_with(true), (std::vector<std::string>{"all.0", "all.1", "all.2", "y"}));
  EXPECT_EQ(names_with(false), (std::vector<std::string>{"y"}));
}

}  // namespace
}  // namespace tenon::compiler
