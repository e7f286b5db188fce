// Loop functions: text form, errors, and results.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "compiler/loop/evaluate.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/safety.h"
#include "compiler/loop/scalar.h"
#include "compiler/loop/schedule/pattern.h"
#include "compiler/loop/schedule/schedule.h"
#include "compiler/loop/text.h"
#include "compiler/loop/verify.h"
#include "compiler/loop/work.h"
#include "tests/compiler/loop/must_parse.h"

namespace tenon::compiler::loop {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

using runtime::Shape;
using runtime::Tensor;

template <class T>
Tensor tensor(Shape shape, std::vector<T> values) {
  return Tensor::of<T>(std::move(shape), values);
}
template <class T>
std::vector<T> values(const Tensor& tensor) {
  const auto data = tensor.data<T>();
  return {data.begin(), data.end()};
}

constexpr std::string_view kMatmul =
    R"(loop @matmul[n](%a: Tensor[(n, 3), f32], %b: Tensor[(3, 2), f32]) -> (%c: Tensor[(n, 2), f32]) {
  for i in (n) parallel {
    for j in (2) {
      for k in (3) {
        stage dot(i in (n) at (i), j in (2) at (j), reduce k in (3) at (k)) {
          init {
            %c[i, j] = f32(0);
          }
          %c[i, j] = %c[i, j] + %a[i, k] * %b[k, j];
        }
      }
    }
  }
}
)";

// h[t + 1] = tanh(w * h[t] + x[t]), the scan of a recurrent network, with h[0] given.
constexpr std::string_view kScan =
    R"(loop @rnn[T](%x: Tensor[(T, 2), f64], %h0: Tensor[(2,), f64], %w: Tensor[(2, 2), f64]) -> (%h: Tensor[(T + 1, 2), f64]) {
  for j in (2) {
    stage first(j in (2) at (j)) {
      %h[0, j] = %h0[j];
    }
  }
  alloc %s: Tensor[(T, 2), f64] {
    for t in (T) {
      for j in (2) {
        for k in (2) {
          stage sum(t in (T) at (t), j in (2) at (j), reduce k in (2) at (k)) {
            init {
              %s[t, j] = %x[t, j];
            }
            %s[t, j] = %s[t, j] + %w[j, k] * %h[t, k];
          }
        }
      }
      for j in (2) {
        stage step(scan t in (T) at (t), j in (2) at (j)) {
          %h[t + 1, j] = tanh(%s[t, j]);
        }
      }
    }
  }
}
)";

constexpr std::string_view kRagged =
    R"(loop @row_sums[n](%lengths: Tensor[(n,), i64], %a: Tensor[(b: n, lengths(b), 2), i32]) -> (%c: Tensor[(n, 2), i32], %d: Tensor[(b: n, lengths(b), 2), i32]) {
  for b in (n) {
    for s in (lengths(b)) {
      for j in (2) {
        stage sum(b in (n) at (b), reduce s in (lengths(b)) at (s), j in (2) at (j)) {
          init {
            %c[b, j] = i32(0);
          }
          %c[b, j] = %c[b, j] + %a[b, s, j];
        }
      }
    }
  }
  for b in (n) {
    for s in (lengths(b)) {
      for j in (2) {
        stage twice(b in (n) at (b), s in (lengths(b)) at (s), j in (2) at (j)) {
          %d[b, s, j] = %a[b, s, j] * i32(2);
        }
      }
    }
  }
}
)";

// A gather, a padded shift, and every kind of keyword.
constexpr std::string_view kMixed =
    R"(loop @mixed[n, m](%x: Tensor[(n,), i32], %at: Tensor[(m,), i8]) -> (%y: Tensor[(m,), i32], %z: Tensor[(n,), i64]) {
  for i in (m) {
    stage gather(i in (m) at (i)) {
      %y[i] = (let p in (n) = %at[i]; %x[p]) + i32(-1);
    }
  }
  for i0 in ((n + 3) // 4) {
    for i1 in (4) vector {
      stage shift(i in (n) at (4*i0 + i1)) where (4*i0 + i1) below (n) {
        if (index(i) < index(1) or not(%x[i] == i32(5))) {
          %z[i] = select(index(1) <= index(i), i64(%x[i - 1]), i64(-7));
        } else {
          let q in (n % 3 + 9) = rem(%x[i], i32(2)) {
            %z[i] = index(q + min(i, n // 2));
          }
        }
      }
    }
  }
}
)";

constexpr std::string_view kLibrary = R"(loop @calls[n](%x: Tensor[(n,), f32]) -> (%y: Tensor[(n,), f32]) {
  alloc %t: Tensor[(n,), f32] {
    call halve(%x) -> (%t);
    for i in (n) unroll {
      stage root(i in (n) at (i)) {
        %y[i] = max(sqrt(%t[i]), f32(-inf)) - f32(1.5) / (f32(2) - f32(0.25));
      }
    }
  }
}
)";

// Rows of eight in registers, and an instruction that adds four products.
constexpr std::string_view kInstruction =
    R"(loop @dots[n](%a: Tensor[(n, 4), i32], %b: Tensor[(2, 4), i32]) -> (%c: Tensor[(n, 2), i32]) {
  intrinsic @dot4(%x: Tensor[(4,), i32], %y: Tensor[(2, 4), i32]) -> (%z: Tensor[(2,), i32]) {
    for j in (2) {
      for k in (4) {
        stage dot(j in (2) at (j), reduce k in (4) at (k)) {
          %z[j] = %z[j] + %x[k] * %y[j, k];
        }
      }
    }
  }
  for i in (n) {
    alloc %s: Tensor[(1, 2), i32] in registers {
      for j in (2) unroll {
        stage zero(i in (n) at (i), j in (2) at (j)) {
          %s[0, j] = i32(0);
        }
      }
      stage dots(i in (n) at (i)) {
        intrinsic dot4(%a[i, 0 : 4], %b[0 : 2, 0 : 4]) -> (%s[0, 0 : 2]);
      }
      for j in (2) vector {
        stage back(i in (n) at (i), j in (2) at (j)) {
          %c[i, j] = %s[0, j];
        }
      }
    }
  }
}
)";

