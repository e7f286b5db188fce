// Lowering: the instructions, constants, ports and facts of executables, and the messages of modules that have none.
#include "compiler/lower/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "compiler/ir/builder.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/lower/native.h"
#include "compiler/passes/passes.h"
#include "runtime/vm/session.h"
#include "tests/compiler/ir/operators/cases.h"
#include "tests/random_tensor.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::CallKernel;
using runtime::CallNative;
using runtime::Kill;
using runtime::LoadConstant;
using runtime::Operation;
using runtime::Registers;
using runtime::Return;
using runtime::Tensor;
using testing::HasSubstr;
using testing::StartsWith;

class LowerTest : public testing::Test {
 protected:
  Expected<runtime::Executable> lower(const std::string& text, bool native = false, bool fused = false) {
    auto module = parse(context_, "#[version = \"1\"]\n" + text);
    EXPECT_TRUE(module) << module.error().str();
    if (fused) module = run_passes(context_, std::move(*module), kernel_passes());
    EXPECT_TRUE(module) << module.error().str();
    module_ = std::move(*module);
    return compiler::lower(
        context_, module_, context_.symbol("main"), {},
        {.name = "test", .facts = {{"model", "m"}}, .cpu = {.native = native}, .placements = &placements_});
  }
  std::vector<Operation> code(const std::string& text) {
    const auto executable = lower(text);
    EXPECT_TRUE(executable) << executable.error().str();
    std::vector<Operation> operations;
    if (!executable) return operations;
    EXPECT_TRUE(verify(*executable, "test")) << verify(*executable, "test").error().str();
    for (const runtime::Instruction& i : executable->main().code) operations.push_back(i.operation);
    return operations;
  }
  std::string error_of(const std::string& text, bool native = false) {
    const auto executable = lower(text, native);
    return executable ? "lowered" : executable.error().str();
  }

  Context context_;
  Module module_;
  std::vector<CpuPlacement> placements_;
};

TEST_F(LowerTest, OperatorsWithoutNativeCodeCallReferenceKernels) {
  const Operation tanh = CallKernel{"tanh", {}, {0}, {1}}, add = CallKernel{"add", {}, {1, 0}, {2}};
  EXPECT_EQ(code("def @main(%x: Tensor[(4,), f32]) { tanh(%x) + %x }"),
            (std::vector<Operation>{tanh, add, Kill{{0, 1}}, Return{{2}}}));
  ASSERT_EQ(placements_.size(), 2u);
  EXPECT_EQ(placements_[0].op, "tanh");
  EXPECT_EQ(placements_[0].kernel, "");
  EXPECT_EQ(placements_[0].reason, "native kernels are off");
}

TEST_F(LowerTest, EqualConstantsAreStoredOnce) {
  const auto executable = lower("def @main(%x: Tensor[(), f32]) { ((%x + 2.0f32) * 2.0f32) - 3.0f32 }");
  ASSERT_TRUE(executable) << executable.error().str();
  EXPECT_EQ(executable->constants.size(), 2u);
  size_t loads = 0;
  for (const runtime::Instruction& i : executable->main().code)
    loads += std::holds_alternative<LoadConstant>(i.operation);
  EXPECT_EQ(loads, 3u) << "each use loads its constant";
}

TEST_F(LowerTest, TuplesDissolveIntoRegisters) {
  const Operation tanh = CallKernel{"tanh", {}, {0}, {1}}, relu = CallKernel{"relu", {}, {0}, {2}};
  EXPECT_EQ(code(R"(def @main(%x: Tensor[(4,), f32]) {
    let %a = tanh(%x);
    let %b = relu(%x);
    let %t = (%a, (%b, %x));
    let %u = %t.1;
    (%u.0, %t.0)
  })"),
            (std::vector<Operation>{tanh, relu, Kill{{0}}, Return{{2, 1}}}));
}

