// Several accelerators in one program: who computes what, results, cycles, and devices that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "compiler/pipeline/compare.h"
#include "compiler/pipeline/node_prices.h"
#include "compiler/pipeline/pipeline.h"
#include "driver/accelerator.h"
#include "runtime/npy.h"
#include "runtime/profile/analysis.h"
#include "runtime/run/runner.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;
using testing::HasSubstr;

constexpr const char* kExamples = TENON_SOURCE_DIR "/tests/models/";

std::vector<AcceleratorOptions> configurations(const std::vector<std::string>& names) {
  std::vector<AcceleratorOptions> accelerators;
  for (const std::string& name : names) accelerators.push_back({*spec::load_config(name)});
  return accelerators;
}

runtime::Devices devices(const std::vector<std::string>& configurations) {
  std::vector<std::string> uris;
  for (const std::string& name : configurations) uris.push_back("behavioral:" + name);
  auto opened = runtime::open_devices(uris);
  EXPECT_TRUE(opened) << opened.error().str();
  return std::move(*opened);
}

// A model that comes quantized, and its inputs.
struct Example {
  Model model;
  std::vector<std::vector<Tensor>> samples;
};

Example resnet() {
  auto model = load_model(std::string(kExamples) + "resnet8_digits_int8_qdq.onnx", {{"N", 1}});
  EXPECT_TRUE(model) << model.error().str();
  const auto arrays = runtime::load_npz(std::string(kExamples) + "resnet8_digits_test.npz");
  const auto bytes = arrays->at("x").data<uint8_t>();
  Example example{std::move(*model), {}};
  for (size_t i = 0; i < 3; ++i) {
    Tensor sample(runtime::DType::kF32, {1, 1, 28, 28});
    for (size_t k = 0; k < 784; ++k) sample.data<float>()[k] = static_cast<float>(bytes[i * 784 + k]) / 255;
    example.samples.push_back({std::move(sample)});
  }
  return example;
}

// Of `count` tokens, as tests/models/tiny_minilm.npz has them.
std::vector<Tensor> sentence(const std::map<std::string, Tensor>& arrays, int64_t count) {
  Tensor tokens(runtime::DType::kI64, {1, count}), mask(runtime::DType::kI64, {1, count});
  std::ranges::copy(arrays.at("tokens").data<int64_t>().first(static_cast<size_t>(count)),
                    tokens.data<int64_t>().begin());
  std::ranges::fill(mask.data<int64_t>(), 1);
  return {std::move(tokens), std::move(mask)};
}

Example encoder() {
  auto model = load_model(std::string(kExamples) + "tiny_minilm.onnx", {{"N", 1}, {"T", 16}});
  EXPECT_TRUE(model) << model.error().str();
  const auto arrays = runtime::load_npz(std::string(kExamples) + "tiny_minilm.npz");
  EXPECT_TRUE(arrays) << arrays.error().str();
  return {std::move(*model), {sentence({arrays->begin(), arrays->end()}, 16)}};
}

class Accelerators : public testing::Test {
 protected:
  Compilation compile_for(const Model& model, const CompileOptions& options) {
    auto compiled = compile(model, options);
    EXPECT_TRUE(compiled) << compiled.error().str();
    return std::move(*compiled);
  }

  // The results of the samples on simulators of these configurations, compared layer by layer with the reference.
  std::vector<std::vector<Tensor>> run(const Example& example, const Compilation& compiled,
                                       const std::vector<std::string>& names) {
    const runtime::Devices opened = devices(names);
    Comparison comparison(example.model, compiled);
    auto session = runtime::Session::create(compiled.executable,
                                            {.accelerators = runtime::accelerators(opened), .hook = comparison.hook()});
    EXPECT_TRUE(session) << session.error().str();
    std::vector<std::vector<Tensor>> all;
    for (const auto& sample : example.samples) {
      auto results = session->run(sample);
      EXPECT_TRUE(results) << results.error().str();
      for (Tensor& result : *results) result = result.clone();
      all.push_back(std::move(*results));
    }
    EXPECT_GT(comparison.layers(), 0);
    figures_ = runtime::analyze(compiled.executable, session->profile());
    return all;
  }

