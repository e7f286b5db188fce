// Weights as parameters, steps of all optimizers beside their formulas, and the trainer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "compiler/ir/text.h"
#include "compiler/passes/passes.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/train/step.h"
#include "runtime/train/trainer.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::NamedTensors;
using runtime::Tensor;
using runtime::Trainer;
using runtime::TrainingData;
using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
Tensor tensor(runtime::Shape shape, const std::vector<T>& values) {
  return Tensor::of<T>(std::move(shape), values);
}

const std::string kLinear =
    "#[version = \"1\"]\n"
    "const $w: Tensor[(2, 3), f32] = [0.5, -0.25, 1, 0.125, 0.75, -0.5];\n"
    "const $b: Tensor[(2,), f32] = [0.25, -0.125];\n"
    "def @main(%x: Tensor[(4, 3), f32]) { let %y = dense(%x, $w); let %z = bias_add(%y, $b); %z * 2f32 }\n";

struct Made {
  Model model;
  std::vector<LiftedParameter> weights;
  runtime::Executable executable;
};

Made make(const std::string& text, const StepOptions& options) {
  Made made{.model = {.context = std::make_unique<Context>(), .module = {}, .entry = {}, .name = "m"},
            .weights = {},
            .executable = {}};
  Context& context = *made.model.context;
  auto module = parse(context, text);
  EXPECT_TRUE(module) << module.error().str();
  made.model.module = std::move(*module);
  made.model.entry = context.symbol("main");
  auto weights = lift_parameters(context, made.model.module, made.model.entry);
  EXPECT_TRUE(weights) << weights.error().str();
  made.weights = std::move(*weights);
  const Status status = make_training_step(context, made.model.module, made.weights, options);
  EXPECT_TRUE(status) << status.error().str();
  auto simplified = run_passes(context, std::move(made.model.module), standard_passes(), {.verify = true});
  EXPECT_TRUE(simplified) << simplified.error().str();
  made.model.module = std::move(*simplified);
  auto compiled = compile(made.model, {});
  EXPECT_TRUE(compiled) << compiled.error().str();
  made.executable = std::move(compiled->executable);
  return made;
}

NamedTensors first_weights() {
  return {{"y.w", tensor<float>({2, 3}, {0.5, -0.25, 1, 0.125, 0.75, -0.5})},
          {"z.b", tensor<float>({2}, {0.25, -0.125})}};
}

// The executable becomes one with states, and outlives the trainer.
Expected<Trainer> trainer_of(runtime::Executable& step, const NamedTensors& weights) {
  TENON_TRY(runtime::add_states(step, weights));
  return Trainer::create(step, {});
}

TrainingData samples() {
  return {{tensor<float>({4, 3}, {1, 0.5, -1, 0.25, 2, 0, -0.5, 1, 1.5, -1, 0, 0.75})},
          tensor<float>({4, 2}, {1, 0, 0.5, -1, 2, 1, -0.5, 0.25})};
}

TEST(LiftParameters, NamesWeightsByTheirUse) {
  Context context;
  auto module = parse(context, kLinear);
  ASSERT_TRUE(module) << module.error().str();
  const Symbol main = context.symbol("main");
  Module frozen = clone(*module);
  const auto found = lift_parameters(context, *module, main);
  ASSERT_TRUE(found) << found.error().str();
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ((*found)[0].name, "y.w");
  EXPECT_EQ((*found)[1].name, "z.b");
  EXPECT_EQ(module->function(main)->params.size(), 3U);
  const auto left = lift_parameters(context, frozen, main, {"y.w"});
  ASSERT_TRUE(left) << left.error().str();
  ASSERT_EQ(left->size(), 1U);
  EXPECT_EQ((*left)[0].name, "z.b");
}

TEST(LiftParameters, SaysWhichWeightsThereAre) {
  Context context;
  auto module = parse(context, kLinear);
  ASSERT_TRUE(module);
  auto unknown = lift_parameters(context, *module, context.symbol("main"), {"w"});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().str(), HasSubstr("no weight has the name 'w'"));
  EXPECT_THAT(unknown.error().str(), HasSubstr("the weights are y.w, z.b"));
  auto none = parse(context, "#[version = \"1\"]\ndef @main(%x: Tensor[(4,), f32]) { %x * 2f32 }\n");
  auto error = lift_parameters(context, *none, context.symbol("main"));
  ASSERT_FALSE(error);
  EXPECT_THAT(error.error().str(), HasSubstr("@main has no weights to train"));
}

