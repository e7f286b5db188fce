// Quantization-aware training: the loss is that of the integers, the gradient that of the real layers, and what is
// written computes what was trained.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/passes/passes.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/train/step.h"
#include "runtime/train/trainer.h"
#include "support/random.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::NamedTensors;
using runtime::Shape;
using runtime::Tensor;
using runtime::Trainer;

Tensor random_tensor(Random& random, const Shape& shape, double size) {
  Tensor tensor(DType::kF32, shape);
  for (float& value : tensor.data<float>())
    value = static_cast<float>(size * static_cast<double>(random.between(-1000, 1000)) / 1000);
  return tensor;
}

// A model, its calibrated form for training, and the step.
struct Quantized {
  Quantized(const std::string& text, const Samples& samples, double limit, const StepOptions& options)
      : context(*model.context) {
    auto parsed = parse(context, "#[version = \"1\"]\n" + text);
    EXPECT_TRUE(parsed) << parsed.error().str();
    model.module = std::move(*parsed);
    model.entry = context.symbol("main");
    std::string notes;
    CompileOptions compile_options;
    compile_options.calibration = &samples;
    compile_options.quantize.weight_limit = limit;
    auto made = quantized_for_training(model, compile_options, notes);
    EXPECT_TRUE(made) << made.error().str();
    trained = std::move(*made);
    Model step{.context = nullptr, .module = clone(trained), .entry = model.entry, .name = "m"};
    auto lifted = lift_parameters(context, step.module, step.entry);
    EXPECT_TRUE(lifted) << lifted.error().str();
    weights = std::move(*lifted);
    for (const LiftedParameter& weight : weights) first.emplace(weight.name, trained.constant(weight.constant));
    const Status status = make_training_step(context, step.module, weights, options);
    EXPECT_TRUE(status) << status.error().str();
    auto simplified = run_passes(context, std::move(step.module), standard_passes(), {.verify = true});
    EXPECT_TRUE(simplified) << simplified.error().str();
    step.module = std::move(*simplified);
    step.context = std::move(model.context);
    auto compiled = compile(step, {});
    model.context = std::move(step.context);
    EXPECT_TRUE(compiled) << compiled.error().str();
    executable = std::move(compiled->executable);
    EXPECT_TRUE(runtime::add_states(executable, first));
  }

  // The module with these weights.
  Module with(const NamedTensors& values) const {
    Module module = clone(trained);
    for (const LiftedParameter& weight : weights)
      module.constants[static_cast<size_t>(weight.constant)] = values.at(weight.name);
    return module;
  }
  Tensor run(const Module& module, const Tensor& input) const {
    const auto results = interpret(context, module, model.entry, std::vector{input});
    EXPECT_TRUE(results) << results.error().str();
    return results->front();
  }

  Expected<Trainer> trainer(const NamedTensors& values) const {
    auto made = Trainer::create(executable, {});
    EXPECT_TRUE(made && made->set_weights(values));
    return made;
  }

  Model model{.context = std::make_unique<Context>(), .module = {}, .entry = {}, .name = "m"};
  Context& context;
  Module trained;
  std::vector<LiftedParameter> weights;
  NamedTensors first;
  runtime::Executable executable;
};

const std::string kDense =
    "const $w: Tensor[(2, 3), f32] = [0.5, -0.25, 1, 0.125, 0.75, -0.5];\n"
    "const $b: Tensor[(2,), f32] = [0.25, -0.125];\n"
    "def @main(%x: Tensor[(4, 3), f32]) { let %y = dense(%x, $w); bias_add(%y, $b) }\n";

