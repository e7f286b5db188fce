#include "compiler/loop/access.h"

#include <algorithm>
#include <cstdlib>

#include "compiler/loop/expr.h"

namespace tenon::compiler::loop {
namespace {

void visit_loads(const Expr& expr, const std::function<void(const Access&)>& visit) {
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

// `var` plus a number, and that number.
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

// {a, b} where the dim is a % b, that is, a - b * (a // b), of a constant b.
std::optional<std::pair<Dim, int64_t>> remainder(Dim dim) {
  for (const DimTerm& term : dim.node->terms) {
    if (term.factors.size() != 1 || term.factors[0]->kind != DimAtom::Kind::kFloorDivide) continue;
    const Dim dividend = term.factors[0]->args[0];
    const auto divisor = term.factors[0]->args[1].constant();
    if (!divisor || *divisor != -term.coefficient) continue;
    std::vector<DimTerm> rest;
    std::ranges::copy_if(dim.node->terms, std::back_inserter(rest),
                         [&](const DimTerm& other) { return other != term; });
    if (rest == dividend.node->terms) return std::pair{dividend, *divisor};
  }
  return std::nullopt;
}

// `var` in one index.
std::optional<OwnIndex> own_part(Dim dim, Symbol var) {
  if (!dim.valid()) return std::nullopt;
  if (const auto offset = offset_from(dim.node->terms, var)) return OwnIndex{0, *offset, 0};
  const auto folded = remainder(dim);
  const auto offset = folded ? offset_from(folded->first.node->terms, var) : std::nullopt;
  if (!offset) return std::nullopt;
  return OwnIndex{0, *offset, folded->second};
}

struct Digit {
  int64_t factor = 0;
  const Axis* axis = nullptr;
};

// The axes of which an index is a sum; nothing where it is none.
std::optional<std::vector<Digit>> digits(const std::vector<DimTerm>& terms, const std::vector<const Axis*>& axes) {
  std::vector<Digit> result;
  auto find = [&](Symbol var) -> const Axis* {
    const auto found = std::ranges::find_if(axes, [&](const Axis* axis) { return axis->var == var; });
    return found == axes.end() ? nullptr : *found;
  };
  for (const DimTerm& term : terms) {
    const bool alone = term.factors.size() == 1 && term.factors[0]->kind == DimAtom::Kind::kVariable;
    if (const Axis* axis = alone ? find(term.factors[0]->name) : nullptr) {
      result.push_back({std::abs(term.coefficient), axis});
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
  std::ranges::sort(result, {}, &Digit::factor);
  return result;
}

// The axes of the digits, where each digit is more than all below it, and `below`, can make up together; else none.
std::vector<const Axis*> told_by(const std::vector<Digit>& digits, int64_t below) {
  std::vector<const Axis*> told;
  bool unlimited = false;
  for (const Digit& digit : digits) {
    if (unlimited || digit.factor <= below) return {};
    const auto size = digit.axis->extent.constant();
    unlimited = !size;
    int64_t span = 0;
    if (size && (__builtin_mul_overflow(digit.factor, *size - 1, &span) || __builtin_add_overflow(below, span, &below)))
      return {};
    told.push_back(digit.axis);
  }
  return told;
}

// A place that is written as p // b and p % b, or in more such digits, the last of which is the index that `rest` is
// made of: the digits of p, which all of them together tell. `depth` ends the search.
std::optional<std::vector<Digit>> digits_of_place(const Access& write, const std::vector<DimTerm>& rest,
                                                  const std::vector<const Axis*>& open, size_t depth) {
  const auto quotient = std::ranges::find_if(rest, [](const DimTerm& term) {
    return term.coefficient < 0 && term.factors.size() == 1 && term.factors[0]->kind == DimAtom::Kind::kFloorDivide;
  });
  if (quotient == rest.end() || depth == 0) return std::nullopt;
  for (Dim other : write.indices) {
    if (!other.valid()) continue;
    std::vector<DimTerm> sum = rest;  // + b * other
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
    if (auto place = digits(sum, open)) return place;
    if (auto place = digits_of_place(write, sum, open, depth - 1)) return place;
  }
  return std::nullopt;
}
// Only of a stage that reads nothing of the buffer, since one digit alone does not say which element is meant.
std::optional<std::vector<Digit>> digits_of_place(const Stage& stage, const Access& write, size_t at,
                                                  const std::vector<const Axis*>& open) {
  if (!write.indices[at].valid()) return std::nullopt;
  bool reads = false;
  for_each_access(stage, [&](const Access& access) { reads |= !access.writes && access.buffer == write.buffer; });
  if (reads) return std::nullopt;
  return digits_of_place(write, write.indices[at].node->terms, open, write.indices.size() - 1);
}

// The axes of `open` that the index tells, if the others do not change.
std::vector<const Axis*> told_by(const Stage& stage, const Access& write, size_t at,
                                 const std::vector<const Axis*>& open) {
  if (!write.indices[at].valid()) return {};
  if (const auto sum = digits(write.indices[at].node->terms, open)) return told_by(*sum, write.size(at) - 1);
  if (const auto place = digits_of_place(stage, write, at, open)) return told_by(*place, 0);
  std::vector<const Axis*> told;
  for (const Axis* axis : open) {
    if (axis->kind == AxisKind::kScan && own_part(write.indices[at], axis->var)) told.push_back(axis);
  }
  return told;
}

}  // namespace

void for_each_own_access(const Stmt& stmt, const std::function<void(const Access&)>& visit) {
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
void for_each_access(const Body& body, const std::function<void(const Access&)>& visit) {
  for_each_statement(body, [&](const Stmt& stmt) { for_each_own_access(stmt, visit); });
}
void for_each_access(const Stage& stage, const std::function<void(const Access&)>& visit) {
  for_each_access(stage.init, visit);
  for_each_access(stage.body, visit);
}

bool mentions(std::span<const Dim> dims, Symbol var) {
  bool found = false;
  for (Dim dim : dims) for_each_variable(dim, [&](Symbol other) { found |= other == var; });
  return found;
}

std::optional<OwnIndex> own_index(const Dims& indices, Symbol var) {
  for (size_t at = 0; at < indices.size(); ++at) {
    if (auto own = own_part(indices[at], var)) {
      own->at = at;
      return own;
    }
  }
  return std::nullopt;
}

std::optional<size_t> telling_index(const Stage& stage, const Access& write, Symbol var,
                                    const std::function<bool(const Axis&)>& fixed) {
  std::vector<const Axis*> open;  // not told yet
  for (const Axis& axis : stage.axes) {
    if (!fixed(axis)) open.push_back(&axis);
  }
  for (bool more = true; more;) {
    more = false;
    for (size_t at = 0; at < write.indices.size(); ++at) {
      for (const Axis* told : told_by(stage, write, at, open)) {
        if (told->var == var) return at;
        std::erase(open, told);
        more = true;
      }
    }
  }
  return std::nullopt;
}

bool reads_earlier(const Stage& stage, const Access& write, const Access& read) {
  // The first scan axis decides: where it is equal, the next one does.
  for (const Axis& axis : stage.axes) {
    if (axis.kind != AxisKind::kScan) continue;
    const auto written = own_index(write.indices, axis.var);
    if (!written) continue;  // a buffer of one step
    const auto from = own_part(read.indices[written->at], axis.var);
    if (!from || from->fold != written->fold || from->offset > written->offset) return false;
    if (written->fold != 0 && written->offset - from->offset >= written->fold) return false;
    if (from->offset < written->offset) return true;
  }
  return false;
}

}  // namespace tenon::compiler::loop