TEST(LoopText, ReadsBackWhatItPrints) {
  for (std::string_view text : {kMatmul, kScan, kRagged, kMixed, kLibrary, kInstruction}) {
    TypeContext context;
    const auto function = parse(context, text, "f.tn");
    ASSERT_TRUE(function) << function.error().str();
    const std::string printed = print(context, *function);
    const auto again = parse(context, printed, "again.tn");
    ASSERT_TRUE(again) << again.error().str() << printed;
    EXPECT_TRUE(equal(*function, *again)) << printed;
    EXPECT_EQ(print(context, *again), printed);
    if (text != kMixed) {  // its sums are printed in another order
      EXPECT_EQ(printed, text);
    }
  }
}

TEST(LoopText, DifferentFunctionsAreNotEqual) {
  TypeContext context;
  const auto function = parse(context, kMatmul, "f.tn");
  ASSERT_TRUE(function);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"parallel ", ""},
                                                                                 {"f32(0)", "f32(-0)"},
                                                                                 {"%a[i, k]", "%a[i, 2 - k]"},
                                                                                 {" * ", " + "},
                                                                                 {"stage dot", "stage mul"}}) {
    std::string text(kMatmul);
    text.replace(text.find(from), from.size(), to);
    const auto other = parse(context, text, "g.tn");
    ASSERT_TRUE(other) << other.error().str();
    EXPECT_FALSE(equal(*function, *other)) << text;
  }
}

struct Mistake {
  std::string name, from, to, message;
};
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class LoopMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(LoopMistake, IsAnErrorWithItsLocation) {
  const auto& [name, from, to, message] = GetParam();
  std::string text(kMatmul);
  ASSERT_NE(text.find(from), std::string::npos);
  text.replace(text.find(from), from.size(), to);
  TypeContext context;
  const auto function = parse(context, text, "f.tn");
  ASSERT_FALSE(function) << text;
  EXPECT_NE(function.error().str().find(message), std::string::npos) << function.error().str();
}

INSTANTIATE_TEST_SUITE_P(
    All, LoopMistake,
    ::testing::Values(
        Mistake{"no_loop", "loop", "def", "expected 'loop'"},
        Mistake{"no_such_buffer", "%a[i", "%q[i", "there is no buffer %q in scope"},
        Mistake{"rank", "%a[i, k]", "%a[i]", "the buffer has 2 axes, 1 indices are given"},
        Mistake{"types", "f32(0)", "i32(0)", "the buffer has elements of f32, the value is i32"},
        Mistake{"mixed_types", "%b[k, j]", "i32(1)", "'*' does not support f32 and i32"},
        Mistake{"not_supported", "%a[i, k] * %b[k, j]", "not(%a[i, k])", "'not' does not support f32"},
        Mistake{"no_function", "%a[i, k] * %b[k, j]", "f(%a[i, k])", "there is no function 'f'"},
        Mistake{"literal", "f32(0)", "f32(1e999)", "'1e999' is not a valid f32"},
        Mistake{"unknown_variable", "%b[k, j]", "%b[k, q]", "q"},
        Mistake{"loop_inside_stage", "init {", "for q in (2) { init {", "expected"},
        Mistake{"hidden", "parallel {", "parallel { for i in (2) { }", "the loop 'i' hides another variable"},
        Mistake{"parameter_written", "%c[i, j] = %c[i, j]", "%a[i, j] = %c[i, j]", "the parameter %a is written"},
        Mistake{"sees_no_loop", "at (i)", "at (q)", "q"},
        Mistake{"spatial_without_index", "reduce k in", "k in",
                "no index of the store to %c is determined by the axis 'k'"},
        Mistake{"reduction_with_index", "j in (2) at (j), reduce", "reduce j in (2) at (j), reduce",
                "init depends on the reduction axis 'j'"},
        Mistake{"reads_others", "= %c[i, j] +", "= %c[i, 1 - j] +", "where 'j' writes it at"},
        Mistake{"two_stages", "}\n      }\n    }\n  }\n}",
                "}\n      }\n    }\n  }\n  for i in (n) { stage dot(i in (n) at (i)) { } }\n}",
                "two stages have the name 'dot'"},
        Mistake{"unknown_instruction", "init {", "intrinsic f(%a[i, k]) -> (%c[i, j]); init {", "expected"},
        Mistake{"no_end", "}\n}\n", "}\n", "expected a statement"}),
    [](const auto& info) { return info.param.name; });

