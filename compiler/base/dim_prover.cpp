// The proofs about dims, by bounds and by case analysis.
#include "compiler/base/dim_prover.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace tenon::compiler {
namespace {

using AtomKind = DimAtom::Kind;
__extension__ typedef __int128 Wide;

constexpr size_t kMaxColumns = 28, kMaxRows = 240, kMaxCases = 48;
constexpr Wide kMaxCoefficient = Wide{1} << 62;

// The inequality: the sum of columns times coefficients, plus the constant, is >= 0.
struct Row {
  std::map<uint32_t, Wide> columns;
  Wide constant = 0;
  auto operator<=>(const Row&) const = default;
};

// Divides the row by the greatest common divisor of its coefficients and rounds the constant down, which is an
// equivalent inequality over the integers. Returns false where a coefficient exceeds the limit.
bool tighten(Row& row) {
  std::erase_if(row.columns, [](const auto& entry) { return entry.second == 0; });
  Wide gcd = 0;
  for (const auto& [column, coefficient] : row.columns) {
    Wide a = gcd, b = coefficient < 0 ? -coefficient : coefficient;
    if (b > kMaxCoefficient) return false;
    while (b != 0) std::swap(a %= b, b);
    gcd = a;
  }
  if (gcd > 1) {
    for (auto& [column, coefficient] : row.columns) coefficient /= gcd;
    const Wide quotient = row.constant / gcd;
    row.constant = row.constant % gcd < 0 ? quotient - 1 : quotient;
  }
  return row.constant < kMaxCoefficient && row.constant > -kMaxCoefficient;
}

// Whether the rows contradict each other. (Pugh, "The Omega test", without its exact shadows: every contradiction found
// is real, and some contradictions are not found.)
bool contradictory(std::vector<Row> rows) {
  std::set<Row> seen;
  std::vector<Row> open;
  auto add = [&](Row row) {  // returns whether the row is a contradiction by itself
    if (!tighten(row)) return false;
    if (row.columns.empty()) return row.constant < 0;
    if (seen.insert(row).second) open.push_back(std::move(row));
    return false;
  };
  for (Row& row : rows) {
    if (add(std::move(row))) return true;
  }
  while (true) {
    std::map<uint32_t, std::pair<size_t, size_t>> signs;
    for (const Row& row : open) {
      for (const auto& [column, coefficient] : row.columns)
        ++(coefficient > 0 ? signs[column].first : signs[column].second);
    }
    if (signs.empty()) return false;
    const auto cheapest =
        std::ranges::min_element(signs, {}, [](const auto& entry) { return entry.second.first * entry.second.second; });
    const uint32_t column = cheapest->first;
    std::vector<Row> up, down;
    std::vector<Row> remaining = std::move(open);
    open.clear(), seen.clear();
    for (Row& row : remaining) {
      auto found = row.columns.find(column);
      if (found == row.columns.end()) {
        if (add(std::move(row))) return true;
      } else {
        (found->second > 0 ? up : down).push_back(std::move(row));
      }
    }
    for (const Row& low : up) {
      for (const Row& high : down) {
        const Wide a = low.columns.at(column), b = -high.columns.at(column);
        Row sum;
        sum.constant = low.constant * b + high.constant * a;
        for (const auto& [c, coefficient] : low.columns) sum.columns[c] += coefficient * b;
        for (const auto& [c, coefficient] : high.columns) sum.columns[c] += coefficient * a;
        if (add(std::move(sum))) return true;
        if (open.size() > kMaxRows) return false;
      }
    }
  }
}

// Facts about the atoms of dims, as rows; a column is a monomial.
class Facts {
 public:
  Facts(DimPool& pool, const DimBounds& bounds, const std::vector<RowFunctions>& row_functions)
      : pool_(pool), bounds_(bounds), row_functions_(row_functions) {}

