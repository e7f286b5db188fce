// The effect of each pass on small functions, written as text, which keep their meaning.
#include "compiler/passes/passes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/pass.h"
#include "tests/seed.h"

namespace tenon::compiler {

Pass relu_after_pool_pass();  // example_pass.cpp, as CMake declares those of compiler/passes

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Passes : public testing::Test {
 protected:
  // @main of this body; the declared result is `result`.
  Module read(const std::string& params, const std::string& result, const std::string& body,
              const std::string& constants = "") {
    const std::string text =
        "#[version = \"1\"]\n" + constants + "def @main[N](" + params + ") -> " + result + " {\n" + body + "\n}\n";
    auto module = parse(context_, text);
    EXPECT_TRUE(module) << module.error().str();
    return module ? std::move(*module) : Module{};
  }
  Module apply(Expected<Module> (*pass)(Context&, Module), Module module) {
    auto result = pass(context_, std::move(module));
    EXPECT_TRUE(result) << result.error().str();
    if (!result) return {};
    const Status status = verify(context_, *result);
    EXPECT_TRUE(status) << status.error().str();
    return std::move(*result);
  }
  // The operators of @main, in order.
  std::vector<std::string> operators(const Module& module) {
    std::vector<std::string> names;
    for (const Binding& binding : module.function(context_.symbol("main"))->body.bindings) {
      auto* apply = std::get_if<Apply>(&binding.value);
      names.push_back(apply ? apply->op->name : "other");
    }
    return names;
  }
  runtime::Tensor random(runtime::Shape shape, float lo = -1, float hi = 1) {
    runtime::Tensor tensor(DType::kF32, std::move(shape));
    std::uniform_real_distribution<float> values(lo, hi);
    for (float& value : tensor.data<float>()) value = values(generator_);
    return tensor;
  }
  // Both modules give the same on this input.
  void expect_same(const Module& a, const Module& b, const runtime::Tensor& input, float tolerance = 0) {
    const Symbol main = context_.symbol("main");
    auto left = interpret(context_, a, main, std::vector{input}),
         right = interpret(context_, b, main, std::vector{input});
    ASSERT_TRUE(left) << left.error().str();
    ASSERT_TRUE(right) << right.error().str();
    ASSERT_EQ(left->at(0).shape(), right->at(0).shape());
    auto x = left->at(0).data<float>(), y = right->at(0).data<float>();
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance * std::max(1.0f, std::abs(x[i]))) << i;
  }

  Context context_;
  std::mt19937 generator_{test_seed(1)};
};

const std::string kImage = "Tensor[(N, 2, 4, 4), f32]";

TEST_F(Passes, SimplifyDropsWhatDoesNothing) {
  Module module =
      read("%x: " + kImage, kImage,
           "  let %a = identity(%x); let %b = cast(%a, dtype=\"f32\"); let %c = reshape(%b, shape=[0, 2, 4, 4]);"
           "  let %d = transpose(%c, axes=[0, 1, 2, 3]); let %e = pad(%d, before=[0, 0, 0, 0], after=[0, 0, 0, 0]);"
           "  slice(%e, begin=[0, 0, 0, 0], end=[9223372036854775807, 2, 4, 9], step=[1, 1, 1, 1])");
  EXPECT_THAT(operators(apply(simplify, std::move(module))), ElementsAre());
}

TEST_F(Passes, SimplifyKeepsASliceThatTurnsAnAxisRound) {
  Module module = read("%x: Tensor[(3,), f32]", "Tensor[(3,), f32]",
                       "  slice(%x, begin=[-1], end=[-9223372036854775808], step=[-1])");
  EXPECT_THAT(operators(apply(simplify, std::move(module))), ElementsAre("slice"));
}

TEST_F(Passes, SimplifyJoinsReshapesAndTransposes) {
  Module module = read("%x: " + kImage, "Tensor[(N, 8, 4), f32]",
                       "  reshape(flatten(reshape(%x, shape=[0, 4, 8])), shape=[0, 8, 4])");
  Module simple = apply(simplify, clone(module));
  EXPECT_THAT(operators(simple), ElementsAre("reshape"));
  expect_same(module, simple, random({3, 2, 4, 4}));

  Module turns = read("%x: Tensor[(N, 2, 3), f32]", "Tensor[(2, 3, N), f32]",
                      "  transpose(transpose(%x, axes=[2, 0, 1]), axes=[2, 0, 1])");
  Module simplified = apply(simplify, clone(turns));
  EXPECT_THAT(operators(simplified), ElementsAre("transpose"));
  expect_same(turns, simplified, random({5, 2, 3}));
  Module back = read("%x: Tensor[(N, 2, 3), f32]", "Tensor[(N, 2, 3), f32]",
                     "  transpose(transpose(%x, axes=[2, 0, 1]), axes=[1, 2, 0])");
  EXPECT_THAT(operators(apply(simplify, std::move(back))), ElementsAre());
}

