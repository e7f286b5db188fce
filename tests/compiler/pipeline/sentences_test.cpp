// An encoder of sentences, of any batch and any number of tokens, compiled once: on the CPU it equals ONNX Runtime at
// every length, and in int8 an accelerator computes its products at the lengths for which it has programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <variant>

#include "compiler/pipeline/pipeline.h"
#include "driver/accelerator.h"
#include "runtime/npy.h"
#include "runtime/vm/session.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

class Sentences : public testing::Test {
 protected:
  void SetUp() override {
    auto model = load_model(TENON_SOURCE_DIR "/tests/models/tiny_minilm.onnx", {});
    ASSERT_TRUE(model) << model.error().str();
    model_.emplace(std::move(*model));
    auto arrays = runtime::load_npz(TENON_SOURCE_DIR "/tests/models/tiny_minilm.npz");
    ASSERT_TRUE(arrays) << arrays.error().str();
    for (auto& [name, array] : *arrays) arrays_.emplace(name, std::move(array));
  }
  // The first `count` tokens, and the mask of all of them.
  std::vector<Tensor> sentence(int64_t count) const {
    Tensor tokens(DType::kI64, {1, count}), mask(DType::kI64, {1, count});
    std::ranges::copy(arrays_.at("tokens").data<int64_t>().first(static_cast<size_t>(count)),
                      tokens.data<int64_t>().begin());
    std::ranges::fill(mask.data<int64_t>(), 1);
    return {std::move(tokens), std::move(mask)};
  }
  std::span<const float> embedding(int64_t count) const {
    return arrays_.at("embeddings").data<float>().subspan(static_cast<size_t>(count - 1) * kWidth, kWidth);
  }
  static float difference(std::span<const float> a, std::span<const float> b) {
    EXPECT_EQ(a.size(), b.size());
    float most = 0;
    for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    return most;
  }
  static float cosine(std::span<const float> a, std::span<const float> b) {  // both have length 1
    float sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  }

  static constexpr size_t kWidth = 32;
  static constexpr int64_t kTokens = 128;
  std::optional<Model> model_;
  std::map<std::string, Tensor> arrays_;
};

TEST_F(Sentences, EveryLengthEqualsOnnxRuntime) {
  auto compiled = compile(*model_, {.accelerators = {}});
  ASSERT_TRUE(compiled) << compiled.error().str();
  auto session = runtime::Session::create(compiled->executable, {});
  ASSERT_TRUE(session) << session.error().str();
  constexpr float kTolerance = 1e-4F;
  for (int64_t count = 1; count <= kTokens; ++count) {
    const auto found = session->run(sentence(count));
    ASSERT_TRUE(found) << found.error().str();
    EXPECT_LE(difference((*found)[0].data<float>(), embedding(count)), kTolerance) << count << " tokens";
  }
  const std::vector<Tensor> batch{arrays_.at("batch_tokens"), arrays_.at("batch_mask")};
  const auto found = session->run(batch);
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_LE(difference((*found)[0].data<float>(), arrays_.at("batch_embeddings").data<float>()), kTolerance);
}

TEST_F(Sentences, ProductsOfAnyLengthUpToABucketAreTheAccelerators) {
  Samples calibration;
  for (int64_t count = 1; count <= kTokens; count += 31) calibration.push_back(sentence(count));
  auto accelerator = driver::open("behavioral:default");
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  auto compiled = compile(*model_, {.accelerators = {{(*accelerator)->info().config}},
                                    .buckets = {{{"N", 1}, {"T", 16}}, {{"N", 1}, {"T", 64}}},
                                    .calibration = &calibration});
  ASSERT_TRUE(compiled) << compiled.error().str();
  // Of twelve products with weights and two scores, two lengths each. The contexts have as many terms as there are
  // tokens, without a bound, and stay in float.
  EXPECT_EQ(compiled->executable.programs.size(), 28u) << compiled->notes;
  size_t launches = 0;
  auto session = runtime::Session::create(
      compiled->executable, {.accelerators = {accelerator->get()}, .hook = [&](const runtime::Step& step) {
                               launches += std::holds_alternative<runtime::CallProgram>(step.instruction->operation);
                               return Status();
                             }});
  ASSERT_TRUE(session) << session.error().str();
  for (const int64_t count : {1, 16, 17, 40, 64, 65, 128}) {
    launches = 0;
    const auto found = session->run(sentence(count));
    ASSERT_TRUE(found) << found.error().str();
    // Scores of other lengths than those of a bucket are the CPU's: a row is not computed alone.
    EXPECT_EQ(launches, count == 16 || count == 64 ? 14u : count < 64 ? 12u : 0u) << count;
    EXPECT_GE(cosine((*found)[0].data<float>(), embedding(count)), 0.98F) << count << " tokens";
  }
}

