#include "compiler/loop/coverage.h"

#include <algorithm>
#include <map>

namespace tenon::compiler::loop {
namespace {

// Solves the write's loops for the element, index by index.
class Solving {
 public:
  Solving(TypeContext& context, const Written& write, size_t shared) : context_(context), write_(write) {
    for (size_t i = shared; i < write.around.size(); ++i) open_.push_back(write.around[i]);
  }

  std::optional<Dims> run(const Dims& at) {
    std::vector<size_t> left(at.size());
    for (size_t i = 0; i < left.size(); ++i) left[i] = i;
    // A loop's extent may mention another loop, which must be solved for before it.
    for (bool more = true; more && !left.empty();) {
      const size_t before = left.size();
      std::erase_if(left, [&](size_t axis) { return solve(write_.at[axis], at[axis]); });
      more = left.size() < before;
    }
    if (!left.empty()) return std::nullopt;
    // What no index tells runs at least once: then its first iteration counts.
    for (const Around& loop : open_) {
      if (loop.computed) return std::nullopt;
      need(subtract(now(loop.extent), 1));
      values_[loop.var] = context_.dim(0);
    }
    for (const auto& [left_side, right_side] : write_.where)
      need(subtract(context_.subtract(now(right_side), now(left_side)), 1));
    return conditions_;
  }

 private:
  struct Digit {
    Around loop;
    int64_t weight = 0;
  };

  Dim now(Dim dim) { return context_.substitute(dim, values_); }
  Dim subtract(Dim dim, int64_t value) { return context_.subtract(dim, context_.dim(value)); }
  void need(Dim dim) { conditions_.push_back(dim); }
  bool is_open(Dim dim) const {
    bool found = false;
    for_each_variable(dim, [&](Symbol var) { found |= std::ranges::find(open_, var, &Around::var) != open_.end(); });
    return found;
  }
  void close(Symbol var, Dim value) {
    values_[var] = value;
    std::erase_if(open_, [&](const Around& loop) { return loop.var == var; });
  }

  // index = base + the sum of weights times loops, which fill a range without gaps.
  bool solve(Dim index, Dim at) {
    Dim base = now(index);
    std::vector<Digit> digits;
    for (const Around& loop : open_) {
      bool has = false;
      for_each_variable(base, [&](Symbol var) { has |= var == loop.var; });
      if (!has) continue;
      const auto parts = context_.linear_in(loop.var, base);
      const auto weight = parts ? parts->first.constant() : std::nullopt;
      if (!weight || *weight < 1 || loop.computed || is_open(now(loop.extent))) return false;
      digits.push_back({{loop.var, now(loop.extent)}, *weight});
      base = parts->second;
    }
    const Dim place = context_.subtract(at, base);
    if (digits.empty()) {
      need(place), need(context_.subtract(base, at));
      return true;
    }
    std::ranges::sort(digits, {}, &Digit::weight);
    int64_t filled = 1;  // 0 .. filled - 1 are reached by the digits so far
    for (size_t i = 0; i + 1 < digits.size(); ++i) {
      const auto extent = digits[i].loop.extent.constant();
      int64_t more;
      if (!extent || *extent < 1 || digits[i].weight != filled || __builtin_mul_overflow(filled, *extent, &more))
        return false;
      filled = more;
    }
    const Digit& last = digits.back();
    if (last.weight != filled) return false;
    need(place);
    need(subtract(context_.subtract(context_.multiply(context_.dim(filled), last.loop.extent), place), 1));
    Dim rest = place;
    for (size_t i = digits.size(); i-- > 0;) {
      const Dim weight = context_.dim(digits[i].weight);
      close(digits[i].loop.var, context_.floor_divide(rest, weight));
      rest = context_.modulo(rest, weight);
    }
    return true;
  }

  TypeContext& context_;
  const Written& write_;
  std::vector<Around> open_;
  std::map<Symbol, Dim> values_;
  Dims conditions_;
};

constexpr size_t kMaxSplits = 24;

bool one_holds(TypeContext& context, const DimProver& prover, Dims& facts, std::vector<Dims> alternatives,
               size_t& budget) {
  for (size_t i = 0; i < alternatives.size(); ++i) {
    Dims& open = alternatives[i];
    std::erase_if(open, [&](Dim condition) { return prover.implied(facts, condition); });
    if (open.empty()) return true;
  }
  if (budget == 0) return false;
  --budget;
  // Where the nearest one does not hold, another one must.
  const auto nearest = std::ranges::min_element(alternatives, {}, &Dims::size);
  if (nearest == alternatives.end()) return prover.implied(facts, context.dim(-1));
  const Dims conditions = std::move(*nearest);
  alternatives.erase(nearest);
  const size_t known = facts.size();
  bool all = true;
  for (Dim condition : conditions) {
    facts.push_back(context.subtract(context.dim(-1), condition));
    all = all && one_holds(context, prover, facts, alternatives, budget);
    facts.back() = condition;
  }
  facts.resize(known);
  return all;
}

}  // namespace

std::optional<Dims> wrote(TypeContext& context, const Written& write, size_t shared, const Dims& at) {
  return Solving(context, write, shared).run(at);
}

bool one_holds(TypeContext& context, const DimProver& prover, Dims facts, std::vector<Dims> alternatives) {
  size_t budget = kMaxSplits;
  return one_holds(context, prover, facts, std::move(alternatives), budget);
}

}  // namespace tenon::compiler::loop
