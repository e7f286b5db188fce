// Patterns: their text form, and what they match.
#include "compiler/partition/pattern.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>

#include "compiler/ir/operator.h"
#include "compiler/ir/text.h"
#include "compiler/partition/match.h"
#include "compiler/partition/pattern_text.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

constexpr const char* kTexts[] = {
    "relu(_)",
    "relu",
    "conv2d[groups=1, strides in {1, 2}](%x: i8(n, c, h, w) where h <= 1024 and w <= h, %w: const)",
    "requantize?(%y: conv2d(_, const), const, const, const)",
    "add~(%p: multiply(%x, %x), %q)",
    "add~?(_, relu(_) | clip[min=0.5](_) | const): f32",
    "path(%a: conv2d, relu | clip | add(_, _), %b: max_pool2d)",
    "path((%a: conv2d | %a: dense), relu, (%b: (add | subtract)): tensor(_, 4) where m == n and m != 3 and n > 0): "
    "i4(m, n)",
    "fn(%f: relu(_))(%x, const)",
    "fn(_)",
    "if(_, %t, %e: add(_, f32(2)))",
    "(%a, %b).0",
    "(%a: split).1.0",
    "(relu(_),)",
    "()",
    "(tensor, _: f32 | const, (%x: i8).2)",
    "%root: relu(%x: tensor where n >= 1 | %x: f32(n))",
    "layout_transform[from=\"NCHW\"](_)",
};

class Patterns : public testing::Test {
 protected:
  GraphPattern read(std::string_view text) {
    auto pattern = read_pattern(context_, text);
    EXPECT_TRUE(pattern) << text << "\n" << pattern.error().str();
    return pattern ? *pattern : GraphPattern();
  }
  std::string message(std::string_view text) {
    const auto pattern = read_pattern(context_, text);
    return pattern ? "read as " + to_string(*pattern) : pattern.error().str();
  }

  // The function @main(%x: [4, 4], %y: [4, 4], %c: bool) with this body.
  void body(const std::string& text, const std::string& globals = "") {
    auto module = parse(context_, "#[version = \"1\"]\nconst $w: Tensor[(4, 4), f32] = [" + ones() +
                                      "];\nconst $v: Tensor[(4, 4), f32] = [" + ones() + "];\n" + globals +
                                      "\ndef @main(%x: Tensor[(4, 4), f32], %y: Tensor[(4, 4), f32], %c: "
                                      "Tensor[(), bool]) {\n" +
                                      text + "\n}\n");
    ASSERT_TRUE(module) << module.error().str();
    module_ = *std::move(module);
  }
  static std::string ones() {
    std::string text = "1";
    for (int i = 1; i < 16; ++i) text += ", 1";
    return text;
  }
  const Function& main() { return *module_.function(context_.symbol("main")); }

  // The names of the bindings of the match at the root of this name, or the last binding: "a b"; else the failure.
  std::string matched(std::string_view pattern, std::string_view root = "") {
    const GraphPattern read_one = read(pattern);
    const DataFlow flow(context_, module_, main(), main().body);
    size_t at = main().body.bindings.size() - 1;
    for (size_t i = 0; i < main().body.bindings.size(); ++i) {
      if (name(i) == root) at = i;
    }
    const auto result = match(read_one, flow, at);
    if (!result) return result.error().what;
    if (!result->match) return result->failure ? result->failure->str() : "none";
    match_ = *result->match;
    std::string names;
    for (const size_t binding : match_.bindings) names += (names.empty() ? "" : " ") + name(binding);
    return names;
  }
  std::string name(size_t binding) const {
    const Function& function = *module_.function(context_.symbol("main"));
    return std::string(context_.name(function.info(function.body.bindings[binding].var).name));
  }

  mutable Context context_;
  Module module_;
  Match match_;
};

