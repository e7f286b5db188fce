// Derivatives of programs beside central differences of their functions in f64, in the interpreter and compiled.
#include "compiler/gradient/differentiate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/passes.h"
#include "support/random.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Shape;
using runtime::Tensor;
using testing::HasSubstr;
using testing::Not;

const std::string kVersion = "#[version = \"1\"]\n";
const std::string kLists =
    "type List[A] { Cons(A, List[A]), Nil }\n"
    "def @map[A, B](%f: fn(A) -> B, %l: List[A]) -> List[B] {\n"
    "  match %l { Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)), Nil => Nil }\n"
    "}\n"
    "def @fold[A, B](%f: fn(A, B) -> B, %b: B, %l: List[A]) -> B {\n"
    "  match %l { Cons(%x, %rest) => @fold(%f, %f(%x, %b), %rest), Nil => %b }\n"
    "}\n";

// A program that defines @f, whose arguments are tensors of f64 of these shapes and whose result is a scalar.
struct Program {
  std::string name, text;
  std::vector<Shape> args;
};

void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

const std::string kX = "%x: Tensor[(2, 3), f64]", kW = "%w: Tensor[(3, 3), f64]";
const std::string kScalar = " -> Tensor[(), f64] ";

// x * x * x, whose gradient is stated.
const std::string kCube =
    "#[gradient = \"cube.adjoint\"]\n"
    "def @cube[n](%x: Tensor[(n,), f64], %k: Tensor[(), i64]) -> Tensor[(n,), f64] { %x * %x * %x }\n"
    "def @cube.adjoint[n](%x: Tensor[(n,), f64], %k: Tensor[(), i64], %y: Tensor[(n,), f64], %d: Tensor[(n,), f64]) {\n"
    "  (%d * %x * %x * cast(%k - %k + 3i64, dtype=\"f64\"), ())\n}\n";