TEST(LoopText, InstructionsAreChecked) {
  const std::vector<std::array<std::string, 3>> cases = {
      {"intrinsic dot4(%a", "intrinsic dot5(%a", "no instruction 'dot5' is declared"},
      {"%b[0 : 2, 0 : 4]) ->", "%b[0 : 2, 0 : 4], %b[0, 0]) ->", "requires 2 operands and 1 results"},
      {"%a[i, 0 : 4]", "%a[i, 0 : 2]", "a block of %a does not fit the operand %x"},
      {"%a[i, 0 : 4]", "%a[i]", "the buffer has 2 axes, 1 indices are given"},
      {"%a[i, 0 : 4]", "%a[i, 0 : 0]", "a size must be 1 to"},
      {"(%s[0, 0 : 2])", "(%b[0, 0 : 2])", "the parameter %b is written"},
      {"stage dots(i in (n) at (i)) {", "{", "expected a statement"},
      {"(%x: Tensor[(4,)", "[m](%x: Tensor[(m,)", "has an operand %x whose sizes are not positive constants"},
      {"%s: Tensor[(1, 2), i32] in registers", "%s: Tensor[(1, 2), i32] in rows",
       "expected 'stack', 'registers' or 'shared'"},
      {"{\n    for j in (2) {\n      for k", "{ intrinsic @f() -> () { }\n    for j in (2) {\n      for k",
       "expected a variable"},
  };
  for (const auto& [from, to, message] : cases) {
    std::string text(kInstruction);
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    TypeContext context;
    const auto function = parse(context, text, "f.tn");
    ASSERT_FALSE(function) << text;
    EXPECT_NE(function.error().str().find(message), std::string::npos) << function.error().str();
  }
}

constexpr std::string_view kInexact =
    R"(loop @dots(%a: Tensor[(3, 4), f32], %b: Tensor[(4,), f32]) -> (%c: Tensor[(3,), f32]) {
  intrinsic @dot(%x: Tensor[(4,), f32], %y: Tensor[(4,), f32]) -> (%z: Tensor[(1,), f32]) inexact 1e-06 {
    for i in (1) {
      for k in (4) {
        stage dot(i in (1) at (i), reduce k in (4) at (k)) {
          %z[i] = %z[i] + %x[k] * %y[k];
        }
      }
    }
  }
  for i in (3) {
    stage zero(i in (3) at (i)) {
      %c[i] = f32(0);
    }
  }
  for i in (3) {
    stage dots(i in (3) at (i)) {
      intrinsic dot(%a[i, 0 : 4], %b[0 : 4]) -> (%c[i : 1]) inexact;
    }
  }
}
)";

TEST(LoopText, DeclarationAndUsesOfInexactInstructionsSaySo) {
  TypeContext context;
  const Function function = must_parse(context, kInexact);
  EXPECT_EQ(print(context, function), kInexact);
  EXPECT_EQ(function.intrinsics[0].inexact, 1e-06);
  const std::vector<std::array<std::string, 3>> cases = {
      {" inexact;", ";", "the instruction 'dot' is inexact, but not used as such"},
      {" inexact 1e-06", "", "the instruction 'dot' is exact, but used as inexact"},
      {" 1e-06", " 1.5", "a relative error must be above 0 and below 1"},
      {" 1e-06", "", "a relative error, as 3.8e-06"},
      {"%z[i] + %x", "%z[i] - %x", "@dot is inexact, but not a sum of products of floats"},
      {"%z[i] + %x[k] * %y[k]", "%x[k] * %y[k]", "@dot is inexact, but not a sum of products of floats"},
  };
  for (const auto& [from, to, message] : cases) {
    std::string text(kInexact);
    text.replace(text.find(from), from.size(), to);
    const auto refused = parse(context, text, "f.tn");
    ASSERT_FALSE(refused) << text;
    EXPECT_NE(refused.error().str().find(message), std::string::npos) << refused.error().str();
  }
  std::string other(kInexact);
  other.replace(other.find("1e-06"), 5, "1e-05");
  EXPECT_FALSE(equal(must_parse(context, other), function));
}

// f16 and bf16 are converted to and from f32; nothing else is computed with them.
TEST(LoopText, ShortFloatsHaveNoArithmetic) {
  const auto parsed = [](std::string_view value) {
    TypeContext context;
    return parse(context,
                 fmt::format("loop @f(%x: Tensor[(3,), f16], %k: Tensor[(3,), i32]) -> (%y: Tensor[(3,), f16]) {{ for "
                             "i in (3) {{ stage y(i in (3) at (i)) {{ %y[i] = {}; }} }} }}",
                             value),
                 "f.tn");
  };
  EXPECT_TRUE(parsed("f16(f32(%x[i]) * f32(0.5))"));
  EXPECT_TRUE(parsed("select(f32(%x[i]) < f32(1), %x[i], f16(0.1))"));
  for (const auto& [value, message] : {std::pair("%x[i] + %x[i]", "'+' does not support f16 and f16"),
                                       {"sqrt(%x[i])", "'sqrt' does not support f16"},
                                       {"select(%x[i] < f16(1), %x[i], %x[i])", "'<' does not support f16 and f16"},
                                       {"f16(%k[i])", "i32 does not convert to f16"},
                                       {"f16(f64(%x[i]))", "f16 does not convert to f64"}}) {
    const auto refused = parsed(value);
    ASSERT_FALSE(refused) << value;
    EXPECT_NE(refused.error().str().find(message), std::string::npos) << refused.error().str();
  }
}

TEST(LoopText, BuffersInRegistersAreIndexedByConstants) {
  const std::vector<std::array<std::string, 3>> cases = {
      {" unroll", "", "%s is in registers, but its index j is not a constant: 'j' is neither unrolled nor vectorized"},
      {"(1, 2)", "(n, 2)", "%s is in registers, but its size n is not a constant"},
      {"(1, 2), i32] in registers", "(100, 1000), i32] in stack",
       "%s is on the stack, but has more than 65536 elements"},
      {"zero", "zero", ""},
  };
  for (const auto& [from, to, message] : cases) {
    std::string text(kInstruction);
    text.replace(text.find(from), from.size(), to);
    TypeContext context;
    const auto function = parse(context, text, "f.tn");
    ASSERT_TRUE(function) << function.error().str();
    const Status status = verify_scopes(context, *function);
    EXPECT_EQ(status.has_value(), message.empty());
    if (!status) {
      EXPECT_NE(status.error().str().find(message), std::string::npos) << status.error().str();
    }
  }
}