TEST_F(LowerTest, PortsHaveTheNamesOfTheModel) {
  const auto executable = lower(R"(def @main(%image: Tensor[(4,), f32], %mask: Tensor[(4,), bool]) {
    let %logits = tanh(%image);
    (%logits, %mask, relu(%image))
  })");
  ASSERT_TRUE(executable) << executable.error().str();
  const auto& main = executable->main();
  ASSERT_EQ(main.params.size(), 2u);
  EXPECT_EQ(to_string(main.params[0]), "image: f32 (4,)");
  EXPECT_EQ(to_string(main.params[1]), "mask: bool (4,)");
  ASSERT_EQ(main.results.size(), 3u);
  EXPECT_EQ(main.results[0].name, "logits");
  EXPECT_EQ(main.results[1].name, "mask");
}

// An arm of an if returns a value of its own, and a call that is inlined has the callee's.
TEST_F(LowerTest, ResultsOfBranchesAndInlinedCallsHaveTheirNames) {
  const auto branch = lower(R"(def @main(%c: Tensor[(), bool], %x: Tensor[(4,), f32]) {
    let %chosen = if (%c) { tanh(%x) } else { %x };
    %chosen
  })");
  ASSERT_TRUE(branch) << branch.error().str();
  EXPECT_EQ(branch->main().results[0].name, "chosen");
}

TEST_F(LowerTest, ModulesWithoutAnExecutableHaveAMessage) {
  constexpr const char* kLoops = R"(loop @twice(%x: Tensor[(4,), f32]) -> (%y: Tensor[(4,), f32]) {
    for i in (4) { stage s(i in (4) at (i)) { %y[i] = %x[i] + %x[i]; } }
  }
  def @main(%x: Tensor[(4,), f32]) { @twice(%x) })";
  EXPECT_THAT(error_of(kLoops), HasSubstr("@twice is a loop function, and native kernels are off"));
  EXPECT_EQ(error_of(kLoops, true), "lowered");
}

TEST_F(LowerTest, EqualNativeKernelsAreCompiledOnce) {
  const auto executable = lower("def @main(%x: Tensor[(64,), f32]) { tanh(exp(tanh(%x))) }", true);
  ASSERT_TRUE(executable) << executable.error().str();
  ASSERT_EQ(executable->natives.size(), 1u);
  EXPECT_EQ(executable->natives[0].kernels.size(), 2u) << "tanh, exp";
  std::vector<uint32_t> kernels;
  for (const runtime::Instruction& i : executable->main().code) {
    if (const auto* call = std::get_if<CallNative>(&i.operation)) kernels.push_back(call->kernel);
  }
  EXPECT_EQ(kernels, (std::vector<uint32_t>{0, 1, 0}));
  for (const CpuPlacement& placement : placements_) EXPECT_EQ(placement.kernel, placement.op);
}

// Levels have tiles of their own, and weights that are packed for them: all of them are operands of the one kernel.
// Without `contract`, the results are equal bit for bit.
TEST_F(LowerTest, WeightsArePackedForTheTilesOfEachLevel) {
  Function function;
  Builder builder(context_, module_, function);
  std::mt19937 random(test_seed(5));
  const Tensor x = random_tensor(random, runtime::DType::kF32, {1, 8, 20, 20}),
               w = random_tensor(random, runtime::DType::kF32, {37, 8, 3, 3});
  const Atom image = builder.param(context_.type_of(x), "x");
  const auto y = builder.apply(ops::kConv2d, {image, builder.constant(w)});
  ASSERT_TRUE(y) << y.error().str();
  builder.finish(*y);
  std::vector<std::string> levels;
  for (const std::string_view level : runtime::host_levels())
    if (find_machine(level)) levels.emplace_back(level);
  const CpuOptions options{.levels = levels, .contract = false};
  NativeKernels natives(context_, module_, options);
  const auto entry = natives.group("conv", function);
  ASSERT_TRUE(entry) << entry.error().str();
  const auto code = natives.compile();
  ASSERT_TRUE(code && *code) << code.error().str();
  std::vector<Tensor> params;
  for (const kernels::Operand& operand : entry->operands)
    params.push_back(std::holds_alternative<Tensor>(operand) ? std::get<Tensor>(operand) : x);
  Module program = clone(module_);
  program.globals.emplace(context_.symbol("main"), function);
  const auto expected = interpret(context_, program, context_.symbol("main"), {&x, 1});
  ASSERT_TRUE(expected) << expected.error().str();
  runtime::ThreadPool pool(2);
  std::optional<Tensor> first;
  for (const std::string& level : levels) {
    const auto library = runtime::NativeLibrary::load(**code, level);
    ASSERT_TRUE(library) << library.error().str();
    const auto results = library->call(0, params, pool);
    ASSERT_TRUE(results) << results.error().str();
    expect_near((*results)[0], (*expected)[0], level);
    if (!first) first = (*results)[0];
    EXPECT_EQ(*first, (*results)[0]) << level;
  }
  if (levels.size() > 3) {
    EXPECT_GT(params.size(), 2u) << "weights packed in one way only";
  }
}

