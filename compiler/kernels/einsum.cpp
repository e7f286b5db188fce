#include "compiler/kernels/einsum.h"

#include <algorithm>
#include <array>
#include <map>

#include "compiler/kernels/product.h"
#include "compiler/kernels/short_floats.h"
#include "runtime/reference/einsum.h"
#include "support/try.h"

namespace tenon::compiler::kernels {
namespace {

constexpr double kUnknownSize = 1 << 10;  // assumed size of an axis that is not constant

// An operand and the letters of its axes.
struct Term {
  LazyTensor value;
  std::string axes;
};

bool has(std::string_view axes, char axis) { return axes.find(axis) != axes.npos; }
template <class Keep>
std::string filtered(std::string_view axes, Keep keep) {
  std::string store;
  for (const char axis : axes) {
    if (keep(axis) && !has(store, axis)) store += axis;
  }
  return store;
}

// Letters of both operands and of the result are batch axes, letters of one operand and the result its rows or columns,
// letters that the result lacks the reduction axes. One letter of the rows and one of the columns form the tile, the
// others are loops around it. More than two operands are contracted in pairs, the pair with the fewest products first.
class Equation {
 public:
  Equation(const OperatorCall& op, std::map<char, Dim> sizes)
      : op_(op), emit_(op.emit), context_(op.context()), sizes_(std::move(sizes)) {}

  LazyTensor run(std::vector<Term> terms, const std::string& output) {
    while (terms.size() > 2) {
      size_t a = 0, b = 1;
      double lowest_cost = 0;
      for (size_t i = 0; i < terms.size(); ++i) {
        for (size_t j = i + 1; j < terms.size(); ++j) {
          const double cost = count(filtered(terms[i].axes + terms[j].axes, [](char) { return true; }));
          if (lowest_cost == 0 || cost < lowest_cost) lowest_cost = cost, a = i, b = j;
        }
      }
      const Term first = terms[a], second = terms[b];
      terms.erase(terms.begin() + static_cast<ptrdiff_t>(b)), terms.erase(terms.begin() + static_cast<ptrdiff_t>(a));
      std::string kept_axes = output;
      for (const Term& term : terms) kept_axes += term.axes;
      const std::string axes = filtered(first.axes + second.axes, [&](char axis) { return has(kept_axes, axis); });
      terms.push_back({pair(first, second, axes), axes});
    }
    return terms.size() == 2 ? pair(terms[0], terms[1], output) : sum(terms, output);
  }

 private:
  double count(std::string_view axes) const {
    double points = 1;
    for (const char axis : axes) points *= static_cast<double>(sizes_.at(axis).constant().value_or(kUnknownSize));
    return points;
  }
  Dims dims_of(std::string_view axes) const {
    Dims dims;
    for (const char axis : axes) dims.push_back(sizes_.at(axis));
    return dims;
  }
  // The indices of the letters `axes`, from the indices `at` of the letters `from`.
  static Dims pick(std::string_view axes, std::string_view from, const Dims& at) {
    Dims indices;
    for (const char axis : axes) indices.push_back(at[from.find(axis)]);
    return indices;
  }

  // The general case: each element of the result is a sum of products.
  LazyTensor sum(const std::vector<Term>& terms, const std::string& output) {
    std::string axes = output;
    for (const Term& term : terms) axes += term.axes;
    axes = filtered(axes, [](char) { return true; });
    const auto product = [terms, axes](const Dims& at) {
      Expr result;
      for (const Term& term : terms) {
        const Expr value = factor(term.value.at(pick(term.axes, axes, at)));
        result = result ? result * value : value;
      }
      return result;
    };
    const Dims over = dims_of(std::string_view(axes).substr(output.size()));
    if (over.empty()) return emit_.expression(dims_of(output), op_.dtype(), product);
    return emit_.reduce("einsum", {.dims = dims_of(output), .over = over, .term = product});
  }

  // Takes diagonals, and sums over letters that only this operand has, before the contraction.
  Term reduce_private_axes(const Term& term, std::string_view others) {
    const std::string axes = filtered(term.axes, [&](char axis) { return has(others, axis); });
    return axes == term.axes ? term : Term{sum({term}, axes), axes};
  }

  LazyTensor pair(Term a, Term b, const std::string& output) {
    const auto has_own_axis = [&](const Term& term, const Term& other) {
      return std::ranges::any_of(term.axes, [&](char axis) { return !has(other.axes, axis) && has(output, axis); });
    };
    const bool sums = std::ranges::any_of(a.axes, [&](char axis) { return has(b.axes, axis) && !has(output, axis); });
    if (!sums || !has_own_axis(a, b) || !has_own_axis(b, a) || is_empty(dims_of(a.axes + b.axes)))
      return sum({a, b}, output);
    // An innermost axis of both operands is a vector already.
    const char last = output.back();
    const bool is_adjacent = has(a.axes, last) && has(b.axes, last) && a.axes.back() == last && b.axes.back() == last &&
                             sizes_.at(last).constant().value_or(lanes_of(op_.dtype())) >= lanes_of(op_.dtype());
    if (is_adjacent) return sum({a, b}, output);
    a = reduce_private_axes(a, b.axes + output), b = reduce_private_axes(b, a.axes + output);
    // The innermost axis of the result belongs to the columns, so that it becomes the vector.
    for (size_t i = output.size(); i-- > 0;) {
      if (has(a.axes, output[i]) == has(b.axes, output[i])) continue;
      if (has(a.axes, output[i])) std::swap(a, b);
      break;
    }
    return product(std::move(a), std::move(b), output);
  }