// Points that differ in an axis must write different elements: mixed-radix digits determine an index, a given axis is
// constant, and a folded index belongs to a scan.
TEST(LoopText, IndicesMustDetermineTheAxes) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"for o in (3) { for i in (8) { stage s(o in (3) at (o), i in (8) at (i)) { %y[8*o + i] = i32(1); } } }", ""},
      {"for o in (3) { for i in (8) { stage s(o in (3) at (o), i in (8) at (i)) { %y[7*o + i] = i32(1); } } }",
       "is determined by the axis 'o'"},
      {"for o in (3) { for i in (n) { stage s(o in (3) at (o), i in (n) at (i)) { %y[8*o + i] = i32(1); } } }",
       "is determined by the axis 'o'"},
      {"for o in (3) { alloc %t: Tensor[(8,), i32] { for i in (8) { stage s(given p in (3) at (o), i in (24) at (8*o + "
       "i)) "
       "{ %t[i - 8*p] = i32(1); } } } }",
       ""},
      {"alloc %t: Tensor[(8,), i32] { for o in (3) { for i in (8) { stage s(given p in (3) at (o), i in (24) at (8*o + "
       "i)) "
       "{ %t[i - 8*p] = i32(1); } } } }",
       "is determined by the axis 'i'"},
      {"for o in (3) { stage s(scan o in (3) at (o)) { %y[o % 2] = i32(1); } }", ""},
      {"for o in (3) { stage s(o in (3) at (o)) { %y[o % 2] = i32(1); } }", "is determined by the axis 'o'"},
      {"for o in (3) { stage s(scan o in (3) at (o)) { %y[(o + 1) % 2] = %y[o % 2]; } }", ""},
      {"for o in (3) { stage s(scan o in (3) at (o)) { %y[(o + 1) % 3] = %y[(o + 2) % 3]; } }",
       "%y is read at ((o + 2) % 3,)"},
  };
  for (const auto& [body, message] : cases) {
    TypeContext context;
    const auto function =
        parse(context, "loop @f[n](%x: Tensor[(n,), i32]) -> (%y: Tensor[(24,), i32]) { " + body + " }", "f.tn");
    EXPECT_EQ(function.has_value(), message.empty()) << body << (function ? "" : function.error().str());
    if (!function) {
      EXPECT_NE(function.error().str().find(message), std::string::npos) << function.error().str();
    }
  }
}

TEST(LoopText, AReductionAxisMustNotIndexAStore) {
  TypeContext context;
  const auto function = parse(
      context, "loop @f() -> (%y: Tensor[(2,), i32]) { stage s(reduce i in (2) at (0)) { %y[i] = i32(1); } }", "f.tn");
  EXPECT_NE(function.error().str().find("%y is written at the reduction axis 'i'"), std::string::npos);
}

TEST(LoopText, NestingIsLimited) {
  TypeContext context;
  std::string text = "loop @f(%a: Tensor[(), f32]) -> (%b: Tensor[(), f32]) {\n stage s() { %b[] = ";
  for (int i = 0; i < 100000; ++i) text += "(";
  EXPECT_NE(parse(context, text, "f.tn").error().str().find("nested too deeply"), std::string::npos);
  text = "loop @f() -> () ";
  for (int i = 0; i < 100000; ++i) text += "{ if (bool(1)) ";
  EXPECT_NE(parse(context, text, "f.tn").error().str().find("nested too deeply"), std::string::npos);
}

TEST(Evaluate, MatmulOfSymbolicRows) {
  TypeContext context;
  const Function function = must_parse(context, kMatmul);
  const Tensor b = tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto results = evaluate(context, function, std::vector{tensor<float>({1, 3}, {1, 10, 100}), b});
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ(values<float>((*results)[0]), (std::vector<float>{531, 642}));
  EXPECT_EQ((*evaluate(context, function, std::vector{Tensor(DType::kF32, {0, 3}), b}))[0].shape(), (Shape{0, 2}));
}

TEST(Evaluate, AScanReadsEarlierResults) {
  TypeContext context;
  const Function function = must_parse(context, kScan);
  const auto results = evaluate(context, function,
                                std::vector{tensor<double>({2, 2}, {1, 2, 3, 4}), tensor<double>({2}, {0.5, -0.5}),
                                            tensor<double>({2, 2}, {1, 0, 0.5, 2})});
  ASSERT_TRUE(results) << results.error().str();
  std::vector<double> h{0.5, -0.5};
  std::vector<double> expected = h;
  const double x[2][2] = {{1, 2}, {3, 4}};
  for (const auto& row : x) {
    h = {std::tanh(row[0] + 1 * h[0] + 0 * h[1]), std::tanh(row[1] + 0.5 * h[0] + 2 * h[1])};
    expected.insert(expected.end(), h.begin(), h.end());
  }
  EXPECT_EQ(values<double>((*results)[0]), expected);
}

TEST(Evaluate, RaggedRowsAreContiguous) {
  TypeContext context;
  const Function function = must_parse(context, kRagged);
  std::vector<int32_t> packed(12);
  std::iota(packed.begin(), packed.end(), 1);
  const auto results =
      evaluate(context, function, std::vector{tensor<int64_t>({3}, {1, 0, 5}), tensor<int32_t>({6, 2}, packed)});
  // An empty row is never started.
  ASSERT_FALSE(results);
  EXPECT_NE(results.error().str().find("%c was not written completely"), std::string::npos) << results.error().str();
  const auto good =
      evaluate(context, function, std::vector{tensor<int64_t>({3}, {1, 2, 3}), tensor<int32_t>({6, 2}, packed)});
  ASSERT_TRUE(good) << good.error().str();
  EXPECT_EQ(values<int32_t>((*good)[0]), (std::vector<int32_t>{1, 2, 8, 10, 27, 30}));
  EXPECT_EQ((*good)[1].shape(), (Shape{6, 2}));
  EXPECT_EQ(values<int32_t>((*good)[1])[11], 24);
}