TEST_F(Passes, SimplifyMergesRelusAndClips) {
  for (const char* body :
       {"relu(relu(%x))", "relu(clip(%x, min=-1, max=6))", "clip(relu(%x), min=-1, max=0.5)",
        "clip(%x, min=0, max=inf)", "relu(clip(%x, min=-6, max=-1))", "clip(%x, min=-inf, max=inf)"}) {
    Module module = read("%x: Tensor[(N,), f32]", "Tensor[(N,), f32]", body);
    Module simple = apply(simplify, clone(module));
    expect_same(module, simple, random({100}, -8, 8));
    EXPECT_LE(operators(simple).size(), std::string_view(body).starts_with("relu(clip(%x, min=-6") ? 2u : 1u) << body;
  }
  Module relu = read("%x: Tensor[(N,), f32]", "Tensor[(N,), f32]", "clip(%x, min=0, max=inf)");
  EXPECT_THAT(operators(apply(simplify, std::move(relu))), ElementsAre("relu"));
}

TEST_F(Passes, SimplifyMovesPaddingIntoTheConvolution) {
  const std::string constants = "const $0: Tensor[(1, 2, 2, 2), f32] = [1, 2, 3, 4, 5, 6, 7, 8];\n";
  auto body = [](const std::string& value) {
    return "conv2d(pad(%x, before=[0, 0, 1, 0], after=[0, 0, 0, 2], value=" + value + "), $0, padding=[0, 1, 1, 0])";
  };
  Module module = read("%x: " + kImage, "Tensor[(N, 1, 5, 6), f32]", body("0.0"), constants);
  Module simple = apply(simplify, clone(module));
  EXPECT_THAT(operators(simple), ElementsAre("conv2d"));
  expect_same(module, simple, random({2, 2, 4, 4}));
  Module other = read("%x: " + kImage, "Tensor[(N, 1, 5, 6), f32]", body("1.0"), constants);
  EXPECT_THAT(operators(apply(simplify, std::move(other))), ElementsAre("pad", "conv2d"));
}

TEST_F(Passes, SimplifyCancelsLayoutsOnlyWhereNothingIsLost) {
  Module module = read("%x: " + kImage, kImage,
                       "  layout_transform(layout_transform(%x, from=\"NCHW\", to=\"NCHW16c\"), from=\"NCHW16c\", "
                       "to=\"NCHW\", channels=2)");
  EXPECT_THAT(operators(apply(simplify, std::move(module))), ElementsAre());
  // The 14 lanes beyond the channels may hold anything before and hold zeros after.
  const std::string blocked = "Tensor[(N, 1, 4, 4, 16), f32]";
  Module lossy = read("%x: " + blocked, blocked,
                      "  layout_transform(layout_transform(%x, from=\"NCHW16c\", to=\"NCHW\", channels=2), "
                      "from=\"NCHW\", to=\"NCHW16c\")");
  EXPECT_THAT(operators(apply(simplify, std::move(lossy))), ElementsAre("layout_transform", "layout_transform"));
  Module zeroing =
      read("%x: " + blocked, blocked, "  layout_transform(%x, from=\"NCHW16c\", to=\"NCHW16c\", channels=2)");
  EXPECT_THAT(operators(apply(simplify, std::move(zeroing))), ElementsAre("layout_transform"));
  Module nothing =
      read("%x: " + blocked, blocked, "  layout_transform(%x, from=\"NCHW16c\", to=\"NCHW16c\", channels=16)");
  EXPECT_THAT(operators(apply(simplify, std::move(nothing))), ElementsAre());
}

TEST_F(Passes, SimplifyMakesDenseLayersOfMatrixProducts) {
  Module module = read("%x: Tensor[(N, 2), f32]", "Tensor[(N, 3), f32]", "matmul(%x, $0)",
                       "const $0: Tensor[(2, 3), f32] = [1, 2, 3, 4, 5, 6];\n");
  Module simple = apply(simplify, clone(module));
  EXPECT_THAT(operators(simple), ElementsAre("dense"));
  expect_same(module, simple, random({4, 2}));
}

