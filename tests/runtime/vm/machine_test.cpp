// The machine's own instructions: data, closures, references, scalars, sizes, their errors and limits, files that are
// mutated, and runs in several threads.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "runtime/executable/layout.h"
#include "runtime/vm/session.h"
#include "tests/rounds.h"
#include "tests/runtime/vm/list_executable.h"
#include "tests/seed.h"

namespace tenon::runtime {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Machine, ListsClosuresAndReferencesCompute) {
  const Executable e = list_executable();
  EXPECT_EQ(run(e, 10), "550 550 3 ");
  EXPECT_EQ(run(deserialize(serialize(e).value(), "memory").value(), 100), "505000 505000 3 ");
  size_t steps = 0;
  const auto hook = [&](const Step&) -> Status {
    ++steps;
    return {};
  };
  EXPECT_EQ(run(e, 10, {.hook = hook}), "550 550 3 ") << "the loop with a hook runs the same code";
  EXPECT_GT(steps, 100u);
}

TEST(Machine, AnErrorOfTheHookNamesTheInstruction) {
  for (const std::string_view at : {"main:7", "build:8", "build:3", "fold:4", "scale:1", "fold:10"}) {
    const auto hook = [&](const Step& step) -> Status {
      if (step.function->name + ":" + std::to_string(step.index) != at) return {};
      return error("stopped here");
    };
    const size_t colon = at.find(':');
    EXPECT_HAS(run(list_executable(), 2, {.hook = hook}),
               "function '" + std::string(at.substr(0, colon)) + "', instruction " + std::string(at.substr(colon + 1)));
  }
}

TEST(Machine, InstructionsCheckWhatTheyRead) {
  const auto after = [](size_t function, size_t instruction, Operation operation) {
    Executable e = list_executable();
    e.functions[function].code[instruction].operation = std::move(operation);
    return run(e, 3);
  };
  EXPECT_HAS(after(0, 10, ReadReference{8, 3}), "register 3 has a tensor, must have a reference");
  EXPECT_HAS(after(0, 10, ReadReference{8, 4}), "register 4 is empty");
  EXPECT_HAS(after(0, 10, CallClosure{5, {3}, {8}}), "register 5 has a reference, must have a closure");
  EXPECT_HAS(after(0, 9, CallClosure{4, {3, 3}, {8}}), "a closure of 1 parameters is called with 2");
  EXPECT_HAS(after(2, 1, ReadField{3, 0, 2}), "field 2 of a value with 2");
  EXPECT_HAS(after(2, 1, ReadField{3, 1, 0}), "register 1 has a closure, must have a constructed value with fields");
  EXPECT_HAS(after(2, 0, Switch{2, 0, {1, 9}}), "register 2 has a reference, must have a value of type List");
  EXPECT_HAS(after(3, 0, ScalarCompute{ScalarOp::kAdd, DType::kF32, 3, 0, 1}), "must have a scalar of f32");
  EXPECT_HAS(after(1, 1, ScalarCompute{ScalarOp::kDivide, DType::kI64, 3, 0, 2}), "divide: division by zero");
  EXPECT_HAS(after(0, 2, CheckSize{2, 4, INT64_MAX, "m"}), "m is 3, must be in 4..");
  EXPECT_HAS(after(0, 2, CheckSize{5, 4, 5, "m"}), "register 5 is empty");
  EXPECT_HAS(after(0, 1, CheckShape{1, DType::kF64, {{}}, {}, {}, false, "x", "f64 (m,)"}),
             "x is f32 (3,), must be f64 (m,)");
  EXPECT_HAS(after(0, 11, Return{{7, 4, 2}}), "register 4 is empty");
  EXPECT_HAS(after(0, 11, Return{{7, 5, 2}}), "result again: i64 () became a reference");
}

