// A trainer whose weights are lost, since a kernel fails after others have written new ones.
#include "runtime/train/trainer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "tests/runtime/native/sample.h"

namespace tenon::runtime {
namespace {

// A step of two weights, each of which becomes one more; the loss is 0.5.
Executable counting_step() {
  Executable e;
  e.name = "step";
  const auto weight = [](const char* name) { return Port{name, DType::kI32, {50}}; };
  const auto scalar = [](const char* name) { return Port{name, DType::kF32, {}}; };
  const auto sample = [](const char* name) { return Port{name, DType::kF32, {kAnySize}}; };
  e.functions.push_back(
      {"main",
       {weight("weight.s"), weight("weight.t"), scalar("rate"), scalar("step"), sample("x"), sample("labels")},
       {scalar("loss"), weight("new_s"), weight("new_t")},
       9,
       {{LoadConstant{6, 0}, "loss"},
        {CallNative{0, 0, {0}, {7}}, "s"},
        {Kill{{0}}, ""},
        {CallNative{0, 0, {1}, {8}}, "t"},
        {Kill{{1}}, ""},
        {Return{{6, 7, 8}}, ""}}});
  e.natives.push_back(sample::native_code());
  e.natives[0].kernels[0].signature.in_place = {{0, 0}};
  e.constants.push_back(Tensor::of<float>({}, std::vector{0.5F}));
  const Status added = add_states(e, {{"s", sample::count_up(50)}, {"t", sample::count_up(50)}});
  EXPECT_TRUE(added) << added.error().str();
  return e;
}

TEST(Trainer, SavesNothingWhereAStepHasLostTheWeights) {
  const Executable step = counting_step();
  auto trainer = Trainer::create(step, {.threads = 1});
  ASSERT_TRUE(trainer) << trainer.error().str();
  const TrainingData data{{Tensor(DType::kF32, {1})}, Tensor(DType::kF32, {1})};
  const std::vector<int64_t> samples{0};
  for (int i = 1; i <= 2; ++i) {
    ASSERT_TRUE(trainer->step(data, samples, 0.1));
    EXPECT_EQ(trainer->weights().at("t").data<int32_t>()[0], 100 + i);
  }
  const auto file = std::filesystem::path(testing::TempDir()) / "lost_state.npz";
  ASSERT_TRUE(trainer->save(file, {}));
  // A loss that is asked for changes nothing.
  EXPECT_EQ(trainer->loss(data, samples).value(), 0.5);
  EXPECT_EQ(trainer->weights().at("t").data<int32_t>()[0], 102);
  Tensor bad = sample::count_up(50);
  bad.data<int32_t>()[20] = 13;
  ASSERT_TRUE(trainer->set_weights({{"t", bad}}));
  EXPECT_HAS(trainer->step(data, samples, 0.1).error().str(), "so that all of them are lost");
  EXPECT_TRUE(trainer->is_lost());
  EXPECT_TRUE(trainer->weights().empty());
  EXPECT_EQ(trainer->steps(), 2);
  EXPECT_HAS(trainer->save(file, {}).error().str(), "the weights are lost, since a step has failed");
  ASSERT_TRUE(trainer->load(file));
  EXPECT_FALSE(trainer->is_lost());
  ASSERT_TRUE(trainer->step(data, samples, 0.1));
  EXPECT_EQ(trainer->weights().at("s").data<int32_t>()[0], 103);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace tenon::runtime
