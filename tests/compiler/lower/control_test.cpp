// Modules with control flow, data types, closures, references and symbolic sizes: the compiled code computes what the
// interpreter computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/memory.h"
#include "compiler/lower/values.h"
#include "compiler/passes/passes.h"
#include "runtime/vm/session.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;
using testing::HasSubstr;

Tensor i64(int64_t value) { return Tensor::of<int64_t>({}, std::span<const int64_t>(&value, 1)); }
Tensor flag(bool value) { return Tensor::of<bool>({}, std::span<const bool>(&value, 1)); }
Tensor row(std::vector<float> values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, std::span<const float>(values));
}

class ControlTest : public testing::Test {
 protected:
  void compile(const std::string& text, bool native = false) {
    auto module = parse(context_, "#[version = \"1\"]\n" + text);
    ASSERT_TRUE(module) << module.error().str();
    module_ = std::move(*module);
    auto executable = lower(context_, module_, main_, {}, {.name = "test", .facts = {}, .cpu = {.native = native}});
    ASSERT_TRUE(executable) << executable.error().str();
    const Status status = verify(*executable, "test");
    ASSERT_TRUE(status) << status.error().str();
    // What is run has been a file.
    auto loaded = runtime::deserialize(runtime::serialize(*executable).value(), "memory");
    ASSERT_TRUE(loaded) << loaded.error().str();
    ASSERT_EQ(*loaded, *executable);
    executable_ = std::move(*loaded);
  }
  std::string run(const std::vector<RunValue>& inputs, runtime::SessionOptions options = {}) {
    auto session = runtime::Session::create(executable_, std::move(options));
    if (!session) return session.error().str();
    std::vector<runtime::Value> values;
    for (const RunValue& input : inputs) values.push_back(to_session(context_, module_, executable_, input).value());
    const auto results = session->run_values(values);
    if (!results) return results.error().str();
    std::string text;
    for (const runtime::Value& result : *results)
      text += (text.empty() ? "" : ", ") + str(context_, from_session(context_, executable_, result));
    return text;
  }
  // The text of the result, which must be the interpreter's.
  std::string same(const std::vector<RunValue>& inputs) {
    const auto expected = interpret(context_, module_, main_, inputs);
    if (!expected) return expected.error().str();
    std::string text;
    if (expected->object->kind == RunObject::Kind::kTuple) {
      for (const RunValue& field : expected->fields()) text += (text.empty() ? "" : ", ") + str(context_, field);
    } else {
      text = str(context_, *expected);
    }
    EXPECT_EQ(run(inputs), text);
    return text;
  }

  Context context_;
  Symbol main_ = context_.symbol("main");
  Module module_;
  runtime::Executable executable_;
};

// The caller and the callee call different sizes n.
TEST_F(ControlTest, ACalleeHasItsOwnSizes) {
  for (const bool native : {false, true}) {
    compile(R"(const $0: Tensor[(2,), i64] = [5, 6];
      def @scaled[n](%x: Tensor[(n,), i64]) -> Tensor[(n,), i64] { %x * n }
      def @count[n in 1..3](%x: Tensor[(n,), i64]) -> Tensor[(?,), i64] { let %n = n; arange(count=%n) }
      def @main[n](%x: Tensor[(n,), i64], %y: Tensor[(?,), i64]) {
        (@scaled(%x), @scaled(%y), @scaled($0), %x + n, @count(%y))
      })",
            native);
    const auto ones = [](int64_t count) { return Tensor::of<int64_t>({count}, std::vector<int64_t>(count, 1)); };
    EXPECT_EQ(same({ones(4), ones(3)}),
              "Tensor[(4,), i64] [4, 4, 4, 4], Tensor[(3,), i64] [3, 3, 3], Tensor[(2,), i64] [10, 12], "
              "Tensor[(4,), i64] [5, 5, 5, 5], Tensor[(3,), i64] [0, 1, 2]");
    EXPECT_THAT(run({ones(4), ones(7)}), HasSubstr("n is 7")) << "a bound of an inlined function";
  }
}

