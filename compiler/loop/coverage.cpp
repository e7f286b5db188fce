#include "compiler/loop/coverage.h"

#include <algorithm>
#include <map>

#include "compiler/loop/tables.h"

namespace tenon::compiler::loop {
namespace {

// Solves the write's loops for the element, index by index.
class LoopSolver {
 public:
  LoopSolver(TypeContext& context, const std::vector<Table>& tables, const ElementWrite& write, size_t shared)
      : context_(context), tables_(tables), write_(write) {
    for (size_t i = shared; i < write.loops.size(); ++i) open_.push_back(write.loops[i]);
  }

  std::optional<Dims> run(const Dims& element) {
    std::vector<size_t> unsolved(element.size());
    for (size_t i = 0; i < unsolved.size(); ++i) unsolved[i] = i;
    // The indices row(f) and f - offsets(row(f)) are those of the element f of all rows.
    for (size_t axis = 0; axis < element.size(); ++axis) {
      const DimAtom* row = write_.indices[axis].atom();
      for (const Table& table : tables_) {
        if (!row || row->kind != DimAtom::Kind::kApply || table.kind != Table::Kind::kRows || row->name != table.name)
          continue;
        const auto offsets = std::ranges::find_if(tables_, [&](const Table& other) {
          return other.kind == Table::Kind::kOffsets && describe_equal_rows(context_, table, other);
        });
        if (offsets == tables_.end()) continue;
        const auto begin = [&](Dim of_row) { return context_.apply(offsets->name, {of_row}); };
        const auto column =
            std::ranges::find(write_.indices, context_.subtract(row->args[0], begin(write_.indices[axis])));
        if (column == write_.indices.end()) continue;
        const auto other = static_cast<size_t>(column - write_.indices.begin());
        const Dim width = context_.substitute(table.width, {{table.var, element[axis]}});
        need(element[axis]), need(subtract(context_.subtract(table.count, element[axis]), 1));
        need(element[other]), need(subtract(context_.subtract(width, element[other]), 1));
        if (!solve(row->args[0], context_.add(begin(element[axis]), element[other]))) return std::nullopt;
        std::erase_if(unsolved, [&](size_t solved) { return solved == axis || solved == other; });
      }
    }
    // A loop's extent may mention another loop, which must be solved for before it.
    for (bool more = true; more && !unsolved.empty();) {
      const size_t before = unsolved.size();
      std::erase_if(unsolved, [&](size_t axis) { return solve(write_.indices[axis], element[axis]); });
      more = unsolved.size() < before;
    }
    if (!unsolved.empty()) return std::nullopt;
    // A loop that no index determines must run at least once: its first iteration writes the element.
    for (const EnclosingLoop& loop : open_) {
      if (loop.computed) return std::nullopt;
      need(subtract(solved(loop.extent), 1));
      values_[loop.var] = context_.dim(0);
    }
    for (const auto& [left, right] : write_.guards) need(subtract(context_.subtract(solved(right), solved(left)), 1));
    return conditions_;
  }

 private:
  // A loop as a digit of a mixed-radix sum.
  struct RadixDigit {
    EnclosingLoop loop;
    Dim weight;
  };

  // The dim with the loops that are solved for substituted.
  Dim solved(Dim dim) { return context_.substitute(dim, values_); }
  Dim subtract(Dim dim, int64_t value) { return context_.subtract(dim, context_.dim(value)); }
  void need(Dim dim) { conditions_.push_back(dim); }
  bool is_open(Dim dim) const {
    bool found = false;
    for_each_variable(dim,
                      [&](Symbol var) { found |= std::ranges::find(open_, var, &EnclosingLoop::var) != open_.end(); });
    return found;
  }
  void close(Symbol var, Dim value) {
    values_[var] = value;
    std::erase_if(open_, [&](const EnclosingLoop& loop) { return loop.var == var; });
  }

  // Solves index = base + the sum of weights times loops, which must cover a range without gaps.
  bool solve(Dim index, Dim element) {
    Dim base = solved(index);
    std::vector<RadixDigit> digits;
    for (const EnclosingLoop& loop : open_) {
      bool mentioned = false;
      for_each_variable(base, [&](Symbol var) { mentioned |= var == loop.var; });
      if (!mentioned) continue;
      const auto parts = context_.linear_in(loop.var, base);
      if (!parts || parts->first.constant().value_or(1) < 1 || loop.computed || is_open(parts->first) ||
          is_open(solved(loop.extent)))
        return false;
      digits.push_back({{loop.var, solved(loop.extent)}, parts->first});
      base = parts->second;
    }
    const Dim position = context_.subtract(element, base);
    if (digits.empty()) {
      need(position), need(context_.subtract(base, element));
      return true;
    }
    // From the smallest weight to the largest one; the digits so far cover 0 .. covered - 1. An extent of 0 covers
    // nothing, and then no position is below the product of all extents.
    Dim covered = context_.dim(1);
    for (size_t i = 0; i < digits.size(); ++i) {
      const auto next = std::find_if(digits.begin() + static_cast<ptrdiff_t>(i), digits.end(),
                                     [&](const RadixDigit& digit) { return digit.weight == covered; });
      if (next == digits.end()) return false;
      std::swap(digits[i], *next);
      covered = context_.multiply(covered, digits[i].loop.extent);
    }
    need(position);
    need(subtract(context_.subtract(covered, position), 1));
    Dim remainder = position;
    for (size_t i = digits.size(); i-- > 0;) {
      close(digits[i].loop.var, context_.floor_divide(remainder, digits[i].weight));
      remainder = context_.modulo(remainder, digits[i].weight);
    }
    return true;
  }

  TypeContext& context_;
  const std::vector<Table>& tables_;
  const ElementWrite& write_;
  std::vector<EnclosingLoop> open_;  // loops that are not solved for yet
  std::map<Symbol, Dim> values_;
  Dims conditions_;
};

constexpr size_t kMaxSplits = 24;

bool any_alternative_holds_within(TypeContext& context, const DimProver& prover, Dims& facts,
                                  std::vector<Dims> alternatives, size_t& budget) {
  for (size_t i = 0; i < alternatives.size(); ++i) {
    Dims& open = alternatives[i];
    std::erase_if(open, [&](Dim condition) { return prover.implied(facts, condition); });
    if (open.empty()) return true;
  }
  if (budget == 0) return false;
  --budget;
  // Wherever the alternative with the fewest open conditions fails, another alternative must hold.
  const auto nearest = std::ranges::min_element(alternatives, {}, &Dims::size);
  if (nearest == alternatives.end()) return prover.implied(facts, context.dim(-1));
  const Dims conditions = std::move(*nearest);
  alternatives.erase(nearest);
  const size_t outer_facts = facts.size();
  bool every = true;
  for (Dim condition : conditions) {
    facts.push_back(context.subtract(context.dim(-1), condition));
    every = every && any_alternative_holds_within(context, prover, facts, alternatives, budget);
    facts.back() = condition;
  }
  facts.resize(outer_facts);
  return every;
}

}  // namespace

std::optional<Dims> write_conditions(TypeContext& context, const std::vector<Table>& tables, const ElementWrite& write,
                                     size_t shared, const Dims& element) {
  return LoopSolver(context, tables, write, shared).run(element);
}

bool any_alternative_holds(TypeContext& context, const DimProver& prover, Dims facts, std::vector<Dims> alternatives) {
  size_t budget = kMaxSplits;
  return any_alternative_holds_within(context, prover, facts, std::move(alternatives), budget);
}

}  // namespace tenon::compiler::loop