TEST(TrainingStep, RefusesWhatDoesNotFitTheLoss) {
  const auto error_of = [](const std::string& text, const std::string& loss) {
    Context context;
    auto module = parse(context, "#[version = \"1\"]\nconst $w: Tensor[(3,), f32] = [1, 2, 3];\n" + text);
    EXPECT_TRUE(module) << module.error().str();
    const auto weights = lift_parameters(context, *module, context.symbol("main"));
    EXPECT_TRUE(weights);
    const Status status = make_training_step(context, *module, *weights, {.loss = loss});
    return status ? "" : status.error().str();
  };
  EXPECT_THAT(error_of("def @main(%x: Tensor[(3,), f32]) { %x * $w }\n", "cross_entropy"),
              HasSubstr("Tensor[(3,), f32]: cross_entropy needs scores [N, C]"));
  EXPECT_THAT(error_of("def @main(%x: Tensor[(3,), f32]) { %x > $w }\n", "mse"),
              HasSubstr("Tensor[(3,), bool]: a loss needs a tensor of floats"));
  EXPECT_THAT(error_of("def @main(%x: (Tensor[(3,), f32],)) { %x.0 * $w }\n", "mse"),
              HasSubstr("the input 'x' is (Tensor[(3,), f32],): training takes tensors"));
  EXPECT_THAT(error_of("def @main(%x: Tensor[(3,), f32]) { %x * $w }\n", "hinge"),
              HasSubstr("there is no loss 'hinge'"));
}

// The mean square error of kLinear and its gradients, in double.
struct Linear {
  std::vector<double> weight{0.5, -0.25, 1, 0.125, 0.75, -0.5, 0.25, -0.125};  // w, b

  double gradient(std::vector<double>& gradient) const {
    const TrainingData data = samples();
    gradient.assign(8, 0);
    double loss = 0;
    for (int n = 0; n < 4; ++n) {
      for (int m = 0; m < 2; ++m) {
        double y = weight[6 + m];
        for (int k = 0; k < 3; ++k) y += data.inputs[0].data<float>()[n * 3 + k] * weight[m * 3 + k];
        const double difference = 2 * y - data.labels.data<float>()[n * 2 + m];
        loss += difference * difference / 8;
        for (int k = 0; k < 3; ++k) gradient[m * 3 + k] += difference * data.inputs[0].data<float>()[n * 3 + k] / 2;
        gradient[6 + m] += difference / 2;
      }
    }
    return loss;
  }
};

class Optimizers : public testing::TestWithParam<std::string> {};