  // Adds dim >= 0 and the facts about the atoms of the dim.
  void assume(Dim dim) {
    if (!dim.valid()) return;
    Row row;
    for (const DimTerm& term : dim.node->terms) {
      if (term.factors.empty()) row.constant = term.coefficient;
      else row.columns.emplace(column(term.factors), term.coefficient);
    }
    rows_.push_back(std::move(row));
  }
  bool too_large() const { return columns_.size() > kMaxColumns || rows_.size() > kMaxRows; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<const DimAtom*>& extremes() const { return extremes_; }
  Row row_of(Dim dim) {
    const size_t count = rows_.size();
    assume(dim);
    if (rows_.size() == count) return {};
    Row row = std::move(rows_.back());  // the facts about its atoms precede it
    rows_.pop_back();
    return row;
  }

 private:
  uint32_t column(const Monomial& factors) {
    auto [found, added] = columns_.emplace(factors, static_cast<uint32_t>(columns_.size()));
    const uint32_t index = found->second;
    if (!added || too_large()) return index;
    const Dim whole = pool_.monomial(factors);
    bounded(whole);
    if (factors.size() > 1) product(whole, factors);
    for (const DimAtom* factor : factors) {
      if (defined_.insert(factor).second) define(*factor);
    }
    return index;
  }
  void bounded(Dim dim) {
    const DimRange values = range(dim, bounds_);
    if (values.lo) assume(pool_.subtract(dim, pool_.dim(*values.lo)));
    if (values.hi) assume(pool_.subtract(pool_.dim(*values.hi), dim));
  }
  // v*w is between lo(v)*w and hi(v)*w where the product w of the other factors is >= 0.
  void product(Dim whole, const Monomial& factors) {
    for (size_t i = 0; i < factors.size(); ++i) {
      if (i > 0 && factors[i] == factors[i - 1]) continue;
      Monomial others = factors;
      others.erase(others.begin() + static_cast<ptrdiff_t>(i));
      const Dim cofactor = pool_.monomial(others);
      if (range(cofactor, bounds_).lo.value_or(-1) < 0) continue;
      const DimRange values = range(pool_.monomial({factors[i]}), bounds_);
      if (values.lo) assume(pool_.subtract(whole, pool_.multiply(pool_.dim(*values.lo), cofactor)));
      if (values.hi) assume(pool_.subtract(pool_.multiply(pool_.dim(*values.hi), cofactor), whole));
    }
  }
  // Where the application has a value: offsets(row(f)) <= f < offsets(row(f)) + width(row(f)) <= offsets(count), and
  // offsets do not fall.
  void define(const RowFunctions& rows, const DimAtom& atom, Dim self) {
    if (atom.name == Symbol{} || atom.args.size() != 1) return;
    const auto below = [&](Dim a, Dim b) { assume(pool_.subtract(pool_.subtract(b, a), pool_.dim(1))); };
    const auto offset = [&](Dim row) { return pool_.apply(rows.offsets, {row}); };
    if (atom.name == rows.order || atom.name == rows.positions || atom.name == rows.rows) below(self, rows.count);
    if (atom.name == rows.counts) assume(pool_.subtract(rows.count, self));
    if (rows.offsets == Symbol{}) return;
    const Dim all = offset(rows.count);
    if (atom.name == rows.rows) {
      const Dim end = pool_.add(offset(self), pool_.substitute(rows.width, {{rows.var, self}}));
      assume(pool_.subtract(atom.args[0], offset(self)));
      below(atom.args[0], end);
      assume(pool_.subtract(all, end));
    }
    if (atom.name == rows.offsets && self != all) assume(pool_.subtract(all, self));
  }
  // The facts about a row whose offset or size the application is.
  void define_rows(const RowFunctions& rows, const DimAtom& atom) {
    for (const Dim arg : atom.args) {
      for (const DimTerm& term : arg.node->terms) {
        for (const DimAtom* factor : term.factors)
          if (factor->kind == AtomKind::kApply && factor->name == rows.rows) (void)column({factor});
      }
    }
  }
  void define(const DimAtom& atom) {
    const Dim self = pool_.monomial({&atom});
    switch (atom.kind) {
      case AtomKind::kVariable: break;
      case AtomKind::kApply:
        for (const RowFunctions& rows : row_functions_) define(rows, atom, self), define_rows(rows, atom);
        break;
      case AtomKind::kFloorDivide: {  // 0 <= a - b*q <= b - 1 where b > 0
        const Dim by = atom.args[1];
        if (range(by, bounds_).lo.value_or(0) < 1) break;
        const Dim remainder = pool_.subtract(atom.args[0], pool_.multiply(by, self));
        assume(remainder);
        assume(pool_.subtract(pool_.subtract(by, pool_.dim(1)), remainder));
        break;
      }
      case AtomKind::kMin:
      case AtomKind::kMax:
        for (Dim arg : atom.args) {
          assume(atom.kind == AtomKind::kMin ? pool_.subtract(arg, self) : pool_.subtract(self, arg));
        }
        extremes_.push_back(&atom);
        break;
      case AtomKind::kErased:
      case AtomKind::kInvalid: break;
    }
  }

 public:
  // For each argument of an extreme (min or max), the rows of the case that the extreme equals this argument.
  std::vector<std::vector<Row>> cases(const DimAtom& atom) {
    std::vector<std::vector<Row>> result;
    const Dim self = pool_.monomial({&atom});
    for (Dim arg : atom.args) {
      result.push_back({row_of(atom.kind == AtomKind::kMin ? pool_.subtract(self, arg) : pool_.subtract(arg, self))});
    }
    return result;
  }

 private:
  struct Before {
    bool operator()(const Monomial& a, const Monomial& b) const {
      return std::ranges::lexicographical_compare(a, b, {}, &DimAtom::id, &DimAtom::id);
    }
  };

  DimPool& pool_;
  const DimBounds& bounds_;
  const std::vector<RowFunctions>& row_functions_;
  std::map<Monomial, uint32_t, Before> columns_;
  std::set<const DimAtom*> defined_;
  std::vector<const DimAtom*> extremes_;
  std::vector<Row> rows_;
};

// Each min and max equals one of its arguments, so the rows must be contradictory in every combination of cases.
bool contradictory(const std::vector<Row>& rows, const std::vector<std::vector<std::vector<Row>>>& cases, size_t next,
                   size_t& budget) {
  if (budget == 0) return false;
  --budget;
  if (contradictory(rows)) return true;
  if (next == cases.size()) return false;
  for (const std::vector<Row>& case_rows : cases[next]) {
    std::vector<Row> more = rows;
    more.insert(more.end(), case_rows.begin(), case_rows.end());
    if (!contradictory(more, cases, next + 1, budget)) return false;
  }
  return true;
}

}  // namespace

// The products of linear claims and factors of other claims' products, where these factors are >= 0: i < n implies
// i*m <= n*m - m, by which i*m + j is an index of n*m elements. The sources of monomials are few, as are these.
std::vector<Dim> DimProver::products(const std::vector<Dim>& claims) const {
  constexpr size_t kMaxProducts = 16;
  std::vector<const DimAtom*> factors;
  std::set<const DimAtom*> multiplied;  // the atoms of products
  for (Dim dim : claims) {
    for (const DimTerm& term : dim.node->terms) {
      if (term.factors.size() < 2) continue;
      for (const DimAtom* factor : term.factors) {
        if (!multiplied.insert(factor).second) continue;
        if (range(pool_.monomial({factor}), bounds_).lo.value_or(-1) >= 0) factors.push_back(factor);
      }
    }
  }
  std::vector<Dim> found;
  for (Dim dim : claims) {
    bool linear = !dim.constant(), shared = false;
    for (const DimTerm& term : dim.node->terms) {
      linear &= term.factors.size() < 2;
      shared |= term.factors.size() == 1 && multiplied.contains(term.factors[0]);
    }
    for (const DimAtom* factor : factors) {
      if (linear && shared && found.size() < kMaxProducts)
        found.push_back(pool_.multiply(dim, pool_.monomial({factor})));
    }
  }
  return found;
}

bool DimProver::impossible(const std::vector<Dim>& claims) const {
  // Interval arithmetic alone proves most claims.
  for (Dim dim : claims) {
    if (!dim.valid()) return false;
    if (const auto hi = range(dim, bounds_).hi; hi && *hi < 0) return true;
  }
  Facts facts(pool_, bounds_, rows_);
  for (Dim dim : claims) facts.assume(dim);
  for (Dim dim : products(claims)) facts.assume(dim);
  std::vector<std::vector<std::vector<Row>>> cases;
  for (size_t i = 0; i < facts.extremes().size() && !facts.too_large(); ++i) {
    const DimAtom& extreme = *facts.extremes()[i];
    cases.push_back(facts.cases(extreme));
  }
  if (facts.too_large()) return false;
  size_t budget = kMaxCases;
  return contradictory(facts.rows(), cases, 0, budget);
}

bool DimProver::implied(std::span<const Dim> facts, Dim dim) const {
  if (!dim.valid()) return false;
  if (const auto value = dim.constant(); value && *value >= 0) return true;
  std::vector<Dim> claims(facts.begin(), facts.end());
  claims.push_back(pool_.subtract(pool_.dim(-1), dim));
  return impossible(claims);
}

Dim DimProver::reduced(Dim dim) const {
  std::vector<DimTerm> terms = dim.node->terms;
  if (terms.size() > 1 && terms[0].factors.empty() && terms[0].coefficient > 0) terms.erase(terms.begin());
  const Monomial first = terms.empty() ? Monomial() : terms[0].factors;
  for (const DimAtom* factor : first) {
    const auto has = [&](const DimTerm& term) { return std::ranges::find(term.factors, factor) != term.factors.end(); };
    if (!std::ranges::all_of(terms, has) || range(pool_.monomial({factor}), bounds_).lo.value_or(-1) < 0) continue;
    for (DimTerm& term : terms) term.factors.erase(std::ranges::find(term.factors, factor));
  }
  Dim sum = pool_.dim(0);
  for (const DimTerm& term : terms) sum = pool_.add(sum, pool_.monomial(term.factors, term.coefficient));
  return sum;
}

Answer DimProver::less_equal(Dim a, Dim b) const {
  const Dim room = pool_.subtract(b, a);
  if (!room.valid()) return Answer::kUnknown;
  if (const auto value = room.constant()) return *value >= 0 ? Answer::kYes : Answer::kNo;
  if (impossible({pool_.subtract(pool_.dim(-1), room)})) return Answer::kYes;
  if (impossible({room})) return Answer::kNo;
  const Dim smaller = reduced(room);
  if (smaller == room || !smaller.valid()) return Answer::kUnknown;
  return less_equal(pool_.dim(0), smaller) == Answer::kYes ? Answer::kYes : Answer::kUnknown;
}

Answer DimProver::equal(Dim a, Dim b) const {
  if (!a.valid() || !b.valid()) return Answer::kUnknown;
  const Dim difference = pool_.subtract(a, b);
  if (!difference.valid()) return Answer::kUnknown;
  if (const auto value = difference.constant()) return *value == 0 ? Answer::kYes : Answer::kNo;
  const Dim minus_one = pool_.dim(-1), negative = pool_.multiply(minus_one, difference);
  if (impossible({difference, negative})) return Answer::kNo;
  if (impossible({pool_.add(difference, minus_one)}) && impossible({pool_.add(negative, minus_one)})) {
    return Answer::kYes;
  }
  return Answer::kUnknown;
}

Answer DimProver::divides(Dim b, Dim a) const { return equal(pool_.modulo(a, b), pool_.dim(0)); }

}  // namespace tenon::compiler