TEST_F(Passes, SimplifyProjectsTuples) {
  Module module = read("%x: Tensor[(N,), f32]", "Tensor[(N,), f32]", "  let %t = (relu(%x), %x); %t.1");
  EXPECT_THAT(operators(apply(simplify, std::move(module))), ElementsAre());
}

TEST_F(Passes, SimplifyDropsAQuantizationOfTheSameScale) {
  const std::string q = "Tensor[(N,), i8]";
  auto body = [](const std::string& scale) {
    return "quantize(dequantize(%x, scale=[0.1], zero_point=[3]), scale=[" + scale + "], zero_point=[3])";
  };
  EXPECT_THAT(operators(apply(simplify, read("%x: " + q, q, body("0.1")))), ElementsAre());
  EXPECT_THAT(operators(apply(simplify, read("%x: " + q, q, body("0.2")))), ElementsAre("dequantize", "quantize"));
}

TEST_F(Passes, FoldConstantsComputesThem) {
  Module module = read("%x: Tensor[(N, 2), f32]", "Tensor[(N, 2), f32]", "add(%x, multiply($0, relu($0)))",
                       "const $0: Tensor[(2,), f32] = [-1, 3];\n");
  Module folded = apply(fold_constants, clone(module));
  EXPECT_THAT(operators(folded), ElementsAre("add"));
  expect_same(module, folded, random({4, 2}));
}

TEST_F(Passes, FoldConstantsLeavesFailuresToTheRun) {
  Module module = read("%x: Tensor[(1,), i32]", "Tensor[(1,), i32]", "add(%x, divide($0, $1))",
                       "const $0: Tensor[(1,), i32] = [1];\nconst $1: Tensor[(1,), i32] = [0];\n");
  EXPECT_THAT(operators(apply(fold_constants, std::move(module))), ElementsAre("divide", "add"));
}

TEST_F(Passes, FoldConstantsKeepsTheScalesOfQuantizedWeights) {
  Module module = read("%x: Tensor[(N, 2), f32]", "Tensor[(N, 1), f32]", "dense(%x, dequantize($0, scale=[0.5]))",
                       "const $0: Tensor[(1, 2), i8] = [1, 2];\n");
  EXPECT_THAT(operators(apply(fold_constants, std::move(module))), ElementsAre("dequantize", "dense"));
}

// conv -> batch norm -> relu -> depthwise conv with bias -> batch norm -> factor -> dense -> batch norm
class Norms : public Passes {
 protected:
  Module build(bool shared) {
    Module module;
    Function function;
    const Symbol n = context_.symbol("N");
    function.dims = {n};
    Builder b(context_, module, function);
    const Atom x = b.param(
        context_.tensor(Dims{context_.dim(n), context_.dim(3), context_.dim(8), context_.dim(8)}, DType::kF32), "x");
    auto norm = [&](Atom in, int64_t channels) {
      return *b.apply("batch_norm",
                      {in, b.constant(random({channels}, 0.5, 2)), b.constant(random({channels})),
                       b.constant(random({channels})), b.constant(random({channels}, 0.1, 2))},
                      {{"epsilon", 1e-3}});
    };
    const Atom first = *b.apply("conv2d", {x, b.constant(random({6, 3, 3, 3}))});
    Atom y = *b.apply("relu", {norm(first, 6)});
    if (shared) y = *b.apply("add", {y, first});
    y = *b.apply("conv2d", {y, b.constant(random({6, 1, 3, 3}))}, {{"groups", int64_t{6}}});
    y = *b.apply("bias_add", {y, b.constant(random({6}))});
    y = *b.apply("multiply", {norm(y, 6), b.constant(random({6, 1, 1}))});
    y = *b.apply("multiply", {b.constant(random({})), y});
    y = *b.apply("dense", {*b.apply("flatten", {y}), b.constant(random({5, 96}))});
    y = *b.apply("add", {norm(y, 5), b.constant(random({1, 5}))});
    b.finish(y);
    module.globals.emplace(context_.symbol("main"), std::move(function));
    EXPECT_TRUE(verify(context_, module));
    return module;
  }
};

TEST_F(Norms, FoldIntoWeightsAndLeaveNoMultiplication) {
  Module module = build(false);
  auto folded = run_passes(context_, clone(module), standard_passes(), {.verify = true});
  ASSERT_TRUE(folded) << folded.error().str();
  EXPECT_THAT(operators(*folded),
              ElementsAre("conv2d", "bias_add", "relu", "conv2d", "bias_add", "flatten", "dense", "bias_add"));
  expect_same(module, *folded, random({2, 3, 8, 8}), 1e-5f);
}