// Chains and sums of elements are computed in place, by one thread and by several, with the interpreter's results; a
// value that is used later keeps its memory.
TEST_F(LowerTest, ResultsInPlaceAreTheInterpreters) {
  const auto executable = lower(R"(def @main(%x: Tensor[(300, 1000), f32], %w: Tensor[(1000, 8), f32]) {
      let %a = exp(%x);
      let %b = tanh(%a);
      let %c = %b * %b + %a;
      let %d = sqrt(abs(%c)) - %c;
      let %e = matmul(%d, %w);
      (%e, softmax(%d))
    })",
                                true);
  ASSERT_TRUE(executable) << executable.error().str();
  EXPECT_THAT(executable->facts.back().second, HasSubstr("in place"));
  std::mt19937 random(static_cast<unsigned>(test_seed(7)));
  const std::vector<Tensor> inputs{random_tensor(random, runtime::DType::kF32, {300, 1000}),
                                   random_tensor(random, runtime::DType::kF32, {1000, 8})};
  const auto expected = interpret(context_, module_, context_.symbol("main"), inputs);
  ASSERT_TRUE(expected) << expected.error().str();
  for (const unsigned threads : {1u, 2u}) {
    for (const bool hooked : {false, true}) {
      runtime::SessionOptions options{.threads = threads};
      // A hook is shown arguments that no result has replaced.
      std::map<std::string, Tensor> made;
      if (hooked) {
        options.hook = [&](const runtime::Step& step) -> Status {
          const auto* call = std::get_if<CallNative>(&step.instruction->operation);
          if (!call) return {};
          for (size_t i = 0; i < call->args.size(); ++i) {
            const auto before = made.find(std::to_string(call->args[i]));
            if (before == made.end()) continue;
            EXPECT_EQ(before->second, step.args[i]) << call->args[i];
          }
          for (size_t i = 0; i < call->results.size(); ++i)
            made.insert_or_assign(std::to_string(call->results[i]), step.results[i].clone());
          return {};
        };
      }
      auto session = runtime::Session::create(*executable, options);
      ASSERT_TRUE(session) << session.error().str();
      const auto results = session->run(inputs);
      ASSERT_TRUE(results) << results.error().str();
      expect_near((*results)[0], (*expected)[0], "sum");
      expect_near((*results)[1], (*expected)[1], "softmax");
    }
  }
}