const std::vector<Program> kPrograms{
    {"straight_line",
     "def @f(" + kX + ", " + kW + ")" + kScalar + "{ sum(tanh(dense(%x, %w) * %x), axes=[0, 1]) }",
     {{2, 3}, {3, 3}}},
    {"value_used_twice",
     "def @f(" + kX + ")" + kScalar + "{ let %y = tanh(%x); sum(%y * %y * %x + %y, axes=[0, 1]) }",
     {{2, 3}}},
    {"tuples",
     "def @pair(" + kX +
         ") { (tanh(%x), (%x * %x, %x)) }\n"
         "def @f(" +
         kX + ")" + kScalar + "{ let %p = @pair(%x); sum(%p.0 * %p.1.0 + %p.1.1, axes=[0, 1]) }",
     {{2, 3}}},
    {"operands_as_attributes",
     "def @g(" + kX + ") { tanh(%x) }\ndef @f(" + kX + ")" + kScalar +
         "{\n  let %y = @g(@g(%x));\n  let %b = arange(count=2);\n"
         "  sum(tanh(slice(%y * %x, begin=%b, end=[2, 3], step=[1, 1])))\n}",
     {{2, 3}}},
    {"branch",
     "def @f(%a: Tensor[(), f64], %b: Tensor[(), f64])" + kScalar +
         "{ let %y = if (%a > %b) { %a * %a * %b } else { let %t = tanh(%a * %b); %t * %t }; %y * %a }",
     {{}, {}}},
    {"branch_with_an_unused_side",
     "def @f(%a: Tensor[(), f64], %b: Tensor[(), f64])" + kScalar +
         "{ if (%a > 100f64) { %b } else { if (%b > -100f64) { %a * %b } else { 1f64 } } }",
     {{}, {}}},
    {"recursion",
     "def @power(%x: Tensor[(), f64], %n: Tensor[(), i64])" + kScalar +
         "{ if (%n == 0i64) { 1f64 } else { %x * @power(%x, %n - 1i64) } }\n"
         "def @f(%x: Tensor[(), f64])" +
         kScalar + "{ @power(%x, 5i64) + @power(%x * %x, 2i64) }",
     {{}}},
    {"mutual_recursion",
     "def @even(%x: Tensor[(), f64], %n: Tensor[(), i64])" + kScalar +
         "{ if (%n == 0i64) { %x } else { tanh(@odd(%x, %n - 1i64)) } }\n"
         "def @odd(%x: Tensor[(), f64], %n: Tensor[(), i64])" +
         kScalar +
         "{ if (%n == 0i64) { 1f64 } else { %x * @even(%x, %n - 1i64) } }\n"
         "def @f(%x: Tensor[(), f64])" +
         kScalar + "{ @even(%x, 6i64) }",
     {{}}},
    {"loop",
     "def @loop(" + kX + ", " + kW +
         ", %n: Tensor[(), i64]) -> Tensor[(2, 3), f64] {\n"
         "  if (%n == 0i64) { %x } else { @loop(tanh(dense(%x, %w)), %w, %n - 1i64) }\n}\n"
         "def @f(" +
         kX + ", " + kW + ")" + kScalar + "{ sum(@loop(%x, %w, 7i64), axes=[0, 1]) }",
     {{2, 3}, {3, 3}}},
    {"tree",
     "type Tree { Leaf(Tensor[(3,), f64]), Node(Tree, Tree) }\n"
     "def @sum_of(%t: Tree, %w: Tensor[(3,), f64]) -> Tensor[(3,), f64] {\n"
     "  match %t { Leaf(%x) => %x * %w, Node(%l, %r) => tanh(@sum_of(%l, %w) * %w) * @sum_of(%r, %w) }\n}\n"
     "def @f(%a: Tensor[(3,), f64], %w: Tensor[(3,), f64])" +
         kScalar + "{ sum(@sum_of(Node(Leaf(%a), Node(Leaf(%w), Leaf(%a * %w))), %w), axes=[0]) }",
     {{3}, {3}}},
    {"list_of_unknown_sizes",
     kLists + "def @f(%a: Tensor[(3,), f64], %b: Tensor[(2,), f64])" + kScalar +
         "{\n"
         "  let %l: List[Tensor[(?,), f64]] = Cons(%a, Cons(%b, Cons(%a * %a, Nil)));\n"
         "  @fold(fn (%x: Tensor[(?,), f64], %s: Tensor[(), f64]) { tanh(sum(%x * %x, axes=[0])) * %s }, 1f64, %l)\n"
         "}",
     {{3}, {2}}},
    {"polymorphic_function_of_an_unknown_size",
     kLists +
         "def @pick[A](%x: A, %l: List[A], %n: Tensor[(), i64]) -> A {\n"
         "  if (%n == 0i64) { %x } else { match %l { Cons(%h, %t) => @pick(%h, %t, %n - 1i64), Nil => %x } }\n}\n"
         "def @f(%a: Tensor[(3,), f64], %b: Tensor[(2,), f64])" +
         kScalar +
         "{\n"
         "  let %l: List[Tensor[(?,), f64]] = Cons(%a, Cons(%b, Nil));\n"
         "  let %e: Tensor[(?,), f64] = %b;\n"
         "  let %x = match %l { Cons(%h, %t) => tanh(%h), Nil => %e };\n"
         "  let %y = @pick(%x, %l, 2i64);\n"
         "  sum(%y * %y, axes=[0]) * sum(@pick(%y, %l, 0i64), axes=[0]) * sum(%a, axes=[0])\n"
         "}",
     {{3}, {2}}},
    {"determinant_of_no_elements",
     "def @d[n](%x: Tensor[(n, n), f64]) { det(%x) }\n"
     "def @f(%a: Tensor[(0, 0), f64], %b: Tensor[(3, 3), f64])" +
         kScalar + "{ @d(%a) * @d(%b) }",
     {{0, 0}, {3, 3}}},
    {"sizes_proved_by_a_common_factor",
     "def @g[n in 0..9](%a: Tensor[(n, n % 3), f64]) {\n"
     "  let %h = fn (%s: Tensor[(), f64]) { sum(reshape(%a, zero=1, shape=[n * n - 3 * n * (n // 3)]), axes=[0]) * %s "
     "};\n"
     "  %h(sum(%a, axes=[0, 1]))\n}\n"
     "def @f(%a: Tensor[(5, 2), f64])" +
         kScalar + "{ @g(%a) }",
     {{5, 2}}},
    {"closure_of_a_reference_without_a_derivative",
     "def @count(%r: Ref[Tensor[(), f64]], %n: Tensor[(), i64]) {\n"
     "  let %h = fn (%c: Ref[Tensor[(), f64]]) { 2i64 };\n  %n + %h(%r)\n}\n"
     "def @f(%x: Tensor[(), f64])" +
         kScalar + "{ let %r = ref(%x * %x); read(%r) * cast(@count(%r, 1i64), dtype=\"f64\") }",
     {{}}},
    {"closures_that_capture",
     kLists + "def @f(%a: Tensor[(), f64], %b: Tensor[(), f64])" + kScalar +
         "{\n"
         "  let %scale = fn (%x: Tensor[(), f64]) { tanh(%x * %a) };\n"
         "  let %both = fn (%x: Tensor[(), f64]) { %scale(%scale(%x) * %b) };\n"
         "  @fold(fn (%x: Tensor[(), f64], %s: Tensor[(), f64]) { %x * %s + %b }, %a, @map(%both, Cons(%a, Cons(%b, "
         "Nil))))\n"
         "}",
     {{}, {}}},
    {"closures_in_a_list",
     kLists + "def @f(%a: Tensor[(), f64], %b: Tensor[(), f64])" + kScalar +
         "{\n"
         "  let %l = Cons(fn (%x: Tensor[(), f64]) { %x * %a }, Cons(fn (%x: Tensor[(), f64]) { tanh(%x * %b) }, "
         "Nil));\n"
         "  @fold(fn (%g: fn(Tensor[(), f64]) -> Tensor[(), f64], %s: Tensor[(), f64]) { %g(%s) * %a }, %b, %l)\n"
         "}",
     {{}, {}}},
    {"closure_that_calls_itself",
     "def @f(%a: Tensor[(), f64])" + kScalar +
         "{\n"
         "  let %down = fn (%n: Tensor[(), i64], %x: Tensor[(), f64]) -> Tensor[(), f64] {\n"
         "    if (%n == 0i64) { %x } else { %down(%n - 1i64, tanh(%x * %a)) }\n"
         "  };\n"
         "  %down(4i64, %a)\n"
         "}",
     {{}}},
    {"global_function_as_a_value",
     kLists + "def @square(%x: Tensor[(), f64])" + kScalar +
         "{ %x * %x }\n"
         "def @f(%a: Tensor[(), f64])" +
         kScalar +
         "{ @fold(fn (%x: Tensor[(), f64], %s: Tensor[(), f64]) { %x * %s }, %a, @map(@square, Cons(%a, Cons(tanh(%a), "
         "Nil)))) }",
     {{}}},
    {"sizes_that_calls_bind",
     "def @layers[n](%x: Tensor[(n, 3), f64], " + kW +
         ", %i: Tensor[(), i64]) -> Tensor[(n, 3), f64] {\n"
         "  if (%i == 0i64) { %x } else { @layers(tanh(dense(%x, %w)), %w, %i - 1i64) }\n}\n"
         "def @mean_of[n](%x: Tensor[(n, 3), f64])" +
         kScalar +
         "{ sum(%x * %x, axes=[0, 1]) }\n"
         "def @f(" +
         kX + ", " + kW + ")" + kScalar + "{ @mean_of(@layers(%x, %w, 3i64)) }",
     {{2, 3}, {3, 3}}},
    {"content_of_a_reference",
     "def @f(%a: Tensor[(), f64], %b: Tensor[(), f64])" + kScalar +
         "{ let %r = ref(%a * %b); let %x = read(%r); write(%r, %x * %a); let %y = read(%r); write(%r, %b); %y * %x * "
         "read(%r) }",
     {{}, {}}},
    {"sum_in_a_reference",
     "def @steps(%r: Ref[Tensor[(), f64]], %x: Tensor[(), f64], %n: Tensor[(), i64]) -> () {\n"
     "  if (%n == 0i64) { () } else { write(%r, tanh(read(%r) * %x + %x)); @steps(%r, %x, %n - 1i64) }\n}\n"
     "def @f(%a: Tensor[(), f64])" +
         kScalar + "{ let %r = ref(%a); @steps(%r, %a * %a, 5i64); read(%r) }",
     {{}}},
    {"memo_table_in_a_reference",
     "type Table { Entry(Tensor[(), i64], Tensor[(), f64], Table), Empty }\n"
     "type Found { Some(Tensor[(), f64]), None }\n"
     "def @find(%t: Table, %n: Tensor[(), i64]) -> Found {\n"
     "  match %t { Entry(%k, %v, %rest) => if (%k == %n) { Some(%v) } else { @find(%rest, %n) }, Empty => None }\n}\n"
     "def @fib(%memo: Ref[Table], %x: Tensor[(), f64], %n: Tensor[(), i64])" +
         kScalar +
         "{\n  if (%n < 2i64) { %x } else {\n"
         "    match @find(read(%memo), %n) {\n      Some(%v) => %v,\n      None => {\n"
         "        let %v = tanh(@fib(%memo, %x, %n - 1i64) + @fib(%memo, %x, %n - 2i64) * %x);\n"
         "        write(%memo, Entry(%n, %v, read(%memo)));\n        %v\n      }\n    }\n  }\n}\n"
         "def @f(%x: Tensor[(), f64])" +
         kScalar + "{ let %memo: Ref[Table] = ref(Empty); @fib(%memo, %x, 8i64) }",
     {{}}},
    {"bounds_that_a_call_checks",
     "def @scaled[n in 1..4, A](%x: Tensor[(n,), f64], %y: A, %f: fn(A) -> Tensor[(), f64])" + kScalar +
         "{ sum(%x) * %f(%y) }\n"
         "def @inner[n](%x: Tensor[(n,), f64])" +
         kScalar +
         "{ @scaled(%x, (%x, 2f64), fn (%p: (Tensor[(n,), f64], Tensor[(), f64])) { sum(%p.0 * %p.0) * %p.1 }) }\n"
         "def @f(%x: Tensor[(3,), f64])" +
         kScalar + "{ @inner(%x) }",
     {{3}}},
    {"newton",
     "def @root(%a: Tensor[(), f64], %x: Tensor[(), f64], %n: Tensor[(), i64])" + kScalar +
         "{ if (%n == 0i64) { %x } else { @root(%a, %x - (%x * %x * %x - %a) * 0.05f64, %n - 1i64) } }\n"
         "def @f(%a: Tensor[(), f64])" +
         kScalar + "{ @root(%a * %a, %a, 20i64) }",
     {{}}},
    {"second_order",
     "def @g(" + kX + ", " + kW + ")" + kScalar +
         "{ sum(tanh(dense(%x, %w)), axes=[0, 1]) }\n"
         "def @f(" +
         kX + ", " + kW + ")" + kScalar +
         "{ let %d = gradient(@g)(%x, %w).1; sum(%d.0 * %d.0, axes=[0, 1]) + sum(%d.1 * %w, axes=[0, 1]) }",
     {{2, 3}, {3, 3}}},
    {"second_order_through_recursion_and_a_pullback",
     "def @power(%x: Tensor[(), f64], %n: Tensor[(), i64])" + kScalar +
         "{ if (%n == 0i64) { %x } else { tanh(%x * @power(%x, %n - 1i64)) } }\n"
         "def @f(%x: Tensor[(), f64])" +
         kScalar + "{ let %p = pullback(@power, wrt=[0])(%x, 3i64); %p.0 * %p.1(%x).0 }",
     {{}}},
    {"own_gradient_of_any_size",
     kCube + "def @f(%x: Tensor[(3,), f64])" + kScalar + "{ sum(@cube(%x * %x, 3i64) * %x, axes=[0]) }",
     {{3}}},
    {"own_gradient_twice",
     kCube + "def @g(%x: Tensor[(3,), f64])" + kScalar + "{ sum(@cube(%x * %x, 3i64) * %x, axes=[0]) }\n" +
         "def @f(%x: Tensor[(3,), f64])" + kScalar + "{ let %d = gradient(@g)(%x); %d.0 * sum(%d.1.0, axes=[0]) }",
     {{3}}},
    {"own_gradient_in_a_loop",
     kCube +
         "def @loop(%x: Tensor[(3,), f64], %n: Tensor[(), i64]) -> Tensor[(3,), f64] {\n"
         "  if (%n == 0i64) { %x } else { @loop(tanh(@cube(%x, %n)), %n - 1i64) }\n}\n"
         "def @f(%x: Tensor[(3,), f64])" +
         kScalar + "{ sum(@loop(%x, 3i64), axes=[0]) }",
     {{3}}},
    {"own_gradient_in_closures",
     kCube + kLists + "def @f(%a: Tensor[(3,), f64], %b: Tensor[(3,), f64])" + kScalar +
         "{\n  let %h = fn (%x: Tensor[(3,), f64]) { @cube(%x, 2i64) * %a };\n"
         "  sum(@fold(fn (%x: Tensor[(3,), f64], %s: Tensor[(3,), f64]) { %x * %s }, %a, @map(%h, Cons(%a, Cons(%b, "
         "Nil)))), axes=[0])\n}",
     {{3}, {3}}},
    {"own_gradient_by_a_pullback",
     kCube + "def @f(%x: Tensor[(3,), f64])" + kScalar +
         "{ let %p = pullback(@cube, wrt=[0])(%x, 3i64); sum(%p.0 * %p.1(%x).0, axes=[0]) }",
     {{3}}},
    {"own_gradient_of_a_tuple",
     "#[gradient = \"both.adjoint\"]\n"
     "def @both(%p: (Tensor[(), f64], Tensor[(), i64]), %b: Tensor[(), f64]) { (%p.0 * %b, tanh(%p.0)) }\n"
     "def @both.adjoint(%p: (Tensor[(), f64], Tensor[(), i64]), %b: Tensor[(), f64], %y: (Tensor[(), f64], Tensor[(), "
     "f64]), %d: (Tensor[(), f64], Tensor[(), f64])) {\n"
     "  ((%d.0 * %b + %d.1 * (1f64 - %y.1 * %y.1), ()), %d.0 * %p.0)\n}\n"
     "def @f(%a: Tensor[(), f64], %b: Tensor[(), f64])" +
         kScalar + "{ let %r = @both((%a, 1i64), %b); %r.0 * %r.1 }",
     {{}, {}}},
};

