// A model of two branches: the accelerator computes one while the processor computes the other.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "compiler/ir/interpreter.h"
#include "compiler/pipeline/pipeline.h"
#include "driver/accelerator.h"
#include "runtime/vm/session.h"
#include "support/file.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

// A convolution, and a softmax of the same input that the accelerator does not support.
std::string two_branches() {
  std::string weights;
  for (int i = 0; i < 16 * 8 * 9; ++i) weights += fmt::format("{}{:.3f}", i == 0 ? "" : ", ", std::sin(i * 1.7));
  return fmt::format(
      "#[version = \"1\"]\nconst $w: Tensor[(16, 8, 3, 3), f32] = [{}];\n"
      "def @main(%x: Tensor[(1, 8, 12, 12), f32]) -> (Tensor[(1, 16, 12, 12), f32], Tensor[(1, 8, 12, 12), f32]) {{\n"
      "  (relu(conv2d(%x, $w, padding=[1, 1, 1, 1])), tanh(softmax(%x)))\n}}\n",
      weights);
}

TEST(Overlap, TheAcceleratorRunsBesideTheOtherBranch) {
  const std::string file = testing::TempDir() + "overlap_model.tn";
  ASSERT_TRUE(write_file(file, two_branches()));
  auto model = load_model(file, {});
  ASSERT_TRUE(model) << model.error().str();
  auto accelerator = driver::open("behavioral:tiny");
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  std::mt19937 random(test_seed(31));
  Samples samples;
  for (int i = 0; i < 4; ++i) {
    Tensor x(DType::kF32, {1, 8, 12, 12});
    for (float& value : x.data<float>()) value = static_cast<float>(static_cast<int>(random() % 201) - 100) / 100;
    samples.push_back({std::move(x)});
  }
  auto compiled = compile(*model, {.accelerators = {{(*accelerator)->info().config}}, .calibration = &samples});
  ASSERT_TRUE(compiled) << compiled.error().str();
  auto session = runtime::Session::create(compiled->executable, {.accelerators = {accelerator->get()}});
  ASSERT_TRUE(session) << session.error().str();
  for (const auto& sample : samples) {
    const auto wanted = interpret(*model->context, compiled->quantized, model->entry, std::span(sample));
    const auto found = session->run(std::span<const Tensor>(sample));
    ASSERT_TRUE(wanted) << wanted.error().str();
    ASSERT_TRUE(found) << found.error().str();
    for (size_t result = 0; result < 2; ++result) {
      const auto right = (*wanted)[result].data<float>(), values = (*found)[result].data<float>();
      for (size_t i = 0; i < right.size(); ++i) ASSERT_NEAR(values[i], right[i], 1e-5f) << result << ", " << i;
    }
  }
  const auto& calls = session->profile().calls;
  const auto launch = std::ranges::find(calls, "accel", &runtime::CallRecord::device);
  ASSERT_NE(launch, calls.end());
  const bool is_beside = std::any_of(calls.begin(), launch, [&](const runtime::CallRecord& call) {
    return call.device == "cpu" && call.begin_ns >= launch->begin_ns;
  });
  EXPECT_TRUE(is_beside) << "a kernel that ran after the launch had begun, and before its results were read";
}

}  // namespace
}  // namespace tenon::compiler
