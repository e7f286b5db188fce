// Runs of many instances: calls of units are put off and joined, and each instance has the results and the error that
// it has alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "tests/runtime/vm/steps_executable.h"

namespace tenon::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A session's results of the instances together, which are those that it has for each of them alone.
std::vector<Expected<std::vector<Value>>> run_checked(Session& session, const std::vector<std::vector<Value>>& inputs) {
  auto together = session.run_many(inputs);
  EXPECT_EQ(together.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto alone = session.run_values(inputs[i]);
    EXPECT_EQ(alone.has_value(), together[i].has_value()) << i;
    if (!alone) {
      EXPECT_EQ(alone.error().str(), together[i].error().str());
      continue;
    }
    EXPECT_EQ((*alone)[0].tensor(), (*together[i])[0].tensor()) << i;
  }
  return together;
}

TEST(Instances, CallsOfUnitsAreJoined) {
  const Executable e = steps_executable();
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  const std::vector<std::vector<Value>> inputs{steps(3, {1, 2}), steps(5, {3, 4}), steps(0, {5, 6}), steps(3, {7, 8})};
  const auto results = session->run_many(inputs);
  EXPECT_EQ(count.calls, 5);
  EXPECT_EQ(count.most_rows, 3);
  EXPECT_THAT((*results[0])[0].tensor().data<float>(), ElementsAre(4, 5));
  EXPECT_THAT((*results[1])[0].tensor().data<float>(), ElementsAre(8, 9));
  EXPECT_THAT((*results[2])[0].tensor().data<float>(), ElementsAre(5, 6));
  EXPECT_EQ(session->batches().nodes, 11u);
  EXPECT_EQ(session->batches().calls, 5u);
  EXPECT_EQ(session->batches().flushes, 1u);
  // The rows of the first step come from the instances, two rows of 8 bytes later begin a batch and are read in place
  // where the three of them follow each other.
  EXPECT_EQ(session->batches().bytes_gathered, 24u);
  EXPECT_EQ(session->batches().bytes_in_place, 48u);
  run_checked(*session, inputs);
}

TEST(Instances, EveryPolicyComputesTheSame) {
  const Executable e = steps_executable();
  for (const std::string_view name : kBatchPolicies) {
    KernelCount count;
    auto session = Session::create(e, {.kernels = step_kernels(count), .batch_policy = *parse_batch_policy(name)});
    ASSERT_TRUE(session) << session.error().str();
    run_checked(*session, {steps(3, {1, 2}), steps(5, {3, 4}), steps(1, {5, 6})});
  }
}

TEST(Instances, DifferentShapesAreDifferentBatches) {
  const Executable e = steps_executable();
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  run_checked(*session, {steps(2, {1, 2}), steps(2, {3}), steps(2, {5, 6}), steps(2, {}), steps(2, {9})});
  EXPECT_EQ(count.most_rows, 2);
}

// The steps of x, whose elements are rows along this many first axes.
Executable rows_executable(uint32_t axes) {
  Executable e = steps_executable();
  e.functions.pop_back();
  e.units = {{.function = 1, .batched = {}, .own = {true}, .own_results = {true}, .joined_axes = axes}};
  return e;
}

TEST(Instances, IndependentRowsOfDifferentNumbersAreOneCall) {
  const Executable e = rows_executable(1);
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  const std::vector<std::vector<Value>> inputs{steps(2, {1, 2}), steps(2, {3}), steps(2, {}), steps(2, {5, 6, 7})};
  const auto results = session->run_many(inputs);
  EXPECT_EQ(count.calls, 2);
  EXPECT_THAT((*results[0])[0].tensor().data<float>(), ElementsAre(3, 4));
  EXPECT_THAT((*results[1])[0].tensor().data<float>(), ElementsAre(5));
  EXPECT_EQ((*results[2])[0].tensor().shape(), Shape{0});
  EXPECT_THAT((*results[3])[0].tensor().data<float>(), ElementsAre(7, 8, 9));
  EXPECT_EQ(session->batches().bytes_gathered, 48u);
  run_checked(*session, inputs);
  run_checked(*session, {steps(3, {}), steps(3, {})});
  EXPECT_TRUE(session->run_many({}).empty());
}

// The steps of x, a sequence: the batched function has the longest one's axis, and the lengths.
Executable sequences_executable() {
  Executable e = steps_executable();
  e.functions.back() = {.name = "unit.batched",
                        .params = {any("x"), any("lengths")},
                        .results = {any("result")},
                        .registers = 3,
                        .code = {{CallKernel{"steps", {}, {0, 1}, {2}}, "layer"}, {Return{{2}}, ""}}};
  e.units[0].sequences = e.units[0].sequence_results = {true};
  return e;
}

