// States that a session keeps: written in place where no one else sees it, and never half replaced without a word.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <vector>

#include "runtime/vm/session.h"
#include "tests/runtime/native/sample.h"

namespace tenon::runtime {
namespace {

// seen = x + 1, and the next values of the states are s + 1 and t + 1.
Executable counting_executable() {
  Executable e;
  e.name = "counting";
  const auto port = [](const char* name) { return Port{name, DType::kI32, {50}}; };
  e.functions.push_back({"main",
                         {port("s"), port("x"), port("t")},
                         {port("seen"), port("next_s"), port("next_t")},
                         6,
                         {{CallNative{0, 0, {1}, {3}}, "see"},
                          {Kill{{1}}, ""},
                          {CallNative{0, 0, {0}, {4}}, "step_s"},
                          {Kill{{0}}, ""},
                          {CallNative{0, 0, {2}, {5}}, "step_t"},
                          {Kill{{2}}, ""},
                          {Return{{3, 4, 5}}, ""}}});
  e.natives.push_back(sample::native_code());
  e.natives[0].kernels[0].signature.in_place = {{0, 0}};
  e.constants.push_back(sample::count_up(50));
  e.states = {{.param = 0, .result = 1, .first = 0}, {.param = 2, .result = 2, .first = std::nullopt}};
  return deserialize(serialize(e).value(), "memory").value();
}

const auto always = [](const Tensor&) { return true; };

class States : public testing::Test {
 protected:
  Session open(SessionOptions options = {}) {
    options.threads = 1;
    auto session = Session::create(executable, std::move(options));
    EXPECT_TRUE(session) << session.error().str();
    return std::move(*session);
  }
  int32_t element(const Session& session, size_t state) const { return session.state(state).data<int32_t>()[49]; }

  const Executable executable = counting_executable();
  const std::vector<Tensor> inputs{sample::count_up(50)};
  std::vector<Tensor> results;
};

TEST_F(States, AreReplacedInTheirMemory) {
  for (const bool hook : {false, true}) {
    Session session = open(hook ? SessionOptions{.hook = [](const Step&) { return Status(); }} : SessionOptions{});
    const void* memory = nullptr;
    for (int i = 1; i <= 5; ++i) {
      ASSERT_TRUE(session.update(inputs, results, always));
      ASSERT_EQ(results.size(), 1u);
      EXPECT_EQ(results[0].data<int32_t>()[49], 150);
      EXPECT_EQ(element(session, 0), 149 + i);
      EXPECT_EQ(element(session, 1), i);
      if (hook) continue;
      // The first run records its calls.
      EXPECT_EQ(session.memory().allocations, i == 1 ? 3u : 1u) << i;
      if (i > 1) {
        EXPECT_EQ(session.state(0).bytes().data(), memory);
      }
      memory = session.state(0).bytes().data();
    }
  }
  EXPECT_EQ(executable.constants[0], sample::count_up(50)) << "the first value is the executable's";
}

TEST_F(States, AreReplacedUnderABudget) {
  Session session = open({.budget = 1 << 20});
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(session.update(inputs, results, always));
    EXPECT_EQ(element(session, 0), 149 + i);
  }
}

TEST_F(States, KeepTheirValueForWhoHasAHandle) {
  Session session = open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(session.update(inputs, results, always));
  const Tensor held = session.state(0);
  ASSERT_TRUE(session.update(inputs, results, always));
  EXPECT_EQ(held.data<int32_t>()[49], 152);
  EXPECT_EQ(element(session, 0), 153);
  // A result that is the caller's is none of the states.
  Tensor seen = results[0];
  ASSERT_TRUE(session.update(inputs, results, always));
  EXPECT_EQ(seen, results[0]);
}

TEST_F(States, StayWhereTheirNewValuesAreNotAccepted) {
  Session session = open();
  for (int i = 1; i <= 3; ++i) {
    int asked = 0;
    const auto never = [&](const Tensor& first) {
      ++asked;
      EXPECT_EQ(first.data<int32_t>()[0], 101);
      return false;
    };
    ASSERT_TRUE(session.update(inputs, results, never));
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(element(session, 0), 148 + i);
    ASSERT_TRUE(session.update(inputs, results, always));
    EXPECT_EQ(element(session, 0), 149 + i);
  }
}

TEST_F(States, ARunThatHasWrittenOneComesToItsEnd) {
  std::atomic<bool> cancel = false;
  Session session = open({.max_steps = 100, .cancel = &cancel});
  ASSERT_TRUE(session.update(inputs, results, always));
  const auto cancelled = [&](const Tensor&) { return cancel = true; };  // before the first write
  EXPECT_TRUE(session.update(inputs, results, cancelled));
  EXPECT_EQ(element(session, 0), 151);
  const Status status = session.update(inputs, results, always);
  ASSERT_FALSE(status);
  EXPECT_HAS(status.error().str(), "the run was cancelled");
  EXPECT_EQ(element(session, 0), 151);
  EXPECT_EQ(element(session, 1), 2);
}

TEST_F(States, AreLostWithAWordWhereAKernelFailsBetween) {
  Session session = open();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(session.update(inputs, results, always));
  // A kernel that fails before any is written.
  Tensor bad = sample::count_up(50);
  bad.data<int32_t>()[20] = 13;
  EXPECT_HAS(session.update(std::vector{bad}, results, always).error().str(), "the index 20 is not in 0 .. 49");
  EXPECT_EQ(element(session, 0), 151);
  // And one after: the second state has a value that the kernel refuses.
  ASSERT_TRUE(session.set_state(1, bad.clone()));
  const Status lost = session.update(inputs, results, always);
  ASSERT_FALSE(lost);
  EXPECT_HAS(lost.error().str(),
             "the index 20 is not in 0 .. 49; the run had replaced some of the states already, so "
             "that all of them are lost");
  EXPECT_HAS(lost.error().str(), "set them again, as to those that were saved last");
  EXPECT_FALSE(session.state(0));
  EXPECT_HAS(session.update(inputs, results, always).error().str(), "a run that failed has lost the states");
  ASSERT_TRUE(session.set_state(0, sample::count_up(50)));
  ASSERT_TRUE(session.set_state(1, sample::count_up(50)));
  ASSERT_TRUE(session.update(inputs, results, always));
  EXPECT_EQ(element(session, 0), 150);
}

TEST_F(States, RefuseWhatDoesNotFit) {
  Session session = open();
  EXPECT_HAS(session.update({}, results, always).error().str(),
             "counting: error: 0 inputs were given, beside the states the model takes 1");
  EXPECT_HAS(session.update(std::vector{Tensor(DType::kI32, {3})}, results, always).error().str(),
             "input 'x' is i32 (3,), the model takes i32 (50,)");
  EXPECT_HAS(session.set_state(1, Tensor(DType::kF32, {50})).error().str(),
             "counting: error: the state 't' is f32 (50,), the model takes i32 (50,)");
  const Executable none = sample::native_executable();
  auto other = Session::create(none, {.threads = 1});
  ASSERT_TRUE(other);
  EXPECT_HAS(other->update(inputs, results, always).error().str(), "no run of the executable updates a tensor");
}

}  // namespace
}  // namespace tenon::runtime