// The products of 32 sentences of different lengths on an accelerator: the rows of all sentences, with fewer rows of
// padding in all than the smallest program has, and with the bits of a sentence alone on the CPU.
TEST_F(Sentences, RowsOfAllSentencesAreTheAcceleratorsAtAnyNumber) {
  Samples calibration;
  for (int64_t count = 1; count <= kTokens; count += 31) calibration.push_back(sentence(count));
  auto accelerator = driver::open("behavioral:default");
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  const std::vector<AcceleratorOptions> accelerators{{(*accelerator)->info().config}};
  auto alone = compile(*model_, {.accelerators = accelerators, .calibration = &calibration});
  ASSERT_TRUE(alone) << alone.error().str();
  ASSERT_TRUE(alone->executable.programs.empty());
  auto together = compile(*model_, {.accelerators = accelerators, .calibration = &calibration, .batch = {{}}});
  ASSERT_TRUE(together) << together.error().str();
  auto cpu = runtime::Session::create(alone->executable, {});
  ASSERT_TRUE(cpu) << cpu.error().str();
  auto session = runtime::Session::create(together->executable, {.accelerators = {accelerator->get()}});
  ASSERT_TRUE(session) << session.error().str();
  std::map<std::string, int64_t> macs_of_row;  // of each product, by its program of fewest rows
  for (const runtime::AcceleratorProgram& program : together->executable.programs) {
    const runtime::LayerNote& product = program.layers.at(0);
    const auto [least, is_new] = macs_of_row.try_emplace(product.name, product.macs / 16);
    if (!is_new) least->second = std::min(least->second, product.macs / 16);
  }
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{17, 40, 3, 1, 64, 11, 0, 128, 9},
                                              std::vector<int64_t>(32, 13),
                                              std::vector<int64_t>(40, 16),
                                              {1},
                                              {0, 0}}) {
    session->clear_profile();
    std::vector<std::vector<runtime::Value>> instances;
    int64_t tokens = 0;
    for (const int64_t length : lengths) {
      const std::vector<Tensor> inputs = sentence(length);
      instances.emplace_back(inputs.begin(), inputs.end());
      tokens += length;
    }
    const auto found = session->run_many(instances);
    for (size_t i = 0; i < lengths.size(); ++i) {
      const auto expected = cpu->run_values(instances[i]);
      ASSERT_EQ(found[i].has_value(), expected.has_value()) << (found[i] ? expected : found[i]).error().str();
      if (expected) {
        EXPECT_EQ(found[i]->at(0).tensor(), expected->at(0).tensor()) << lengths[i] << " tokens";
      }
    }
    std::map<std::string, int64_t> rows;  // that each product has computed
    for (const runtime::LaunchRecord& launch : session->profile().launches) {
      const runtime::LayerNote& product = together->executable.programs[launch.program].layers.at(0);
      rows[product.name] += product.macs / macs_of_row.at(product.name);
    }
    EXPECT_EQ(rows.size(), tokens > 0 ? 12u : 0u) << together->notes;
    for (const auto& [layer, count] : rows) {
      EXPECT_GE(count, tokens) << layer;
      EXPECT_LT(count - tokens, 16) << layer;
    }
  }
}

}  // namespace
}  // namespace tenon::compiler