  // Letters that are adjacent wherever they occur become one axis, named by the first of them.
  std::map<char, std::string> merge(std::array<std::string, 3>& operands) {
    std::map<char, std::string> parts;
    for (const std::string& axes : operands) {
      for (const char axis : axes) parts[axis] = axis;
    }
    const auto adjacent = [](std::string_view axes, char first, char second) {
      return has(axes, first) ? axes.substr(axes.find(first) + 1).starts_with(second) : !has(axes, second);
    };
    for (size_t n = 0; n < operands.size(); ++n) {
      for (size_t i = 0; i + 1 < operands[n].size();) {
        const char first = operands[n][i], second = operands[n][i + 1];
        const auto are_adjacent = [&](std::string_view axes) { return adjacent(axes, first, second); };
        if (!std::ranges::all_of(operands, are_adjacent) || !sizes_.at(second).constant()) {
          ++i;
          continue;
        }
        parts[first] += parts[second];
        for (std::string& axes : operands) std::erase(axes, second);
      }
    }
    return parts;
  }
  // The indices of all letters, from the indices of the merged ones.
  Dims split(std::string_view axes, const Dims& at, const std::map<char, std::string>& parts) const {
    Dims indices;
    for (size_t i = 0; i < axes.size(); ++i) {
      const std::string& letters = parts.at(axes[i]);
      Dims reversed;
      Dim remaining = at[i];
      for (size_t d = letters.size(); d-- > 1; remaining = context_.floor_divide(remaining, sizes_.at(letters[d])))
        reversed.push_back(context_.modulo(remaining, sizes_.at(letters[d])));
      reversed.push_back(remaining);
      indices.insert(indices.end(), reversed.rbegin(), reversed.rend());
    }
    return indices;
  }
  LazyTensor merged(const Term& term, std::string_view axes, const std::map<char, std::string>& parts) {
    if (axes == term.axes) return term.value;
    Dims dims;
    for (const char axis : axes) dims.push_back(context_.product(dims_of(parts.at(axis))));
    if (term.value.constant) {
      runtime::Shape shape;
      for (const Dim dim : dims) shape.push_back(*dim.constant());
      return emit_.constant(term.value.constant->reshaped(shape));
    }
    return emit_.expression(dims, term.value.dtype, [=, self = *this, axes = std::string(axes)](const Dims& at) {
      return term.value.at(self.split(axes, at, parts));
    });
  }

  LazyTensor product(const Term& first, const Term& second, const std::string& output) {
    std::array<std::string, 3> axes{first.axes, second.axes, output};
    const std::map<char, std::string> parts = merge(axes);
    const auto& [rows, columns, result] = axes;
    const auto size_of = [&](char axis) { return context_.product(dims_of(parts.at(axis))); };
    // The row axis of the tile is the longest one, the column axis the innermost one of the result.
    char row = 0, column = 0;
    for (const char axis : result) {
      if (!has(columns, axis) && (row == 0 || count(parts.at(axis)) >= count(parts.at(row)))) row = axis;
      if (!has(rows, axis)) column = axis;
    }
    std::string batch = filtered(result, [&](char axis) { return axis != row && axis != column; });
    const std::string terms = filtered(rows, [&](char axis) { return has(columns, axis) && !has(result, axis); });
    // Tiles read their operands repeatedly: they are stored.
    const auto store = [&](const Term& term, std::string_view name) {
      return Term{term.value.constant ? term.value : emit_.stored(name, term.value), term.axes};
    };
    const LazyTensor a = merged(store(first, "a"), rows, parts), b = merged(store(second, "b"), columns, parts);
    Product product{.batch = {}, .rows = size_of(row), .columns = size_of(column), .terms = {}, .term = {}};
    for (const char axis : batch) product.batch.push_back(size_of(axis));
    for (const char axis : terms) product.terms.push_back(size_of(axis));
    const auto [stored, packed] = columns_of(op_, b, product.rows, product.columns, columns.back() == column);
    if (packed) product.panels = stored;
    const std::string letters = batch + row + terms + column;
    product.term = [=, weights = stored, rows = rows, columns = columns](const Dims& outer, Dim i, const Dims& k,
                                                                         Dim j) {
      Dims at = outer;
      at.push_back(i);
      at.insert(at.end(), k.begin(), k.end());
      at.push_back(j);
      return factor(a.at(pick(rows, letters, at))) * factor(weights.at(pick(columns, letters, at)));
    };
    product.dims = dims_of(output);
    batch += row, batch += column;
    product.result_index = [=, self = *this, result = result](const Dims& at) {
      return self.split(result, pick(result, batch, at), parts);
    };
    return multiply(op_, "einsum", product);
  }

  const OperatorCall& op_;
  Emitter& emit_;
  Context& context_;
  std::map<char, Dim> sizes_;
};

}  // namespace

Expected<std::vector<LazyTensor>> einsum(const OperatorCall& op) {
  std::vector<int64_t> ranks;
  for (const LazyTensor& arg : op.args) ranks.push_back(static_cast<int64_t>(arg.rank()));
  TENON_TRY_ASSIGN(parsed, runtime::reference::Einsum::parse(op.text("equation"), ranks));
  std::map<char, Dim> sizes;  // the constant, where one of the operands has a constant size
  std::vector<Term> terms;
  for (size_t n = 0; n < op.args.size(); ++n) {
    terms.push_back({matrix_operand(op.emit, op.arg(n)), parsed->inputs[n]});
    for (size_t d = 0; d < parsed->inputs[n].size(); ++d) {
      const Dim size = op.arg(n).dims[d];
      const auto [found, is_new] = sizes.emplace(parsed->inputs[n][d], size);
      if (!is_new && size.constant()) found->second = size;
    }
  }
  return std::vector{Equation(op, std::move(sizes)).run(std::move(terms), parsed->output)};
}

}  // namespace tenon::compiler::kernels