// The sums of the rows of each instance, by the elements of all instances.
constexpr std::string_view kTables =
    R"(loop @tables[n](%lengths: Tensor[(n,), i64], %x: Tensor[(b: n, lengths(b)), i32]) -> (%y: Tensor[(n,), i32], %z: Tensor[(b: n, lengths(b)), i32]) {
  offsets begin(b in (n), size (lengths(b)));
  rows row(b in (n), size (lengths(b)));
  descending order(b in (n), size (lengths(b)));
  for i in (n) {
    stage at(i in (n) at (i)) { %y[i] = i32(index(order(i))) * i32(100) + i32(index(begin(order(i)))); }
  }
  for f in (begin(n)) {
    stage twice(b in (n) at (row(f)), s in (lengths(b)) at (f - begin(row(f)))) { %z[b, s] = %x[b, s] + i32(index(b)); }
  }
}
)";

TEST(Evaluate, TablesDescribeTheRowsOfABatch) {
  TypeContext context;
  const Function function = must_parse(context, kTables);
  EXPECT_TRUE(equal(must_parse(context, print(context, function)), function)) << print(context, function);
  const auto results = evaluate(
      context, function, std::vector{tensor<int64_t>({4}, {2, 0, 3, 2}), tensor<int32_t>({7}, {1, 2, 3, 4, 5, 6, 7})});
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ(values<int32_t>((*results)[0]), (std::vector<int32_t>{202, 0, 305, 102}));
  EXPECT_EQ(values<int32_t>((*results)[1]), (std::vector<int32_t>{1, 2, 5, 6, 7, 9, 10}));
  // Every element is proved to be written once, and to be inside of its row.
  const auto unproven = unproven_obligations(context, function);
  EXPECT_FALSE(unproven.program) << unproven.program->str();
}

// The running sum of each row, in steps of all rows that have not ended, which are the longest ones.
constexpr std::string_view kCounts =
    R"(loop @counts[n, t](%lengths: Tensor[(n,), i64], %x: Tensor[(t, n), i32]) -> (%y: Tensor[(t,), i32], %z: Tensor[(t, n), i32]) {
  descending order(b in (n), size (lengths(b)));
  positions at(b in (n), size (lengths(b)));
  counts active(b in (n), size (lengths(b)), limit (t));
  for s in (t) {
    stage count(s in (t) at (s)) { %y[s] = i32(index(active(s))); }
    for b in (n) { stage zero(s in (t) at (s), b in (n) at (b)) { %z[s, b] = i32(0); } }
    for i in (active(s)) {
      stage row(s in (t) at (s), i in (active(s)) at (i)) { %z[s, i] = %x[s, order(i)] + i32(index(at(order(i)))); }
    }
  }
}
)";

TEST(Evaluate, CountsAreThoseOfWiderRows) {
  TypeContext context;
  const Function function = must_parse(context, kCounts);
  EXPECT_TRUE(equal(must_parse(context, print(context, function)), function)) << print(context, function);
  const auto results = [&](std::vector<int64_t> lengths) {
    return evaluate(context, function,
                    std::vector{tensor<int64_t>({3}, lengths),
                                tensor<int32_t>({4, 3}, {10, 20, 30, 40, 50, 60, 70, 80, 90, 0, 0, 0})});
  };
  const auto found = results({1, 3, 3});
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(values<int32_t>((*found)[0]), (std::vector<int32_t>{3, 2, 2, 0}));
  EXPECT_EQ(values<int32_t>((*found)[1]), (std::vector<int32_t>{20, 31, 12, 50, 61, 0, 80, 91, 0, 0, 0, 0}));
  const auto none = results({0, 0, 0});
  ASSERT_TRUE(none) << none.error().str();
  EXPECT_EQ(values<int32_t>((*none)[0]), (std::vector<int32_t>{0, 0, 0, 0}));
  EXPECT_HAS(results({1, 5, 3}).error().str(), "row 1 of the table 'active' has 5 elements, 4 at most");
  EXPECT_HAS(results({1, 2, -1}).error().str(), "row 2 of the table 'active' has -1 elements");
  // A size within the table is proved to be one.
  std::string beyond(kCounts);
  beyond.replace(beyond.find("(active(s))"), 11, "(active(s + 1))");
  beyond.replace(beyond.find("(active(s))"), 11, "(active(s + 1))");
  const auto unproven = unproven_obligations(context, must_parse(context, beyond));
  ASSERT_TRUE(unproven.program);
  EXPECT_HAS(unproven.program->str(), "it is not proved that active(s + 1) is inside of the table");
  const auto message = [&](std::string_view from, std::string_view to) {
    std::string text(kCounts);
    text.replace(text.find(from), from.size(), to);
    const auto parsed = parse(context, text, "m.tn");
    return parsed ? "" : parsed.error().str();
  };
  EXPECT_HAS(message(", limit (t));", ");"), "expected ','");
  EXPECT_HAS(message(", limit (t));", ", limit (b));"), "'b'");
}

