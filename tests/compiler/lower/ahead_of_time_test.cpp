// Functions of the virtual machine that are compiled ahead of time compute what the machine computes, fail as it fails,
// and end at the same limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "compiler/backends/llvm/compile_functions.h"
#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "tests/runtime/vm/list_executable.h"

namespace tenon::compiler {
namespace {

using runtime::DType;
using runtime::Executable;
using runtime::number;
using runtime::ScalarCompute;
using runtime::ScalarOp;
using runtime::SessionOptions;
using runtime::Tensor;
using testing::HasSubstr;

Executable compiled(Executable e) {
  auto code = native::compile_functions(e);
  EXPECT_TRUE(code) << code.error().str();
  if (code) e.compiled = std::move(*code);
  return e;
}

TEST(AheadOfTime, ListsClosuresAndReferencesCompute) {
  const Executable e = compiled(runtime::list_executable());
  EXPECT_EQ(runtime::run(e, 10), "550 550 3 ");
  EXPECT_EQ(runtime::run(runtime::deserialize(runtime::serialize(e).value(), "memory").value(), 100),
            "505000 505000 3 ");
  EXPECT_EQ(runtime::run(e, 10, {.native = false}), "550 550 3 ") << "the instructions are in the file too";
  EXPECT_EQ(runtime::run(e, 10, {.hook = [](const runtime::Step&) -> Status { return {}; }}), "550 550 3 ");
}

// Each instruction that finds a wrong word says what the machine says, and where.
TEST(AheadOfTime, ErrorsAreTheMachines) {
  const auto compare = [](size_t function, size_t instruction, runtime::Operation operation) {
    Executable e = runtime::list_executable();
    e.functions[function].code[instruction].operation = std::move(operation);
    const std::string expected = runtime::run(e, 3);
    EXPECT_THAT(expected, HasSubstr("instruction"));
    EXPECT_EQ(runtime::run(compiled(std::move(e)), 3), expected);
  };
  compare(0, 10, runtime::ReadReference{8, 3});
  compare(0, 10, runtime::ReadReference{8, 4});
  compare(0, 10, runtime::CallClosure{5, {3}, {8}});
  compare(0, 9, runtime::CallClosure{4, {3, 3}, {8}});
  compare(2, 1, runtime::ReadField{3, 0, 2});
  compare(2, 0, runtime::Switch{2, 0, {1, 9}});
  compare(2, 0, runtime::Move{3, 7});
  compare(3, 0, ScalarCompute{ScalarOp::kAdd, DType::kF32, 3, 0, 1});
  compare(1, 1, ScalarCompute{ScalarOp::kDivide, DType::kI64, 3, 0, 2});
  compare(1, 2, runtime::Branch{1, 4});
  compare(1, 2, runtime::Branch{4, 4});
}

TEST(AheadOfTime, RunsEndAtTheirLimits) {
  const Executable lists = compiled(runtime::list_executable());
  EXPECT_THAT(runtime::run(lists, 1000, {.max_steps = 500}), HasSubstr("the run takes more than 500 instructions"));
  EXPECT_THAT(runtime::run(lists, 1000, {.max_bytes = 1000}), HasSubstr("the values of the run take more than 1000"));
  // A loop of nothing but jumps and scalars, which makes no call.
  Executable endless = runtime::list_executable();
  endless.functions[0].registers = 4;
  endless.functions[0].code = {{runtime::LoadConstant{3, 1}, ""},
                               {ScalarCompute{ScalarOp::kAdd, DType::kI64, 3, 3, 3}, ""},
                               {runtime::Jump{1}, ""}};
  endless = compiled(std::move(endless));
  EXPECT_THAT(runtime::run(endless, 1, {.max_steps = 1'000'000}), HasSubstr("more than 1000000 instructions"));
  EXPECT_THAT(runtime::run(endless, 1, {.max_time = std::chrono::milliseconds(20)}), HasSubstr("more than 20 ms"));
  const std::atomic<bool> cancel = true;
  EXPECT_THAT(runtime::run(endless, 1, {.cancel = &cancel}), HasSubstr("the run was cancelled"));
}

Executable lowered(const std::string& text) {
  Context context;
  auto module = parse(context, "#[version = \"1\"]\n" + text);
  EXPECT_TRUE(module) << module.error().str();
  auto executable = lower(context, *module, context.symbol("main"), {},
                          {.name = "test", .facts = {}, .cpu = {.native = false, .ahead_of_time = true}});
  EXPECT_TRUE(executable) << executable.error().str();
  EXPECT_TRUE(executable->compiled);
  return std::move(*executable);
}

TEST(AheadOfTime, RecursionIsAsDeepAsTheMachines) {
  const Executable e = lowered(R"(
    def @sum(%n: Tensor[(), i64]) -> Tensor[(), i64] { if (%n < 1i64) { 0i64 } else { %n + @sum(%n - 1i64) } }
    def @main(%n: Tensor[(), i64]) -> Tensor[(), i64] { @sum(%n) })");
  auto session = runtime::Session::create(e, {});
  ASSERT_TRUE(session) << session.error().str();
  const auto results = session->run(std::vector{number(1'000'000)});
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ((*results)[0], number(500'000'500'000));
  session = runtime::Session::create(e, {.max_stack = 10'000});
  EXPECT_THAT(session->run(std::vector{number(1'000'000)}).error().str(), HasSubstr("the calls nest too deep"));
}

TEST(AheadOfTime, ABranchReadsATensorOfOneElement) {
  Executable e;
  e.name = "branch";
  e.constants = {number(0), number(1)};
  e.functions.push_back({.name = "main",
                         .params = {{"c", DType::kBool, {runtime::kAnySize}}},
                         .results = {{"y", DType::kI64, {}}},
                         .registers = 2,
                         .code = {{runtime::Branch{0, 3}, ""},
                                  {runtime::LoadConstant{1, 1}, ""},
                                  {runtime::Return{{1}}, ""},
                                  {runtime::LoadConstant{1, 0}, ""},
                                  {runtime::Return{{1}}, ""}}});
  e = compiled(std::move(e));
  auto session = runtime::Session::create(e, {});
  ASSERT_TRUE(session) << session.error().str();
  Tensor condition(DType::kBool, {1});
  EXPECT_EQ(session->run(std::vector{condition}).value()[0], number(0));
  condition.data<bool>()[0] = true;
  EXPECT_EQ(session->run(std::vector{condition}).value()[0], number(1));
  EXPECT_THAT(session->run(std::vector{Tensor(DType::kBool, {2})}).error().str(), HasSubstr("a branch on bool"));
}

// Every operation on every dtype, on values at the edges of each.
TEST(AheadOfTime, ScalarsAreTheMachinesBitForBit) {
  Executable e;
  e.name = "scalars";
  std::vector<std::pair<ScalarOp, DType>> operations;
  for (size_t op = 0; op < runtime::kScalarOps; ++op) {
    for (size_t dtype = 0; dtype < runtime::kDTypeCount; ++dtype) {
      if (runtime::is_defined(static_cast<ScalarOp>(op), static_cast<DType>(dtype)))
        operations.emplace_back(static_cast<ScalarOp>(op), static_cast<DType>(dtype));
    }
  }
  size_t compared = 0;
  for (const auto& [op, dtype] : operations) {
    const DType result = op >= ScalarOp::kEqual && op <= ScalarOp::kGreaterEqual ? DType::kBool : dtype;
    e.functions = {{.name = "main",
                    .params = {{"a", dtype, {}}, {"b", dtype, {}}},
                    .results = {{"y", result, {}}},
                    .registers = 3,
                    .code = {{ScalarCompute{op, dtype, 2, 0, 1}, ""}, {runtime::Return{{2}}, ""}}}};
    e.compiled.reset();
    const Executable with_code = compiled(e);
    auto interpreted = runtime::Session::create(e, {}), code = runtime::Session::create(with_code, {});
    ASSERT_TRUE(interpreted && code);
    std::vector<Tensor> values;
    runtime::with_dtype<runtime::kAnyDType.without(runtime::kStorageTypes)>(dtype, [&]<class T>(T) {
      std::vector<T> edges{T(0), T(1), std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()};
      if constexpr (std::is_signed_v<T>) edges.push_back(T(-1));
      if constexpr (std::is_floating_point_v<T>) {
        edges.insert(edges.end(), {T(-0.0), T(2.5), T(NAN), T(INFINITY), std::numeric_limits<T>::denorm_min()});
      }
      for (const T edge : edges) {
        values.emplace_back(dtype, runtime::Shape{});
        values.back().template data<T>()[0] = edge;
      }
    });
    for (const Tensor& a : values) {
      for (const Tensor& b : values) {
        const std::vector<Tensor> inputs{a, b};
        const auto expected = interpreted->run(inputs), found = code->run(inputs);
        ASSERT_EQ(expected.has_value(), found.has_value()) << name(op) << " of " << name(dtype);
        if (!expected) EXPECT_EQ(expected.error().str(), found.error().str());
        else EXPECT_TRUE(std::ranges::equal((*expected)[0].bytes(), (*found)[0].bytes())) << name(op) << name(dtype);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 2000u);
}

TEST(AheadOfTime, CodeThatDoesNotFitIsRefused) {
  const auto message = [](const Executable& e) {
    const auto session = runtime::Session::create(e, {});
    return session ? "a session" : session.error().str();
  };
  Executable e = compiled(runtime::list_executable());
  Executable other = e;
  other.functions.push_back(other.functions.back());
  EXPECT_THAT(message(other), HasSubstr("the code has 4 functions, the executable 5"));
  other = e;
  other.compiled->object.resize(100);
  EXPECT_THAT(message(other), HasSubstr("lists: functions that were compiled ahead of time: error: the native code "
                                        "cannot be loaded"));
  other = e;
  other.compiled->triple = "sparc-unknown-linux-gnu";
  EXPECT_EQ(runtime::run(other, 10), "550 550 3 ") << "another machine runs the instructions";
}

}  // namespace
}  // namespace tenon::compiler