  // The nodes of the convolutions and products of accelerators, in the order of the model.
  static std::vector<std::string> layers_of(const Compilation& compiled) {
    std::vector<std::string> nodes;
    for (const Placement& placement : compiled.placements) {
      if (placement.op == "conv2d" || placement.op == "dense")
        nodes.push_back(compiled.partitioned.span(placement.span).node);
    }
    return nodes;
  }
  static std::map<std::string, size_t> operators_by_target(const Compilation& compiled) {
    std::map<std::string, size_t> counts;
    for (const Placement& placement : compiled.placements) ++counts[placement.target];
    return counts;
  }

  // Every second layer is pinned to tiny.
  static Pins alternating(const Compilation& alone) {
    Pins pins;
    const std::vector<std::string> nodes = layers_of(alone);
    for (size_t i = 0; i < nodes.size(); ++i) pins.emplace(nodes[i], i % 2 == 0 ? "accel:tiny" : "accel:default");
    return pins;
  }

  void expect_cycles_of_both() const {
    ASSERT_EQ(figures_.accelerators.size(), 2u);
    double cycles = 0, macs = 0;
    std::set<std::string> names;
    for (const runtime::AcceleratorCost& cost : figures_.accelerators) {
      EXPECT_GT(cost.cycles, 0);
      EXPECT_GT(cost.utilization, 0);
      EXPECT_EQ(cost.device, "accel:" + cost.config->name);
      names.insert(cost.config->name);
      cycles += cost.cycles, macs += cost.macs;
    }
    EXPECT_EQ(names, (std::set<std::string>{"default", "tiny"}));
    EXPECT_DOUBLE_EQ(cycles, figures_.cycles);
    EXPECT_DOUBLE_EQ(macs, figures_.macs);
  }

  runtime::Analysis figures_;  // of the last run
};

TEST_F(Accelerators, OneConfigurationKeepsItsName) {
  const Example example = resnet();
  const Compilation one = compile_for(example.model, {.accelerators = configurations({"tiny"})});
  EXPECT_EQ(operators_by_target(one).count("accel"), 1u);
  ASSERT_EQ(one.executable.programs.size(), 1u);
  EXPECT_EQ(one.executable.programs[0].device, "accel");
}

TEST_F(Accelerators, InOrderTheFirstOneComputesAllThatItSupports) {
  const Example example = resnet();
  const Compilation alone = compile_for(example.model, {.accelerators = configurations({"tiny"})});
  const Compilation both = compile_for(example.model, {.accelerators = configurations({"tiny", "default"})});
  EXPECT_EQ(operators_by_target(both).at("accel:tiny"), operators_by_target(alone).at("accel"));
  ASSERT_EQ(both.executable.programs.size(), 1u);
  EXPECT_EQ(both.executable.programs[0].instructions, alone.executable.programs[0].instructions);
  const Compilation named = compile_for(
      example.model, {.accelerators = configurations({"tiny", "default"}), .targets = {"accel:default", "accel:tiny"}});
  EXPECT_EQ(named.executable.programs[0].device, "accel:default");
}

TEST_F(Accelerators, PinnedLayersOfBothAreEqualToThoseOfOne) {
  const Example example = resnet();
  const Compilation alone = compile_for(example.model, {.accelerators = configurations({"default"})});
  const auto expected = run(example, alone, {"default"});
  const Compilation both =
      compile_for(example.model, {.accelerators = configurations({"default", "tiny"}), .pins = alternating(alone)});
  EXPECT_GT(both.executable.programs.size(), 4u);
  const auto counts = operators_by_target(both);
  EXPECT_GT(counts.at("accel:default"), 0u);
  EXPECT_GT(counts.at("accel:tiny"), 0u);
  EXPECT_EQ(run(example, both, {"default", "tiny"}), expected);
  expect_cycles_of_both();
  EXPECT_EQ(run(example, both, {"tiny", "default"}), expected) << "the order of devices is that of the user";
}