TEST(Machine, TheLoaderRefusesWhatDoesNotFit) {
  const auto with = [](size_t function, size_t instruction, Operation operation) {
    Executable e = list_executable();
    e.functions[function].code[instruction].operation = std::move(operation);
    return run(e, 3);
  };
  EXPECT_HAS(with(0, 4, MakeClosure{4, 3, {}}), "0 captures, must be 1");
  EXPECT_HAS(with(0, 4, MakeClosure{4, 0, {}}), "3 results of a closure, must be 1");
  EXPECT_HAS(with(0, 7, CallFunction{3, {0}, {6}}), "2 captures of a function that is no closure, must be 0");
  EXPECT_HAS(with(1, 8, TailCall{0, {3, 4}}), "3 results of the callee, must be 1");
  EXPECT_HAS(with(0, 6, Construct{6, 1, 0, {}}), "type 1 of 1");
  EXPECT_HAS(with(0, 6, Construct{6, 0, 2, {}}), "constructor 2 of 2");
  EXPECT_HAS(with(0, 6, Construct{6, 0, 0, {0}}), "1 fields, must be 2");
  EXPECT_HAS(with(2, 0, Switch{0, 0, {1}}), "1 targets, must be 2");
  EXPECT_HAS(with(2, 0, Switch{0, 0, {1, 11}}), "a jump to instruction 11 of 11");
  EXPECT_HAS(with(1, 5, ScalarCompute{ScalarOp::kAnd, DType::kF32, 3, 0, 2}), "and of f32");
  EXPECT_HAS(with(0, 0, BindSize{2, 1, 0, {}, {{SizeStep::Op::kDim, 0}}, {{SizeStep::Op::kConstant, 0}}}),
             "a size is malformed");
  EXPECT_HAS(with(2, 8, TailCallClosure{1, {4, 1, 9}}), "register 9 of 8");
}

// main(x, y): the operations, which have 4 registers, and the results in registers 2 and 3.
Executable appending(std::vector<Operation> operations) {
  Executable e;
  const Port x{.name = "x", .shape = {kAnySize, kAnySize}}, y{.name = "y", .shape = {kAnySize, kAnySize}};
  e.functions.push_back({.name = "main", .params = {x, y}, .results = {x, y}, .registers = 4});
  for (Operation& operation : operations) e.functions[0].code.push_back({std::move(operation), "grown"});
  e.functions[0].code.push_back({Return{{2, 3}}, ""});
  return e;
}

TEST(Machine, AnAppendIsInPlaceAtTheLastUseOfItsTensor) {
  const Tensor x = Tensor::of<float>({1, 2}, std::vector<float>{1, 2}), y = Tensor::of<float>({1, 1}, std::vector{3.f});
  struct Outcome {
    std::vector<float> first, second;
    uint64_t allocations = 0;
    bool operator==(const Outcome&) const = default;
  };
  const auto outcome = [&](std::vector<Operation> operations) -> Outcome {
    const Executable e = appending(std::move(operations));
    auto session = Session::create(e, {});
    const auto results = session->run(std::vector{x, y});
    EXPECT_TRUE(results) << results.error().str();
    if (!results) return {};
    const auto floats = [](const Tensor& t) { return std::vector(t.data<float>().begin(), t.data<float>().end()); };
    EXPECT_EQ(session->profile().calls.at(0).layer, "grown");
    return {floats((*results)[0]), floats((*results)[1]), session->profile().memory.allocations};
  };
  const std::vector<float> once{1, 2, 3}, twice{1, 2, 3, 3}, kept{3};
  // The first one makes room for 64 bytes, or for twice the result; the second one finds it.
  for (const uint64_t capacity : {64, 0}) {
    EXPECT_EQ(outcome({Append{2, 0, 1, 1, capacity}, Append{2, 2, 1, 1, 0}, Move{3, 1}}), (Outcome{twice, kept, 1}));
    EXPECT_EQ(outcome({Append{3, 0, 1, 1, capacity}, Append{2, 3, 1, 1, 0}, Kill{{3}}, Move{3, 1}}),
              (Outcome{twice, kept, 1}));
  }
  // A tensor that has another use keeps its value.
  EXPECT_EQ(outcome({Append{3, 0, 1, 1, 64}, Append{2, 3, 1, 1, 64}}), (Outcome{twice, once, 2}));
  EXPECT_EQ(outcome({Append{2, 0, 1, 1, 64}, Move{3, 2}, Append{2, 2, 1, 1, 64}}), (Outcome{twice, once, 2}));
  EXPECT_EQ(x.data<float>()[0], 1);
}

