// Which values the instances of a batch share.
#include "compiler/batch/sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/fuzz/generator.h"
#include "compiler/fuzz/inputs.h"
#include "compiler/ir/text.h"
#include "compiler/passes/passes.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler::batch {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string shared(const std::string& text, const std::vector<bool>& own, bool specialized = false) {
  Context context;
  auto module = parse(context, "#[version = \"1\"]\n" + text);
  if (module && specialized) module = specialize(context, std::move(*module));
  if (module && specialized) module = dead_code(context, std::move(*module));
  if (!module) return module.error().str();
  return str(context, *module, sharing(context, *module, context.symbol("main"), own));
}

TEST(Sharing, AValueIsSharedWhereAllThatItIsComputedFromIs) {
  EXPECT_EQ(shared(R"(const $c: Tensor[(2, 2), f32] = [1, 2, 3, 4];
def @main[n](%x: Tensor[(2, 2), f32], %w: Tensor[(2, 2), f32], %y: Tensor[(n,), f32]) {
  let %t = transpose(%w, axes=[1, 0]);
  let %s = matmul(%t, $c);
  let %p = matmul(%x, %s);
  let %pair = (%t, %p);
  let %first = %pair.0;
  let %second = %pair.1;
  let %sizes = shape_of(%y);
  let %f = if (gather(gather(%w, 0i64), 0i64) < 1f32) { %s } else { %w };
  let %g = if (gather(gather(%x, 0i64), 0i64) < 1f32) { %s } else { %w };
  let %h = if (gather(gather(%x, 0i64), 0i64) < 1f32) { %w } else { %w };
  (%first, %second, %f, %g, %h, %sizes)
})",
                   {true, false, true}),
            "@main\n  %x: own\n  %w: shared\n  %y: own\n  %t: shared\n  %s: shared\n  %p: own\n  %pair: own\n"
            "  %first: shared\n  %second: own\n  %sizes: own\n  %f: shared\n  %g: own\n  %h: shared\n");
}

constexpr char kLayer[] = R"(type List[A] { Cons(A, List[A]), Nil }
const $forward: Tensor[(2, 2), f32] = [1, 2, 3, 4];
const $backward: Tensor[(2, 2), f32] = [4, 3, 2, 1];
def @layer(%w: Tensor[(2, 2), f32], %xs: List[Tensor[(1, 2), f32]], %state: Tensor[(1, 2), f32]) -> Tensor[(1, 2), f32] {
  match %xs { Cons(%x, %rest) => { let %next = tanh(matmul(%x, %w) + %state); @layer(%w, %rest, %next) }, Nil => %state }
}
)";

// A batch may join calls with both weights, until there is a copy for each.
TEST(Sharing, AParameterWithTwoConstantsIsOwnUntilItIsSpecialized) {
  const std::string both =
      std::string(kLayer) + R"(def @main(%xs: List[Tensor[(1, 2), f32]], %start: Tensor[(1, 2), f32]) {
  (@layer($forward, %xs, %start), @layer($backward, %xs, %start))
})";
  EXPECT_THAT(shared(both, {true, false}), HasSubstr("@layer\n  %w: own\n  %xs: own\n  %state: own\n"));
  EXPECT_THAT(shared(both, {true, false}, true), Not(HasSubstr("%w")));
  const std::string one =
      std::string(kLayer) + R"(def @main(%xs: List[Tensor[(1, 2), f32]], %start: Tensor[(1, 2), f32]) {
  @layer($forward, %xs, %start)
})";
  EXPECT_THAT(shared(one, {true, false}), HasSubstr("@layer\n  %w: constant\n  %xs: own\n  %state: own\n  %x: own\n"));
  // The elements of a shared list are several values.
  EXPECT_THAT(shared(one, {false, false}), HasSubstr("@layer\n  %w: constant\n  %xs: own\n"));
}