// steps: each element of the first `lengths[i]` of row i plus one; the others must be 0, and become NaN.
KernelLookup sequence_kernels(KernelCount& count) {
  return [&count](std::string_view name) -> CpuKernel {
    if (name != "steps") return step_kernels(count)(name);
    return [&count](const Attrs&, std::span<const Tensor> args) -> Expected<std::vector<Tensor>> {
      ++count.calls;
      count.most_rows = std::max(count.most_rows.load(), args[0].shape()[0]);
      Tensor result = args[0].clone();
      const int64_t columns = result.shape()[1];
      for (int64_t i = 0; i < result.size(); ++i) {
        float& x = result.data<float>()[static_cast<size_t>(i)];
        const bool is_step = i % columns < args[1].data<int64_t>()[static_cast<size_t>(i / columns)];
        if ((is_step && x > kTooLarge) || (!is_step && x != 0)) return error("an element is too large");
        x = is_step ? x + 1 : NAN;
      }
      return std::vector{std::move(result)};
    };
  };
}

TEST(Instances, SequencesOfDifferentLengthsAreOneCall) {
  const Executable e = sequences_executable();
  KernelCount count;
  auto session = Session::create(e, {.kernels = sequence_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  const std::vector<std::vector<Value>> inputs{steps(2, {1, 2}), steps(2, {3}), steps(2, {}), steps(2, {5, 6, 7})};
  const auto results = session->run_many(inputs);
  EXPECT_EQ(count.calls, 2);
  EXPECT_EQ(count.most_rows, 4);
  EXPECT_THAT((*results[0])[0].tensor().data<float>(), ElementsAre(3, 4));
  EXPECT_THAT((*results[1])[0].tensor().data<float>(), ElementsAre(5));
  EXPECT_EQ((*results[2])[0].tensor().shape(), Shape{0});
  EXPECT_THAT((*results[3])[0].tensor().data<float>(), ElementsAre(7, 8, 9));
  run_checked(*session, inputs);
  run_checked(*session, {steps(3, {}), steps(3, {})});
  // One that fails: the calls are repeated one by one, and the others have their results.
  const auto failing = run_checked(*session, {steps(2, {1}), steps(2, {2, kTooLarge + 1}), steps(2, {4, 5, 6})});
  EXPECT_FALSE(failing[1]);
  EXPECT_TRUE(failing[0] && failing[2]);
}

// The results of a call are parts of one tensor, which the next call reads where they are.
TEST(Instances, RowsOfAResultAreReadInPlace) {
  const Executable e = rows_executable(1);
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  const std::vector<std::vector<Value>> inputs{steps(3, std::vector<float>(16, 1)), steps(3, std::vector<float>(32, 2)),
                                               steps(3, {7})};
  session->run_many(inputs);
  EXPECT_EQ(session->batches().bytes_gathered, 196u);
  EXPECT_EQ(session->batches().bytes_in_place, 2u * 196);
  run_checked(*session, inputs);
}

// More rows than the caches hold are several calls.
TEST(Instances, ManyRowsAreSeveralCalls) {
  const Executable e = rows_executable(1);
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  std::vector<std::vector<Value>> inputs;
  for (int i = 0; i < 30; ++i) inputs.push_back(steps(1, std::vector<float>(100, static_cast<float>(i))));
  run_checked(*session, inputs);
  EXPECT_EQ(session->batches().calls, 6u);
}

// A file may say of tensors that they have axes that they do not have.
TEST(Instances, RowsThatAreNotThereAreNotJoined) {
  const Executable e = rows_executable(2);
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  run_checked(*session, {steps(2, {1, 2}), steps(2, {3}), steps(2, {5, 6})});
  EXPECT_EQ(session->batches().calls, 6u);
}

TEST(Instances, AnInstanceWhoseRowsFailFailsAlone) {
  const Executable e = rows_executable(1);
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  const auto results = run_checked(*session, {steps(3, {1, 2}), steps(3, {kTooLarge + 1}), steps(3, {5, 6, 7})});
  EXPECT_THAT(results[1].error().str(), HasSubstr("an element is too large"));
}

TEST(Instances, CallsWithLargeOperandsAreNotCopiedTogether) {
  const Executable e = steps_executable();
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  run_checked(*session, {steps(2, std::vector<float>(20000, 1)), steps(2, std::vector<float>(20000, 2))});
  EXPECT_EQ(session->batches().calls, 4u);
  EXPECT_EQ(session->batches().bytes_gathered, 0u);
}

TEST(Instances, AChainThatRunsAloneIsNotPutOffForLong) {
  const Executable e = steps_executable();
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  const std::vector<std::vector<Value>> inputs{steps(50, {1, 2}), steps(50, {3, 4})};
  for (int i = 0; i < 20; ++i) {
    const auto results = session->run_many(std::span(inputs).first(1));
    EXPECT_THAT((*results[0])[0].tensor().data<float>(), ElementsAre(51, 52));
  }
  EXPECT_EQ(session->batches().nodes, 300u);
  session->run_many(inputs);
  EXPECT_EQ(session->batches().nodes, 400u);
}

TEST(Instances, AConditionOnAUnitWaitsForIt) {
  const Executable e = until_executable();
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  const std::vector<std::vector<Value>> inputs{{row_of({1, 2})}, {row_of({-4, 0})}, {row_of({7})}, {row_of({0, 0})}};
  const auto results = session->run_many(inputs);
  EXPECT_THAT((*results[1])[0].tensor().data<float>(), ElementsAre(3, 7));
  EXPECT_THAT((*results[2])[0].tensor().data<float>(), ElementsAre(7));
  // Seven steps of the instance that needs most, and eight conditions.
  EXPECT_EQ(session->batches().flushes, 8u);
  EXPECT_EQ(count.calls, 7);
  run_checked(*session, inputs);
}

TEST(Instances, OneThatFailsHasItsOwnErrorAndTheOthersTheirResults) {
  const Executable e = steps_executable();
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  const auto results = run_checked(
      *session,
      {steps(3, {1, 2}), steps(5, {3, kTooLarge - 1}), steps(3, {5, 6}), {number(1)}, steps(2, {kTooLarge + 1})});
  EXPECT_EQ(results[1].error().str(), "steps: function 'unit', instruction 0 (layer): error: an element is too large");
  EXPECT_THAT(results[3].error().str(), HasSubstr("1 inputs were given"));
  EXPECT_FALSE(results[4]);
  EXPECT_THAT((*results[0])[0].tensor().data<float>(), ElementsAre(4, 5));
}

TEST(Instances, AnErrorAfterACallThatFailsIsNotReported) {
  Executable e = steps_executable();
  // The step is put off; the division fails at once.
  e.functions[0].code = {{LoadConstant{2, 0}, ""},
                         {CallFunction{1, {1}, {1}}, ""},
                         {ScalarCompute{ScalarOp::kDivide, DType::kI64, 4, 0, 2}, ""},
                         {Return{{1}}, ""}};
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  const auto results = run_checked(*session, {steps(1, {1}), steps(1, {kTooLarge + 1}), steps(1, {2})});
  EXPECT_THAT(results[0].error().str(), HasSubstr("division by zero"));
  EXPECT_THAT(results[1].error().str(), HasSubstr("an element is too large"));
}

TEST(Instances, LimitsOfStepsAreThoseOfAnInstance) {
  const Executable e = steps_executable();
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count), .max_steps = 100});
  ASSERT_TRUE(session) << session.error().str();
  const auto results = session->run_many(std::vector{steps(10, {1}), steps(1'000'000, {1}), steps(10, {2})});
  EXPECT_THAT((*results[0])[0].tensor().data<float>(), ElementsAre(11));
  EXPECT_THAT(results[1].error().str(), HasSubstr("the run takes more than 100 instructions"));
  EXPECT_THAT((*results[2])[0].tensor().data<float>(), ElementsAre(12));
}