// Where the first launches of two accelerators wait for each other.
class MeetingPoint {
 public:
  void meet(size_t accelerator) {
    std::unique_lock lock(mutex_);
    is_there_[accelerator] = true;
    changed_.notify_all();
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return is_there_[0] && is_there_[1]; }))
      has_waited_in_vain_ = true;
  }
  bool has_met() const { return is_there_[0] && is_there_[1] && !has_waited_in_vain_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_there_[2] = {false, false}, has_waited_in_vain_ = false;
};

class MeetingDevice final : public driver::Accelerator {
 public:
  MeetingDevice(driver::Accelerator& inner, std::function<void()> meet) : inner_(inner), meet_(std::move(meet)) {}
  const driver::Info& info() const override { return inner_.info(); }
  Expected<driver::Buffer> allocate(uint64_t bytes, uint64_t alignment) override {
    return inner_.allocate(bytes, alignment);
  }
  void free(const driver::Buffer& buffer) override { inner_.free(buffer); }
  Status write(const driver::Buffer& buffer, uint64_t offset, std::span<const std::byte> data) override {
    return inner_.write(buffer, offset, data);
  }
  Status read(const driver::Buffer& buffer, uint64_t offset, std::span<std::byte> data) override {
    return inner_.read(buffer, offset, data);
  }
  Expected<uint32_t> read_register(uint32_t offset) override { return inner_.read_register(offset); }
  Status write_register(uint32_t offset, uint32_t value) override { return inner_.write_register(offset, value); }
  Expected<bool> wait_idle(std::chrono::nanoseconds limit) override {
    meet_();
    return inner_.wait_idle(limit);
  }

 private:
  driver::Accelerator& inner_;
  std::function<void()> meet_;
};

