// The arithmetic of dims in normal form.
#include "compiler/base/dim.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

namespace tenon::compiler {
namespace {

using Kind = DimAtom::Kind;

// A larger expression comes from a broken model. The limits keep walks over expressions short and shallow.
constexpr size_t kMaxTerms = 256;
constexpr uint32_t kMaxSize = 2000;
constexpr size_t kMaxArgs = 32;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

bool before(const Monomial& a, const Monomial& b) {
  if (a.size() != b.size()) return a.size() < b.size();
  return std::ranges::lexicographical_compare(a, b, {}, &DimAtom::id, &DimAtom::id);
}
struct Before {
  bool operator()(const Monomial& a, const Monomial& b) const { return before(a, b); }
};

Monomial times(const Monomial& a, const Monomial& b) {
  Monomial both;
  both.reserve(a.size() + b.size());
  std::ranges::merge(a, b, std::back_inserter(both), {}, &DimAtom::id, &DimAtom::id);
  return both;
}
// a / b, where every factor of b is a factor of a.
std::optional<Monomial> over(const Monomial& a, const Monomial& b) {
  if (!std::ranges::includes(a, b, {}, &DimAtom::id, &DimAtom::id)) return std::nullopt;
  Monomial quotient;
  std::ranges::set_difference(a, b, std::back_inserter(quotient), {}, &DimAtom::id, &DimAtom::id);
  return quotient;
}

// a + times_b * b over sorted terms; std::nullopt where a coefficient exceeds 64 bits.
std::optional<std::vector<DimTerm>> sum(const std::vector<DimTerm>& a, const std::vector<DimTerm>& b, int64_t times_b) {
  std::vector<DimTerm> terms;
  terms.reserve(a.size() + b.size());
  auto left = a.begin();
  for (DimTerm right : b) {
    if (__builtin_mul_overflow(right.coefficient, times_b, &right.coefficient)) return std::nullopt;
    while (left != a.end() && before(left->factors, right.factors)) terms.push_back(*left++);
    if (left != a.end() && !before(right.factors, left->factors)) {
      if (__builtin_add_overflow(right.coefficient, left->coefficient, &right.coefficient)) return std::nullopt;
      ++left;
    }
    if (right.coefficient != 0) terms.push_back(std::move(right));
  }
  terms.insert(terms.end(), left, a.end());
  return terms;
}

int64_t floor_div(int64_t a, int64_t b) {  // not kMin / -1
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t constant_of(const DimNode& node) {
  return !node.terms.empty() && node.terms[0].factors.empty() ? node.terms[0].coefficient : 0;
}

// The greatest common divisor of the coefficients, without the constant where `with_constant` is false; 0 where there
// is no coefficient.
uint64_t content(const DimNode& node, bool with_constant) {
  uint64_t gcd = 0;
  for (const DimTerm& term : node.terms) {
    if (!with_constant && term.factors.empty()) continue;
    gcd = std::gcd(gcd, term.coefficient < 0 ? 0 - static_cast<uint64_t>(term.coefficient)
                                             : static_cast<uint64_t>(term.coefficient));
  }
  return gcd > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ? 1 : gcd;
}

}  // namespace

std::optional<int64_t> Dim::constant() const {
  if (node->terms.empty()) return 0;
  if (node->terms.size() == 1 && node->terms[0].factors.empty()) return node->terms[0].coefficient;
  return std::nullopt;
}
const DimAtom* Dim::atom() const {
  if (node->terms.size() != 1 || node->terms[0].coefficient != 1 || node->terms[0].factors.size() != 1) return nullptr;
  return node->terms[0].factors[0];
}
std::optional<Symbol> Dim::variable() const {
  const DimAtom* only = atom();
  if (!only || only->kind != Kind::kVariable) return std::nullopt;
  return only->name;
}
bool Dim::erased() const { return atom() && atom()->kind == Kind::kErased; }
bool Dim::valid() const { return !atom() || (atom()->kind != Kind::kErased && atom()->kind != Kind::kInvalid); }

size_t DimPool::Hash::operator()(const DimNode& node) const {
  size_t hash = node.terms.size();
  for (const DimTerm& term : node.terms) {
    hash = hash * 0x9e3779b97f4a7c15 + static_cast<size_t>(term.coefficient);
    for (const DimAtom* factor : term.factors) hash = (hash ^ factor->id) * 0x100000001b3;
    hash ^= hash >> 29;
  }
  return hash;
}
size_t DimPool::Hash::operator()(const DimAtom& atom) const {
  size_t hash = static_cast<size_t>(atom.kind) * 31 + static_cast<size_t>(atom.name);
  for (Dim arg : atom.args) hash = (hash ^ arg.node->id) * 0x100000001b3;
  return hash ^ (hash >> 29);
}

DimPool::DimPool() {
  erased_ = atom(Kind::kErased, Symbol{}, {});
  invalid_ = atom(Kind::kInvalid, Symbol{}, {});
}

Dim DimPool::intern(std::vector<DimTerm> terms) {
  if (terms.size() > kMaxTerms) return invalid_;
  auto [found, added] = nodes_.insert(DimNode{std::move(terms), static_cast<uint32_t>(nodes_.size())});
  return Dim{&*found};
}

Dim DimPool::atom(Kind kind, Symbol name, std::vector<Dim> args) {
  uint64_t size = 1;
  for (Dim arg : args) {
    for (const DimTerm& term : arg.node->terms) {
      ++size;
      for (const DimAtom* factor : term.factors) size += factor->size;
    }
  }
  if (size > kMaxSize) return invalid_;
  DimAtom atom{kind, name, std::move(args), static_cast<uint32_t>(atoms_.size()), static_cast<uint32_t>(size)};
  return intern({{{&*atoms_.insert(std::move(atom)).first}, 1}});
}

Dim DimPool::dim(int64_t value) {
  if (value == 0) return intern({});
  return intern({{{}, value}});
}
Dim DimPool::dim(Symbol variable) { return atom(Kind::kVariable, variable, {}); }
Dim DimPool::monomial(const Monomial& factors, int64_t coefficient) { return intern({{factors, coefficient}}); }

Dim DimPool::apply(Symbol function, std::vector<Dim> args) {
  for (Dim arg : args) {
    if (!arg.valid()) return arg;
  }
  return atom(Kind::kApply, function, std::move(args));
}

std::optional<Dim> DimPool::absorbing(Dim a, Dim b) const {
  if (a == invalid_ || b == invalid_) return invalid_;
  if (a == erased_ || b == erased_) return erased_;
  return std::nullopt;
}

// The accumulator of the terms of a sum.
class DimPool::Sum {
 public:
  explicit Sum(DimPool& pool) : pool_(pool) {}