TEST(QuantizedTraining, StepsByTheRealLayerAtTheRoundedValues) {
  Random random(test_seed(1));
  // Calibrated on -1 and 1: the scale is 2 / 255, the zero point 0. No result of smaller values is at an end.
  const std::vector<float> ends{1, -1, 1, -1, 1, -1, 0, 0, 0, 0, 0, 0};
  const Tensor range = Tensor::of<float>({4, 3}, ends);
  const Quantized made(kDense, {{range}}, 127, {.loss = "mse", .optimizer = "sgd"});
  ASSERT_EQ(made.weights.size(), 2u);
  EXPECT_THAT(made.weights[0].name, testing::EndsWith(".w"));
  EXPECT_THAT(made.weights[1].name, testing::EndsWith(".b"));
  const Tensor x = random_tensor(random, {4, 3}, 0.5), labels = random_tensor(random, {4, 2}, 1);
  const Tensor y = made.run(made.trained, x);
  auto trainer = made.trainer(made.first);
  ASSERT_TRUE(trainer) << trainer.error().str();
  constexpr double kRate = 0.125;
  const auto loss = trainer->step({{x}, labels}, std::vector<int64_t>{0, 1, 2, 3}, kRate);
  ASSERT_TRUE(loss) << loss.error().str();
  double squares = 0;
  std::vector<double> dy;
  for (size_t i = 0; i < 8; ++i) {
    const double difference = double{y.data<float>()[i]} - labels.data<float>()[i];
    squares += difference * difference / 8;
    dy.push_back(2 * difference / 8);
  }
  EXPECT_NEAR(*loss, squares, 1e-6);
  const double step = 2.0 / 255;
  const auto w = made.first.at(made.weights[0].name).data<float>();
  const NamedTensors after = trainer->weights();
  for (size_t m = 0; m < 2; ++m) {
    double sum = 0;
    for (size_t n = 0; n < 4; ++n) sum += dy[2 * n + m];
    const float bias = made.first.at(made.weights[1].name).data<float>()[m];
    EXPECT_NEAR(after.at(made.weights[1].name).data<float>()[m], bias - kRate * sum, 1e-6) << m;
    for (size_t k = 0; k < 3; ++k) {
      double product = 0;
      for (size_t n = 0; n < 4; ++n)
        product += dy[2 * n + m] * step * std::nearbyint(x.data<float>()[3 * n + k] / step);
      EXPECT_NEAR(after.at(made.weights[0].name).data<float>()[3 * m + k], w[3 * m + k] - kRate * product, 1e-6)
          << m << ", " << k;
    }
  }
}

TEST(QuantizedTraining, PassesNothingWhereAResultOrAWeightIsAtItsEnd) {
  const std::vector<float> ends{1, -1, 1, -1, 1, -1, 0, 0, 0, 0, 0, 0};
  const Tensor small = Tensor::of<float>({4, 3}, ends);
  const Quantized made(kDense, {{small}}, 7, {.loss = "mse", .optimizer = "sgd"});
  Tensor x(DType::kF32, {4, 3});
  for (float& value : x.data<float>()) value = 0.25f;
  const std::string w_name = made.weights[0].name, b_name = made.weights[1].name;
  const std::vector<int64_t> order{0, 1, 2, 3};
  // A bias far outside of the calibrated range: the first column of the results is at its end.
  NamedTensors large = made.first;
  large.insert_or_assign(b_name, Tensor::of<float>({2}, std::vector<float>{10, -0.125}));
  auto trainer = made.trainer(large);
  ASSERT_TRUE(trainer) << trainer.error().str();
  ASSERT_TRUE(trainer->step({{x}, Tensor(DType::kF32, {4, 2})}, order, 1));
  const NamedTensors after = trainer->weights();
  for (const auto& [name, weight] : large) {
    const auto before = weight.data<float>(), now = after.at(name).data<float>();
    const size_t half = before.size() / 2;
    for (size_t i = 0; i < half; ++i) EXPECT_EQ(now[i], before[i]) << name;
    EXPECT_NE(now[half], before[half]) << name;
  }
  // A weight beyond the largest integer has no gradient, the others do.
  NamedTensors grown = made.first;
  Tensor w = grown.at(w_name).clone();
  w.data<float>()[2] = 1.5;  // more than 7.5 steps of 1 / 7
  grown.insert_or_assign(w_name, w);
  auto second = made.trainer(grown);
  ASSERT_TRUE(second);
  ASSERT_TRUE(second->step({{x}, Tensor(DType::kF32, {4, 2})}, order, 1));
  const NamedTensors updated = second->weights();
  const auto changed = updated.at(w_name).data<float>();
  EXPECT_EQ(changed[2], 1.5f);
  EXPECT_NE(changed[0], w.data<float>()[0]);
}