TEST_F(Norms, BecomeScaleAndShiftWhereTheLayerHasOtherUsers) {
  Module module = build(true);
  Module folded = apply(fold_scales, clone(module));
  const auto names = operators(folded);
  EXPECT_EQ(std::ranges::count(names, "multiply"), 1);
  EXPECT_EQ(std::ranges::count(names, "batch_norm"), 0);
  EXPECT_EQ(std::ranges::count(names, "conv2d"), 2);
  expect_same(module, folded, random({2, 3, 8, 8}), 1e-5f);
}

TEST_F(Passes, FoldBiasTakesOnlyConstantsPerChannel) {
  const std::string constants =
      "const $0: Tensor[(2, 2, 1, 1), f32] = [1, 2, 3, 4];\nconst $1: Tensor[(2, 1, 1), f32] = [5, 6];\n"
      "const $2: Tensor[(4,), f32] = [1, 2, 3, 4];\nconst $3: Tensor[(2,), f32] = [7, 8];\n";
  Module module = read("%x: " + kImage, kImage, "bias_add(add($1, conv2d(%x, $0)), $3)", constants);
  Module folded = apply(fold_bias, clone(module));
  folded = apply(dead_code, std::move(folded));
  EXPECT_THAT(operators(folded), ElementsAre("conv2d", "bias_add"));
  expect_same(module, folded, random({2, 2, 4, 4}), 1e-6f);
  Module columns = read("%x: " + kImage, kImage, "add(conv2d(%x, $0), $2)", constants);
  EXPECT_THAT(operators(apply(fold_bias, std::move(columns))), ElementsAre("conv2d", "add"));
}

TEST_F(Passes, DeadCodeDropsUnusedBindingsAndConstants) {
  Module module =
      read("%x: Tensor[(N, 2), f32]", "Tensor[(N, 2), f32]", "  let %a = add(%x, $0); let %b = relu(%a); add(%x, $1)",
           "const $0: Tensor[(2,), f32] = [-1, 3];\nconst $1: Tensor[(2,), f32] = [4, 5];\n");
  Module live = apply(dead_code, std::move(module));
  EXPECT_THAT(operators(live), ElementsAre("add"));
  ASSERT_EQ(live.constants.size(), 1u);
  EXPECT_EQ(live.constants[0].data<float>()[0], 4);
}

// An operator that may fail stays, until its operands show that it does not.
TEST_F(Passes, DeadCodeKeepsWhatMayFail) {
  const std::string type = "Tensor[(4,), i32]";
  const auto live = [&](const std::string& body) {
    return operators(apply(dead_code, read("%x: " + type + ", %y: " + type + ", %n: Tensor[(2, N), f32]", type,
                                           "  let %dead = " + body + "; add(%x, %y)",
                                           "const $two: " + type +
                                               " = [2, 2, 1, -2];\n"
                                               "const $zero: " +
                                               type +
                                               " = [2, 0, 1, -2];\n"
                                               "const $at: Tensor[(2,), i64] = [3, -4];\n"
                                               "const $off: Tensor[(2,), i64] = [3, 4];\n")));
  };
  for (const std::string kept :
       {"divide(%x, %y)", "floor_divide(%x, $zero)", "remainder(%x, %y)", "modulo(%x, $zero)", "power(%x, $two)",
        "shift_left(%x, %y)", "gather(%x, $off)", "top_k(%n, k=2)", "arg_max(%n, axis=1)", "dynamic_quantize(%n)"}) {
    EXPECT_EQ(live(kept).size(), 2u) << kept;
  }
  for (const std::string dropped : {"divide(%x, $two)", "modulo(%x, $two)", "multiply(%x, %y)", "divide(%n, %n)",
                                    "gather(%x, $at)", "top_k(%x, k=2)", "shift_right(%x, 1i32)"}) {
    EXPECT_EQ(live(dropped).size(), 1u) << dropped;
  }
}