  void add(const Monomial& factors, int64_t coefficient) {
    int64_t& slot = terms_[factors];
    overflow_ |= __builtin_add_overflow(slot, coefficient, &slot);
  }
  void add(Dim dim, int64_t times = 1) {
    for (const DimTerm& term : dim.node->terms) add_product(term.factors, term.coefficient, times);
  }
  void add_product(const Monomial& factors, int64_t a, int64_t b) {
    int64_t product;
    overflow_ |= __builtin_mul_overflow(a, b, &product);
    add(factors, product);
  }
  Dim done() {
    if (overflow_ || terms_.size() > 4 * kMaxTerms) return pool_.invalid_;
    std::vector<DimTerm> terms;
    for (auto& [factors, coefficient] : terms_) {
      if (coefficient != 0) terms.push_back({factors, coefficient});
    }
    return pool_.intern(std::move(terms));
  }
  bool too_large() const { return terms_.size() > 4 * kMaxTerms; }

 private:
  DimPool& pool_;
  std::map<Monomial, int64_t, Before> terms_;
  bool overflow_ = false;
};

Dim DimPool::add(Dim a, Dim b) {
  if (auto none = absorbing(a, b)) return *none;
  const auto x = a.constant(), y = b.constant();
  if (int64_t sum; x && y && !__builtin_add_overflow(*x, *y, &sum)) return dim(sum);
  if (x == 0) return b;
  if (y == 0) return a;
  auto terms = sum(a.node->terms, b.node->terms, 1);
  return terms ? intern(std::move(*terms)) : invalid_;
}

Dim DimPool::subtract(Dim a, Dim b) {
  if (auto none = absorbing(a, b)) return *none;
  if (b.node->terms.empty()) return a;
  auto terms = sum(a.node->terms, b.node->terms, -1);
  return terms ? intern(std::move(*terms)) : invalid_;
}

Dim DimPool::multiply(Dim a, Dim b) {
  if (auto none = absorbing(a, b)) return *none;
  const auto x = a.constant(), y = b.constant();
  if (int64_t product; x && y && !__builtin_mul_overflow(*x, *y, &product)) return dim(product);
  if (x == 1) return b;
  if (y == 1) return a;
  if (x == 0 || y == 0) return dim(0);
  if (x || y) {
    std::vector<DimTerm> terms = (x ? b : a).node->terms;
    for (DimTerm& term : terms) {
      if (__builtin_mul_overflow(term.coefficient, x ? *x : *y, &term.coefficient)) return invalid_;
    }
    return intern(std::move(terms));
  }
  Sum sum(*this);
  for (const DimTerm& left : a.node->terms) {
    for (const DimTerm& right : b.node->terms) {
      sum.add_product(times(left.factors, right.factors), left.coefficient, right.coefficient);
    }
    if (sum.too_large()) break;
  }
  return sum.done();
}

Dim DimPool::product(std::span<const Dim> dims) {
  Dim result = dim(1);
  for (Dim factor : dims) result = multiply(result, factor);
  return result;
}

std::optional<Dim> DimPool::divide(Dim a, Dim b) {
  if (absorbing(a, b) || b.node->terms.empty()) return std::nullopt;
  // Polynomial division by the leading terms: multiplication preserves the order of monomials.
  const DimTerm& divisor = b.node->terms.back();
  Dim remainder = a, quotient = dim(0);
  for (size_t steps = 0; !remainder.node->terms.empty(); ++steps) {
    if (steps > kMaxTerms) return std::nullopt;
    const DimTerm& next = remainder.node->terms.back();
    const auto factors = over(next.factors, divisor.factors);
    const bool exact =
        !(next.coefficient == kMin && divisor.coefficient == -1) && next.coefficient % divisor.coefficient == 0;
    if (!factors || !exact) return std::nullopt;
    const Dim term = monomial(*factors, next.coefficient / divisor.coefficient);
    quotient = add(quotient, term);
    remainder = subtract(remainder, multiply(term, b));
    if (!remainder.valid() || !quotient.valid()) return std::nullopt;
  }
  return quotient;
}

Dim DimPool::floor_divide(Dim a, Dim b) {
  if (auto none = absorbing(a, b)) return *none;
  if (b.node->terms.empty()) return invalid_;
  if (a.node->terms.empty() || b.constant() == 1) return a;
  // From here on, the divisor's leading coefficient is positive.
  if (b.node->terms.back().coefficient < 0) return floor_divide(multiply(dim(-1), a), multiply(dim(-1), b));
  if (b.node->terms.size() > 1) {
    if (const auto exact = divide(a, b)) return *exact;
  }

  // The multiples of the divisor leave the division: (q*b + r) // b = q + r // b.
  Dim quotient = dim(0), remainder = a;
  if (b.node->terms.size() == 1) {
    const DimTerm& divisor = b.node->terms[0];
    Sum quotient_terms(*this), remainder_terms(*this);
    for (const DimTerm& term : a.node->terms) {
      const auto factors = over(term.factors, divisor.factors);
      const int64_t times = factors ? floor_div(term.coefficient, divisor.coefficient) : 0;
      if (factors) quotient_terms.add(*factors, times);
      remainder_terms.add(term.factors, term.coefficient - times * divisor.coefficient);
    }
    quotient = quotient_terms.done(), remainder = remainder_terms.done();
  }
  if (remainder.node->terms.empty() || !remainder.valid()) return remainder.valid() ? quotient : remainder;

  if (const auto by = b.constant()) {
    // (g*x + k) // (g*b) = (x + k // g) // b
    const uint64_t inner = content(*remainder.node, false);
    if (inner == 0) return quotient;  // 0 <= k < b
    const auto common = static_cast<int64_t>(std::gcd(inner, static_cast<uint64_t>(*by)));
    if (common > 1) {
      Sum reduced(*this);
      for (const DimTerm& term : remainder.node->terms) reduced.add(term.factors, floor_div(term.coefficient, common));
      return add(quotient, floor_divide(reduced.done(), dim(*by / common)));
    }
    const DimRange values = range(remainder);
    if (values.lo && *values.lo >= 0 && values.hi && *values.hi < *by) return quotient;
    // (x // c + k) // b = (x + k*c) // (c*b)
    const DimTerm& last = remainder.node->terms.back();
    const bool alone =
        remainder.node->terms.size() == 1 || (remainder.node->terms.size() == 2 && constant_of(*remainder.node) != 0);
    if (alone && last.coefficient == 1 && last.factors.size() == 1 && last.factors[0]->kind == Kind::kFloorDivide) {
      const auto& args = last.factors[0]->args;
      const Dim inner_by = args[1];
      if (inner_by.constant()) {
        const Dim moved = add(args[0], multiply(dim(constant_of(*remainder.node)), inner_by));
        const Dim merged = floor_divide(moved, multiply(inner_by, b));
        if (merged.valid()) return add(quotient, merged);
      }
    }
    return add(quotient, atom(Kind::kFloorDivide, Symbol{}, {remainder, b}));
  }

  // (g*x) // (g*b) = x // b, where g is an integer or a factor of every term.
  const auto common = static_cast<int64_t>(std::gcd(content(*remainder.node, true), content(*b.node, true)));
  Monomial shared = remainder.node->terms[0].factors;
  for (const Dim side : {remainder, b}) {
    for (const DimTerm& term : side.node->terms) {
      Monomial both;
      std::ranges::set_intersection(shared, term.factors, std::back_inserter(both), {}, &DimAtom::id, &DimAtom::id);
      shared = std::move(both);
    }
  }
  if (common > 1 || !shared.empty()) {
    const Dim by = monomial(shared, common);
    const auto x = divide(remainder, by), y = divide(b, by);
    assert(x && y);
    return add(quotient, floor_divide(*x, *y));
  }
  return add(quotient, atom(Kind::kFloorDivide, Symbol{}, {remainder, b}));
}

Dim DimPool::modulo(Dim a, Dim b) { return subtract(a, multiply(floor_divide(a, b), b)); }
Dim DimPool::ceil_divide(Dim a, int64_t b) { return floor_divide(add(a, dim(b - 1)), dim(b)); }
Dim DimPool::minimum(std::vector<Dim> dims) { return extreme(Kind::kMin, std::move(dims)); }
Dim DimPool::maximum(std::vector<Dim> dims) { return extreme(Kind::kMax, std::move(dims)); }

// min(min(a, b) + r, c) = min(a + r, b + r, c)
bool DimPool::open_extreme(Kind kind, std::vector<Dim>& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    for (const DimTerm& term : args[i].node->terms) {
      if (term.coefficient != 1 || term.factors.size() != 1 || term.factors[0]->kind != kind) continue;
      const std::vector<Dim> inner = term.factors[0]->args;
      const Dim offset = subtract(args[i], monomial(term.factors));
      args.erase(args.begin() + static_cast<ptrdiff_t>(i));
      for (Dim next : inner) args.push_back(add(next, offset));
      return true;
    }
  }
  return false;
}

// Subtracts from every argument the terms that all of them share: the least coefficient of each monomial.
Dim DimPool::take_common(Kind, std::vector<Dim>& args) {
  std::map<Monomial, std::pair<int64_t, size_t>, Before> least;  // and the number of arguments that have it
  for (Dim arg : args) {
    for (const DimTerm& term : arg.node->terms) {
      auto [slot, added] = least.emplace(term.factors, std::pair{term.coefficient, size_t{1}});
      if (added) continue;
      slot->second.first = std::min(slot->second.first, term.coefficient);
      ++slot->second.second;
    }
  }
  Sum sum(*this);
  for (const auto& [factors, entry] : least) {
    sum.add(factors, entry.second == args.size() ? entry.first : std::min<int64_t>(entry.first, 0));
  }
  const Dim common = sum.done();
  for (Dim& arg : args) arg = subtract(arg, common);
  return common;
}

Dim DimPool::extreme(Kind kind, std::vector<Dim> args) {
  assert(!args.empty());
  Dim common = dim(0);
  int64_t scale = 1;
  auto result = [&](Dim inner) { return add(common, multiply(dim(scale), inner)); };
  while (true) {
    for (Dim arg : args) {
      if (auto none = absorbing(arg, arg)) return *none;
    }
    if (args.size() > kMaxArgs) return invalid_;
    if (open_extreme(kind, args)) continue;
    std::ranges::sort(args, {}, [](Dim arg) { return arg.node->id; });
    args.erase(std::unique(args.begin(), args.end()), args.end());
    // An argument is removed when another argument is never a worse bound.
    for (size_t i = 0; i < args.size();) {
      const bool dominated = std::ranges::any_of(args, [&](Dim other) {
        if (other == args[i]) return false;
        const Dim by = kind == Kind::kMin ? subtract(args[i], other) : subtract(other, args[i]);
        return by.valid() && range(by).lo.value_or(-1) >= 0;
      });
      if (dominated) args.erase(args.begin() + static_cast<ptrdiff_t>(i));
      else ++i;
    }
    if (args.size() == 1) return result(args[0]);
    const Dim shared = take_common(kind, args);
    common = add(common, multiply(dim(scale), shared));
    uint64_t factor = 0;
    for (Dim arg : args) {
      if (arg.valid()) factor = std::gcd(factor, content(*arg.node, true));
    }
    if (factor > 1) {
      const Dim by = dim(static_cast<int64_t>(factor));
      for (Dim& arg : args) {
        if (arg.valid()) arg = *divide(arg, by);
      }
      if (__builtin_mul_overflow(scale, static_cast<int64_t>(factor), &scale)) return invalid_;
    }
    if (shared.constant() == 0 && factor <= 1) break;
  }
  return result(atom(kind, Symbol{}, std::move(args)));
}

std::optional<std::pair<Dim, Dim>> DimPool::linear_in(Symbol variable, Dim whole) {
  const DimAtom* atom = dim(variable).atom();
  Dim factor = dim(0), offset = dim(0);
  for (const DimTerm& term : whole.node->terms) {
    Monomial others = term.factors;
    const bool has = std::erase(others, atom) > 0;
    if (others.size() + 1 < term.factors.size()) return std::nullopt;
    Dim& side = has ? factor : offset;
    side = add(side, monomial(others, term.coefficient));
  }
  bool inside = false;
  auto check = [&](Symbol name) { inside |= name == variable; };
  for_each_variable(factor, check);
  for_each_variable(offset, check);
  if (inside || !factor.valid() || !offset.valid()) return std::nullopt;
  return std::pair{factor, offset};
}

Dim DimPool::substitute(Dim whole, const std::map<Symbol, Dim>& values) {
  if (whole.constant() || values.empty()) return whole;
  Dim result = dim(0);
  bool changed = false;
  for (const DimTerm& term : whole.node->terms) {
    Dim product = dim(term.coefficient);
    for (const DimAtom* factor : term.factors) {
      std::vector<Dim> args;
      for (Dim arg : factor->args) args.push_back(substitute(arg, values));
      const bool same = args == factor->args;
      Dim next = monomial({factor});
      switch (factor->kind) {
        case Kind::kVariable: {
          auto found = values.find(factor->name);
          if (found != values.end()) next = found->second;
          break;
        }
        case Kind::kFloorDivide:
          if (!same) next = floor_divide(args[0], args[1]);
          break;
        case Kind::kMin:
        case Kind::kMax:
          if (!same) next = extreme(factor->kind, std::move(args));
          break;
        case Kind::kApply:
          if (!same) next = apply(factor->name, std::move(args));
          break;
        case Kind::kErased:
        case Kind::kInvalid: break;
      }
      changed |= next.atom() != factor;
      product = multiply(product, next);
    }
    result = add(result, product);
  }
  return changed ? result : whole;
}

std::optional<int64_t> evaluate(Dim dim, const DimValues& values) {
  auto value_of = [&](const DimAtom& atom) -> std::optional<int64_t> {
    std::vector<int64_t> args;
    for (Dim arg : atom.args) {
      const auto value = evaluate(arg, values);
      if (!value) return std::nullopt;
      args.push_back(*value);
    }
    switch (atom.kind) {
      case Kind::kVariable: {
        auto found = values.find(atom.name);
        return found == values.end() ? std::nullopt : std::optional(found->second);
      }
      case Kind::kFloorDivide:
        if (args[1] == 0 || (args[0] == kMin && args[1] == -1)) return std::nullopt;
        return floor_div(args[0], args[1]);
      case Kind::kMin: return *std::ranges::min_element(args);
      case Kind::kMax: return *std::ranges::max_element(args);
      case Kind::kApply:
      case Kind::kErased:
      case Kind::kInvalid: return std::nullopt;
    }
    return std::nullopt;
  };
  int64_t sum = 0;
  for (const DimTerm& term : dim.node->terms) {
    int64_t product = term.coefficient;
    for (const DimAtom* factor : term.factors) {
      const auto value = value_of(*factor);
      if (!value || __builtin_mul_overflow(product, *value, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

void for_each_variable(Dim dim, FunctionRef<void(Symbol)> visit) {
  for (const DimTerm& term : dim.node->terms) {
    for (const DimAtom* factor : term.factors) {
      if (factor->kind == Kind::kVariable) visit(factor->name);
      for (Dim arg : factor->args) for_each_variable(arg, visit);
    }
  }
}

bool solve_for_variable(Dim dim, int64_t value, DimValues& values) {
  std::optional<Symbol> unsolved;
  int count = 0;
  for_each_variable(dim, [&](Symbol name) {
    if (values.contains(name)) return;
    unsolved = name;
    ++count;
  });
  if (count != 1) return false;
  // The dim is linear in the variable, with coefficients f(0) and f(1) - f(0), unless the variable is inside an atom.
  for (const DimTerm& term : dim.node->terms) {
    for (const DimAtom* factor : term.factors) {
      for (Dim arg : factor->args) {
        bool inside = false;
        for_each_variable(arg, [&](Symbol name) { inside |= name == *unsolved; });
        if (inside) return false;
      }
    }
  }
  DimValues tried = values;
  tried[*unsolved] = 0;
  const auto at_zero = evaluate(dim, tried);
  tried[*unsolved] = 1;
  const auto at_one = evaluate(dim, tried);
  if (!at_zero || !at_one) return false;
  int64_t slope, room;
  if (__builtin_sub_overflow(*at_one, *at_zero, &slope) || __builtin_sub_overflow(value, *at_zero, &room)) return false;
  if (slope == 0 || (room == kMin && slope == -1) || room % slope != 0 || room / slope < 0) return false;
  values.emplace(*unsolved, room / slope);
  return true;
}

}  // namespace tenon::compiler
