// Kernels of operators from a library in C (tests/runtime/native/operators_sample.c), as executables call them.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/library/library.h"
#include "runtime/vm/session.h"
#include "tests/runtime/native/sample.h"

namespace tenon::runtime {
namespace {

using namespace std::chrono_literals;

Tensor floats(std::vector<float> values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, std::span<const float>(values));
}

class Operators : public testing::Test {
 protected:
  void SetUp() override { setenv("TENON_DRIVER_PATH", TENON_SAMPLE_FOLDER, 1); }
  void TearDown() override { unsetenv("TENON_DRIVER_PATH"); }

  // One call with parameters of these shapes and results of any.
  static Executable call_of(CallKernel call, std::vector<Port> params) {
    Executable e;
    e.name = "operators";
    std::vector<Port> results;
    for (size_t i = 0; i < call.results.size(); ++i)
      results.push_back({.name = "y" + std::to_string(i), .type = "Any"});
    const Registers values = call.results;
    e.functions.push_back({.name = "main",
                           .params = std::move(params),
                           .results = std::move(results),
                           .registers = 4,
                           .code = {{std::move(call), "layer"}, {Return{values}, ""}}});
    return e;
  }
  static std::string failure(const Executable& executable, std::vector<Tensor> inputs, SessionOptions options = {}) {
    auto session = Session::create(executable, std::move(options));
    if (!session) return session.error().str();
    const auto results = session->run(inputs);
    return results ? "it ran" : results.error().str();
  }
  const Port x_{"x", DType::kF32, {kAnySize}}, w_{"w", DType::kF32, {1}};
};

TEST_F(Operators, GetAttributesAndMakeTheirResults) {
  const Executable executable =
      call_of({"sample.scale", {{"factor", 0.5}, {"offsets", std::vector<int64_t>{3}}}, {0, 1}, {2, 3}}, {x_, w_});
  ASSERT_TRUE(verify(executable, "test"));
  auto session = Session::create(executable, {});
  ASSERT_TRUE(session) << session.error().str();
  for (int i = 1; i < 4; ++i) {
    const auto results = session->run(std::vector{floats({2, 4}), floats({static_cast<float>(i)})});
    ASSERT_TRUE(results) << results.error().str();
    EXPECT_EQ(results->at(0), floats({4 + static_cast<float>(i), 5 + static_cast<float>(i)}));
    EXPECT_EQ(results->at(1).data<int64_t>()[0], 100 + i) << "one open call; w is no constant, and copied each time";
  }
}

TEST_F(Operators, KeepWhatTheyMakeOfConstantsWhileTheProgramIsOpen) {
  Executable executable = call_of({"sample.scale", {{"factor", 1.0}}, {0, 1}, {2, 3}}, {x_});
  executable.constants.push_back(floats({7}));
  auto& code = executable.functions[0].code;
  code.insert(code.begin(), {LoadConstant{1, 0}, ""});
  ASSERT_TRUE(verify(executable, "test"));
  {
    auto first = Session::create(executable, {}), second = Session::create(executable, {});
    ASSERT_TRUE(first && second);
    for (int i = 0; i < 3; ++i) {
      const auto results = first->run(std::vector{floats({1})});
      ASSERT_TRUE(results) << results.error().str();
      EXPECT_EQ(results->at(0), floats({8}));
      EXPECT_EQ(results->at(1).data<int64_t>()[0], 201) << "two open calls, and one copy in all runs";
    }
  }
  auto third = Session::create(executable, {});
  ASSERT_TRUE(third);
  EXPECT_EQ(third->run(std::vector{floats({1})})->at(1).data<int64_t>()[0], 101) << "sessions close their calls";
}

TEST_F(Operators, MayMakeResultsWhoseSizesDependOnValues) {
  const Executable executable = call_of({"sample.positive", {}, {0}, {1}}, {x_});
  auto session = Session::create(executable, {});
  ASSERT_TRUE(session) << session.error().str();
  const auto some = session->run(std::vector{floats({1, -2, 3, 0, 5})}), none = session->run(std::vector{floats({-1})});
  ASSERT_TRUE(some) << some.error().str();
  ASSERT_TRUE(none) << none.error().str();
  EXPECT_EQ(some->at(0), floats({1, 3, 5}));
  EXPECT_EQ(none->at(0).shape(), Shape{0});
}

TEST_F(Operators, ReportWhatIsWrong) {
  const auto scale = [&](Attrs attrs, Registers results) {
    return call_of({"sample.scale", std::move(attrs), {0, 1}, std::move(results)}, {x_, w_});
  };
  EXPECT_HAS(failure(scale({{"speed", 1.0}}, {2}), {}), "operators: layer: error: sample: attribute speed of kernel 0");
  EXPECT_HAS(failure(scale({}, {2, 3, 1}), {floats({1}), floats({1})}), "the kernel has not made result 2");
  const Executable integers = call_of({"sample.scale", {}, {0, 0}, {1}}, {{"x", DType::kI32, {2}}});
  EXPECT_HAS(failure(integers, {Tensor(DType::kI32, {2})}), "sample.scale: two vectors of f32 are required");
  EXPECT_HAS(failure(call_of({"sample.cube", {}, {0}, {1}}, {x_}), {}), "the library sample has no kernel 'cube'");
  EXPECT_HAS(failure(call_of({"other.cube", {}, {0}, {1}}, {x_}), {}),
             "the library of kernels 'other' is not installed: there is no tenon-kernels-other.so");
  EXPECT_HAS(failure(call_of({"../sample.cube", {}, {0}, {1}}, {x_}), {}), "there is no library of kernels ''");
  const auto wrong = [&](const char* how) {
    return failure(call_of({"sample.wrong", {{"text", std::string(how)}}, {0}, {1}}, {x_}), {floats({1})});
  };
  EXPECT_HAS(wrong("index"), "the kernel makes result 7, and has 1");
  EXPECT_HAS(wrong("twice"), "the kernel makes result 0 twice");
  EXPECT_HAS(wrong("dtype"), "result 0 has dtype 99, which does not exist");
  EXPECT_HAS(wrong("shape"), "result 0 cannot be of shape (-1,)");
  EXPECT_HAS(wrong("silent"), "the kernel failed");
  EXPECT_HAS(wrong("missing"), "the kernel has not made result 0");
}

TEST_F(Operators, EndWhenTheRunIsCancelledOrLate) {
  const Executable executable = call_of({"sample.endless", {}, {0}, {1}}, {x_});
  EXPECT_HAS(failure(executable, {floats({1})}, {.max_time = 20ms}), "the run takes more than 20 ms");
  for (const unsigned threads : {1u, 2u}) {
    std::atomic<bool> cancelled = false;
    std::jthread canceller([&] {
      std::this_thread::sleep_for(20ms);
      cancelled = true;
    });
    EXPECT_HAS(failure(executable, {floats({1})}, {.threads = threads, .cancel = &cancelled}), "the run was cancelled");
  }
}

TEST_F(Operators, OfALibraryAreListed) {
  const std::vector<std::string> names = library_names();
  EXPECT_NE(std::ranges::find(names, "sample"), names.end());
  EXPECT_NE(std::ranges::find(names, "dnnl"), names.end());
  const auto library = open_library("sample");
  ASSERT_TRUE(library);
  EXPECT_EQ(doc(**library), "four kernels for tests");
}

}  // namespace
}  // namespace tenon::runtime
