// The interval arithmetic over dims.
#include <algorithm>

#include "compiler/base/dim.h"

namespace tenon::compiler {
namespace {

using Kind = DimAtom::Kind;
__extension__ typedef __int128 Wide;

// Bounds that may be infinite; a finite bound beyond 64 bits counts as infinite.
struct Interval {
  std::optional<Wide> lo, hi;
};

std::optional<int64_t> narrow(std::optional<Wide> value) {
  if (!value || *value > INT64_MAX || *value < INT64_MIN) return std::nullopt;
  return static_cast<int64_t>(*value);
}
Interval wide(const DimRange& range) { return {range.lo, range.hi}; }
DimRange narrow(const Interval& interval) { return {narrow(interval.lo), narrow(interval.hi)}; }

Interval scaled(Interval x, int64_t by) {
  if (x.lo) *x.lo *= by;
  if (x.hi) *x.hi *= by;
  if (by < 0) std::swap(x.lo, x.hi);
  return wide(narrow(x));
}

Interval product(const Interval& a, const Interval& b) {
  if (a.lo && a.hi && b.lo && b.hi) {
    const auto [lo, hi] = std::minmax({*a.lo * *b.lo, *a.lo * *b.hi, *a.hi * *b.lo, *a.hi * *b.hi});
    return wide(narrow(Interval{lo, hi}));
  }
  const bool positive = a.lo.value_or(-1) >= 0 && b.lo.value_or(-1) >= 0;
  if (!positive) return {};
  return wide(narrow(Interval{*a.lo * *b.lo, std::nullopt}));
}

Wide floor_div(Wide a, Wide b) {
  const Wide quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Interval quotient(const Interval& a, const Interval& b) {
  if (b.lo.value_or(0) < 1) return {};
  Interval result;
  // The least quotient has the least dividend, and the largest divisor where the dividend is positive, otherwise the
  // least divisor.
  if (a.lo && *a.lo >= 0) result.lo = b.hi ? floor_div(*a.lo, *b.hi) : 0;
  else if (a.lo) result.lo = floor_div(*a.lo, *b.lo);
  if (a.hi && *a.hi >= 0) result.hi = floor_div(*a.hi, *b.lo);
  else if (a.hi) result.hi = b.hi ? floor_div(*a.hi, *b.hi) : -1;
  return result;
}

Interval of(const DimAtom& atom, const DimBounds& bounds) {
  auto of_arg = [&](size_t i) { return wide(range(atom.args[i], bounds)); };
  switch (atom.kind) {
    case Kind::kVariable:
    case Kind::kApply: {
      auto found = bounds.find(atom.name);
      return found == bounds.end() ? Interval{0, std::nullopt} : wide(found->second);
    }
    case Kind::kFloorDivide: return quotient(of_arg(0), of_arg(1));
    case Kind::kMin:
    case Kind::kMax: {
      Interval result = of_arg(0);
      // The first function computes a bound that requires a bound of every argument; the second a bound that any
      // bounded argument implies.
      auto every = [](auto& mine, const auto& other, auto pick) {
        mine = mine && other ? std::optional(pick(*mine, *other)) : std::nullopt;
      };
      auto any = [](auto& mine, const auto& other, auto pick) {
        if (mine && other) mine = pick(*mine, *other);
        else if (other) mine = other;
      };
      auto least = [](Wide a, Wide b) { return std::min(a, b); };
      auto most = [](Wide a, Wide b) { return std::max(a, b); };
      for (size_t i = 1; i < atom.args.size(); ++i) {
        const Interval next = of_arg(i);
        if (atom.kind == Kind::kMin) {
          every(result.lo, next.lo, least);
          any(result.hi, next.hi, least);
        } else {
          any(result.lo, next.lo, most);
          every(result.hi, next.hi, most);
        }
      }
      return result;
    }
    case Kind::kErased:
    case Kind::kInvalid: return {};
  }
  return {};
}

}  // namespace

DimRange range(Dim dim, const DimBounds& bounds) {
  Interval sum{0, 0};
  for (const DimTerm& term : dim.node->terms) {
    Interval product_of{1, 1};
    for (const DimAtom* factor : term.factors) product_of = product(product_of, of(*factor, bounds));
    const Interval next = scaled(product_of, term.coefficient);
    auto add = [](std::optional<Wide>& mine, const std::optional<Wide>& other) {
      mine = mine && other ? std::optional(*mine + *other) : std::nullopt;
    };
    add(sum.lo, next.lo);
    add(sum.hi, next.hi);
  }
  return narrow(sum);
}

}  // namespace tenon::compiler