TEST(Instances, ACancelledRunEndsAllOfThem) {
  const Executable e = steps_executable();
  KernelCount count;
  const std::atomic<bool> cancel = true;
  auto session = Session::create(e, {.kernels = step_kernels(count), .cancel = &cancel});
  ASSERT_TRUE(session) << session.error().str();
  for (const auto& result : session->run_many(std::vector{steps(10, {1}), steps(20, {1})})) {
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().str(), HasSubstr("the run was cancelled"));
  }
}

TEST(Instances, LimitsOfMemoryAreThoseOfSingleRuns) {
  const Executable e = steps_executable();
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count), .max_bytes = 1 << 20});
  ASSERT_TRUE(session) << session.error().str();
  run_checked(*session, {steps(3, {1, 2}), steps(5, {3, 4})});
  EXPECT_EQ(session->batches().nodes, 0u);
}

// A reference holds a result that is pending, and nothing else does, while references are collected.
TEST(Instances, ReferencesKeepResultsThatArePending) {
  Executable e = steps_executable();
  e.functions[0].registers = 7;
  e.functions[0].code = {{LoadConstant{2, 0}, ""},
                         {LoadConstant{3, 1}, ""},
                         {CallFunction{1, {1}, {1}}, ""},
                         {MakeReference{5, 1}, ""},
                         {Kill{{1}}, ""},
                         {MakeReference{6, 2}, ""},  // many of them are garbage
                         {ScalarCompute{ScalarOp::kAdd, DType::kI64, 2, 2, 3}, ""},
                         {ScalarCompute{ScalarOp::kGreaterEqual, DType::kI64, 4, 2, 0}, ""},
                         {Branch{4, 5}, ""},
                         {ReadReference{1, 5}, ""},
                         {CallFunction{1, {1}, {1}}, ""},
                         {Return{{1}}, ""}};
  KernelCount count;
  auto session = Session::create(e, {.kernels = step_kernels(count)});
  ASSERT_TRUE(session) << session.error().str();
  const auto results = run_checked(*session, {steps(3000, {1, 2}), steps(5000, {3, 4})});
  EXPECT_THAT((*results[1])[0].tensor().data<float>(), ElementsAre(5, 6));
}

}  // namespace
}  // namespace tenon::runtime