// Keys on one accelerator, queries and values on the other one. A hook sees one call after another, and without it both
// accelerators have work at the same time: their first launches wait for each other.
TEST_F(Accelerators, ComputeWhatIsIndependentAtTheSameTime) {
  const Example example = encoder();
  const Samples calibration{example.samples[0]};
  const Compilation both = compile_for(example.model, {.accelerators = configurations({"default", "tiny"}),
                                                       .pins = {{"layer0/MatMul_15", "accel:tiny"}},
                                                       .calibration = &calibration});
  const auto expected = run(example, both, {"default", "tiny"});
  expect_cycles_of_both();
  const runtime::Devices opened = devices({"tiny", "default"});
  MeetingPoint point;
  MeetingDevice tiny(*opened[0], [&] { point.meet(0); }), other(*opened[1], [&] { point.meet(1); });
  auto session = runtime::Session::create(both.executable, {.accelerators = {&tiny, &other}});
  ASSERT_TRUE(session) << session.error().str();
  const auto results = session->run(example.samples[0]);
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_TRUE(point.has_met());
  EXPECT_EQ(*results, expected[0]);
  const runtime::Analysis found = runtime::analyze(both.executable, session->profile());
  ASSERT_EQ(found.accelerators.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(found.accelerators[i].cycles, figures_.accelerators[i].cycles) << i;
  // The record, and so the trace, shows it.
  const std::vector<size_t> accelerator = runtime::accelerators_of(both.executable);
  const auto& launches = session->profile().launches;
  size_t overlaps = 0;
  for (const runtime::LaunchRecord& a : launches) {
    for (const runtime::LaunchRecord& b : launches) {
      if (a.begin_ns >= b.begin_ns || b.begin_ns >= a.end_ns) continue;
      ++overlaps;
      EXPECT_NE(accelerator[a.program], accelerator[b.program]) << "an accelerator has one launch at a time";
    }
  }
  EXPECT_GT(overlaps, 0u);
}

// A program that was saved and loaded has the devices' names.
TEST_F(Accelerators, AFileHoldsTheProgramsOfBoth) {
  const Example example = resnet();
  const Compilation alone = compile_for(example.model, {.accelerators = configurations({"default"})});
  const Compilation both =
      compile_for(example.model, {.accelerators = configurations({"default", "tiny"}), .pins = alternating(alone)});
  const auto file = runtime::serialize(both.executable);
  ASSERT_TRUE(file) << file.error().str();
  const auto loaded = runtime::deserialize(*file, "m.tnx");
  ASSERT_TRUE(loaded) << loaded.error().str();
  EXPECT_EQ(*loaded, both.executable);
  EXPECT_EQ(runtime::default_devices(*loaded), (std::vector<std::string>{"behavioral:tiny", "behavioral:default"}));
}

// With a faster clock, layers of few channels take less time on the small accelerator, which wastes less of itself.
TEST_F(Accelerators, CostsSendLayersToEach) {
  const Example example = resnet();
  const Compilation alone = compile_for(example.model, {.accelerators = configurations({"default"})});
  const auto expected = run(example, alone, {"default"});
  const Costs costs{
      .source = "costs.json",
      .gmacs_f32 = 0.001,
      .gmacs_i8 = 0.001,
      .gbytes = 100,
      .call_ns = 0,
      .devices = {{"accel:default", {.launch_ns = 0, .mhz = 100}}, {"accel:tiny", {.launch_ns = 0, .mhz = 900}}}};
  const Compilation both =
      compile_for(example.model, {.accelerators = configurations({"default", "tiny"}), .costs = costs});
  EXPECT_LE(both.costs->total, both.costs->all_at.at("accel:default"));
  EXPECT_LE(both.costs->total, both.costs->all_at.at("accel:tiny"));
  const auto counts = operators_by_target(both);
  ASSERT_EQ(counts.count("accel:default"), 1u) << explain(both.partitioned, both.placements);
  ASSERT_EQ(counts.count("accel:tiny"), 1u) << explain(both.partitioned, both.placements);
  EXPECT_EQ(run(example, both, {"default", "tiny"}), expected);
  expect_cycles_of_both();

  // The report has the prices of each layer at its node.
  const auto& graph = both.executable.graph;
  const auto prices = node_prices(both.partitioned, both.placements, graph);
  size_t layers = 0;
  for (const runtime::GraphNode& node : graph.nodes) {
    const auto found = prices.find(node.name);
    ASSERT_EQ(found != prices.end(), node.device.starts_with("accel")) << node.name;
    if (found == prices.end()) continue;
    ++layers;
    const auto own = std::ranges::find(found->second, node.device, &runtime::NodePrice::target);
    ASSERT_NE(own, found->second.end()) << node.name;
    EXPECT_EQ(own->change, 0.0) << node.name;
    EXPECT_EQ(found->second.size(), 3u) << node.name << ": on the CPU, and on each accelerator";
  }
  EXPECT_EQ(layers, prices.size());
  EXPECT_TRUE(node_prices(alone.partitioned, alone.placements, alone.executable.graph).empty()) << "without costs";
}

// Quantization does not depend on which of the accelerators computes a layer: products of a transformer by pins.
TEST_F(Accelerators, ProductsOfASentenceAreEqualToThoseOfOne) {
  const Example example = encoder();
  const Samples calibration{example.samples[0]};
  const Compilation alone =
      compile_for(example.model, {.accelerators = configurations({"default"}), .calibration = &calibration});
  const auto expected = run(example, alone, {"default"});
  const Compilation both = compile_for(
      example.model,
      {.accelerators = configurations({"default", "tiny"}), .pins = alternating(alone), .calibration = &calibration});
  EXPECT_EQ(run(example, both, {"default", "tiny"}), expected);
  expect_cycles_of_both();
}

TEST_F(Accelerators, ConfigurationsThatDoNotDifferAreAnError) {
  const Example example = resnet();
  const auto twice = compile(example.model, {.accelerators = configurations({"tiny", "default", "tiny"})});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().what, "the configuration tiny is given twice");
  auto renamed = configurations({"tiny", "tiny"});
  renamed[1].config.name = "small";
  const auto alike = compile(example.model, {.accelerators = renamed});
  ASSERT_FALSE(alike);
  EXPECT_EQ(alike.error().what, "the configurations tiny and small differ in their names alone");
  auto other = configurations({"tiny", "default"});
  other[1].config.name = "tiny";
  const auto same_name = compile(example.model, {.accelerators = other});
  ASSERT_FALSE(same_name);
  EXPECT_THAT(same_name.error().what, HasSubstr("two configurations are called tiny, and differ:\nblock_in: 4 here"));
}

