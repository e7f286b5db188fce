// The target "cuda", emulated: models beside the accelerator and the CPU, with the CPU's results.
#include "compiler/backends/cuda/target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "compiler/partition/partition.h"
#include "compiler/pipeline/pipeline.h"
#include "driver/accelerator.h"
#include "tests/compiler/backends/cuda/models.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

size_t count(const std::vector<Placement>& placements, const std::string& target) {
  return static_cast<size_t>(std::ranges::count(placements, target, &Placement::target));
}

TEST(CudaTarget, ResNet8InFloatHasTheResultsOfTheCpu) {
  auto model = load_model(kResNet8 + ".onnx", {{"N", 1}});
  ASSERT_TRUE(model) << model.error().str();
  const auto cpu = compile(*model, {.accelerator = std::nullopt, .cpu = this_processor()});
  const auto gpu =
      compile(*model, {.accelerator = std::nullopt, .targets = {"cuda:emulated"}, .cpu = this_processor()});
  ASSERT_TRUE(cpu) << cpu.error().str();
  ASSERT_TRUE(gpu) << gpu.error().str();
  EXPECT_GE(count(gpu->placements, "cuda"), 9u) << explain(gpu->partitioned, gpu->placements);
  for (const Placement& placement : gpu->placements) {
    if (placement.op == "conv2d" || placement.op == "relu") EXPECT_EQ(placement.target, "cuda") << placement.reason;
  }
  for (const Tensor& image : images("x", 3)) {
    const auto wanted = run(cpu->executable, {image}), found = run(gpu->executable, {image});
    ASSERT_TRUE(wanted) << wanted.error().str();
    ASSERT_TRUE(found) << found.error().str();
    expect_close((*found)[0], (*wanted)[0]);
  }
}

TEST(CudaTarget, TakesWhatTheAcceleratorLeaves) {
  auto model = load_model(kResNet8 + ".onnx", {{"N", 1}});
  ASSERT_TRUE(model) << model.error().str();
  Samples calibration;
  for (Tensor& sample : images("calib", 16)) calibration.push_back({std::move(sample)});
  auto accelerator = driver::open("behavioral:default");
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  CompileOptions options{.accelerator = (*accelerator)->info().config, .calibration = &calibration};
  options.cpu = this_processor();
  const auto without = compile(*model, options);
  options.targets = {"cuda:emulated"};
  const auto with = compile(*model, options);
  ASSERT_TRUE(without) << without.error().str();
  ASSERT_TRUE(with) << with.error().str();
  EXPECT_EQ(count(with->placements, "accel"), count(without->placements, "accel"));
  EXPECT_EQ(count(without->placements, "cuda"), 0u);
  EXPECT_GE(count(with->placements, "cuda"), 2u) << explain(with->partitioned, with->placements);
  for (const Tensor& image : images("x", 3)) {
    const auto wanted = run(without->executable, {image}, {.accelerator = accelerator->get()});
    const auto found = run(with->executable, {image}, {.accelerator = accelerator->get()});
    ASSERT_TRUE(wanted) << wanted.error().str();
    ASSERT_TRUE(found) << found.error().str();
    EXPECT_EQ((*found)[0], (*wanted)[0]) << "integers, and one scale";
  }
}

// The results of a function of @main's parameters, with random operands, on both.
class CudaFunctions : public testing::Test {
 protected:
  std::vector<Placement> partition_of(const std::string& params, const std::string& type, const std::string& body) {
    auto parsed =
        parse(context, "#[version = \"1\"]\ndef @main" + params + " -> " + type + " {\n" + body + "\n}\n", {}, "m");
    EXPECT_TRUE(parsed) << parsed.error().str();
    if (!parsed) return {};
    plain = clone(*parsed);
    module = std::move(*parsed);
    auto placements = partition(context, module, main, targets);
    EXPECT_TRUE(placements) << placements.error().str();
    return placements ? *placements : std::vector<Placement>();
  }

  Context context;
  Module plain, module;
  const Symbol main = context.symbol("main");
  const std::vector<Target> targets{cuda::make_emulated_target()};
};

TEST_F(CudaFunctions, ATransformerLayerHasTheResultsOfTheCpu) {
  const auto placements = partition_of(
      "(%x: Tensor[(12, 32), f32], %q: Tensor[(32, 32), f32], %k: Tensor[(32, 32), f32], %v: Tensor[(32, 32), f32], "
      "%up: Tensor[(32, 64), f32], %down: Tensor[(64, 32), f32], %g: Tensor[(32,), f32])",
      "Tensor[(12, 32), f32]",
      "  let %scores = matmul(matmul(%x, %q), transpose(matmul(%x, %k), axes=[1, 0]));\n"
      "  let %h = layer_norm(add(%x, matmul(softmax(%scores), matmul(%x, %v))), %g, %g);\n"
      "  let %u = matmul(%h, %up);\n"
      "  layer_norm(add(%h, matmul(multiply(%u, sigmoid(%u)), %down)), %g, %g)");
  for (const Placement& placement : placements)
    EXPECT_EQ(placement.target, "cuda") << placement.op << ": " << placement.reason;
  std::mt19937 random(test_seed(21));
  std::vector<Tensor> inputs;
  for (const runtime::Shape& shape : {runtime::Shape{12, 32}, {32, 32}, {32, 32}, {32, 32}, {32, 64}, {64, 32}, {32}}) {
    Tensor& tensor = inputs.emplace_back(DType::kF32, shape);
    for (float& x : tensor.data<float>()) x = static_cast<float>(static_cast<int>(random() % 401) - 200) / 1000;
  }
  const LowerOptions options{.name = "layer", .facts = {}, .cpu = this_processor()};
  const auto cpu = lower(context, plain, main, {}, options), gpu = lower(context, module, main, targets, options);
  ASSERT_TRUE(cpu) << cpu.error().str();
  ASSERT_TRUE(gpu) << gpu.error().str();
  const auto wanted = run(*cpu, inputs), found = run(*gpu, inputs);
  ASSERT_TRUE(wanted) << wanted.error().str();
  ASSERT_TRUE(found) << found.error().str();
  expect_close((*found)[0], (*wanted)[0]);
}

TEST_F(CudaFunctions, SaysWhatItDoesNotTake) {
  const auto dynamic = partition_of("[n](%x: Tensor[(n, 4), f32])", "Tensor[(n, 4), f32]", "  relu(%x)");
  ASSERT_EQ(dynamic.size(), 1u);
  EXPECT_EQ(dynamic[0].target, "");
  EXPECT_NE(dynamic[0].reason.find("cuda.relu: the shape (n, 4) is not static"), std::string::npos)
      << dynamic[0].reason;
  const auto scalar = partition_of("(%y: Tensor[(), f32])", "Tensor[(), f32]", "  relu(%y)");
  ASSERT_EQ(scalar.size(), 1u);
  EXPECT_NE(scalar[0].reason.find("cuda.relu: a scalar stays on the host"), std::string::npos) << scalar[0].reason;
}

TEST_F(CudaFunctions, RequiresNativeKernels) {
  partition_of("(%x: Tensor[(3, 4), f32])", "Tensor[(3, 4), f32]", "  relu(%x)");
  LowerOptions options{.name = "relu", .facts = {}};
  options.cpu.native = false;
  const auto found = lower(context, module, main, targets, options);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().str().find("target cuda requires native kernels, which are off"), std::string::npos)
      << found.error().str();
}

}  // namespace
}  // namespace tenon::compiler