class Derivatives : public testing::TestWithParam<Program> {};

Expected<std::vector<Tensor>> run(const Context& context, const Module& module, Symbol name,
                                  const std::vector<Tensor>& args) {
  std::vector<RunValue> values(args.begin(), args.end());
  auto result = interpret(context, module, name, values);
  if (!result) return std::unexpected(result.error());
  std::vector<Tensor> tensors;
  const auto add = [&](const RunValue& value, auto& self) -> void {
    if (value.tensor()) tensors.push_back(value.tensor());
    else
      for (const RunValue& field : value.fields()) self(field, self);
  };
  add(*result, add);
  return tensors;
}

TEST_P(Derivatives, AgreeWithCentralDifferences) {
  const Program& program = GetParam();
  Context context;
  std::string params, args;
  for (size_t i = 0; i < program.args.size(); ++i) {
    std::string sizes;
    for (const int64_t size : program.args[i]) sizes += fmt::format("{},", size);
    params += fmt::format("{}%p{}: Tensor[({}), f64]", i == 0 ? "" : ", ", i, sizes);
    args += fmt::format("{}%p{}", i == 0 ? "" : ", ", i);
  }
  const std::string text =
      fmt::format("{}{}\ndef @main({}) {{ gradient(@f)({}) }}\n", kVersion, program.text, params, args);
  auto module = parse(context, text);
  ASSERT_TRUE(module) << module.error().str();
  auto again = parse(context, print(context, *module).text);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_TRUE(equal(*module, *again));
  auto expanded = differentiate(context, clone(*module));
  ASSERT_TRUE(expanded) << expanded.error().str();
  const Status status = verify(context, *expanded);
  ASSERT_TRUE(status) << status.error().str() << print(context, *expanded).text;
  auto printed = parse(context, print(context, *expanded).text);
  ASSERT_TRUE(printed) << printed.error().str();
  EXPECT_TRUE(equal(*expanded, *printed));

  Random random(test_seed(1));
  const auto random_tensor = [&](const Shape& shape) {
    Tensor tensor(DType::kF64, shape);
    for (double& value : tensor.data<double>()) value = static_cast<double>(random.between(-1200, 1200)) / 1000;
    return tensor;
  };
  std::vector<Tensor> inputs;
  for (const Shape& shape : program.args) inputs.push_back(random_tensor(shape));
  const auto results = run(context, *expanded, context.symbol("main"), inputs);
  ASSERT_TRUE(results) << results.error().str();
  ASSERT_EQ(results->size(), 1 + inputs.size());
  const auto value = [&](const std::vector<Tensor>& at) {
    // Programs whose own code has derivatives are expanded, too.
    const auto found = run(context, *expanded, context.symbol("f"), at);
    EXPECT_TRUE(found) << found.error().str();
    return found ? found->at(0).data<double>()[0] : 0;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_EQ((*results)[1 + i].shape(), inputs[i].shape());
    const Tensor direction = random_tensor(program.args[i]);
    constexpr double kStep = 1e-5;
    double slope = 0;
    std::vector<Tensor> above = inputs, below = inputs;
    above[i] = inputs[i].clone(), below[i] = inputs[i].clone();
    for (size_t k = 0; k < direction.data<double>().size(); ++k) {
      const double d = direction.data<double>()[k];
      above[i].data<double>()[k] += kStep * d;
      below[i].data<double>()[k] -= kStep * d;
      slope += d * (*results)[1 + i].data<double>()[k];
    }
    const double difference = (value(above) - value(below)) / (2 * kStep);
    EXPECT_NEAR(slope, difference, 1e-6 * (1 + std::abs(difference))) << "argument " << i;
  }

  // What the passes before compilation make of it computes the same.
  auto optimized = run_passes(context, clone(*module), standard_passes(), {.verify = true});
  ASSERT_TRUE(optimized) << optimized.error().str();
  const auto same = run(context, *optimized, context.symbol("main"), inputs);
  ASSERT_TRUE(same) << same.error().str();
  for (size_t i = 0; i < results->size(); ++i) {
    for (size_t k = 0; k < (*results)[i].data<double>().size(); ++k)
      EXPECT_NEAR((*results)[i].data<double>()[k], (*same)[i].data<double>()[k], 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Derivatives, testing::ValuesIn(kPrograms),
                         [](const auto& info) { return info.param.name; });

// The gradient by the argument of a scalar @f of three f64, at 0.3, 1.7 and -2.6.
std::vector<double> gradient_of(const std::string& text) {
  Context context;
  auto module = parse(context, kVersion + text + "\ndef @main(%x: Tensor[(3,), f64]) { gradient(@f)(%x) }\n");
  if (!module) return ADD_FAILURE() << module.error().str(), std::vector<double>();
  auto expanded = run_passes(context, std::move(*module), standard_passes(), {.verify = true});
  if (!expanded) return ADD_FAILURE() << expanded.error().str(), std::vector<double>();
  EXPECT_THAT(print(context, *expanded).text, Not(HasSubstr("gradient")));
  const std::vector<double> at{0.3, 1.7, -2.6};
  const auto results = run(context, *expanded, context.symbol("main"), {Tensor::of<double>({3}, at)});
  if (!results) return ADD_FAILURE() << results.error().str(), std::vector<double>();
  const auto found = results->at(1).data<double>();
  return {found.begin(), found.end()};
}

TEST(OwnGradients, StandInForTheDerivativeOfTheBody) {
  // Rounding has no slope; its own gradient passes the adjoint on.
  const std::string round =
      "def @through(%x: Tensor[(3,), f64]) { round(%x) }\n"
      "def @f(%x: Tensor[(3,), f64]) { sum(@through(%x) * %x, axes=[0]) }";
  EXPECT_THAT(gradient_of(round), testing::ElementsAre(0, 2, -3));
  EXPECT_THAT(gradient_of("#[gradient = \"pass\"]\n" + round +
                          "\ndef @pass(%x: Tensor[(3,), f64], %y: Tensor[(3,), f64], %d: Tensor[(3,), f64]) { (%d,) }"),
              testing::ElementsAre(0 + 0.3, 2 + 1.7, -3 - 2.6));
}

TEST(OwnGradients, GiveOneToALibraryFunction) {
  EXPECT_THAT(gradient_of("extern @other(Tensor[(3,), f64]) -> Tensor[(3,), f64] = \"other\";\n"
                          "#[gradient = \"wrapped.adjoint\"]\n"
                          "def @wrapped(%x: Tensor[(3,), f64]) { let %n = if (sum(%x) > 100f64) { @other(%x) } else { "
                          "%x }; %n + %n }\n"
                          "def @wrapped.adjoint(%x: Tensor[(3,), f64], %y: Tensor[(3,), f64], %d: Tensor[(3,), f64]) { "
                          "(%d + %d,) }\n"
                          "def @f(%x: Tensor[(3,), f64]) { sum(@wrapped(%x), axes=[0]) }"),
              testing::ElementsAre(2, 2, 2));
}

TEST(OwnGradients, StopWhereTheyAreToldTo) {
  EXPECT_THAT(gradient_of("def @f(%x: Tensor[(3,), f64]) { sum(stop_gradient(%x * %x) * %x, axes=[0]) }"),
              testing::ElementsAre(0.3 * 0.3, 1.7 * 1.7, 2.6 * 2.6));
}

class DifferentiateErrors : public testing::Test {
 protected:
  std::string error_of(const std::string& text) {
    Context context;
    auto module = parse(context, kVersion + text, {}, "m.tn");
    if (!module) return module.error().str();
    auto expanded = differentiate(context, std::move(*module));
    return expanded ? "" : expanded.error().str();
  }
};

TEST_F(DifferentiateErrors, NameTheParameterThatHasNoDerivative) {
  EXPECT_THAT(error_of("def @f(%x: Tensor[(), f32], %n: Tensor[(), i64]) { %x }\n"
                       "def @main(%x: Tensor[(), f32]) { gradient(@f, wrt=[1])(%x, 2i64) }\n"),
              HasSubstr("m.tn:3:34: error: gradient: parameter 1 is Tensor[(), i64], which has no part of floats"));
  EXPECT_THAT(error_of("def @f(%x: Tensor[(), f32]) { %x }\n"
                       "def @main(%x: Tensor[(), f32]) { gradient(@f, wrt=[1])(%x) }\n"),
              HasSubstr("there is no parameter 1: the function has 1"));
  EXPECT_THAT(error_of("def @f(%x: Tensor[(), f32]) { %x }\n"
                       "def @main(%x: Tensor[(), f32]) { gradient(@f, wrt=[0, 0])(%x) }\n"),
              HasSubstr("wrt: the parameter 0 is out of order"));
  EXPECT_THAT(error_of("def @main(%x: Tensor[(), f32]) { gradient(fn (%y: Tensor[(), f32]) { %y })(%x) }\n"),
              HasSubstr("state the parameters of a closure"));
}

TEST_F(DifferentiateErrors, NameTheGradientOfAnotherType) {
  const std::string f = "#[gradient = \"g\"]\ndef @f[n](%x: Tensor[(n,), f32], %k: Tensor[(), i64]) { tanh(%x) }\n";
  EXPECT_THAT(error_of(f), HasSubstr("m.tn:2:1: error: its gradient @g is no function of the module"));
  EXPECT_THAT(error_of(f + "def @g[n](%x: Tensor[(n,), f32]) { %x }\n"),
              HasSubstr("its gradient @g is fn(Tensor[(n,), f32]) -> Tensor[(n,), f32], must be fn(Tensor[(n,), f32], "
                        "Tensor[(), i64], Tensor[(n,), f32], Tensor[(n,), f32]) -> (Tensor[(n,), f32], ())"));
  EXPECT_THAT(error_of("#[gradient = \"g\"]\ndef @f[A](%x: A) { %x }\n"
                       "def @g(%x: Tensor[(), f32]) { %x }\n"),
              HasSubstr("a function with a gradient of its own has no type variables"));
  EXPECT_THAT(error_of("#[gradient = 3]\ndef @f(%x: Tensor[(), f32]) { %x }\n"),
              HasSubstr("a function has no annotation 'gradient' of this kind"));
}

TEST_F(DifferentiateErrors, NameTheShapeOfALossThatIsNoScalar) {
  EXPECT_THAT(error_of("def @f(%x: Tensor[(2,), f32]) { %x }\n"
                       "def @main(%x: Tensor[(2,), f32]) { gradient(@f)(%x) }\n"),
              HasSubstr("gradient: the result must be a scalar of floats, found Tensor[(2,), f32]"));
}

TEST_F(DifferentiateErrors, NameEveryCallWithoutADerivative) {
  const std::string text = error_of(
      "extern @other(Tensor[(4,), f32]) -> Tensor[(4,), f32] = \"other\";\n"
      "loop @twice(%x: Tensor[(4,), f32]) -> (%y: Tensor[(4,), f32]) {\n"
      "  for i in (4) {\n    stage twice(i in (4) at (i)) {\n      %y[i] = %x[i] + %x[i];\n    }\n  }\n}\n"
      "def @f(%x: Tensor[(4,), f32]) { sum(@other(@twice(%x)), axes=[0]) }\n"
      "def @main(%x: Tensor[(4,), f32]) { gradient(@f)(%x) }\n");
  EXPECT_THAT(text, HasSubstr("m.tn:10:37: error: @other has no derivative: it is a library function")) << text;
}

TEST_F(DifferentiateErrors, NameWhatHasNoFiniteSetOfTypes) {
  EXPECT_THAT(error_of("type Nest[A] { Tip(A), Twice(Nest[(A, A)]) }\n"
                       "def @f(%x: Nest[Tensor[(), f32]], %y: Nest[Tensor[(), f32]], %b: Tensor[(), bool]) {\n"
                       "  let %z = if (%b) { %x } else { %y };\n"
                       "  match (%z, %x) { (Tip(%a), Tip(%c)) => %a * %c, _ => 0f32 }\n}\n"
                       "def @main(%x: Nest[Tensor[(), f32]], %b: Tensor[(), bool]) { gradient(@f)(%x, %x, %b) }\n"),
              HasSubstr("NestAdjoint has itself with ever larger arguments among its fields"));
  EXPECT_THAT(error_of("type List[A] { Cons(A, List[A]), Nil }\n"
                       "def @deep[A](%x: A, %y: Tensor[(), f32], %n: Tensor[(), i64]) -> Tensor[(), f32] {\n"
                       "  if (%n == 0i64) { %y } else { @deep((%x, %x), %y * %y, %n - 1i64) }\n}\n"
                       "def @f(%x: Tensor[(), f32]) { @deep(%x, %x, 3i64) }\n"
                       "def @main(%x: Tensor[(), f32]) { gradient(@f)(%x) }\n"),
              HasSubstr("@deep is called with more than 64 combinations of types"));
}

TEST_F(DifferentiateErrors, NameTheSizeThatCannotPass) {
  const std::string list = "type List[A] { Cons(A, List[A]), Nil }\n";
  EXPECT_THAT(
      error_of(list + "def @first[n](%l: List[Tensor[(n,), f32]], %x: Tensor[(n,), f32]) -> Tensor[(n,), f32] {\n"
                      "  match %l { Cons(%a, _) => %a * %x, Nil => %x }\n}\n"
                      "def @f[n](%x: Tensor[(n,), f32]) { sum(@first(Cons(%x, Nil), %x)) }\n"
                      "def @main[n](%x: Tensor[(n,), f32]) { gradient(@f)(%x) }\n"),
      HasSubstr("ListAdjoint[Tensor[(n,), f32]], with the size n inside of another type"));
}

TEST_F(DifferentiateErrors, NameTheInterfaceWithAClosure) {
  EXPECT_THAT(error_of("def @f(%g: fn(Tensor[(), f32]) -> Tensor[(), f32], %x: Tensor[(), f32]) { %g(%x) }\n"
                       "def @main(%g: fn(Tensor[(), f32]) -> Tensor[(), f32], %x: Tensor[(), f32]) {\n"
                       "  gradient(@f, wrt=[1])(%g, %x)\n}\n"),
              HasSubstr("@main has a function as an argument or result"));
}

TEST_F(DifferentiateErrors, NameTheReferenceWhoseContentIsDifferentiated) {
  const std::string f = "def @f(%x: Tensor[(), f32]) { let %r = ref(%x); read(%r) * %x }\n";
  EXPECT_THAT(error_of(f + "def @g(%x: Tensor[(), f32]) { gradient(@f)(%x).1.0 }\n"
                           "def @main(%x: Tensor[(), f32]) { gradient(@g)(%x) }\n"),
              HasSubstr("a second derivative of a value that is read from a reference is needed"));
  EXPECT_THAT(error_of(f + "def @main(%x: Tensor[(), f32]) { (gradient(@f)(%x), ref(%x)) }\n"),
              HasSubstr("@main has a reference as an argument or result"));
  EXPECT_THAT(
      error_of("type Cell[A] { Cell(Ref[A]) }\n"
               "def @f(%x: Tensor[(), f32]) { let %c = Cell(ref(%x)); match %c { Cell(%r) => read(%r) * %x } }\n"
               "def @main(%x: Tensor[(), f32]) { gradient(@f)(%x) }\n"),
      HasSubstr("Cell has a reference whose content is a parameter of the type, and is Tensor[(), f32] where"));
  EXPECT_THAT(error_of("def @f[n](%x: Tensor[(n,), f32]) { let %r = ref(%x); sum(read(%r) * %x) }\n"
                       "def @main[n](%x: Tensor[(n,), f32]) { gradient(@f)(%x) }\n"),
              HasSubstr("a reference has the content Tensor[(n,), f32], with the size n inside of another type"));
}

TEST_F(DifferentiateErrors, TellWhyAnOperatorHasNoGradient) {
  const std::string main = "def @main(%x: Tensor[(4,), f32]) { gradient(@f)(%x) }\n";
  EXPECT_THAT(error_of("def @f(%x: Tensor[(4,), f32]) { sum(unique(%x).0) }\n" + main),
              HasSubstr("m.tn:2:37: error: unique has no gradient: how many distinct elements there are changes with"));
  EXPECT_THAT(error_of("def @f(%x: Tensor[(4,), f32]) { sum(pad(%x, before=[1], after=[1], value=sum(%x))) }\n" + main),
              HasSubstr("m.tn:2:37: error: pad has no gradient: its attribute value is differentiated"));
  EXPECT_THAT(error_of("def @f(%x: Tensor[(4,), f32]) { sum(one_hot(arange(count=4), depth=4, on=sum(%x))) }\n" + main),
              HasSubstr("m.tn:2:37: error: one_hot has no gradient"));
}

TEST_F(DifferentiateErrors, RefuseAFunctionThatNeedsItsOwnDerivative) {
  EXPECT_THAT(error_of("def @f(%x: Tensor[(), f32]) -> Tensor[(), f32] { gradient(@f)(%x).1.0 }\n"
                       "def @main(%x: Tensor[(), f32]) { gradient(@f)(%x) }\n"),
              HasSubstr("its own code needs this derivative"));
}

TEST(Differentiate, LeavesNoTapeInAStraightLine) {
  Context context;
  std::string body = "%x";
  for (int i = 0; i < 10; ++i) body = fmt::format("tanh({} * %w)", body);
  auto module =
      parse(context, kVersion + "def @f(%x: Tensor[(4,), f32], %w: Tensor[(4,), f32]) { sum(" + body +
                         ", axes=[0]) }\n"
                         "def @main(%x: Tensor[(4,), f32], %w: Tensor[(4,), f32]) { gradient(@f)(%x, %w) }\n");
  ASSERT_TRUE(module) << module.error().str();
  auto expanded = differentiate(context, std::move(*module));
  ASSERT_TRUE(expanded) << expanded.error().str();
  const std::string text = print(context, *expanded).text;
  for (const char* word : {"ref(", "fn", "match", "Tape"}) EXPECT_THAT(text, Not(HasSubstr(word)));
}

}  // namespace
}  // namespace tenon::compiler