TEST_F(Patterns, TheirTextIsReadAsTheSamePattern) {
  for (const char* text : kTexts) {
    const GraphPattern pattern = read(text);
    EXPECT_EQ(read(to_string(pattern)), pattern) << text << " became " << to_string(pattern);
    EXPECT_EQ(to_string(read(to_string(pattern))), to_string(pattern));
  }
  EXPECT_EQ(to_string(read(kTexts[2])), kTexts[2]);
  EXPECT_EQ(read(kTexts[3]), optional(ops::kRequantize, {named("y", op(ops::kConv2d, {any(), constant()})), constant(),
                                                         constant(), constant()}));
  EXPECT_EQ(read("conv2d[groups=1]"), with_attr(op(ops::kConv2d), "groups", {int64_t{1}}));
  EXPECT_EQ(read("(_, %t).1"), field(tuple({any(), named("t", any())}), 1));
  EXPECT_EQ(read("if(_, relu, const)"), branch(any(), op(ops::kRelu), constant()));
  EXPECT_EQ(read("fn(relu)(_)"), function(op(ops::kRelu), {any()}));
  EXPECT_EQ(read("path(relu, abs, negate)"), path(op(ops::kRelu), op(ops::kAbs), op(ops::kNegate)));
}

TEST_F(Patterns, AMistakeHasALocationAndAnExpectation) {
  EXPECT_EQ(message("relu(_"), "pattern:1:7: error: expected ',' or ')', found the end\n  relu(_\n        ^");
  const auto has = [&](std::string_view text, std::string_view part) {
    EXPECT_NE(message(text).find(part), std::string::npos) << message(text);
  };
  has("rleu(_)", "there is no operator 'rleu'");
  has("rleu(_)", "did you mean relu?");
  has("relu(_, _)", "relu has at most 1 operand, found 2");
  has("conv2d[group=1]", "conv2d has no attribute 'group'");
  has("conv2d[group=1]", "did you mean groups?");
  has("conv2d[groups=\"a\"]", "groups is of the kind");
  has("conv2d[groups in {}]", "groups is in no set without values");
  has("conv2d[groups 1]", "expected '=' or 'in', found '1'");
  has("relu(i8(n) where m < 3)", "no size of the pattern is named 'm'");
  has("relu(i8(n) where n ! 3)", "unexpected '!'");
  has("relu(i8(n) where n relu)", "expected '==', '!=', '<', '<=', '>' or '>=', found 'relu'");
  has("_", "a pattern must be of an operation");
  has("relu?", "'relu' requires the patterns of its operands");
  has("path(relu, abs)", "'path' has 3 parts, found 2");
  has("path(relu, %s: abs, abs)", "%s cannot be named: the steps of a path are many values");
  has("fn(_, _)", "'fn' has 1 part, its result, found 2");
  has("(%a, %b).x", "expected an integer");
  has("relu(_) relu(_)", "expected '|' or the end of the pattern, found 'relu'");
  has("%a: (%b: relu(_))", "%a is %b too");
  has("(relu(_): i8): i8", "the value has two types");
  std::string deep, wide = "concat(_";
  for (int i = 0; i < 300; ++i) deep += "relu(";
  has(deep, "nested too deeply");
  for (int i = 0; i < 1000; ++i) wide += ", _";
  has(wide + ")", "a pattern has at most 500 values");
}

