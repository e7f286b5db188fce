#include "compiler/loop/access.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "compiler/loop/expr.h"

namespace tenon::compiler::loop {
namespace {

void visit_loads(const Expr& expr, FunctionRef<void(const Access&)> visit) {
  for_each_node(expr, [&](const ExprNode& node) {
    if (const auto* load = std::get_if<Load>(&node.form))
      visit({.buffer = load->buffer, .writes = false, .indices = load->indices, .sizes = {}});
  });
}

Access block(const Operand& operand, bool writes) {
  Access access{.buffer = operand.buffer, .writes = writes, .indices = {}, .sizes = {}};
  for (const Part& part : operand.parts) {
    access.indices.push_back(part.begin);
    access.sizes.push_back(std::max<int64_t>(part.size, 1));
  }
  return access;
}

// The constant, if the terms are `var` plus a constant.
std::optional<int64_t> offset_from(const std::vector<DimTerm>& terms, Symbol var) {
  int64_t offset = 0;
  bool found = false;
  for (const DimTerm& term : terms) {
    if (term.factors.empty()) {
      offset = term.coefficient;
    } else if (!found && term.factors.size() == 1 && term.coefficient == 1 &&
               term.factors[0]->kind == DimAtom::Kind::kVariable && term.factors[0]->name == var) {
      found = true;
    } else {
      return std::nullopt;
    }
  }
  if (!found) return std::nullopt;
  return offset;
}

// {a // b, b} if the dim is a % b, that is, a - b * (a // b), with a constant b.
std::optional<std::pair<const DimAtom*, int64_t>> remainder(Dim dim) {
  for (const DimTerm& term : dim.node->terms) {
    if (term.factors.size() != 1 || term.factors[0]->kind != DimAtom::Kind::kFloorDivide) continue;
    const Dim dividend = term.factors[0]->args[0];
    const auto divisor = term.factors[0]->args[1].constant();
    if (!divisor || *divisor != -term.coefficient) continue;
    std::vector<DimTerm> others;
    std::ranges::copy_if(dim.node->terms, std::back_inserter(others),
                         [&](const DimTerm& other) { return other != term; });
    if (others == dividend.node->terms) return std::pair{term.factors[0], *divisor};
  }
  return std::nullopt;
}

// One index as `var` plus a constant.
std::optional<OffsetIndex> offset_part(Dim dim, Symbol var) {
  if (!dim.valid()) return std::nullopt;
  if (const auto offset = offset_from(dim.node->terms, var)) return OffsetIndex{0, *offset, 0};
  const auto folded = remainder(dim);
  const auto offset = folded ? offset_from(folded->first->args[0].node->terms, var) : std::nullopt;
  if (!offset) return std::nullopt;
  return OffsetIndex{0, *offset, folded->second};
}

// Whether the indices contain the quotient, or its digits: no index that is a remainder folds the buffer then.
bool contain_quotient(const Dims& indices, const DimAtom* quotient) {
  return std::ranges::any_of(indices, [&](Dim index) {
    if (index.atom() == quotient) return true;
    const auto digit = index.valid() ? remainder(index) : std::nullopt;
    return digit && digit->first->args[0].atom() == quotient && contain_quotient(indices, digit->first);
  });
}

// A digit of a mixed-radix sum. Its weight is the factor times the product of the symbols, as m in i*m + j.
struct RadixDigit {
  int64_t factor = 0;
  const Axis* axis = nullptr;
  Monomial symbols = {};
};

// The axes whose weighted sum an index is, by ascending weight; nothing if the index is not such a sum.
std::optional<std::vector<RadixDigit>> radix_digits(const std::vector<DimTerm>& terms,
                                                    const std::vector<const Axis*>& axes) {
  std::vector<RadixDigit> result;
  auto find = [&](Symbol var) -> const Axis* {
    const auto found = std::ranges::find_if(axes, [&](const Axis* axis) { return axis->var == var; });
    return found == axes.end() ? nullptr : *found;
  };
  for (const DimTerm& term : terms) {
    const auto digit = std::ranges::find_if(term.factors, [&](const DimAtom* factor) {
      return factor->kind == DimAtom::Kind::kVariable && find(factor->name) != nullptr;
    });
    if (digit != term.factors.end()) {
      Monomial symbols = term.factors;
      symbols.erase(symbols.begin() + (digit - term.factors.begin()));
      const bool constant = std::ranges::all_of(symbols, [&](const DimAtom* factor) {
        return factor->kind == DimAtom::Kind::kVariable && find(factor->name) == nullptr;
      });
      if (!constant) return std::nullopt;
      result.push_back({std::abs(term.coefficient), find((*digit)->name), std::move(symbols)});
      continue;
    }
    bool constant = true;
    const std::function<void(Dim)> visit = [&](Dim part) {
      for_each_variable(part, [&](Symbol var) { constant &= find(var) == nullptr; });
    };
    for (const DimAtom* factor : term.factors) {
      if (factor->kind == DimAtom::Kind::kVariable) constant &= find(factor->name) == nullptr;
      std::ranges::for_each(factor->args, visit);
    }
    if (!constant) return std::nullopt;
  }
  // Of equal weights, an axis of one point is first: it adds nothing.
  const auto weight = [](const RadixDigit& digit) {
    return std::tuple(digit.symbols.size(), digit.factor, digit.axis->extent.constant() != 1);
  };
  std::ranges::sort(result, [&](const RadixDigit& a, const RadixDigit& b) { return weight(a) < weight(b); });
  return result;
}

// The axes of the digits if the sum determines them: if each weight exceeds the largest sum of `below` and all smaller
// digits. Otherwise no axes.
// A weight with symbols must be the product of the preceding extents.
std::vector<const Axis*> determined_by(const std::vector<RadixDigit>& digits, int64_t below) {
  std::vector<const Axis*> determined;
  Monomial product;  // with `factor`: what all preceding digits together are less than, once it has symbols
  int64_t factor = 0;
  bool unlimited = false;  // the preceding digits have no known limit
  for (const RadixDigit& digit : digits) {
    determined.push_back(digit.axis);
    const auto size = digit.axis->extent.constant();
    const bool symbolic = !digit.symbols.empty();
    if (symbolic ? digit.factor != factor || digit.symbols != product : digit.factor <= below || factor != 0) return {};
    if (unlimited && !symbolic) return {};
    int64_t span = 0;
    if (size && !symbolic) {
      if (__builtin_mul_overflow(digit.factor, *size - 1, &span) || __builtin_add_overflow(below, span, &below))
        return {};
      continue;
    }
    unlimited = true;
    // The limit of the sum so far is the weight times the extent, where this is one product.
    const auto& terms = digit.axis->extent.node->terms;
    factor = 0, product = digit.symbols;
    if (terms.size() != 1 || __builtin_mul_overflow(digit.factor, terms[0].coefficient, &factor)) continue;
    product.insert(product.end(), terms[0].factors.begin(), terms[0].factors.end());
    std::ranges::sort(product, {}, &DimAtom::id);
  }
  return determined;
}

// Recovers a linear position p whose indices are p // b and p % b, or more such mixed-radix digits, the last of which
// is the sum of `remainder`: returns the axes of p, which these indices together determine. `depth` ends the search.
std::optional<std::vector<RadixDigit>> digits_of_position(const Access& write, const std::vector<DimTerm>& remainder,
                                                          const std::vector<const Axis*>& open, size_t depth) {
  const auto quotient = std::ranges::find_if(remainder, [](const DimTerm& term) {
    return term.coefficient < 0 && term.factors.size() == 1 && term.factors[0]->kind == DimAtom::Kind::kFloorDivide;
  });
  if (quotient == remainder.end() || depth == 0) return std::nullopt;
  for (Dim other : write.indices) {
    if (!other.valid()) continue;
    std::vector<DimTerm> sum = remainder;  // + b * other
    bool overflow = false;
    for (const DimTerm& term : other.node->terms) {
      int64_t less = 0;
      overflow |= __builtin_mul_overflow(quotient->coefficient, term.coefficient, &less);
      const auto same = std::ranges::find(sum, term.factors, &DimTerm::factors);
      int64_t& coefficient = same == sum.end() ? sum.emplace_back(term.factors, 0).coefficient : same->coefficient;
      overflow |= __builtin_sub_overflow(coefficient, less, &coefficient);
    }
    if (overflow) continue;
    std::erase_if(sum, [](const DimTerm& term) { return term.coefficient == 0; });
    if (std::ranges::find(sum, quotient->factors, &DimTerm::factors) != sum.end()) continue;
    if (auto digits = radix_digits(sum, open)) return digits;
    if (auto digits = digits_of_position(write, sum, open, depth - 1)) return digits;
  }
  return std::nullopt;
}
// Only for a stage that reads no other element of the buffer, since one digit alone does not identify the element.
std::optional<std::vector<RadixDigit>> digits_of_position(const Stage& stage, const Access& write, size_t position,
                                                          const std::vector<const Axis*>& open) {
  if (!write.indices[position].valid()) return std::nullopt;
  bool reads = false;
  for_each_access(stage, [&](const Access& access) {
    const bool is_same = access.indices == write.indices && access.sizes == write.sizes;
    reads |= !access.writes && access.buffer == write.buffer && !is_same;
  });
  if (reads) return std::nullopt;
  return digits_of_position(write, write.indices[position].node->terms, open, write.indices.size() - 1);
}

// The axes of `open` that the index at `position` determines, if the other axes are constant.
std::vector<const Axis*> determined_by(const Stage& stage, const Access& write, size_t position,
                                       const std::vector<const Axis*>& open) {
  if (!write.indices[position].valid()) return {};
  if (const auto sum = radix_digits(write.indices[position].node->terms, open))
    return determined_by(*sum, write.size(position) - 1);
  if (const auto digits = digits_of_position(stage, write, position, open)) return determined_by(*digits, 0);
  std::vector<const Axis*> determined;
  for (const Axis* axis : open) {
    if (axis->kind == AxisKind::kScan && offset_part(write.indices[position], axis->var)) determined.push_back(axis);
  }
  return determined;
}

}  // namespace

void for_each_direct_access(const Stmt& stmt, FunctionRef<void(const Access&)> visit) {
  if (const auto* store = std::get_if<Store>(&stmt.form)) {
    visit_loads(store->value, visit);
    visit({.buffer = store->buffer, .writes = true, .indices = store->indices, .sizes = {}});
  }
  if (const auto* branch = std::get_if<If>(&stmt.form)) visit_loads(branch->condition, visit);
  if (const auto* let = std::get_if<Let>(&stmt.form)) visit_loads(let->value, visit);
  if (const auto* intrinsic = std::get_if<Intrinsic>(&stmt.form)) {
    for (const Operand& input : intrinsic->inputs) visit(block(input, false));
    for (const Operand& output : intrinsic->outputs) visit(block(output, false)), visit(block(output, true));
  }
}
void for_each_access(const Body& body, FunctionRef<void(const Access&)> visit) {
  for_each_statement(body, [&](const Stmt& stmt) { for_each_direct_access(stmt, visit); });
}
void for_each_access(const Stage& stage, FunctionRef<void(const Access&)> visit) {
  for_each_access(stage.init, visit);
  for_each_access(stage.body, visit);
}

bool mentions(std::span<const Dim> dims, Symbol var) {
  bool found = false;
  for (Dim dim : dims) for_each_variable(dim, [&](Symbol other) { found |= other == var; });
  return found;
}

std::optional<OffsetIndex> offset_index(const Dims& indices, Symbol var) {
  for (size_t i = 0; i < indices.size(); ++i) {
    auto found = offset_part(indices[i], var);
    if (!found || (found->fold != 0 && contain_quotient(indices, remainder(indices[i])->first))) continue;
    found->position = i;
    return found;
  }
  return std::nullopt;
}

std::optional<size_t> distinguishing_index(const Stage& stage, const Access& write, Symbol var,
                                           FunctionRef<bool(const Axis&)> fixed) {
  std::vector<const Axis*> open;  // not determined yet
  for (const Axis& axis : stage.axes) {
    if (!fixed(axis)) open.push_back(&axis);
  }
  for (bool more = true; more;) {
    more = false;
    for (size_t position = 0; position < write.indices.size(); ++position) {
      for (const Axis* axis : determined_by(stage, write, position, open)) {
        if (axis->var == var) return position;
        std::erase(open, axis);
        more = true;
      }
    }
  }
  return std::nullopt;
}

bool reads_earlier(const Stage& stage, const Access& write, const Access& read) {
  // Points are ordered lexicographically: where the first scan axis is equal, the next one decides.
  for (const Axis& axis : stage.axes) {
    if (axis.kind != AxisKind::kScan) continue;
    const auto to = offset_index(write.indices, axis.var);
    if (!to) continue;  // a buffer of one step
    const auto from = offset_part(read.indices[to->position], axis.var);
    if (!from || from->fold != to->fold || from->offset > to->offset) return false;
    if (to->fold != 0 && to->offset - from->offset >= to->fold) return false;
    if (from->offset < to->offset) return true;
  }
  return false;
}

}  // namespace tenon::compiler::loop