TEST(Sharing, AFunctionValueIsFollowedToItsCalls) {
  const std::string fold = R"(type List[A] { Cons(A, List[A]), Nil }
const $w: Tensor[(2, 2), f32] = [1, 2, 3, 4];
def @fold[A, B](%f: fn(B, A) -> B, %start: B, %xs: List[A]) -> B {
  match %xs { Nil => %start, Cons(%x, %rest) => @fold(%f, %f(%start, %x), %rest) }
}
)";
  const std::string closure =
      fold + R"(def @main(%xs: List[Tensor[(1, 2), f32]], %scale: Tensor[(), f32], %start: Tensor[(1, 2), f32]) {
  let %cell = fn(%state: Tensor[(1, 2), f32], %row: Tensor[(1, 2), f32]) {
    let %weights = $w * 2f32;
    let %scaled = %weights * %scale;
    let %sum = matmul(%state, %scaled) + %row;
    %sum
  };
  @fold(%cell, %start, %xs)
})";
  const std::string found = shared(closure, {true, false, false});
  EXPECT_THAT(found, HasSubstr("%f: shared"));
  EXPECT_THAT(found, HasSubstr("%row: own"));
  EXPECT_THAT(found, HasSubstr("%weights: shared"));
  EXPECT_THAT(found, HasSubstr("%scaled: shared"));
  EXPECT_THAT(found, HasSubstr("%sum: own"));
  const std::string captured = shared(closure, {true, true, false});
  EXPECT_THAT(captured, HasSubstr("%f: own"));
  EXPECT_THAT(captured, HasSubstr("%weights: shared"));
  EXPECT_THAT(captured, HasSubstr("%scaled: own"));
  // A function that is stored may be called with anything.
  EXPECT_THAT(shared(R"(def @double(%v: Tensor[(2,), f32]) -> Tensor[(2,), f32] { %v * 2f32 }
def @main(%x: Tensor[(2,), f32], %w: Tensor[(2,), f32]) {
  let %pair = (@double, %w);
  let %one = @double(%w);
  (%one, ref(%pair))
})",
                     {true, false}),
              HasSubstr("@double\n  %v: own\n"));
  EXPECT_THAT(shared(R"(def @double(%v: Tensor[(2,), f32]) -> Tensor[(2,), f32] { %v * 2f32 }
def @main(%x: Tensor[(2,), f32], %w: Tensor[(2,), f32]) { (@double(%w), %x) })",
                     {true, false}),
              HasSubstr("@double\n  %v: shared\n"));
}

// What is said to be shared has one value in all runs of the function with the same shared inputs, whatever the others
// are, and constants are these constants.
TEST(Sharing, SharedValuesOfRandomModulesAreTheSameInAllInstances) {
  int64_t compared = 0;
  for (int64_t i = 0; i < rounds(400); ++i) {
    const uint64_t seed = test_seed(5) + static_cast<uint64_t>(i);
    Context context;
    const Module module = fuzz::random_module(context, seed, {.size = 12});
    const Symbol name = context.symbol("main");
    const Function& main = *module.function(name);
    Random random(seed);
    std::vector<bool> own;
    for (size_t k = 0; k < main.params.size(); ++k) own.push_back(random.chance(50));
    const Sharing found = sharing(context, module, name, own);
    const auto first = fuzz::random_inputs(context, module, main, random);
    if (!first) continue;
    std::map<std::pair<Symbol, VarId>, RunValue> values;
    const auto name_of = [&](const Function& function) {
      for (const auto& [global, other] : module.globals) {
        if (std::get_if<Function>(&other) == &function) return global;
      }
      return Symbol{};
    };
    for (int instance = 0; instance < 3; ++instance) {
      const auto inputs = fuzz::random_inputs(context, module, main, random);
      if (!inputs) continue;
      std::vector<RunValue> given;
      for (size_t k = 0; k < own.size(); ++k) given.push_back(own[k] ? (*inputs)[k] : (*first)[k]);
      const auto observe = [&](const Function& function, VarId var, const RunValue& value) {
        const Symbol global = name_of(function);
        const auto origins = found.origins.find(global);
        ASSERT_NE(origins, found.origins.end()) << context.name(global);
        const Origin& origin = origins->second[index(var)];
        ASSERT_NE(origin.kind, Origin::Kind::kNone)
            << "@" << context.name(global) << " %" << context.name(function.info(var).name) << " " << index(var);
        if (origin.kind == Origin::Kind::kConstant) {
          EXPECT_EQ(value.tensor(), module.constants[origin.id]);
        } else if (origin.kind == Origin::Kind::kShared) {
          const auto [known, is_new] = values.try_emplace({origin.function, VarId{origin.id}}, value);
          EXPECT_EQ(str(context, known->second), str(context, value));
          compared += !is_new;
        }
      };
      const auto result = interpret(context, module, name, given, observe, {}, {.steps = 20'000, .bytes = 1 << 20});
      if (testing::Test::HasFailure())
        FAIL() << "seed " << seed << "\n" << print(context, module).text << str(context, module, found);
    }
  }
  EXPECT_GT(compared, rounds(400) * 10);
}

}  // namespace
}  // namespace tenon::compiler::batch