const std::string kNetwork =
    "def @main(%x: Tensor[(4, 2, 8, 8), f32]) -> Tensor[(4, 3), f32] {\n"
    "  let %a = relu(bias_add(conv2d(%x, $c, padding=[1, 1, 1, 1]), $cb));\n"
    "  let %p = max_pool2d(%a, kernel=[2, 2], strides=[2, 2]);\n"
    "  let %b = clip(bias_add(conv2d(%p, $d, padding=[1, 1, 1, 1]), $db), min=0, max=6);\n"
    "  let %s = relu(%b + %p);\n"
    "  let %m = concat(%s, %p, axis=1);\n"
    "  let %f = flatten(global_avg_pool(%m));\n"
    "  bias_add(dense(%f, $e), $eb)\n}\n";

TEST(QuantizedTraining, WritesTheIntegersThatWereTrained) {
  Random random(test_seed(3));
  std::string constants;
  const auto constant = [&](const std::string& name, const Shape& shape) {
    std::string sizes, values;
    for (const int64_t size : shape) sizes += std::to_string(size) + ",";
    for (int64_t i = 0; i < runtime::element_count(shape); ++i)
      values += fmt::format("{}{}", i == 0 ? "" : ", ", static_cast<double>(random.between(-500, 500)) / 1000);
    constants += fmt::format("const ${}: Tensor[({}), f32] = [{}];\n", name, sizes, values);
  };
  constant("c", {4, 2, 3, 3}), constant("cb", {4}), constant("d", {4, 4, 3, 3}), constant("db", {4});
  constant("e", {3, 8}), constant("eb", {3});
  Samples samples;
  for (int i = 0; i < 3; ++i) samples.push_back({random_tensor(random, {4, 2, 8, 8}, 1)});
  const Quantized made(constants + kNetwork, samples, 7, {.loss = "mse", .optimizer = "adam"});
  EXPECT_EQ(made.weights.size(), 6u);
  auto trainer = made.trainer(made.first);
  ASSERT_TRUE(trainer) << trainer.error().str();
  const Tensor labels = random_tensor(random, {4, 3}, 0.5);
  const std::vector<int64_t> order{0, 1, 2, 3};
  std::vector<double> losses;
  for (int i = 0; i < 30; ++i) {
    const auto loss = trainer->step({samples[0], labels}, order, 0.02);
    ASSERT_TRUE(loss) << loss.error().str();
    losses.push_back(*loss);
  }
  EXPECT_LT(losses.back(), 0.7 * losses.front());

  const Module trained = made.with(trainer->weights());
  auto integers = with_integer_weights(made.context, clone(trained));
  ASSERT_TRUE(integers) << integers.error().str();
  const std::string text = print(made.context, *integers).text;
  EXPECT_THAT(text, testing::HasSubstr("requantize_add("));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("layer.")));
  size_t quantizations = 0;
  for_each_binding(integers->function(made.model.entry)->body, [&](const Binding& binding) {
    const auto* apply = std::get_if<Apply>(&binding.value);
    quantizations += apply && apply->op->is(ops::kQuantize);
  });
  EXPECT_EQ(quantizations, 1u) << text;
  for (const auto& sample : samples) EXPECT_EQ(made.run(*integers, sample[0]), made.run(trained, sample[0]));
  // The trainer computed with them: the loss of one more step is theirs.
  const Tensor y = made.run(*integers, samples[0][0]);
  double squares = 0;
  for (size_t i = 0; i < 12; ++i) squares += std::pow(double{y.data<float>()[i]} - labels.data<float>()[i], 2) / 12;
  const auto loss = trainer->step({samples[0], labels}, order, 0);
  ASSERT_TRUE(loss);
  EXPECT_NEAR(*loss, squares, 1e-6);
}

}  // namespace
}  // namespace tenon::compiler