// An operator that may fail is not moved across what can be seen.
TEST_F(Passes, FuseKeepsTheOrderOfFailures) {
  const std::string type = "Tensor[(4,), i32]";
  Module module = read("%x: " + type + ", %y: " + type + ", %r: Ref[" + type + "]", type, R"(
    let %a = relu(%x);
    write(%r, %y);
    let %b = divide(%a, %y);
    add(%a, %b))");
  const Module result = apply(fuse, std::move(module));
  const auto& bindings = result.function(context_.symbol("main"))->body.bindings;
  size_t write = bindings.size(), divided = bindings.size();
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (std::holds_alternative<WriteReference>(bindings[i].value)) write = i;
    auto* call = std::get_if<Call>(&bindings[i].value);
    auto* apply = std::get_if<Apply>(&bindings[i].value);
    const bool kernel = call && context_.name(std::get<Symbol>(call->callee)).find("divide") != std::string_view::npos;
    if (kernel || (apply && apply->op->is(ops::kDivide))) divided = i;
  }
  ASSERT_LT(divided, bindings.size());
  EXPECT_LT(write, divided) << print(context_, result).text;
}

TEST_F(Passes, BindShapesMakesSizesConstant) {
  Module module = read("%x: Tensor[(N, 2), f32]", "Tensor[(2*N,), f32]", "reshape(%x, shape=[-1])");
  auto bound = bind_shapes(context_, std::move(module), context_.symbol("main"), {{"N", 3}});
  ASSERT_TRUE(bound) << bound.error().str();
  EXPECT_EQ(context_.str(bound->function(context_.symbol("main"))->result), "Tensor[(6,), f32]");
  EXPECT_TRUE(verify(context_, *bound));
  auto again = bind_shapes(context_, std::move(*bound), context_.symbol("main"), {{"N", 3}});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().what, "@main has no unknown size 'N'");
}

TEST_F(Passes, BindShapesHoldsToTheBounds) {
  const auto bound_to = [&](int64_t size) {
    auto module = parse(context_, R"(#[version = "1"]
def @main[n in 2..4](%x: Tensor[(n,), f32]) -> Tensor[(n,), f32] { relu(%x) }
)");
    EXPECT_TRUE(module) << module.error().str();
    return bind_shapes(context_, std::move(*module), context_.symbol("main"), {{"n", size}});
  };
  auto bound = bound_to(4);
  ASSERT_TRUE(bound) << bound.error().str();
  EXPECT_TRUE(verify(context_, *bound));
  auto beyond = bound_to(5);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().what, "the size n of @main must be in 2..4, found 5");
}

TEST_F(Passes, TheManagerPrintsTimesAndVerifies) {
  Module module = read("%x: Tensor[(N,), f32]", "Tensor[(N,), f32]", "  relu(identity(%x))");
  std::vector<std::string> titles, reports;
  PassOptions options{.verify = true,
                      .print_before = {"simplify"},
                      .print_after = {"simplify", "dead_code"},
                      .print = {},
                      .report = {}};
  options.print = [&](std::string_view title, const std::string& text) {
    titles.emplace_back(title);
    EXPECT_EQ(text.find("identity") != std::string::npos, title == "before simplify") << text;
  };
  options.report = [&](const PassReport& report) { reports.push_back(report.name); };
  ASSERT_TRUE(run_passes(context_, std::move(module), standard_passes(), options));
  EXPECT_THAT(titles, ElementsAre("before simplify", "after simplify", "after dead_code"));
  EXPECT_EQ(reports.size(), standard_passes().size());

  const Pass broken{"broken", "", [](Context&, Module m) -> Expected<Module> {
                      for (auto& [name, global] : m.globals) std::get<Function>(global).body.bindings.clear();
                      return m;
                    }};
  Module other = read("%x: Tensor[(N,), f32]", "Tensor[(N,), f32]", "  relu(%x)");
  auto result = run_passes(context_, std::move(other), std::span(&broken, 1), {.verify = true});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().fault, Fault::kInternal);
  EXPECT_THAT(result.error().what,
              HasSubstr("after pass broken, the module is inconsistent: variable 1 is used before"));
}

TEST_F(Passes, UnknownNamesListTheKnown) {
  auto passes = find_passes(std::vector<std::string>{"simplify", "simplfy"});
  ASSERT_FALSE(passes);
  EXPECT_EQ(passes.error().what, "there is no pass 'simplfy'");
  EXPECT_THAT(passes.error().help, HasSubstr("did you mean simplify? the passes are"));
  EXPECT_THAT(passes.error().help, HasSubstr("fold_scales"));
}

