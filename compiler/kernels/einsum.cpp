#include "compiler/kernels/einsum.h"

#include <algorithm>
#include <array>
#include <map>

#include "compiler/kernels/pack.h"
#include "compiler/kernels/product.h"
#include "runtime/reference/einsum.h"

namespace tenon::compiler::kernels {
namespace {

constexpr double kUnknown = 1 << 10;  // elements, where nobody knows

// A tensor and the letters of its axes.
struct Term {
  Value value;
  std::string axes;
};

bool has(std::string_view axes, char axis) { return axes.find(axis) != axes.npos; }
template <class Keep>
std::string filtered(std::string_view axes, Keep keep) {
  std::string kept;
  for (const char axis : axes) {
    if (keep(axis) && !has(kept, axis)) kept += axis;
  }
  return kept;
}

// Of two operands the letters that both have and the result too are a batch, those of one alone its rows or columns,
// and those that the result lacks the terms. One letter of rows and one of columns make the tile, the others are loops
// around it. Several operands are contracted two at a time, the pair first that multiplies least.
class Equation {
 public:
  Equation(const Operation& op, std::map<char, Dim> sizes)
      : op_(op), emit_(op.emit), context_(op.context()), sizes_(std::move(sizes)) {}

  Value run(std::vector<Term> terms, const std::string& output) {
    while (terms.size() > 2) {
      size_t a = 0, b = 1;
      double least = 0;
      for (size_t i = 0; i < terms.size(); ++i) {
        for (size_t j = i + 1; j < terms.size(); ++j) {
          const double cost = count(filtered(terms[i].axes + terms[j].axes, [](char) { return true; }));
          if (least == 0 || cost < least) least = cost, a = i, b = j;
        }
      }
      const Term first = terms[a], second = terms[b];
      terms.erase(terms.begin() + static_cast<ptrdiff_t>(b)), terms.erase(terms.begin() + static_cast<ptrdiff_t>(a));
      std::string wanted = output;
      for (const Term& term : terms) wanted += term.axes;
      const std::string axes = filtered(first.axes + second.axes, [&](char axis) { return has(wanted, axis); });
      terms.push_back({pair(first, second, axes), axes});
    }
    return terms.size() == 2 ? pair(terms[0], terms[1], output) : sum(terms, output);
  }

 private:
  double count(std::string_view axes) const {
    double all = 1;
    for (const char axis : axes) all *= static_cast<double>(sizes_.at(axis).constant().value_or(kUnknown));
    return all;
  }
  Dims dims_of(std::string_view axes) const {
    Dims dims;
    for (const char axis : axes) dims.push_back(sizes_.at(axis));
    return dims;
  }
  // An element's indices: those of its letters.
  static Dims pick(std::string_view axes, std::string_view from, const Dims& at) {
    Dims own;
    for (const char axis : axes) own.push_back(at[from.find(axis)]);
    return own;
  }

  // Whatever it is: each element a sum.
  Value sum(const std::vector<Term>& terms, const std::string& output) {
    std::string axes = output;
    for (const Term& term : terms) axes += term.axes;
    axes = filtered(axes, [](char) { return true; });
    const auto product = [terms, axes](const Dims& at) {
      Expr result;
      for (const Term& term : terms) {
        const Expr one = term.value.at(pick(term.axes, axes, at));
        result = result ? result * one : one;
      }
      return result;
    };
    const Dims over = dims_of(std::string_view(axes).substr(output.size()));
    if (over.empty()) return emit_.expression(dims_of(output), op_.dtype(), product);
    return emit_.reduce("einsum", {.dims = dims_of(output), .over = over, .term = product});
  }

  // A diagonal, or a sum over what nobody else has, is taken first.
  Term alone(const Term& term, std::string_view others) {
    const std::string axes = filtered(term.axes, [&](char axis) { return has(others, axis); });
    return axes == term.axes ? term : Term{sum({term}, axes), axes};
  }

  Value pair(Term a, Term b, const std::string& output) {
    const auto own = [&](const Term& term, const Term& other) {
      return std::ranges::any_of(term.axes, [&](char axis) { return !has(other.axes, axis) && has(output, axis); });
    };
    const bool sums = std::ranges::any_of(a.axes, [&](char axis) { return has(b.axes, axis) && !has(output, axis); });
    if (!sums || !own(a, b) || !own(b, a) || is_empty(dims_of(a.axes + b.axes))) return sum({a, b}, output);
    // Neighbours that both operands have are a vector already.
    const char last = output.back();
    const bool side_by_side = has(a.axes, last) && has(b.axes, last) && a.axes.back() == last &&
                              b.axes.back() == last &&
                              sizes_.at(last).constant().value_or(lanes_of(op_.dtype())) >= lanes_of(op_.dtype());
    if (side_by_side) return sum({a, b}, output);
    a = alone(a, b.axes + output), b = alone(b, a.axes + output);
    // The result's neighbours are columns, so that they are lanes.
    for (size_t i = output.size(); i-- > 0;) {
      if (has(a.axes, output[i]) == has(b.axes, output[i])) continue;
      if (has(a.axes, output[i])) std::swap(a, b);
      break;
    }
    return product(std::move(a), std::move(b), output);
  }