// Characters and words of other patterns, anywhere: an error has a location and says what is expected.
TEST_F(Patterns, MutantsAreReadOrExplained) {
  std::mt19937 random(test_seed(50));
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  int refused = 0;
  const int count = rounds(100'000);
  for (int i = 0; i < count; ++i) {
    std::string text = kTexts[below(std::size(kTexts))];
    for (size_t changes = 1 + below(3); changes > 0; --changes) {
      const std::string_view other = kTexts[below(std::size(kTexts))];
      const size_t from = below(other.size()), at = below(text.size() + 1);
      switch (below(4)) {
        case 0: text.insert(at, other.substr(from, 1 + below(8))); break;
        case 1: text.erase(at, 1 + below(5)); break;
        case 2: text.insert(at, 1, "()[]{}|~?%:.,_=0"[below(16)]); break;
        case 3: text.insert(at, 1, static_cast<char>(below(256))); break;
      }
    }
    const auto pattern = read_pattern(context_, text);
    if (pattern) {
      const auto again = read_pattern(context_, to_string(*pattern));
      ASSERT_TRUE(again) << text << " became " << to_string(*pattern) << "\n" << again.error().str();
      ASSERT_EQ(*again, *pattern) << text;
    } else {
      ++refused;
      ASSERT_TRUE(pattern.error().where.starts_with("pattern:")) << text << "\n" << pattern.error().str();
      ASSERT_FALSE(pattern.error().what.empty()) << text;
    }
  }
  EXPECT_GT(refused, count / 4);
}

TEST_F(Patterns, EqualNamesAreEqualValues) {
  body("let %a = multiply(%x, %x); let %b = multiply(%x, %y); let %c1 = add($w, $v); add(%a, add(%b, %c1))");
  EXPECT_EQ(matched("multiply(%p, %p)", "a"), "a");
  EXPECT_EQ(matched("multiply(%p, %p)", "b"),
            "requires the same value as the other %p as operand 2 of multiply, found a value from outside %y of type "
            "Tensor[(4, 4), f32]");
  EXPECT_EQ(matched("add(%k: const, %k: const)", "c1"), "c1");  // equal elements
  matched("multiply(%p, %q)", "b");
  EXPECT_EQ(match_.captures.at("p"), Atom(main().params[0]));
  EXPECT_EQ(match_.captures.at("q"), Atom(main().params[1]));
}

TEST_F(Patterns, OperandsMatchInAnyOrder) {
  body("let %a = relu(%x); let %s = add(%y, %a); negate(%s)");
  EXPECT_EQ(
      matched("add(relu(_), _)", "s"),
      "requires relu of 1 operand as operand 1 of add, found a value from outside %y of type Tensor[(4, 4), f32]");
  EXPECT_EQ(matched("add~(relu(_), _)", "s"), "a s");
  EXPECT_EQ(matched("negate(add~(%k, relu(_)))"), "a s ");
  EXPECT_EQ(match_.captures.at("k"), Atom(main().params[1]));
}

// An optional operator is left out where the value before it has another user, and another operand taken.
TEST_F(Patterns, AUserOutsideLeavesTheSmallerAlternative) {
  body("let %p = matmul(%x, $w); let %r = relu(%p); let %q = matmul(%y, $w); let %s = add(%r, %q); (%s, %r)");
  EXPECT_EQ(matched("relu(matmul)", "r"), "p r");
  EXPECT_EQ(matched("add~(relu?(matmul), relu?(matmul))", "s"),
            "requires relu without users outside of the match as operand 1 of add, found relu %r of type "
            "Tensor[(4, 4), f32]");
  EXPECT_EQ(matched("add~(relu?(matmul), _)", "s"), "q s");
  EXPECT_EQ(matched("add(relu(_) | _, matmul)", "s"), "q s");
}

TEST_F(Patterns, AValueThatTheMatchUsesTwiceIsInside) {
  body("let %p = matmul(%x, $w); let %r = relu(%p); let %s = add(%p, %r); negate(%s)");
  EXPECT_EQ(matched("add~(relu(%m: matmul), %m)", "s"), "p r s");
  EXPECT_EQ(matched("add~(relu(matmul), _)", "s"), "p r s");
}

TEST_F(Patterns, AttributesTypesAndSizes) {
  body("let %a = transpose(%x, axes=[1, 0]); let %b = softmax(%a, axis=1); matmul(%b, $w)");
  EXPECT_EQ(matched("transpose[axes=[1, 0]](_)", "a"), "a");
  EXPECT_EQ(matched("transpose[axes in {0, 1}](_)", "a"), "a");
  EXPECT_EQ(matched("transpose[axes=[0, 1]](_)", "a"), "requires transpose with axes [0, 1], found [1, 0]");
  EXPECT_EQ(matched("matmul(f32(m, k), f32(k, n) where m == n and k <= 4)"), "");
  EXPECT_EQ(matched("matmul(f32(m, k) where n == 4, f32(k, n))"), "");  // a later operand names n
  EXPECT_EQ(matched("matmul(f32(m, k) where n != 4, f32(k, n))"),
            "requires f32(k, n) as operand 2 of matmul, found a constant");
  EXPECT_EQ(matched("matmul(i8, _)"),
            "requires i8 as operand 1 of matmul, found softmax %b of type Tensor[(4, 4), f32]");
  EXPECT_EQ(matched("matmul(tensor(_), _)"),
            "requires tensor(_) as operand 1 of matmul, found softmax %b of type Tensor[(4, 4), f32]");
  EXPECT_EQ(matched("matmul(_, const): f32(4, 4)"), "");
}

TEST_F(Patterns, EveryPathLeadsThroughSteps) {
  body("let %m = matmul(%x, $w); let %r = relu(%m); let %n = negate(%m); let %s = add(%r, %n); abs(%s)");
  EXPECT_EQ(matched("path(%a: matmul, relu | negate | add, %b: abs)"), "m r n s ");
  EXPECT_EQ(matched("path(matmul, relu | add, abs)").substr(0, 8), "requires");  // %n is no step
  EXPECT_EQ(matched("path(matmul, add, add)", "s").substr(0, 8), "requires");
  EXPECT_EQ(matched("path(matmul, negate, relu)", "r").substr(0, 8), "requires");  // %n uses %m outside
}

TEST_F(Patterns, APathEndsInAnOperation) {
  body("add(%x, $w)");
  for (const auto& [pattern, found] :
       {std::pair{"add(path(_, relu, _), _)", "as operand 1 of add, found a value from outside %x"},
        {"add(_, path(_, relu, const))", "as operand 2 of add, found a constant"}}) {
    EXPECT_EQ(matched(pattern).find(std::string("requires an operation as the end of a path ") + found), 0u)
        << matched(pattern);
  }
}

TEST_F(Patterns, APathMayBeLongAndNotTooLong) {
  const auto chain = [&](int steps) {
    std::string text = "let %m = matmul(%x, $w); let %s0 = relu(%m); ";
    for (int i = 1; i < steps; ++i) text += fmt::format("let %s{} = relu(%s{}); ", i, i - 1);
    body(text + fmt::format("abs(%s{})", steps - 1));
  };
  chain(500);
  EXPECT_EQ(matched("path(matmul, relu, abs)").substr(0, 7), "m s0 s1");
  chain(501);
  EXPECT_EQ(matched("path(matmul, relu, abs)"), "requires a path of at most 500 steps, found 501");
}

TEST_F(Patterns, TuplesFieldsBranchesAndFunctions) {
  body(
      "let %t = (%x, %y); let %f = %t.1; let %r = relu(%f); let %i = if (%c) { let %n = negate(%r); %n } else { %r }; "
      "let %g = @square(%i); %g",
      "def @square(%a: Tensor[(4, 4), f32]) { multiply(%a, %a) }");
  EXPECT_EQ(matched("relu((_, %b).1)", "r"), "t f r");
  EXPECT_EQ(matched("relu((_, _).0)", "r").substr(0, 27), "requires field 0 of a tuple");
  EXPECT_EQ(matched("if(_, negate(%v), %v)", "i"), "i");
  EXPECT_EQ(matched("if(_, abs, _)", "i"),
            "requires abs as operand 2 of an if, found negate %n of type Tensor[(4, 4), f32]");
  EXPECT_EQ(matched("fn(multiply(%a, %a))(if(_, _, _))", "g"), "i g");
  EXPECT_EQ(matched("fn(add)", "g").substr(0, 12), "requires add");
}

TEST_F(Patterns, AnExponentialPatternIsAnError) {
  std::string wide = "const";
  for (int i = 0; i < 9; ++i) wide = "_, " + wide;
  body("let %k = concat(%x, %y, %x, %y, %x, %y, %x, %y, %x, %y, axis=0); relu(%k)");
  EXPECT_EQ(matched("concat~(" + wide + ")", "k"), "the pattern takes more than 100000 steps at a value");
}

}  // namespace
}  // namespace tenon::compiler