TEST_F(Accelerators, OfSeveralATargetIsNamedWithItsConfiguration) {
  const Example example = resnet();
  const auto unnamed =
      compile(example.model, {.accelerators = configurations({"tiny", "default"}), .targets = {"accel"}});
  ASSERT_FALSE(unnamed);
  EXPECT_EQ(unnamed.error().what, "there is no target 'accel'");
  EXPECT_THAT(unnamed.error().help, HasSubstr("accel:tiny, accel:default"));
  const auto pinned =
      compile(example.model, {.accelerators = configurations({"tiny", "default"}), .pins = {{"x", "accel:wide"}}});
  ASSERT_FALSE(pinned);
  EXPECT_THAT(pinned.error().what, HasSubstr("x is pinned to accel:wide, which is not among the targets"));
}

TEST_F(Accelerators, DevicesThatDoNotFitAreAnError) {
  const Example example = resnet();
  const Compilation alone = compile_for(example.model, {.accelerators = configurations({"default"})});
  const Compilation both =
      compile_for(example.model, {.accelerators = configurations({"default", "tiny"}), .pins = alternating(alone)});
  const auto message = [&](const runtime::Executable& executable, const std::vector<std::string>& names) {
    const runtime::Devices opened = devices(names);
    const auto session = runtime::Session::create(executable, {.accelerators = runtime::accelerators(opened)});
    return session ? std::string("created") : session.error().str();
  };
  EXPECT_EQ(message(both.executable, {"default", "tiny"}), "created");
  EXPECT_THAT(message(both.executable, {}), HasSubstr("accelerator programs, and no device was given"));
  EXPECT_THAT(message(both.executable, {}), HasSubstr("--device behavioral:tiny --device behavioral:default"));
  EXPECT_THAT(message(both.executable, {"default"}),
              HasSubstr("is for configuration 'tiny', and no device of it was given"));
  EXPECT_THAT(message(both.executable, {"default"}), HasSubstr("add one: --device behavioral:tiny"));
  EXPECT_THAT(message(both.executable, {"default", "wide-8x16"}), HasSubstr("was compiled for configuration 'tiny'"));
  EXPECT_THAT(message(both.executable, {"default", "tiny", "tiny"}),
              HasSubstr("behavioral:tiny and behavioral:tiny have the same configuration 'tiny'"));
  EXPECT_THAT(message(both.executable, {"default", "tiny", "wide-8x16"}),
              HasSubstr("no program is for configuration 'wide-8x16' of this device; there are programs for tiny, "
                        "default"));
  EXPECT_THAT(message(alone.executable, {"default", "tiny"}),
              HasSubstr("no program is for configuration 'tiny' of this device; there are programs for default"));
  EXPECT_THAT(message(alone.executable, {"tiny"}), HasSubstr("was compiled for configuration 'default'"));
}

}  // namespace
}  // namespace tenon::compiler