  // Letters that always stand side by side become one axis, the first of them.
  std::map<char, std::string> merge(std::array<std::string, 3>& all) {
    std::map<char, std::string> parts;
    for (const std::string& axes : all) {
      for (const char axis : axes) parts[axis] = axis;
    }
    const auto adjoin = [](std::string_view axes, char first, char second) {
      return has(axes, first) ? axes.substr(axes.find(first) + 1).starts_with(second) : !has(axes, second);
    };
    for (size_t n = 0; n < all.size(); ++n) {
      for (size_t i = 0; i + 1 < all[n].size();) {
        const char first = all[n][i], second = all[n][i + 1];
        const auto side_by_side = [&](std::string_view axes) { return adjoin(axes, first, second); };
        if (!std::ranges::all_of(all, side_by_side) || !sizes_.at(second).constant()) {
          ++i;
          continue;
        }
        parts[first] += parts[second];
        for (std::string& axes : all) std::erase(axes, second);
      }
    }
    return parts;
  }
  // Indices of all letters, from those of the merged ones.
  Dims split(std::string_view axes, const Dims& at, const std::map<char, std::string>& parts) const {
    Dims all;
    for (size_t i = 0; i < axes.size(); ++i) {
      const std::string& own = parts.at(axes[i]);
      Dims digits;
      Dim rest = at[i];
      for (size_t d = own.size(); d-- > 1; rest = context_.floor_divide(rest, sizes_.at(own[d])))
        digits.push_back(context_.modulo(rest, sizes_.at(own[d])));
      digits.push_back(rest);
      all.insert(all.end(), digits.rbegin(), digits.rend());
    }
    return all;
  }
  Value merged(const Term& term, std::string_view axes, const std::map<char, std::string>& parts) {
    if (axes == term.axes) return term.value;
    Dims dims;
    for (const char axis : axes) dims.push_back(context_.product(dims_of(parts.at(axis))));
    if (term.value.constant) {
      runtime::Shape shape;
      for (const Dim dim : dims) shape.push_back(*dim.constant());
      return emit_.constant(term.value.constant->reshaped(shape));
    }
    return emit_.expression(dims, op_.dtype(), [=, self = *this, axes = std::string(axes)](const Dims& at) {
      return term.value.at(self.split(axes, at, parts));
    });
  }

  Value product(const Term& first, const Term& second, const std::string& output) {
    std::array<std::string, 3> axes{first.axes, second.axes, output};
    const std::map<char, std::string> parts = merge(axes);
    const auto& [rows, columns, result] = axes;
    const auto size_of = [&](char axis) { return context_.product(dims_of(parts.at(axis))); };
    // Rows of the tile: the letter that has most of them. Columns: the one whose elements lie side by side.
    char row = 0, column = 0;
    for (const char axis : result) {
      if (!has(columns, axis) && (row == 0 || count(parts.at(axis)) >= count(parts.at(row)))) row = axis;
      if (!has(rows, axis)) column = axis;
    }
    std::string batch = filtered(result, [&](char axis) { return axis != row && axis != column; });
    const std::string terms = filtered(rows, [&](char axis) { return has(columns, axis) && !has(result, axis); });
    // What the operands read again and again is stored.
    const auto kept = [&](const Term& term, std::string_view name) {
      return Term{term.value.constant ? term.value : emit_.stored(name, term.value), term.axes};
    };
    const Value a = merged(kept(first, "a"), rows, parts), b = merged(kept(second, "b"), columns, parts);
    Product product{.batch = {}, .rows = size_of(row), .columns = size_of(column), .terms = {}, .term = {}};
    for (const char axis : batch) product.batch.push_back(size_of(axis));
    for (const char axis : terms) product.terms.push_back(size_of(axis));
    const TileShape shape = tile_of(op_, product.rows, product.columns);
    const bool in_place = columns.back() == column && !b.constant && !packs_columns(op_, product.rows, product.columns);
    const size_t column_at = columns.find(column);
    const Value weights = in_place ? b : pack(emit_, b, column_at, shape.vectors * lanes_of(op_.dtype()));
    const std::string letters = batch + row + terms + column;
    product.term = [=, rows = rows, columns = columns](const Dims& outer, Dim i, const Dims& k, const TileIndex& j) {
      Dims at = outer;
      at.push_back(i);
      at.insert(at.end(), k.begin(), k.end());
      at.push_back(in_place ? j.index : j.inner);
      Dims own = pick(columns, letters, at);
      if (!in_place) {
        own.erase(own.begin() + static_cast<ptrdiff_t>(column_at));
        own.insert(own.begin(), j.block), own.push_back(j.inner);
      }
      return a.at(pick(rows, letters, at)) * weights.at(own);
    };
    product.dims = dims_of(output);
    batch += row, batch += column;
    product.place = [=, self = *this, result = result](const Dims& at) {
      return self.split(result, pick(result, batch, at), parts);
    };
    return multiply(op_, "einsum", shape, product);
  }

  const Operation& op_;
  Emitter& emit_;
  Context& context_;
  std::map<char, Dim> sizes_;
};

}  // namespace

Expected<std::vector<Value>> einsum(const Operation& op) {
  std::vector<int64_t> ranks;
  for (const Value& arg : op.args) ranks.push_back(static_cast<int64_t>(arg.rank()));
  const auto parsed = runtime::reference::Einsum::parse(op.text("equation"), ranks);
  if (!parsed) return std::unexpected(parsed.error());
  std::map<char, Dim> sizes;  // a number, where one says it
  std::vector<Term> terms;
  for (size_t n = 0; n < op.args.size(); ++n) {
    terms.push_back({op.arg(n), parsed->inputs[n]});
    for (size_t d = 0; d < parsed->inputs[n].size(); ++d) {
      const Dim size = op.arg(n).dims[d];
      const auto [known, is_new] = sizes.emplace(parsed->inputs[n][d], size);
      if (!is_new && size.constant()) known->second = size;
    }
  }
  return std::vector{Equation(op, std::move(sizes)).run(std::move(terms), parsed->output)};
}

}  // namespace tenon::compiler::kernels