TEST(Inline, StaysWithinTheNestingThatCanBeReadBack) {
  Context context;
  std::string text = "#[version = \"1\"]\n";
  for (int i = 0; i < 20; ++i) {
    text += fmt::format("def @f{}(%c: Tensor[(), bool], %x: Tensor[(), f32]) -> Tensor[(), f32] {{ ", i);
    for (int k = 0; k < 30; ++k) text += "if (%c) { ";
    text += i == 0 ? "relu(%x)" : fmt::format("@f{}(%c, tanh(%x))", i - 1);
    for (int k = 0; k < 30; ++k) text += " } else { %x }";
    text += " }\n";
  }
  text += "def @main(%c: Tensor[(), bool], %x: Tensor[(), f32]) -> Tensor[(), f32] { @f19(%c, %x) }\n";
  auto module = parse(context, text);
  ASSERT_TRUE(module) << module.error().str();
  auto inlined = inline_calls(context, std::move(*module));
  ASSERT_TRUE(inlined) << inlined.error().str();
  const Text printed = print(context, *inlined);
  auto again = parse(context, printed.text, printed.side);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_TRUE(equal(*inlined, *again));
  EXPECT_LT(inlined->globals.size(), 15u);
}

TEST(FoldConstants, MakesNoLargeConstantsOfSmallOnes) {
  Context context;
  const auto folded = [&](int size) {
    auto module = parse(context, fmt::format("#[version = \"1\"]\nconst $0: Tensor[(1,), f32] = [1];\n"
                                             "def @main() -> Tensor[({0}, {0}), f32] {{ pad(reshape($0, shape=[1, 1]), "
                                             "before=[0, 0], after=[{1}, {1}]) }}\n",
                                             size, size - 1));
    EXPECT_TRUE(module) << module.error().str();
    auto result = fold_constants(context, std::move(*module));
    EXPECT_TRUE(result) << result.error().str();
    return result->function(context.symbol("main"))->body.bindings.empty();
  };
  EXPECT_TRUE(folded(100));
  EXPECT_FALSE(folded(1000));
}

TEST(ExamplePass, MovesAReluAfterAMaximum) {
  Context context;
  const auto read = [&](const std::string& body) {
    return *parse(context,
                  "#[version = \"1\"]\ndef @main[N](%x: Tensor[(N, 2, 4, 4), f32]) -> Tensor[(N, 2, 2, 2), f32] { " +
                      body + " }\n");
  };
  const Module before = read("max_pool2d(relu(%x), kernel=[2, 2], strides=[2, 2])");
  const std::vector<Pass> passes{relu_after_pool_pass(), *find_passes(std::vector<std::string>{"dead_code"})->begin()};
  auto after = run_passes(context, clone(before), passes, {.verify = true});
  ASSERT_TRUE(after) << after.error().str();
  EXPECT_TRUE(equal(*after, read("relu(max_pool2d(%x, kernel=[2, 2], strides=[2, 2]))")));
}

TEST(Diff, ShowsWhatChangedAndAFewLinesAround) {
  EXPECT_EQ(diff_lines("a\nb\n", "a\nb\n"), "");
  EXPECT_EQ(diff_lines("a\nb\nc\nd\ne\nf\ng\nh\n", "a\nb\nc\nd\ne\nF\ng\nH\ni\n"),
            "...\n c\n d\n e\n-f\n+F\n g\n-h\n+H\n+i\n");
  EXPECT_EQ(diff_lines("", "x\n"), "+x\n");
}

TEST(Diff, OfRandomTextsTurnsOneIntoTheOther) {
  std::mt19937 random(test_seed(3));
  for (int trial = 0; trial < 300; ++trial) {
    std::string a, b;
    for (std::string* text : {&a, &b}) {
      for (uint32_t line = 0; line < random() % 20; ++line)
        *text += std::string{static_cast<char>('a' + random() % 4), '\n'};
    }
    // All lines of both are near a change where the texts are short, or in neither: compare what is marked.
    std::string from, to, diff = diff_lines(a, b);
    if (diff.empty()) {
      EXPECT_EQ(a, b);
      continue;
    }
    size_t skipped = 0;
    for (size_t at = 0; at < diff.size(); at = diff.find('\n', at) + 1) {
      const std::string line = diff.substr(at + 1, diff.find('\n', at) - at);
      if (diff.substr(at, 4) == "...\n") ++skipped;
      else if (diff[at] == '-') from += line;
      else if (diff[at] == '+') to += line;
      else from += line, to += line;
    }
    if (skipped == 0) {
      EXPECT_EQ(from + "|" + to, a + "|" + b);
    }
  }
}

}  // namespace
}  // namespace tenon::compiler