// A call is recorded with the shapes of its arguments and replayed for these; other shapes are checked, and recorded.
TEST_F(LowerTest, ReplayedCallsAreTheInterpreters) {
  const auto executable = lower(R"(def @main[n](%x: Tensor[(n, 3), f32], %s: Tensor[(), f32], %i: Tensor[(), i64]) {
      let %a = exp(%x) * %s;
      let %b = sum(%a, axes=[0, 1]);
      (%a, %b, tanh(%b), gather(%x, %i, axis=1))
    })",
                                true);
  ASSERT_TRUE(executable) << executable.error().str();
  auto session = runtime::Session::create(*executable, {.threads = 1});
  ASSERT_TRUE(session) << session.error().str();
  std::mt19937 random(static_cast<unsigned>(test_seed(9)));
  size_t runs = 0;
  for (const int64_t n : {4, 4, 7, 4, 0, 7, 7}) {
    Tensor index(runtime::DType::kI64, {});
    index.data<int64_t>()[0] = n % 3;
    const std::vector<Tensor> inputs{random_tensor(random, runtime::DType::kF32, {n, 3}),
                                     random_tensor(random, runtime::DType::kF32, {}), index};
    const auto expected = interpret(context_, module_, context_.symbol("main"), inputs);
    ASSERT_TRUE(expected) << expected.error().str();
    const auto results = session->run(inputs);
    ASSERT_TRUE(results) << results.error().str();
    for (size_t i = 0; i < expected->size(); ++i)
      expect_near((*results)[i], (*expected)[i], "n = " + std::to_string(n) + ", result " + std::to_string(i));
    ++runs;
    size_t calls = 0;
    for (const runtime::CallRecord& call : session->profile().calls) calls += call.device == "cpu";
    EXPECT_EQ(calls % runs, 0u) << "a replayed call is in the profile";
    EXPECT_GE(calls / runs, 4u);
  }
  // What a kernel refuses, it refuses in a replayed call too.
  Tensor index(runtime::DType::kI64, {});
  index.data<int64_t>()[0] = 3;
  const auto refused = session->run(std::vector{random_tensor(random, runtime::DType::kF32, {7, 3}),
                                                random_tensor(random, runtime::DType::kF32, {}), index});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("the index 3 is not in 0 .. 2"));
}

// The fact is the plan that runs: the arena is the session's, and the results outside are its allocations.
TEST_F(LowerTest, TheMemoryFactIsTheExecutedPlan) {
  const auto executable = lower("def @main(%x: Tensor[(64,), f32]) { tanh(exp(tanh(exp(%x)))) }", true);
  ASSERT_TRUE(executable) << executable.error().str();
  EXPECT_EQ(executable->facts,
            (std::vector<std::pair<std::string, std::string>>{{"model", "m"},
                                                              {"memory",
                                                               "3 results, 2 of them in place in an arena of 256 bytes "
                                                               "(256 live at once, 768 without reuse); 1 outside, 256 "
                                                               "bytes"}}));
  EXPECT_EQ(executable->main().arena_bytes, 256u);
  auto session = runtime::Session::create(*executable, {});
  ASSERT_TRUE(session) << session.error().str();
  ASSERT_TRUE(session->run(std::vector{Tensor(runtime::DType::kF32, {64})}));
  EXPECT_EQ(session->profile().memory.arena_bytes, 256u);
  EXPECT_EQ(session->profile().memory.allocations, 1u);
}

TEST_F(LowerTest, AnExecutableComputesWhatTheModuleMeans) {
  constexpr const char* kText = R"(def @main(%x: Tensor[(8, 3), f32]) {
    let %a = tanh(%x);
    let %b = reshape(%a, shape=[3, 8]);
    let %c = relu(%b) + exp(%b);
    (%c, transpose(%a, axes=[1, 0]))
  })";
  Tensor x(runtime::DType::kF32, {8, 3});
  for (size_t i = 0; i < 24; ++i) x.data<float>()[i] = static_cast<float>(i) / 8 - 1;
  for (const bool native : {false, true}) {
    for (const bool fused : {false, true}) {
      const auto executable = lower(kText, native, fused);
      ASSERT_TRUE(executable) << executable.error().str();
      const auto expected = interpret(context_, module_, context_.symbol("main"), std::vector{x});
      ASSERT_TRUE(expected) << expected.error().str();
      auto session = runtime::Session::create(*executable, {});
      ASSERT_TRUE(session) << session.error().str();
      const auto found = session->run(std::vector{x});
      ASSERT_TRUE(found) << found.error().str();
      ASSERT_EQ(found->size(), 2u);
      for (size_t i = 0; i < 2; ++i) {
        const Tensor& wanted = (*expected)[i];
        ASSERT_EQ((*found)[i].shape(), wanted.shape());
        for (size_t k = 0; k < 24; ++k) {
          EXPECT_NEAR((*found)[i].data<float>()[k], wanted.data<float>()[k], 1e-5)
              << "result " << i << ", element " << k;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::compiler