TEST(Machine, AnAppendChecksItsOperands) {
  const auto failure = [](Tensor x, Tensor y, uint32_t axis) {
    const Executable e = appending({Append{2, 0, 1, axis, 0}, Move{3, 1}});
    auto session = Session::create(e, {});
    const auto results = session->run(std::vector{std::move(x), std::move(y)});
    return results ? std::string("ran") : results.error().str();
  };
  const auto f32 = [](Shape shape) { return Tensor(DType::kF32, std::move(shape)); };
  EXPECT_EQ(failure(f32({1, 2}), f32({1, 2}), 1), "ran");
  EXPECT_HAS(failure(f32({2, 2}), f32({2, 1}), 1), "f32 (2, 1) cannot be appended to f32 (2, 2) along axis 1");
  EXPECT_HAS(failure(f32({2, 2}), f32({2, 3}), 0), "f32 (2, 3) cannot be appended to f32 (2, 2) along axis 0");
  EXPECT_HAS(failure(f32({1, 2}), f32({1, 2}), 2), "along axis 2");
  Executable e = appending({Append{2, 3, 1, 1, 0}, Move{3, 1}});
  auto session = Session::create(e, {});
  EXPECT_HAS(session->run(std::vector{f32({1, 2}), f32({1, 2})}).error().str(), "register 3 is empty");
}

TEST(Machine, RunsEndAtTheirLimits) {
  Executable endless = list_executable();
  endless.functions[1].code[0].operation = Jump{0};
  EXPECT_HAS(run(endless, 1, {.max_steps = 10'000}), "the run takes more than 10000 instructions");
  EXPECT_HAS(run(endless, 1, {.max_time = std::chrono::milliseconds(5)}), "the run takes more than 5 ms");
  const std::atomic<bool> cancel = true;
  EXPECT_HAS(run(endless, 1, {.cancel = &cancel}), "the run was cancelled");
  EXPECT_HAS(run(list_executable(), -1, {.max_bytes = 1 << 20}), "the values of the run take more than 1048576 bytes");
  EXPECT_EQ(run(list_executable(), 3, {.max_steps = 1000}), "18 18 3 ");
}

TEST(Machine, ThreadsShareASession) {
  const Executable e = list_executable();
  auto session = Session::create(e, {});
  ASSERT_TRUE(session) << session.error().str();
  constexpr int kThreads = 8;
  constexpr int kRuns = 1000;
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kRuns; ++i) {
          const int64_t n = (t * 7 + i) % 40;
          const auto results = session->run(std::vector{number(n), Tensor(DType::kF32, {i % 5})});
          right += results && (*results)[0].data<int64_t>()[0] == n * n * (n + 1) / 2 &&
                   (*results)[2].data<int64_t>()[0] == i % 5;
        }
      });
    }
  }
  EXPECT_EQ(right, kThreads * kRuns);
  EXPECT_EQ(session->profile().runs, static_cast<uint64_t>(kThreads * kRuns));
}

// Damage anywhere in the header, with its hash recomputed: an error, or a run that ends.
TEST(Machine, MutatedFilesEndInAnErrorOrARun) {
  const auto good = serialize(list_executable()).value();
  std::mt19937 random(test_seed(43));
  int ran = 0, stopped = 0;
  constexpr int64_t kCount = 100'000;
  for (int64_t i = 0; i < kCount; ++i) {
    auto bad = good;
    Preface preface;
    std::memcpy(&preface, bad.data(), sizeof(preface));
    for (unsigned n = random() % 3 + 1; n-- > 0;) {
      const size_t at = sizeof(preface) + random() % preface.header_bytes;
      if (random() % 2 == 0) bad[at] ^= static_cast<std::byte>(1u << random() % 8);
      else bad[at] = static_cast<std::byte>(random() % 12);
    }
    preface.header_hash = sha256(std::span(bad).subspan(sizeof(preface), preface.header_bytes));
    std::memcpy(bad.data(), &preface, sizeof(preface));
    const auto mutant = deserialize(bad, "mutant");
    if (!mutant) continue;
    auto session = Session::create(*mutant, {.max_stack = 2000, .max_steps = 2000, .max_bytes = 1 << 20});
    if (!session) continue;
    const auto results = session->run(std::vector{number(5), Tensor(DType::kF32, {3})});
    ++(results ? ran : stopped);
  }
  EXPECT_GT(ran, kCount / 100);
  EXPECT_GT(stopped, kCount / 100);
}

}  // namespace
}  // namespace tenon::runtime
