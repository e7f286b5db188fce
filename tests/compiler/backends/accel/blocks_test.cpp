// Layers in arms, recursive functions, loops and closures: each gets a region of its own block, and the accelerator
// gives the interpreter's bits.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>

#include "compiler/backends/accel/target.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/lower/lower.h"
#include "compiler/partition/partition.h"
#include "driver/simulated.h"
#include "runtime/vm/session.h"
#include "sim/behavioral/behavioral.h"

namespace tenon::compiler::accel {
namespace {

using runtime::Tensor;

constexpr const char* kPrelude = R"(#[version = "1"]
const $w: Tensor[(4, 4), i8] = [30, -20, 10, 40, -10, 50, 20, -30, 20, 20, -40, 10, 10, -10, 30, 20];
const $b: Tensor[(4,), i32] = [100, -200, 50, 0];
const $m: Tensor[(4,), u16] = [40000, 50000, 33000, 65000];
const $s: Tensor[(4,), u8] = [14, 14, 13, 14];
type List[A] { Cons(A, List[A]), Nil }
)";

// The text with each layer(E) as a dense layer of E.
std::string with_layers(std::string text) {
  constexpr std::string_view kName = "layer(";
  for (size_t at = text.find(kName); at != std::string::npos; at = text.find(kName, at)) {
    size_t end = at + kName.size();
    for (int depth = 1; depth > 0; ++end) depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    const std::string operand = text.substr(at + kName.size(), end - 1 - at - kName.size());
    text.replace(at, end - at, "requantize(dense(" + operand + ", $w), $b, $m, $s)");
  }
  return kPrelude + text;
}

class AccelBlocks : public testing::Test {
 protected:
  // Partitions, lowers and runs the module's @main on both bools; the accelerator's results are the interpreter's.
  void expect_regions(const std::string& text, size_t regions) {
    auto parsed = parse(context_, with_layers(text));
    ASSERT_TRUE(parsed) << parsed.error().str();
    Module module = clone(*parsed);
    const spec::Config config = *spec::load_config("tiny");
    const std::vector<Target> targets{make_target(config)};
    auto placements = partition(context_, module, main_, targets);
    ASSERT_TRUE(placements) << placements.error().str();
    placements_ = std::move(*placements);
    const auto legal = verify(context_, module);
    ASSERT_TRUE(legal) << legal.error().str() << print(context_, module).text;
    auto executable = lower(context_, module, main_, targets, {.name = "test", .facts = {}, .cpu = {.native = false}});
    ASSERT_TRUE(executable) << executable.error().str();
    EXPECT_EQ(executable->programs.size(), regions) << print(context_, module).text;
    const auto device = driver::make_simulated("behavioral:test", *sim::make_behavioral(config), false);
    auto session = runtime::Session::create(*executable, {.accelerators = {device.get()}});
    ASSERT_TRUE(session) << session.error().str();
    for (const bool flag : {false, true}) {
      const std::vector<int8_t> row{100, -50, 7, flag ? int8_t{31} : int8_t{-90}};
      const std::vector<Tensor> inputs{Tensor::of<int8_t>({1, 4}, row), Tensor::of<bool>({}, std::array{flag})};
      const auto expected = interpret(context_, *parsed, main_, inputs);
      ASSERT_TRUE(expected) << expected.error().str();
      EXPECT_EQ(interpret(context_, module, main_, inputs).value(), *expected);
      const auto found = session->run(inputs);
      ASSERT_TRUE(found) << found.error().str();
      EXPECT_EQ(*found, *expected) << flag;
    }
    launches_ = session->profile().launches.size();
  }

  Context context_;
  Symbol main_ = context_.symbol("main");
  std::vector<Placement> placements_;
  size_t launches_ = 0;  // of both runs
};

constexpr const char* kMain = "def @main(%x: Tensor[(1, 4), i8], %c: Tensor[(), bool]) -> Tensor[(1, 4), i8] ";

TEST_F(AccelBlocks, AnArmHasItsOwnRegion) {
  expect_regions(std::string(kMain) + R"({
    let %h = layer(%x);
    if (%c) { let %once = layer(%h); layer(%once) } else { maximum(%h, %x) }
  })",
                 2);
  EXPECT_EQ(launches_, 3u);  // of the arm, in one of the two runs
  ASSERT_EQ(placements_.size(), 7u);
  EXPECT_EQ(placements_[5].target, "accel");
  EXPECT_EQ(placements_[6].reason, "accel has no pattern with maximum");
}

// The value is used in an inner block alone, so the region that makes it has it as a result.
TEST_F(AccelBlocks, AValueOfAnInnerBlockLeavesItsRegion) {
  expect_regions(std::string(kMain) + R"({
    let %h = layer(%x);
    let %g = layer(%h);
    if (%c) { %h } else { %g }
  })",
                 1);
}

TEST_F(AccelBlocks, TheArmOfAMatch) {
  expect_regions(std::string(kMain) + R"({
    let %list = if (%c) { Cons(layer(%x), Nil) } else { Nil };
    match %list { Cons(%y, _) => layer(%y), Nil => %x }
  })",
                 2);
  EXPECT_EQ(launches_, 2u);
}

TEST_F(AccelBlocks, ARecursiveFunction) {
  expect_regions(R"(
    def @fold(%xs: List[Tensor[(1, 4), i8]]) -> Tensor[(1, 4), i8] {
      match %xs { Cons(%x, Nil) => %x, Cons(%x, %rest) => layer(maximum(%x, @fold(%rest))), Nil => @fold(%xs) }
    }
  )" + std::string(kMain) +
                     "{ @fold(Cons(%x, Cons(layer(%x), Cons(%x, if (%c) { Nil } else { Cons(%x, Nil) })))) }",
                 2);
  EXPECT_EQ(launches_, 1u + 2 + 1 + 3);
}