TEST(Work, CountsTheTermsThatLoopsVisit) {
  TypeContext context;
  const Function plain = must_parse(
      context,
      R"(loop @dot[n](%lengths: Tensor[(n,), i64], %x: Tensor[(b: n, lengths(b)), f32], %w: Tensor[(64,), f32]) -> (%y: Tensor[(n,), f32], %z: Tensor[(n,), f32]) {
  for b in (n) { stage zero(b in (n) at (b)) { %y[b] = f32(0); } }
  for b in (n) { for s in (lengths(b)) {
    stage dot(b in (n) at (b), reduce s in (lengths(b)) at (s)) { %y[b] = %y[b] + %x[b, s] * %w[0]; }
  } }
  for b in (n) { for s in (7) {
    stage squares(b in (n) at (b), reduce s in (7) at (s)) {
      init { %z[b] = f32(0); }
      %z[b] = %z[b] + (%w[s] - %w[0]) * (%w[s] - %w[0]);
    }
  } }
}
)");
  const std::vector<Tensor> params{tensor<int64_t>({3}, {5, 0, 9}), Tensor(DType::kF32, {14}),
                                   Tensor(DType::kF32, {64})};
  const auto work = [&](std::vector<std::string> steps) {
    Schedule schedule(context, plain);
    for (const std::string& step : steps) {
      const Status status = schedule.apply(step);
      EXPECT_TRUE(status) << status.error().str();
    }
    const auto found = work_of(context, schedule.function(), params);
    EXPECT_TRUE(found) << found.error().str();
    return *found;
  };
  const auto expect = [](const Work& found, int64_t points, int64_t terms, int64_t products) {
    EXPECT_EQ(found.points, points);
    EXPECT_EQ(found.terms, terms);
    EXPECT_EQ(found.products, products);
  };
  expect(work({}), 3, 14 + 21, 14);
  // Guards of scalar loops skip points; the masked lanes of a vector are computed.
  expect(work({"split(dot, s, 4)"}), 3, 14 + 21, 14);
  expect(work({"split(zero, b, 2)", "mark(zero, b1, vector)"}), 4, 14 + 21, 14);
  EXPECT_HAS(work_of(context, plain, std::span(params).first(2)).error().str(), "3");
  const auto dims =
      work_of(context, must_parse(context, R"(loop @f[n, m](%x: Tensor[(n, m), f32]) -> (%y: Tensor[(n,), f32]) {
  for i in (n) { for k in (m) {
    stage s(i in (n) at (i), reduce k in (m) at (k)) {
      init { %y[i] = f32(0); }
      %y[i] = %y[i] + %x[i, k];
    }
  } }
}
)"),
              {{context.symbol("n"), 1000}, {context.symbol("m"), 1000000}});
  ASSERT_TRUE(dims) << dims.error().str();
  EXPECT_EQ(dims->terms, 1000000000);
}

TEST(LoopText, TablesAreChecked) {
  const auto message = [](std::string_view from, std::string_view to) {
    std::string text(kTables);
    text.replace(text.find(from), from.size(), to);
    TypeContext context;
    const auto function = parse(context, text, "m.tn");
    if (!function) return function.error().str();
    const auto unproven = unproven_obligations(context, *function);
    if (unproven.program) return unproven.program->str();
    const auto results =
        evaluate(context, *function, std::vector{tensor<int64_t>({1}, {2}), tensor<int32_t>({2}, {1, 2})});
    return results ? "" : results.error().str();
  };
  const auto expect = [&](std::string_view from, std::string_view to, std::string_view part) {
    EXPECT_NE(message(from, to).find(part), std::string::npos) << message(from, to);
  };
  expect("  rows row(", "  offsets begin(b in (n), size (1));\n  rows row(",
         "the table 'begin' has the name of a buffer or of another table");
  expect("  rows row(", "  offsets x(b in (n), size (1));\n  rows row(",
         "the table 'x' has the name of a buffer or of another table");
  expect("row(f)), s", "row(f, 1)), s", "the table 'row' has one index, 2 are given");
  expect("size (lengths(b)));\n  rows", "lengths(b));\n  rows", "expected 'size'");
  expect("begin(b in (n), size (lengths(b)))", "begin(b in (n), size (lengths(b + 1)))",
         "it is not proved that %lengths[b + 1] is inside: its axis 0 has n elements");
  expect("in (begin(n))", "in (begin(n) + 1)", "it is not proved that row(f) is inside of the table");
  expect("begin(order(i))", "begin(order(i) + 2)", "it is not proved that begin(order(i) + 2) is inside of the table");
}

TEST(Evaluate, GathersGuardsAndConditions) {
  TypeContext context;
  const Function function = must_parse(context, kMixed);
  const auto results =
      evaluate(context, function, std::vector{tensor<int32_t>({6}, {4, 5, 6, 5, 8, 9}), tensor<int8_t>({2}, {5, 0})});
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ(values<int32_t>((*results)[0]), (std::vector<int32_t>{8, 3}));
  EXPECT_EQ(values<int64_t>((*results)[1]), (std::vector<int64_t>{-7, 1 + 1, 5, 1 + 3, 5, 8}));
}

TEST(Evaluate, RunsInstructionsByTheirDeclaration) {
  TypeContext context;
  const Function function = must_parse(context, kInstruction);
  const std::vector params{tensor<int32_t>({2, 4}, {1, 2, 3, 4, 0, 0, 0, 5}),
                           tensor<int32_t>({2, 4}, {1, 1, 1, 1, 0, 1, 0, 2})};
  const auto results = evaluate(context, function, params);
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ(values<int32_t>((*results)[0]), (std::vector<int32_t>{10, 10, 5, 10}));
  std::string text(kInstruction);
  text.replace(text.find("for j in (2) unroll"), 12, "for j in (1)");  // leaves an element undefined
  EXPECT_NE(evaluate(context, must_parse(context, text), params).error().str().find("is read before it is written"),
            std::string::npos);
}