TEST_F(ControlTest, AnIfRunsOneArm) {
  for (const bool native : {false, true}) {
    compile(R"(def @main(%c: Tensor[(), bool], %x: Tensor[(4,), f32]) {
      let %y = if (%c) { relu(%x) } else { %x };
      (%y + %y, %y)
    })",
            native);
    EXPECT_EQ(same({flag(false), row({1, 2, -3, 4})}),
              "Tensor[(4,), f32] [2, 4, -6, 8], Tensor[(4,), f32] [1, 2, -3, 4]");
    EXPECT_EQ(same({flag(true), row({1, 2, -3, 4})}), "Tensor[(4,), f32] [2, 4, 0, 8], Tensor[(4,), f32] [1, 2, 0, 4]");
  }
}

TEST_F(ControlTest, ConditionsThatAreIfsAndTuplesOfArms) {
  compile(R"(def @main(%a: Tensor[(), i64], %b: Tensor[(), i64]) {
    let %pair = if (%a < %b) { (%a, (%b, %a)) } else { if (%a == %b) { (%b, (%b, %b)) } else { (%b - %a, (%a, %b)) } };
    let %inner = %pair.1;
    if (if (%inner.0 < 3i64) { true } else { %pair.0 == 1i64 }) { (%pair.0, %inner.1) } else { (%inner.0, 7i64) }
  })");
  for (int64_t a = 0; a < 5; ++a) {
    for (int64_t b = 0; b < 5; ++b) same({i64(a), i64(b)});
  }
}

TEST_F(ControlTest, RecursionOfAMillionCallsNeedsNoStack) {
  compile(R"(def @sum(%n: Tensor[(), i64]) -> Tensor[(), i64] {
    if (%n == 0i64) { 0i64 } else { %n + @sum(%n - 1i64) }
  }
  def @main(%n: Tensor[(), i64]) -> Tensor[(), i64] { @sum(%n) })");
  EXPECT_EQ(same({i64(100)}), "5050i64");
  EXPECT_EQ(run({i64(1'000'000)}), "500000500000i64");
  EXPECT_THAT(run({i64(1'000'000)}, {.max_stack = 1'000'000}), HasSubstr("the calls nest too deep"));
  EXPECT_THAT(run({i64(-1)}, {.max_steps = 1'000'000}), HasSubstr("the run takes more than 1000000 instructions"));
}

TEST_F(ControlTest, TailCallsRunInConstantMemory) {
  compile(R"(def @even(%n: Tensor[(), i64]) -> Tensor[(), bool] { if (%n == 0i64) { true } else { @odd(%n - 1i64) } }
  def @odd(%n: Tensor[(), i64]) -> Tensor[(), bool] { if (%n == 0i64) { false } else { @even(%n - 1i64) } }
  def @main(%n: Tensor[(), i64]) -> Tensor[(), bool] { @even(%n) })");
  EXPECT_EQ(run({i64(1'000'001)}, {.max_stack = 100}), "false");
  same({i64(10)});
}

constexpr const char* kList = R"(type List[A] { Cons(A, List[A]), Nil }
  def @range(%n: Tensor[(), i64], %rest: List[Tensor[(), i64]]) -> List[Tensor[(), i64]] {
    if (%n == 0i64) { %rest } else { @range(%n - 1i64, Cons(%n, %rest)) }
  }
  def @fold[A, B](%f: fn(B, A) -> B, %start: B, %xs: List[A]) -> B {
    match %xs { Nil => %start, Cons(%x, %rest) => @fold(%f, %f(%start, %x), %rest) }
  }
  def @map[A, B](%f: fn(A) -> B, %xs: List[A]) -> List[B] {
    match %xs { Nil => Nil, Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)) }
  }
)";