TEST_P(Optimizers, StepAsTheirFormulas) {
  const std::string name = GetParam();
  StepOptions options{.loss = "mse", .optimizer = name};
  options.numbers.decay = 0.02;
  options.clip = 1.5;
  Made made = make(kLinear, options);
  auto trainer = trainer_of(made.executable, first_weights());
  ASSERT_TRUE(trainer) << trainer.error().str();
  const std::vector<int64_t> order{0, 1, 2, 3};
  Linear expected;
  std::vector<double> first(8), second(8);
  for (int step = 1; step <= 3; ++step) {
    const double rate = 0.1 / step;
    std::vector<double> gradient;
    const double loss = expected.gradient(gradient);
    const auto found = trainer->step(samples(), order, rate);
    ASSERT_TRUE(found) << found.error().str();
    EXPECT_NEAR(*found, loss, 1e-5 * loss);
    double norm = 0;
    for (const double g : gradient) norm += g * g;
    norm = std::sqrt(norm);
    for (size_t i = 0; i < 8; ++i) {
      double g = gradient[i] * (norm > 1.5 ? 1.5 / norm : 1), w = expected.weight[i];
      if (name != "adamw") g += 0.02 * w;
      double& m = first[i];
      double& s = second[i];
      if (name == "sgd") w -= rate * g;
      if (name == "momentum") w -= rate * (m = 0.9 * m + g);
      if (name == "nesterov") {
        m = 0.9 * m + g;
        w -= rate * (g + 0.9 * m);
      }
      if (name == "rmsprop") w -= rate * g / (std::sqrt(s = 0.999 * s + 0.001 * g * g) + 1e-8);
      if (name == "adam" || name == "adamw") {
        m = 0.9 * m + 0.1 * g;
        s = 0.999 * s + 0.001 * g * g;
        if (name == "adamw") w -= rate * 0.02 * w;
        w -= rate * (m / (1 - std::pow(0.9, step))) / (std::sqrt(s / (1 - std::pow(0.999, step))) + 1e-8);
      }
      expected.weight[i] = w;
    }
    const NamedTensors weights = trainer->weights();
    for (size_t i = 0; i < 8; ++i) {
      const float value = i < 6 ? weights.at("y.w").data<float>()[i] : weights.at("z.b").data<float>()[i - 6];
      EXPECT_NEAR(value, expected.weight[i], 2e-4) << "step " << step << ", weight " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Optimizers, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const OptimizerRecord& record : optimizers()) names.emplace_back(record.name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

TEST(OptimizersByName, ListThemselves) {
  Context context;
  Module module;
  const auto found = make_optimizer(context, module, "sgdm", {});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().str(), HasSubstr("there are sgd, momentum, nesterov, adam, adamw, rmsprop, and your own"));
}

// A file that a test writes, with a module of the language.
struct ModuleFile {
  std::string path;
  explicit ModuleFile(const std::string& text) : path(testing::TempDir() + "optimizer_test.tn") {
    EXPECT_TRUE(write_file(path, "#[version = \"1\"]\n" + text));
  }
  ~ModuleFile() { std::filesystem::remove(path); }
};

TEST(OptimizersByName, MayBeTheUsersOwn) {
  const ModuleFile file(
      "const $m: Tensor[(1,), f32] = [0.9];\n"
      "def @faster[n](%v: Tensor[(n,), f32], %g: Tensor[(n,), f32]) { %v * $m + %g }\n"
      "def @update[n](%w: Tensor[(n,), f32], %g: Tensor[(n,), f32], %velocity: Tensor[(n,), f32],\n"
      "               %rate: Tensor[(), f32], %step: Tensor[(), f32]) {\n"
      "  let %v = @faster(%velocity, %g);\n  (%w - %rate * %v, %v)\n}\n");
  Made own = make(kLinear, {.loss = "mse", .optimizer = file.path});
  Made known = make(kLinear, {.loss = "mse", .optimizer = "momentum"});
  auto by_own = trainer_of(own.executable, first_weights()), by_name = trainer_of(known.executable, first_weights());
  ASSERT_TRUE(by_own && by_name);
  EXPECT_EQ(own.executable.main().params[2].name, "state.y.w.velocity");
  for (int i = 0; i < 4; ++i) {
    const auto a = by_own->step(samples(), std::vector<int64_t>{0, 1, 2, 3}, 0.05);
    const auto b = by_name->step(samples(), std::vector<int64_t>{0, 1, 2, 3}, 0.05);
    ASSERT_TRUE(a && b);
    EXPECT_NEAR(*a, *b, 1e-6) << i;
  }
}

TEST(OptimizersByName, AreRefusedWithTheTypeThatIsRequired) {
  const auto message = [](const std::string& text) {
    const ModuleFile file(text);
    Context context;
    Module module;
    const auto made = make_optimizer(context, module, file.path, {});
    return made ? "" : made.error().str();
  };
  const std::string vector = "Tensor[(n,), f32]", scalar = "Tensor[(), f32]";
  EXPECT_THAT(message("def @step(%w: Tensor[(), f32]) { %w }\n"), HasSubstr("the module has no function @update"));
  EXPECT_THAT(message("def @update[n](%w: " + vector + ", %g: " + vector + ", %rate: " + scalar + ") { (%w,) }\n"),
              HasSubstr("@update has 3 parameters and returns (Tensor[(n,), f32],)"));
  EXPECT_THAT(message("def @update(%w: Tensor[(3,), f32], %g: Tensor[(3,), f32], %rate: " + scalar +
                      ", %step: " + scalar + ") { (%w,) }\n"),
              HasSubstr("@update takes Tensor[(3,), f32]"));
  EXPECT_THAT(message("def @update[n](%w: " + vector + ", %g: " + vector + ", %rate: " + scalar +
                      ", %step: Tensor[(), " + "i64]) { (%w,) }\n"),
              HasSubstr("the parameter 'step' of @update is Tensor[(), i64], must be Tensor[(), f32]"));
  EXPECT_THAT(message("def @update[n](%w: " + vector + ", %g: " + vector + ", %rate: " + scalar + ", %step: " + scalar +
                      ") { (%rate,) }\n"),
              HasSubstr("@update returns (Tensor[(), f32],)"));
  EXPECT_THAT(message("def @update("), HasSubstr("optimizer_test.tn:2:"));
}

TEST(TrainingStep, ComputesItsSamplesInParts) {
  std::string half = kLinear;
  half.replace(half.find("(4, 3)"), 6, "(2, 3)");
  Made whole = make(kLinear, {.loss = "mse", .optimizer = "adam", .clip = 0.5});
  Made parts = make(half, {.loss = "mse", .optimizer = "adam", .clip = 0.5, .parts = 2});
  auto at_once = trainer_of(whole.executable, first_weights()),
       in_parts = trainer_of(parts.executable, first_weights());
  ASSERT_TRUE(at_once && in_parts) << in_parts.error().str();
  EXPECT_EQ(in_parts->batch(), 4);
  for (int i = 0; i < 4; ++i) {
    const auto a = at_once->step(samples(), std::vector<int64_t>{3, 1, 0, 2}, 0.05);
    const auto b = in_parts->step(samples(), std::vector<int64_t>{3, 1, 0, 2}, 0.05);
    ASSERT_TRUE(a && b);
    EXPECT_NEAR(*a, *b, 1e-5) << i;
  }
}

// The sizes of a loop's result are those of the labels.
TEST(Trainer, TrainsThroughALoopOfErasedSizes) {
  Made loop = make(
      "#[version = \"1\"]\n"
      "const $w: Tensor[(2, 3), f32] = [0.5, -0.25, 1, 0.125, 0.75, -0.5];\n"
      "const $b: Tensor[(2,), f32] = [0.25, -0.125];\n"
      "def @double(%x: Tensor[(?, 2), f32], %n: Tensor[(), i64]) -> Tensor[(?, 2), f32] {\n"
      "  if (%n < 1i64) { %x } else { @double(%x * 2f32, %n - 1i64) }\n"
      "}\n"
      "def @main(%x: Tensor[(4, 3), f32]) -> Tensor[(?, 2), f32] {\n"
      "  let %y = dense(%x, $w); let %z = bias_add(%y, $b); @double(%z, 1i64)\n"
      "}\n",
      {.loss = "mse", .optimizer = "adam"});
  Made plain = make(kLinear, {.loss = "mse", .optimizer = "adam"});
  auto through = trainer_of(loop.executable, first_weights());
  auto expected = trainer_of(plain.executable, first_weights());
  ASSERT_TRUE(through && expected);
  const std::vector<int64_t> order{3, 1, 0, 2};
  for (int i = 0; i < 6; ++i) {
    const auto loss = through->step(samples(), order, 0.05), wanted = expected->step(samples(), order, 0.05);
    ASSERT_TRUE(loss && wanted) << loss.error().str();
    EXPECT_NEAR(*loss, *wanted, 1e-6) << i;
  }
}

TEST(Trainer, ContinuesFromItsFileWithTheSameBits) {
  Made made = make(kLinear, {.loss = "mse", .optimizer = "adam"});
  const std::string path = testing::TempDir() + "trainer_test.npz";
  const std::vector<int64_t> order{3, 1, 0, 2};
  auto whole = trainer_of(made.executable, first_weights());
  auto part = trainer_of(made.executable, first_weights());
  ASSERT_TRUE(whole && part);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(whole->step(samples(), order, 0.05));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(part->step(samples(), order, 0.05));
  ASSERT_TRUE(part->save(path, {{"note", tensor<float>({1}, {7})}}));
  auto continued = trainer_of(made.executable, first_weights());
  ASSERT_TRUE(continued);
  const auto extra = continued->load(path);
  ASSERT_TRUE(extra) << extra.error().str();
  EXPECT_EQ(extra->at("note").data<float>()[0], 7);
  EXPECT_EQ(continued->steps(), 3);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(continued->step(samples(), order, 0.05));
  for (const auto& [name, weight] : whole->weights()) EXPECT_EQ(weight, continued->weights().at(name)) << name;

  Made other = make(kLinear, {.loss = "mse", .optimizer = "momentum"});
  auto wrong = trainer_of(other.executable, first_weights());
  ASSERT_TRUE(wrong);
  const auto refused = wrong->load(path);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("the state has no 'state.y.w.velocity'"));
  EXPECT_THAT(refused.error().str(), HasSubstr("another model or another optimizer"));
  std::filesystem::remove(path);
}

TEST(Trainer, KeepsTheLastWeightsWhereTheLossIsNotFinite) {
  Made made = make(kLinear, {.loss = "mse", .optimizer = "sgd"});
  auto trainer = trainer_of(made.executable, first_weights());
  ASSERT_TRUE(trainer);
  const std::vector<int64_t> order{0, 1, 2, 3};
  Expected<double> loss = 0;
  NamedTensors before;
  for (int i = 0; i < 200 && loss; ++i) {
    before = trainer->weights();
    loss = trainer->step(samples(), order, 1e6);
  }
  ASSERT_FALSE(loss);
  EXPECT_THAT(loss.error().str(), HasSubstr("; the first infinite value is element 0 of the (4, 2) of instruction "));
  for (const auto& [name, weight] : trainer->weights()) EXPECT_EQ(weight, before.at(name));
  // A weight that is not finite is named itself.
  NamedTensors broken = trainer->weights();
  broken.begin()->second.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(trainer->set_weights(broken));
  loss = trainer->step(samples(), order, 0.1);
  ASSERT_FALSE(loss);
  EXPECT_THAT(loss.error().str(), HasSubstr("; 'weight." + broken.begin()->first + "' was not finite before it"));
}

TEST(Trainer, NamesTheSampleThatDoesNotFit) {
  Made made = make(kLinear, {.loss = "mse", .optimizer = "sgd"});
  auto trainer = trainer_of(made.executable, first_weights());
  ASSERT_TRUE(trainer);
  TrainingData data = samples();
  EXPECT_TRUE(trainer->check(data, 0));
  data.inputs[0].data<float>()[7] = NAN;
  EXPECT_THAT(trainer->check(data, 0).error().str(), HasSubstr("sample 2 of 'x' has a value that is not finite"));
  data = samples();
  data.labels = tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(trainer->check(data, 0).error().str(), HasSubstr("'x' has 4 samples, and there are 3 labels"));
  data.inputs[0] = tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(trainer->check(data, 0).error().str(),
              HasSubstr("the data of 'x' is f32 (3, 2), the model takes x: f32"));
  data.inputs.clear();
  EXPECT_THAT(trainer->check(data, 0).error().str(), HasSubstr("the model has 1 inputs, the data 0"));
  NamedTensors weights = first_weights();
  weights.erase("z.b");
  EXPECT_THAT(trainer_of(made.executable, weights).error().str(), HasSubstr("the weight 'weight.z.b' is missing"));
  weights.emplace("z.b", tensor<float>({1}, {0}));
  EXPECT_THAT(trainer_of(made.executable, weights).error().str(), HasSubstr("the weight 'weight.z.b' is f32 (1,)"));
}

TEST(Trainer, RefusesOtherExecutables) {
  Context context;
  Model model{.context = std::make_unique<Context>(), .module = {}, .entry = {}, .name = "m"};
  auto module = parse(*model.context, kLinear);
  ASSERT_TRUE(module);
  model.module = std::move(*module);
  model.entry = model.context->symbol("main");
  auto compiled = compile(model, {});
  ASSERT_TRUE(compiled) << compiled.error().str();
  EXPECT_THAT(Trainer::create(compiled->executable, {}).error().str(),
              HasSubstr("the executable is no step of training: no run of it updates a tensor"));
  EXPECT_THAT(trainer_of(compiled->executable, {}).error().str(),
              HasSubstr("the executable is no step of training: its first input is no weight"));
}

TEST(Shuffled, IsAPermutationThatDependsOnSeedAndEpoch) {
  const std::vector<int64_t> order = runtime::shuffled(100, 1, 0);
  std::vector<int64_t> sorted = order;
  std::ranges::sort(sorted);
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
  EXPECT_EQ(order, runtime::shuffled(100, 1, 0));
  EXPECT_NE(order, runtime::shuffled(100, 1, 1));
  EXPECT_NE(order, runtime::shuffled(100, 2, 0));
  EXPECT_THAT(runtime::shuffled(5, 1, 0),
              ElementsAre(runtime::shuffled(5, 1, 0)[0], testing::_, testing::_, testing::_, testing::_));
}

}  // namespace
}  // namespace tenon::compiler