TEST(Pattern, IsDerivedFromTheIndices) {
  auto program = [&](std::string_view params, std::string_view result, std::string_view body) {
    return fmt::format("loop @f[n]({}) -> (%y: Tensor[{}, f32]) {{ {} }}", params, result, body);
  };
  const std::string x = "%x: Tensor[(n, 4), f32]",
                    ij = "for i in (n) { for j in (4) { stage s(i in (n) at (i), j in (4) at (j)) ";
  const std::string dot =
      "for i in (n) { for j in (4) { for k in (4) { stage dot(i in (n) at (i), j in (4) at (j), reduce k in (4) at "
      "(k)) { "
      "init { %t[i, j] = f32(0); } %t[i, j] = %t[i, j] + %x[i, k] * %w[k, j]; } } } }";
  const std::string alloc = "alloc %t: Tensor[(n, 4), f32] { ";
  const std::string sum =
      "for i in (n) { for k in (4) { stage sum(i in (n) at (i), reduce k in (4) at (k)) { init { %y[i] = f32(0); } "
      "%y[i] = "
      "%y[i] + %x[i, k] * %x[i, k]; } } }";
  const std::vector<std::pair<std::string, compiler::OpPattern>> cases = {
      {program(x, "(n, 4)", ij + "{ %y[i, j] = exp(%x[i, j]); } } }"), compiler::OpPattern::kElementwise},
      {program(x, "(n, 4)",
               alloc + ij +
                   "{ %t[i, j] = exp(%x[i, j]); } } } for i in (n) { for j in (4) { stage u(i in (n) at (i), j in "
                   "(4) at (j)) { %y[i, j] = %t[i, j] + %x[i, j]; } } } }"),
       compiler::OpPattern::kElementwise},
      {program(x + ", %b: Tensor[(4,), f32], %c: Tensor[(n, 1), f32]", "(n, 4)",
               ij + "{ %y[i, j] = %x[i, j] + %b[j] * %c[i, 0]; } } }"),
       compiler::OpPattern::kBroadcast},
      {program("%x: Tensor[(4, n), f32]", "(n, 4)", ij + "{ %y[i, j] = %x[j, i]; } } }"),
       compiler::OpPattern::kInjective},
      {program("%x: Tensor[(n + 1, 4), f32]", "(n, 4)", ij + "{ %y[i, j] = %x[i + 1, j]; } } }"),
       compiler::OpPattern::kInjective},
      {program(x + ", %at: Tensor[(n,), i64]", "(n, 4)", ij + "{ %y[i, j] = (let p in (n) = %at[i]; %x[p, j]); } } }"),
       compiler::OpPattern::kInjective},
      {program(x, "(n,)", sum), compiler::OpPattern::kReduction},
      {program(x + ", %w: Tensor[(4, 4), f32]", "(n, 4)",
               alloc + dot + ij + "{ %y[i, j] = max(%t[i, j], f32(0)); } } } }"),
       compiler::OpPattern::kAnchor},
      {program(x + ", %w: Tensor[(4, 4), f32]", "(4, n)",
               alloc + dot +
                   "for i in (n) { for j in (4) { stage s(i in (n) at (i), j in (4) at (j)) { %y[j, i] = %t[i, j]; "
                   "} } } }"),
       compiler::OpPattern::kOpaque},
      {std::string(kScan), compiler::OpPattern::kOpaque},
      {std::string(kLibrary), compiler::OpPattern::kOpaque},
      {std::string(kInstruction), compiler::OpPattern::kOpaque},
      {std::string(kMatmul), compiler::OpPattern::kAnchor},
  };
  for (const auto& [text, expected] : cases) {
    TypeContext context;
    const Function function = must_parse(context, text);
    EXPECT_EQ(pattern_of(context, function), expected) << text;
  }
}

TEST(Evaluate, CallsLibraries) {
  TypeContext context;
  const Function function = must_parse(context, kLibrary);
  EvaluateOptions options;
  const std::vector params{tensor<float>({2}, {8, 32})};
  EXPECT_NE(evaluate(context, function, params, options).error().str().find("'halve' does not exist"),
            std::string::npos);
  options.libraries["halve"] = [](std::span<const Tensor> in, std::span<Tensor> out) -> Status {
    for (size_t i = 0; i < in[0].data<float>().size(); ++i) out[0].data<float>()[i] = in[0].data<float>()[i] / 2;
    return {};
  };
  const auto results = evaluate(context, function, params, options);
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ(values<float>((*results)[0]), (std::vector<float>{2 - 1.5f / 1.75f, 4 - 1.5f / 1.75f}));
}