TEST_F(ControlTest, PolymorphicFunctionsTakeClosures) {
  compile(std::string(kList) + R"(def @main(%n: Tensor[(), i64], %k: Tensor[(), i64]) {
    let %scaled = @map(fn(%x: Tensor[(), i64]) { (%x * %k, %x) }, @range(%n, Nil));
    @fold(fn(%sum: (Tensor[(), i64], Tensor[(), i64]), %x: (Tensor[(), i64], Tensor[(), i64])) {
      (%sum.0 + %x.0, %sum.1 - %x.1)
    }, (0i64, 0i64), %scaled)
  })");
  EXPECT_EQ(same({i64(10), i64(3)}), "165i64, -55i64");
  run({i64(200'000), i64(3)});  // a long list is freed without recursion
}

TEST_F(ControlTest, ResultsAndInputsAreValuesOfDefinedTypes) {
  compile(std::string(kList) +
          R"(def @main(%xs: List[Tensor[(), i64]]) { @map(fn(%x: Tensor[(), i64]) { %x + %x }, %xs) })");
  EXPECT_EQ(executable_.main().params[0].type, "List[Tensor[(), i64]]");
  RunValue list = RunValue::data(context_.symbol("Nil"), {});
  for (int64_t i = 3; i > 0; --i) list = RunValue::data(context_.symbol("Cons"), {i64(i), list});
  EXPECT_EQ(same({list}), "Cons(2i64, Cons(4i64, Cons(6i64, Nil)))");
  auto session = runtime::Session::create(executable_, {});
  EXPECT_THAT(session->run_values(std::vector<runtime::Value>{i64(1)}).error().str(),
              HasSubstr("input 'xs' is i64 (), the model takes List[Tensor[(), i64]]"));
  EXPECT_THAT(session->run(std::vector{i64(1)}).error().str(), HasSubstr("the model takes List"));
  EXPECT_THAT(session->run_values(std::vector{runtime::Value::data(0, 9, {})}).error().str(),
              HasSubstr("an input has a value of no type of the model"));
}

TEST_F(ControlTest, PatternsNestAndOverlap) {
  compile(std::string(kList) + R"(type Pair { P(List[Tensor[(), i64]], List[Tensor[(), i64]]) }
  def @classify(%p: Pair) -> (Tensor[(), i64], List[Tensor[(), i64]]) {
    match %p {
      P(Cons(%a, Cons(%b, _)), Nil) => (%a + %b, Nil),
      P(Nil, %rest) => (1i64, %rest),
      P(Cons(%a, %rest), Cons(_, Cons(%b, _))) => (%a - %b, %rest),
      P(%x, Nil) => (3i64, %x),
      P(_, %y) => (4i64, %y),
    }
  }
  def @main(%n: Tensor[(), i64], %m: Tensor[(), i64]) { @classify(P(@range(%n, Nil), @range(%m, Nil))) })");
  for (int64_t n = 0; n < 4; ++n) {
    for (int64_t m = 0; m < 4; ++m) same({i64(n), i64(m)});
  }
}

// A decision tree of these patterns would have thousands of nodes, so each arm tests its own pattern.
TEST_F(ControlTest, MatchesThatWouldExplodeStaySmall) {
  constexpr int kColumns = 16;
  const auto list = [](auto&& item) {
    std::string text;
    for (int i = 0; i < kColumns; ++i) text += (i == 0 ? "" : ", ") + item(i);
    return text;
  };
  const auto name = [](int i) { return "%x" + std::to_string(i); };
  std::string rows;
  for (int row = 0; row < kColumns / 2; ++row) {
    rows += "(" + list([&](int i) -> std::string { return i / 2 == row ? "T" : "_"; }) + ") => " + std::to_string(row) +
            "i64,\n";
  }
  compile("type B { T, F }\ndef @pick(" + list([&](int i) { return name(i) + ": B"; }) +
          ") -> Tensor[(), i64] { match (" + list(name) + ") {\n" + rows + "(" +
          list([](int) -> std::string { return "_"; }) + ") => 99i64 } }\ndef @main(%n: Tensor[(), i64]) { @pick(" +
          list([](int i) { return "if (%n == " + std::to_string(i / 2) + "i64) { T } else { F }"; }) + ") }");
  EXPECT_LT(executable_.functions[1].code.size(), 300u);
  for (const int64_t n : {0, 4, 7, 8}) EXPECT_EQ(same({i64(n)}), (n == 8 ? "99" : std::to_string(n)) + "i64");
}

TEST_F(ControlTest, ClosuresCaptureAndRecur) {
  compile(
      R"(def @twice(%f: fn(Tensor[(), i64]) -> Tensor[(), i64], %x: Tensor[(), i64]) -> Tensor[(), i64] { %f(%f(%x)) }
  def @next(%x: Tensor[(), i64]) -> Tensor[(), i64] { %x + 1i64 }
  def @main(%n: Tensor[(), i64], %k: Tensor[(), i64]) {
    let %loop: fn(Tensor[(), i64]) -> Tensor[(), i64] = fn(%i: Tensor[(), i64]) -> Tensor[(), i64] {
      if (%i == 0i64) { %k } else { %loop(%i - 1i64) + 2i64 }
    };
    let %outer = fn(%x: Tensor[(), i64]) { let %inner = fn(%y: Tensor[(), i64]) { %y * %k + %x }; %inner(%n) };
    (@twice(%loop, %n), %outer(5i64), @twice(@next, %n))
  })");
  EXPECT_EQ(same({i64(3), i64(4)}), "24i64, 17i64, 5i64");
}

TEST_F(ControlTest, ReferencesAreCells) {
  compile(R"(type Box { Full(Ref[Box]), Empty }
  def @count(%n: Tensor[(), i64], %cell: Ref[Tensor[(), i64]]) -> Tensor[(), i64] {
    if (%n == 0i64) { read(%cell) } else { write(%cell, read(%cell) + %n); @count(%n - 1i64, %cell) }
  }
  def @knots(%n: Tensor[(), i64]) -> Tensor[(), i64] {
    if (%n == 0i64) { 0i64 } else { let %r = ref(Empty); write(%r, Full(%r)); @knots(%n - 1i64) }
  }
  def @main(%n: Tensor[(), i64], %knots: Tensor[(), i64]) { (@count(%n, ref(0i64)), @knots(%knots)) })");
  EXPECT_EQ(same({i64(4), i64(3)}), "10i64, 0i64");
  // A cycle without a root is collected while the program runs.
  EXPECT_EQ(run({i64(1), i64(100'000)}, {.max_bytes = 1 << 20}), "1i64, 0i64");
}

TEST_F(ControlTest, SizesAreSymbolic) {
  for (const bool native : {false, true}) {
    compile(
        R"(def @main[n, m](%x: Tensor[(n, m), f32], %y: Tensor[(m, 2 * n), f32]) { (matmul(%x, %y), sum(%x, axes=[0])) })",
        native);
    EXPECT_EQ(to_string(executable_.main().params[1]), "y: f32 (m, 2*n)");
    for (int64_t n = 0; n < 4; ++n) {
      const auto result = run({Tensor(runtime::DType::kF32, {n, 3}), Tensor(runtime::DType::kF32, {3, 2 * n})});
      EXPECT_THAT(result, HasSubstr("[0, 0, 0]"));
    }
    EXPECT_THAT(run({Tensor(runtime::DType::kF32, {2, 3}), Tensor(runtime::DType::kF32, {3, 5})}),
                HasSubstr("input 'y' is f32 (3, 5), must be Tensor[(m, 2*n), f32]"));
    EXPECT_THAT(run({Tensor(runtime::DType::kF32, {2}), Tensor(runtime::DType::kF32, {3, 4})}),
                HasSubstr("input 'x' is f32 (2,), the model takes f32 (n, m)"));
  }
}

// Types do not state that a window fits into a map of unknown size, or that an axis has an element: a native kernel
// fails where the reference kernel does, and where its result has no element too.
TEST_F(ControlTest, NativeKernelsCheckSizesAsTheInterpreterDoes) {
  struct Case {
    std::string call;            // over %x: (2, n, m)
    std::vector<int64_t> fails;  // n, m
    std::string message;
  };
  const std::vector<Case> cases{
      {"max_pool1d(%x, kernel=[3])", {4, 2}, "max_pool1d: the window is larger than the padded input"},
      {"relu(avg_pool1d(exp(%x), kernel=[3], strides=[2], padding=[1, 0]))",
       {4, 1},
       "avg_pool1d: the window is larger than the padded input"},
      {"conv1d(%x, %w)", {4, 2}, "conv1d: the kernel is larger than the padded input"},
      {"conv1d_transpose(%x, %t, padding=[1, 1])", {4, 0}, "conv1d_transpose: the result is empty"},
      {"arg_max(%x, axis=1)", {0, 3}, "arg_max: the axis has no element"},
      {"arg_min(%x, axis=1, keep=1)", {0, 0}, "arg_min: the axis has no element"},
      {"pad_reflect(%x, before=[0, 0, 1], after=[0, 0, 0])", {4, 0}, "pad_reflect: an axis without elements"},
      {"pad_edge(%x, before=[0, 0, 0], after=[0, 2, 0])", {0, 2}, "pad_edge: an axis without elements"},
      {"adaptive_avg_pool(%x, size=[2])", {0, 0}, "adaptive_avg_pool: the map is empty"},
  };
  const auto tensor = [](runtime::Shape shape) { return Tensor(runtime::DType::kF32, std::move(shape)); };
  for (const Case& next : cases) {
    compile(
        "def @main[n, m](%x: Tensor[(2, n, m), f32], %w: Tensor[(3, n, 3), f32], "
        "%t: Tensor[(n, 3, 3), f32]) { " +
            next.call + " }",
        true);
    EXPECT_FALSE(executable_.natives.empty()) << next.call;
    const auto inputs = [&](int64_t n, int64_t m) {
      return std::vector<RunValue>{tensor({2, n, m}), tensor({3, n, 3}), tensor({n, 3, 3})};
    };
    const auto fits = interpret(context_, module_, main_, inputs(4, 3));
    EXPECT_TRUE(fits) << next.call << ": " << fits.error().str();
    EXPECT_THAT(run(inputs(4, 3)), HasSubstr("Tensor[")) << next.call;
    const auto expected = interpret(context_, module_, main_, inputs(next.fails[0], next.fails[1]));
    ASSERT_FALSE(expected) << next.call;
    EXPECT_THAT(expected.error().str(), HasSubstr(next.message));
    EXPECT_THAT(run(inputs(next.fails[0], next.fails[1])), HasSubstr(next.message)) << next.call;
  }
}

TEST_F(ControlTest, BoundsAndCastsAreChecked) {
  compile(R"(def @main[n in 1..4](%x: Tensor[(n,), f32], %k: Tensor[(1,), i64]) {
    let %y = concat(%x, %x, axis=0);
    let %z: Tensor[(?,), f32] = match_cast(%y, Tensor[(?,), f32]);
    let %f = fn(%w: Tensor[(?,), f32]) { match_cast(%w, Tensor[(2 * n,), f32]) + %y };
    %f(%z)
  })");
  const Tensor k = Tensor::of<int64_t>({1}, std::vector<int64_t>{0});
  EXPECT_EQ(same({row({1, 2}), k}), "Tensor[(4,), f32] [2, 4, 2, 4]");
  EXPECT_THAT(run({row({1, 2, 3, 4, 5}), k}), HasSubstr("n is 5, must be in 1..4"));
}

// The only memory that a run allocates for tensors is that of its result: all others are in the arenas of the functions
// that make them, at the bound's size.
TEST_F(ControlTest, BoundedSizesAreInArenas) {
  compile(R"(def @count[n in 1..64](%x: Tensor[(n, 64), f32], %i: Tensor[(), i64]) -> Tensor[(n, 64), f32] {
      if (%i < 1i64) { %x } else {
        let %a = exp(%x);
        let %b = softmax(%a);
        let %c = matmul(%b, transpose(%a, axes=[1, 0]));
        @count(softmax(matmul(%c, %b)), %i - 1i64)
      }
    }
    def @main[n in 1..64](%x: Tensor[(n, 64), f32], %i: Tensor[(), i64]) -> Tensor[(n, 64), f32] {
      let %y = @count(exp(softmax(%x)), %i);
      exp(softmax(%y))
    })",
          true);
  size_t placed = 0;
  for (const runtime::Function& function : executable_.functions) {
    const FrameMemory memory = frame_memory(function, executable_.natives);
    EXPECT_EQ(memory.placed > 0, function.arena_bytes > 0);
    EXPECT_LE(memory.arena, memory.peak * 105 / 100) << function.name;
    placed += memory.placed;
    for (const PlannedResult& result : planned_results(function, executable_.natives))
      EXPECT_NE(result.outside == Outside::kUnbounded && result.slot.bytes == 0, true) << function.name;
  }
  EXPECT_GE(placed, 4u);
  auto session = runtime::Session::create(executable_, {.profile = true});
  ASSERT_TRUE(session) << session.error().str();
  const auto allocations = [&](int64_t n, int64_t i) {
    session->clear_profile();
    EXPECT_TRUE(session->run(std::vector{Tensor(DType::kF32, {n, 64}), i64(i)}));
    return session->profile().memory.allocations;
  };
  // One for what each call of @count passes on, and the results of both calls in @main.
  const uint64_t once = allocations(64, 1), twice = allocations(64, 2), many = allocations(64, 12);
  EXPECT_EQ(many - twice, 10 * (twice - once));
  EXPECT_LE(twice - once, 1u);
  for (const int64_t n : {1, 7, 64}) EXPECT_EQ(allocations(n, 2), twice) << "n = " << n;
}

// A concatenation onto a tensor that ends with it writes after that tensor, in memory for the bound's size; where the
// caller still has the tensor, it is copied.
TEST_F(ControlTest, ConcatenationsGrowInPlace) {
  const auto allocations = [&](const std::string& dims, int64_t steps) {
    compile("def @grow" + dims + R"((%c: Tensor[(1, n, 2), f32], %i: Tensor[(), i64]) -> Tensor[(1, 1, 2), f32] {
        let %row = sum(%c, axes=[1], keep=1);
        if (%i < 1i64) { %row } else { @grow(concat(%c, %row, axis=1), %i - 1i64) }
      }
      def @main(%x: Tensor[(1, 1, 2), f32], %i: Tensor[(), i64]) -> Tensor[(1, 1, 2), f32] {
        let %kept = concat(%x, %x, axis=1);
        @grow(%kept, %i) + @grow(%kept, %i + 1i64) + @grow(%x, 0i64)
      })",
            true);
    const Tensor x = Tensor::of<float>({1, 1, 2}, std::vector<float>{1, 3});
    same({x, i64(steps)});
    auto session = runtime::Session::create(executable_, {});
    EXPECT_TRUE(session && session->run(std::vector{x, i64(steps)}));
    return session->profile().memory.allocations;
  };
  // Both calls allocate a sum in each step, the longer tensor in the first step only, or at each power of two.
  const uint64_t bounded = allocations("[n in 1..40]", 8);
  EXPECT_LE(allocations("[n in 1..40]", 18) - bounded, 2 * 10u);
  const uint64_t unbounded = allocations("[n]", 8);
  EXPECT_LE(allocations("[n]", 18) - unbounded, 2 * 11u);
}

// As ConcatenationsGrowInPlace, in a loop that is a closure of the entry: so the loops of ONNX collect their rows.
TEST_F(ControlTest, ConcatenationsOfALoopInTheEntryGrowInPlace) {
  compile(R"(const $0: Tensor[(0, 2), f32] = [];
    def @main(%x: Tensor[(1, 2), f32], %n: Tensor[(), i64]) -> Tensor[(?, 2), f32] {
      let %loop = fn(%i: Tensor[(), i64], %rows: Tensor[(?, 2), f32]) -> Tensor[(?, 2), f32] {
        if (%i < %n) { %loop(%i + 1i64, concat(%rows, %x, axis=0)) } else { %rows }
      };
      %loop(0i64, $0)
    })",
          true);
  size_t appends = 0;
  for (const runtime::Function& function : executable_.functions) {
    for (const runtime::Instruction& i : function.code)
      appends += std::holds_alternative<runtime::Append>(i.operation) ? 1 : 0;
  }
  EXPECT_EQ(appends, 1u);
  const Tensor x = Tensor::of<float>({1, 2}, std::vector<float>{1, 3});
  same({x, i64(20)});
  const auto allocated = [&](int64_t steps) {
    auto session = runtime::Session::create(executable_, {.profile = true});
    EXPECT_TRUE(session && session->run(std::vector{x, i64(steps)}));
    return session->profile().memory.allocations;
  };
  EXPECT_LE(allocated(128) - allocated(64), 2u);  // at each power of two
}

// A function that its own calls enter again has no arena, which each waiting frame would keep.
TEST_F(ControlTest, ReenteredFunctionsHaveNoArena) {
  compile(R"(def @deep(%x: Tensor[(64,), f32], %i: Tensor[(), i64]) -> Tensor[(64,), f32] {
      if (%i < 1i64) { %x } else { let %y = @deep(exp(softmax(%x)), %i - 1i64); exp(softmax(%y)) }
    }
    def @main(%x: Tensor[(64,), f32], %i: Tensor[(), i64]) -> Tensor[(64,), f32] { softmax(softmax(@deep(%x, %i))) })",
          true);
  for (const runtime::Function& function : executable_.functions)
    EXPECT_EQ(function.arena_bytes, function.name == "main" ? 256u : 0u) << function.name;
}

}  // namespace
}  // namespace tenon::compiler