TEST_F(AccelBlocks, ALoop) {
  expect_regions(R"(
    def @loop(%n: Tensor[(), i64], %h: Tensor[(1, 4), i8]) -> Tensor[(1, 4), i8] {
      if (%n > 0i64) { @loop(%n - 1i64, layer(%h)) } else { %h }
    }
  )" + std::string(kMain) +
                     "{ @loop(if (%c) { 10i64 } else { 3i64 }, %x) }",
                 1);
  EXPECT_EQ(launches_, 13u);
}

TEST_F(AccelBlocks, AClosureAndAPolymorphicFunction) {
  expect_regions(R"(
    def @repeat[A](%f: fn(A) -> A, %n: Tensor[(), i64], %x: A) -> A {
      if (%n > 0i64) { @repeat(%f, %n - 1i64, %f(%x)) } else { %x }
    }
  )" + std::string(kMain) +
                     R"({
    let %h = layer(%x);
    @repeat(fn(%y: Tensor[(1, 4), i8]) { maximum(layer(%y), %h) }, if (%c) { 2i64 } else { 5i64 }, %x)
  })",
                 2);
  EXPECT_EQ(launches_, 2u + 7);
}

// Layers join across a write that neither needs, and the reads and writes keep their order.
TEST_F(AccelBlocks, FunctionsWithReferences) {
  expect_regions(std::string(kMain) + R"({
    let %r = ref(%x);
    let %a = layer(%x);
    let %old = read(%r);
    write(%r, %a);
    let %b = layer(%a);
    let %new = read(%r);
    write(%r, layer(maximum(%old, %b)));
    maximum(if (%c) { read(%r) } else { %b }, %new)
  })",
                 2);
  EXPECT_EQ(launches_, 4u);
}

// The prices of layers alone, and of the region as a whole, in which they overlap.
TEST(AccelCosts, ARegionIsPricedAsItRuns) {
  const auto constant = [](std::string_view name, std::string_view type, int count, int first, int step) {
    std::string text = fmt::format("const ${}: Tensor[{}] = [", name, type);
    for (int i = 0; i < count; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", first + i * step % 61);
    return text + "];\n";
  };
  std::string text = "#[version = \"1\"]\n" + constant("w", "(32, 32, 3, 3), i8", 32 * 32 * 9, -30, 7) +
                     constant("b", "(32,), i32", 32, 0, 1) + constant("m", "(32,), u16", 32, 40000, 100) +
                     constant("s", "(32,), u8", 32, 16, 0) + "def @main(%v0: Tensor[(1, 32, 14, 14), i8]) {\n";
  constexpr int kLayers = 5;
  for (int i = 1; i <= kLayers; ++i)
    text += fmt::format("let %v{} = requantize(conv2d(%v{}, $w, padding=[1, 1, 1, 1]), $b, $m, $s);\n", i, i - 1);
  Context context;
  auto module = parse(context, text + fmt::format("%v{} }}\n", kLayers));
  ASSERT_TRUE(module) << module.error().str();
  const Symbol main = context.symbol("main");
  const spec::Config config = *spec::load_config("default");
  const std::vector<Target> targets{make_target(config)};
  const Costs costs{.source = "costs.json",
                    .gmacs_f32 = 0.1,
                    .gmacs_i8 = 0.1,
                    .gbytes = 1,
                    .call_ns = 1000,
                    .devices = {{"accel", {.launch_ns = 0, .mhz = 100}}}};
  PlacementCosts summary;
  const auto placements = partition(context, *module, main, targets, {.costs = &costs, .summary = &summary});
  ASSERT_TRUE(placements) << placements.error().str();
  double alone = 0;
  for (const Placement& placement : *placements) {
    EXPECT_EQ(placement.target, "accel");
    for (const TargetPrice& price : placement.prices) alone += price.target == "accel" ? price.price.seconds : 0;
  }
  auto executable = lower(context, *module, main, targets, {.name = "test", .facts = {}, .cpu = {.native = false}});
  ASSERT_TRUE(executable) << executable.error().str();
  const auto device = driver::make_simulated("behavioral:test", *sim::make_behavioral(config), false);
  auto session = runtime::Session::create(*executable, {.accelerators = {device.get()}});
  ASSERT_TRUE(session) << session.error().str();
  ASSERT_TRUE(session->run(std::array{Tensor(runtime::DType::kI8, {1, 32, 14, 14})}));
  ASSERT_EQ(session->profile().launches.size(), 1u);
  const double seconds = static_cast<double>(session->profile().launches[0].counters.cycles) / 100e6;
  EXPECT_NEAR(summary.total, seconds, 0.05 * seconds);
  EXPECT_GT(alone, summary.total);
}

TEST(AccelCosts, AClockMustBeGiven) {
  Context context;
  auto module = parse(context, with_layers("def @main(%x: Tensor[(1, 4), i8]) { layer(%x) }"));
  ASSERT_TRUE(module) << module.error().str();
  const std::vector<Target> targets{make_target(*spec::load_config("tiny"))};
  const Costs costs{.source = "costs.json",
                    .gmacs_f32 = 1,
                    .gmacs_i8 = 1,
                    .gbytes = 1,
                    .call_ns = 1,
                    .devices = {{"accel", {.launch_ns = 0}}}};
  const auto placements = partition(context, *module, context.symbol("main"), targets, {.costs = &costs});
  ASSERT_FALSE(placements);
  EXPECT_EQ(placements.error().what, "the entry devices.accel.mhz is missing");
}

}  // namespace
}  // namespace tenon::compiler::accel