TEST(Evaluate, ReportsErrors) {
  const std::string head = "loop @f[n](%x: Tensor[(n,), i32]) -> (%y: Tensor[(n,), i32]) { ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"for i in (n) { stage s(i in (n) at (i)) { %y[i] = %x[i + 1]; } }",
       "%x[2] is outside: its axis 0 has 2 elements"},
      {"for i in (n) { stage s(i in (n) at (i + 1)) { %y[i] = %x[i]; } }", "axis 'i' of stage 's' is 2, not in 0 .. 1"},
      {"for i in (n - 1) { stage s(i in (n) at (i)) { %y[i] = %x[i]; } }", "%y was not written completely"},
      {"for i in (n) { stage s(i in (n) at (i)) { %y[i] = %y[i] + %x[i]; } }", "%y is read before it is written"},
      {"for i in (n) { stage s(i in (n) at (i)) { %y[i] = %x[i] / i32(0); } }", "an integer is divided by 0"},
      {"for i in (n) { stage s(i in (n) at (i)) { %y[i] = i32(f32(3000000000)); } }", "does not fit into i32"},
      {"for i in (n) { stage s(i in (n) at (i)) { %y[i] = (let p in (n) = %x[i]; %x[p]); } }",
       "the index 7 is not in 0 .. 1"},
      {"for i in (n // (n - 2)) { }", "a size is divided by 0"},
      {"for i in (4611686018427387904*n) { }", "exceeds 64 bits"},
      {"for i in (1000000000000) { }", "more than 1000 steps"},
      {"alloc %t: Tensor[(n, 1000000, 1000000), i32] { }", "of more than"}};
  for (const auto& [body, message] : cases) {
    TypeContext context;
    const Function function = must_parse(context, head + body + " }");
    EvaluateOptions options;
    options.max_steps = body.find("1000000000000") == std::string::npos ? options.max_steps : 1000;
    if (options.max_steps == 1000) {
      Function busy = must_parse(
          context,
          head + "for i in (1000000000000) { for j in (n) { stage s(j in (n) at (j)) { %y[j] = %x[j]; } } } }");
      EXPECT_NE(evaluate(context, busy, std::vector{tensor<int32_t>({2}, {7, 1})}, options).error().str().find(message),
                std::string::npos);
      continue;
    }
    const auto results = evaluate(context, function, std::vector{tensor<int32_t>({2}, {7, 1})}, options);
    ASSERT_FALSE(results) << body;
    EXPECT_NE(results.error().str().find(message), std::string::npos) << results.error().str();
  }
  TypeContext context;
  const Function function = must_parse(context, kMatmul);
  const Tensor a(DType::kF32, {4, 3}), b(DType::kF32, {3, 2});
  EXPECT_NE(evaluate(context, function, std::vector{a}).error().str().find("expects 2 parameters, got 1"),
            std::string::npos);
  EXPECT_NE(evaluate(context, function, std::vector{a, a}).error().str().find("%b is a (3, 2), not a (4, 3)"),
            std::string::npos);
  EXPECT_NE(
      evaluate(context, function, std::vector{a, Tensor(DType::kI32, {3, 2})}).error().str().find("%b is f32, not i32"),
      std::string::npos);
  EXPECT_NE(evaluate(context, function, std::vector{a, Tensor(DType::kF32, {6})}).error().str().find("%b has 2 axes"),
            std::string::npos);
}

TEST(Scalar, IntegersWrapAround) {
  auto integer = [](BinaryOp op, DType dtype, int64_t a, int64_t b) {
    return apply(op, dtype, {.integer = a}, {.integer = b})->integer;
  };
  EXPECT_EQ(integer(BinaryOp::kAdd, DType::kI8, 127, 1), -128);
  EXPECT_EQ(integer(BinaryOp::kSubtract, DType::kU8, 0, 1), 255);
  EXPECT_EQ(integer(BinaryOp::kMultiply, DType::kI64, INT64_MAX, 2), -2);
  EXPECT_EQ(integer(BinaryOp::kDivide, DType::kI32, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(integer(BinaryOp::kDivide, DType::kI32, -7, 2), -3);
  EXPECT_EQ(integer(BinaryOp::kRemainder, DType::kI32, -7, 2), -1);
  EXPECT_EQ(integer(BinaryOp::kPower, DType::kI32, -3, 3), -27);
  EXPECT_EQ(integer(BinaryOp::kPower, DType::kU8, 3, 255), 171);
  EXPECT_EQ(integer(BinaryOp::kPower, DType::kI8, 3, -1), -85);
  EXPECT_EQ(integer(BinaryOp::kShiftLeft, DType::kI8, 3, 7), -128);
  EXPECT_EQ(integer(BinaryOp::kShiftLeft, DType::kI32, 1, 32), 0);
  EXPECT_EQ(integer(BinaryOp::kShiftRight, DType::kI32, -5, 1), -3);
  EXPECT_EQ(integer(BinaryOp::kShiftRight, DType::kI64, -5, 100), -1);
  EXPECT_EQ(integer(BinaryOp::kShiftRight, DType::kU8, 255, 100), 0);
  EXPECT_EQ(integer(BinaryOp::kShiftRight, DType::kI16, 255, -1), 0);
  // 0 * -128 + 1 * 127 + 128 * -1 + 255 * -128
  EXPECT_EQ(
      integer(BinaryOp::kByteDot, DType::kI32, static_cast<int32_t>(0xff800100), static_cast<int32_t>(0x80ff7f80)),
      -32641);
  // 2 * -3 + -32768 * 32767, and a sum that wraps.
  EXPECT_EQ(integer(BinaryOp::kInt16Dot, DType::kI32, static_cast<int32_t>(0x80000002), 0x7ffffffd), -1073709062);
  EXPECT_EQ(
      integer(BinaryOp::kInt16Dot, DType::kI32, static_cast<int32_t>(0x80008000), static_cast<int32_t>(0x80008000)),
      INT32_MIN);
  EXPECT_EQ(integer(BinaryOp::kBitXor, DType::kI8, -1, 5), -6);
  EXPECT_EQ(apply(UnaryOp::kAbs, DType::kI8, {.integer = -128})->integer, -128);
  EXPECT_EQ(convert(DType::kI32, DType::kU8, {.integer = -1})->integer, 255);
  EXPECT_EQ(convert(DType::kF64, DType::kI8, {.real = -1.9})->integer, -1);
  EXPECT_FALSE(convert(DType::kF64, DType::kI64, {.real = 9223372036854775808.0}));
  EXPECT_FALSE(convert(DType::kF32, DType::kI32, {.real = NAN}));
  EXPECT_TRUE(std::isnan(apply(BinaryOp::kMax, DType::kF32, {.real = NAN}, {.real = 1})->real));
}

}  // namespace
}  // namespace tenon::compiler::loop
