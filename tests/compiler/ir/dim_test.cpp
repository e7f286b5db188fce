// Tests of dims: the normal form preserves values, its text is parsed as the same node, and the prover is sound.
#include "compiler/base/dim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "compiler/base/dim_prover.h"
#include "compiler/ir/text.h"

namespace tenon::compiler {
namespace {

constexpr std::string_view kNames[] = {"n", "m", "k", "lengths"};
constexpr Symbol kN{0}, kM{1}, kK{2}, kLengths{3};

std::string text(Dim dim) {
  return str(dim, [](Symbol symbol) { return kNames[static_cast<uint32_t>(symbol)]; });
}

class DimTest : public testing::Test {
 protected:
  Dim n() { return pool_.dim(kN); }
  Dim m() { return pool_.dim(kM); }
  Dim d(int64_t value) { return pool_.dim(value); }
  DimPool pool_;
};

TEST_F(DimTest, EqualExpressionsAreOneNode) {
  auto& p = pool_;
  EXPECT_EQ(p.add(n(), n()), p.multiply(d(2), n()));
  EXPECT_EQ(p.floor_divide(p.multiply(d(6), n()), d(4)), p.add(n(), p.floor_divide(n(), d(2))));
  EXPECT_EQ(p.floor_divide(p.floor_divide(n(), d(4)), d(4)), p.floor_divide(n(), d(16)));
  EXPECT_EQ(p.add(p.multiply(p.floor_divide(n(), d(4)), d(4)), p.modulo(n(), d(4))), n());
  EXPECT_EQ(p.floor_divide(p.multiply(n(), m()), m()), n());
  EXPECT_EQ(p.floor_divide(p.modulo(n(), d(4)), d(4)), d(0));
  EXPECT_EQ(p.minimum({n(), p.add(n(), m())}), n());
  EXPECT_EQ(p.maximum({n(), d(0)}), n());
  EXPECT_EQ(p.minimum({p.add(n(), d(1)), p.add(m(), d(1))}), p.add(p.minimum({m(), n()}), d(1)));
  EXPECT_EQ(p.divide(p.multiply(p.add(n(), m()), p.subtract(n(), m())), p.add(n(), m())), p.subtract(n(), m()));
  EXPECT_EQ(p.ceil_divide(d(17), 16), d(2));
  EXPECT_FALSE(p.divide(p.add(n(), d(1)), d(2)));
  EXPECT_EQ(p.substitute(p.add(n(), m()), {{kN, d(3)}}), p.add(m(), d(3)));
}

TEST_F(DimTest, HasReadableText) {
  auto& p = pool_;
  EXPECT_EQ(text(p.add(p.multiply(d(4), n()), d(1))), "4*n + 1");
  EXPECT_EQ(text(p.subtract(m(), n())), "m - n");
  EXPECT_EQ(text(p.add(p.floor_divide(p.add(n(), d(2 - 3)), d(2)), d(1))), "(n + 1) // 2");
  EXPECT_EQ(text(p.modulo(n(), d(16))), "n % 16");
  EXPECT_EQ(text(p.add(p.multiply(d(3), p.modulo(n(), m())), m())), "3*(n % m) + m");
  EXPECT_EQ(text(p.add(p.minimum({n(), d(2)}), d(3))), "min(n + 3, 5)");
  EXPECT_EQ(text(p.floor_divide(n(), p.multiply(d(2), m()))), "n // (2*m)");
  EXPECT_EQ(text(p.multiply(d(2), p.floor_divide(p.multiply(n(), m()), d(8)))), "2*(m*n // 8)");
  EXPECT_EQ(text(p.multiply(d(-1), p.floor_divide(n(), d(8)))), "-(n // 8)");
  EXPECT_EQ(text(p.apply(kLengths, {n()})), "lengths(n)");
  EXPECT_EQ(text(p.add(p.erased(), n())), "?");
}

TEST_F(DimTest, ExpressionsThatCannotBeComputedAreInvalid) {
  auto& p = pool_;
  EXPECT_EQ(p.floor_divide(n(), d(0)), p.invalid());
  EXPECT_EQ(p.multiply(p.multiply(d(INT64_MAX), n()), d(2)), p.invalid());
  EXPECT_EQ(p.add(p.invalid(), p.erased()), p.invalid());
  Dim grown = p.add(n(), d(1));  // a tree of 2^40 nodes
  for (int i = 0; i < 40; ++i) grown = p.multiply(p.floor_divide(grown, p.add(m(), d(2))), p.add(grown, p.dim(kK)));
  EXPECT_EQ(grown, p.invalid());
}

TEST_F(DimTest, ProverUsesBoundsAndDefinitions) {
  auto& p = pool_;
  const DimProver prover(p, {{kN, {1, 512}}});
  EXPECT_EQ(prover.less_equal(n(), d(512)), Answer::kYes);
  EXPECT_EQ(prover.less_equal(d(513), n()), Answer::kNo);
  EXPECT_EQ(prover.less_equal(d(2), n()), Answer::kUnknown);
  EXPECT_EQ(prover.equal(p.minimum({n(), d(600)}), n()), Answer::kYes);
  EXPECT_EQ(prover.less_equal(p.multiply(d(16), p.floor_divide(n(), d(16))), n()), Answer::kYes);
  EXPECT_EQ(prover.less(p.modulo(n(), d(16)), d(16)), Answer::kYes);
  EXPECT_EQ(prover.equal(p.modulo(n(), d(4)), d(5)), Answer::kNo);
  EXPECT_EQ(prover.equal(p.multiply(d(2), n()), p.add(p.multiply(d(2), m()), d(1))), Answer::kNo);
  EXPECT_EQ(prover.divides(d(4), p.multiply(d(8), m())), Answer::kYes);
  EXPECT_EQ(prover.divides(d(4), p.add(p.multiply(d(8), m()), d(2))), Answer::kNo);
  EXPECT_EQ(prover.divides(d(4), m()), Answer::kUnknown);
  EXPECT_EQ(prover.equal(p.add(p.minimum({n(), m()}), p.maximum({n(), m()})), p.add(n(), m())), Answer::kYes);
  EXPECT_EQ(prover.less_equal(m(), p.multiply(n(), m())), Answer::kYes);
  EXPECT_EQ(prover.less_equal(p.floor_divide(m(), n()), m()), Answer::kYes);
  // m*m*(n % 3) in normal form, and what a negative factor or constant does to it.
  const Dim remainder = p.modulo(n(), d(3)), product = p.product(std::vector{m(), m(), remainder});
  EXPECT_EQ(DimProver(p).less_equal(d(-1), product), Answer::kYes);
  EXPECT_EQ(DimProver(p, {{kM, {-5, {}}}}).less_equal(d(0), p.multiply(m(), remainder)), Answer::kUnknown);
  EXPECT_EQ(DimProver(p).less_equal(d(1), product), Answer::kUnknown);
  // A row of a ragged tensor ends inside the tensor: lengths(m) <= n.
  const Dim length = p.apply(kLengths, {m()});
  EXPECT_EQ(DimProver(p, {{kLengths, {0, 9}}}).less_equal(length, d(9)), Answer::kYes);
  // The element f is in its row; other facts of rows stay unknown.
  const Symbol kBegin{90}, kRow{91}, kOrder{92}, kIndex{93}, kElement{94}, kPosition{95}, kCount{96};
  const Dim rows = p.dim(kN), f = p.dim(kElement), row = p.apply(kRow, {f}), first = p.apply(kBegin, {row});
  const DimProver of_rows(
      p, {}, {{kBegin, kRow, kOrder, kPosition, kCount, kIndex, rows, p.apply(kLengths, {p.dim(kIndex)})}});
  EXPECT_EQ(of_rows.less(p.apply(kPosition, {f}), rows), Answer::kYes);
  EXPECT_EQ(of_rows.less_equal(p.apply(kCount, {f}), rows), Answer::kYes);
  EXPECT_EQ(of_rows.less(p.apply(kCount, {f}), rows), Answer::kUnknown);
  EXPECT_EQ(of_rows.less_equal(first, f), Answer::kYes);
  EXPECT_EQ(of_rows.less(p.subtract(f, first), p.apply(kLengths, {row})), Answer::kYes);
  EXPECT_EQ(of_rows.less(row, rows), Answer::kYes);
  // Any f, which need not be in a row, is not below the number of all elements.
  EXPECT_EQ(of_rows.less(f, p.apply(kBegin, {rows})), Answer::kUnknown);
  EXPECT_TRUE(of_rows.implied(std::vector{row}, p.subtract(p.subtract(p.apply(kBegin, {rows}), d(1)), f)));
  EXPECT_EQ(of_rows.less(p.apply(kOrder, {p.dim(kIndex)}), rows), Answer::kYes);
  EXPECT_EQ(of_rows.less(first, f), Answer::kUnknown);
  EXPECT_EQ(of_rows.less(p.subtract(f, first), p.subtract(p.apply(kLengths, {row}), d(1))), Answer::kUnknown);
  EXPECT_EQ(DimProver(p).less_equal(first, f), Answer::kUnknown);
  EXPECT_EQ(prover.equal(length, p.apply(kLengths, {p.subtract(p.add(m(), n()), n())})), Answer::kYes);
}

// A random expression as a tree, whose value is computed without a normal form.
struct Tree {
  char op = 'n';  // n, m, k, # (a constant), +, -, *, /, %, < (min), > (max)
  int64_t constant = 0;
  std::vector<Tree> args;
};
std::string tree_text(const Tree& tree) {
  if (tree.op == '#') return std::to_string(tree.constant);
  if (tree.args.empty()) return std::string(1, tree.op);
  return std::string("(") + tree_text(tree.args[0]) + tree.op + tree_text(tree.args[1]) + ")";
}
void showValue(const Tree& tree, std::ostream& out) { out << tree_text(tree); }

rc::Gen<Tree> trees(int depth) {
  auto leaf = rc::gen::oneOf(rc::gen::map(rc::gen::element('n', 'm', 'k'),
                                          [](char name) {
                                            return Tree{name, 0, {}};
                                          }),
                             rc::gen::map(rc::gen::inRange<int64_t>(-3, 9), [](int64_t value) {
                               return Tree{'#', value, {}};
                             }));
  if (depth == 0) return leaf;
  auto node = rc::gen::mapcat(rc::gen::element('+', '-', '*', '/', '%', '<', '>', '/', '%'), [depth](char op) {
    // Divisors are often small constants.
    auto right = (op == '/' || op == '%') && depth % 2 == 1 ? rc::gen::map(rc::gen::inRange<int64_t>(1, 7),
                                                                           [](int64_t value) {
                                                                             return Tree{'#', value, {}};
                                                                           })
                                                            : trees(depth - 1);
    return rc::gen::map(rc::gen::pair(trees(depth - 1), right), [op](std::pair<Tree, Tree> args) {
      return Tree{op, 0, {std::move(args.first), std::move(args.second)}};
    });
  });
  return rc::gen::oneOf(node, node, leaf);
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

std::optional<int64_t> value(const Tree& tree, const DimValues& values) {
  if (tree.op == '#') return tree.constant;
  if (tree.args.empty()) return values.at(tree.op == 'n' ? kN : tree.op == 'm' ? kM : kK);
  const auto a = value(tree.args[0], values), b = value(tree.args[1], values);
  if (!a || !b) return std::nullopt;
  switch (tree.op) {
    case '+': return *a + *b;
    case '-': return *a - *b;
    case '*': return std::abs(*a) > 1000000 || std::abs(*b) > 1000000 ? std::nullopt : std::optional(*a * *b);
    case '<': return std::min(*a, *b);
    case '>': return std::max(*a, *b);
    default: break;
  }
  if (*b == 0) return std::nullopt;
  return tree.op == '/' ? floor_div(*a, *b) : *a - *b * floor_div(*a, *b);
}

constexpr std::array kVariables{kN, kM, kK};

Dim build(DimPool& pool, const Tree& tree, const std::array<Symbol, 3>& names = kVariables) {
  if (tree.op == '#') return pool.dim(tree.constant);
  if (tree.args.empty()) return pool.dim(names[tree.op == 'n' ? 0 : tree.op == 'm' ? 1 : 2]);
  const Dim a = build(pool, tree.args[0], names), b = build(pool, tree.args[1], names);
  switch (tree.op) {
    case '+': return pool.add(a, b);
    case '-': return pool.subtract(a, b);
    case '*': return pool.multiply(a, b);
    case '<': return pool.minimum({a, b});
    case '>': return pool.maximum({a, b});
    case '/': return pool.floor_divide(a, b);
    default: return pool.modulo(a, b);
  }
}

template <class F>
void for_each_values(int64_t end, F&& visit) {
  for (int64_t x = 0; x < end; ++x) {
    for (int64_t y = 0; y < end; ++y) {
      for (int64_t z = 0; z < end; ++z) visit(DimValues{{kN, x}, {kM, y}, {kK, z}});
    }
  }
}

RC_GTEST_PROP(DimProperty, TheNormalFormPreservesValues, ()) {
  DimPool pool;
  const Tree tree = *trees(4);
  const Dim dim = build(pool, tree);
  if (!dim.valid()) return;
  const DimRange bounds = range(dim);
  for_each_values(5, [&](const DimValues& values) {
    const auto wanted = value(tree, values);
    if (!wanted) return;
    const auto found = evaluate(dim, values);
    RC_ASSERT(found == wanted);
    RC_ASSERT(bounds.lo.value_or(*wanted) <= *wanted && *wanted <= bounds.hi.value_or(*wanted));
  });
}

RC_GTEST_PROP(DimProperty, TheTextIsParsedAsTheSameNode, ()) {
  Context context;
  const std::array names{context.symbol("n"), context.symbol("m"), context.symbol("k")};
  const Dim dim = build(context, *trees(4), names);
  if (!dim.valid() || dim.constant()) return;
  const std::string module = "#[version = \"1\"]\ndef @f[n, m, k](%x: Tensor[(n, m, k, " + context.str(dim) +
                             "), f32]) -> Tensor[(n, m, k, " + context.str(dim) + "), f32] { %x }";
  const auto read = parse(context, module);
  if (!read) RC_FAIL(read.error().str());
  RC_ASSERT(read->function(context.symbol("f"))->result.tensor()->dims[3] == dim);
}

RC_GTEST_PROP(DimProperty, SubstitutionPreservesValues, ()) {
  DimPool pool;
  const Tree tree = *trees(3), inner = *trees(2);
  const Dim dim = build(pool, tree), by = build(pool, inner);
  const Dim replaced = pool.substitute(dim, {{kN, by}});
  if (!dim.valid() || !replaced.valid()) return;
  for_each_values(4, [&](DimValues values) {
    const auto found = evaluate(replaced, values);
    const auto n = evaluate(by, values);
    if (!n || *n < 0) return;  // a variable is a size
    values[kN] = *n;
    if (const auto wanted = value(tree, values)) RC_ASSERT(found == wanted);
  });
}

RC_GTEST_PROP(DimProperty, TheProverIsSound, ()) {
  DimPool pool;
  const int64_t lo = *rc::gen::inRange<int64_t>(0, 3), hi = lo + *rc::gen::inRange<int64_t>(0, 6);
  const Tree left = *trees(3), right = *trees(2);
  const Dim a = build(pool, left), b = build(pool, right);
  const DimProver prover(pool, {{kN, {lo, hi}}});
  const Answer equal = prover.equal(a, b), less = prover.less_equal(a, b), divides = prover.divides(b, a);
  for_each_values(9, [&](const DimValues& values) {
    if (values.at(kN) < lo || values.at(kN) > hi) return;
    const auto x = value(left, values), y = value(right, values);
    if (!x || !y) return;
    if (equal != Answer::kUnknown) RC_ASSERT((*x == *y) == (equal == Answer::kYes));
    if (less != Answer::kUnknown) RC_ASSERT((*x <= *y) == (less == Answer::kYes));
    if (divides != Answer::kUnknown && *y != 0) RC_ASSERT((*x % *y == 0) == (divides == Answer::kYes));
  });
}

}  // namespace
}  // namespace tenon::compiler
