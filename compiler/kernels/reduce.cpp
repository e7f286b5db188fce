// Reductions over axes, softmax, and scans along one axis.
#include <cmath>

#include "compiler/base/dim_prover.h"
#include "compiler/kernels/lowerings.h"
#include "compiler/kernels/size_checks.h"

namespace tenon::compiler::kernels {
namespace {

// The axes of x that are reduced, and the mapping from indices of the result and of the reduction to indices of x.
struct Axes {
  std::vector<bool> reduced;
  bool keep = false;
  Dims kept, over;  // sizes of the result, and extents of the reduction axes

  Dims indices(const Dims& at) const {  // indices of x, from those of the result and of the reduction axes
    Dims from;
    size_t next = 0, sum = kept.size();
    for (const bool is_reduced : reduced) {
      if (is_reduced && keep) ++next;
      from.push_back(is_reduced ? at[sum++] : at[next++]);
    }
    return from;
  }

  // The last two reduction axes as one, where they are the last of x and the very last is shorter than vectors: their
  // elements are adjacent in memory, so that lanes have terms of both.
  bool joins_rows() const {
    constexpr int64_t kShort = 32;
    const size_t rank = reduced.size();
    if (rank < 2 || !reduced[rank - 1] || !reduced[rank - 2]) return false;
    const auto rows = over[over.size() - 2].constant(), length = over.back().constant();
    return rows && length && *length > 1 && *length < kShort && *rows * *length >= kShort;
  }
};

Axes read_axes(const OperatorCall& op, const std::vector<int64_t>& axes, bool keep) {
  const Dims& x = op.arg(0).dims;
  Axes result{.reduced = std::vector(x.size(), axes.empty()), .keep = keep, .kept = op.dims(), .over = {}};
  for (const int64_t axis : axes)
    result.reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.size()) : axis)] = true;
  for (size_t i = 0; i < x.size(); ++i) {
    if (result.reduced[i]) result.over.push_back(x[i]);
  }
  return result;
}
Axes read_axes(const OperatorCall& op) { return read_axes(op, op.integers("axes"), op.integer("keep") == 1); }

Expr itself(const Expr& x) { return x; }
Expr square(const Expr& x) { return x * x; }

template <class F>
LazyTensor sum_over(const OperatorCall& op, const Axes& axes, const std::string& name, BinaryOp combine, F term,
                    bool ordered = false) {
  if (!ordered && axes.joins_rows()) {
    Dims over = axes.over;
    const Dim length = over.back();
    over.pop_back();
    over.back() = op.context().multiply(over.back(), length);
    const auto joined = [axes, term, length, x = op.arg(0), &context = op.context()](Dims at) {
      const Dim index = at.back();
      at.back() = context.floor_divide(index, length);
      at.push_back(context.subtract(index, context.multiply(at.back(), length)));
      return term(x.at(axes.indices(at)));
    };
    return op.emit.reduce(name, {.dims = axes.kept, .over = std::move(over), .op = combine, .term = joined});
  }
  return op.emit.reduce(name,
                        {.dims = axes.kept,
                         .over = axes.over,
                         .op = combine,
                         .term = [axes, term, x = op.arg(0)](const Dims& at) { return term(x.at(axes.indices(at))); },
                         .ordered = ordered});
}

// finish(reduction of term(x)), where both functions capture nothing.
template <BinaryOp combine, class Term, class Finish>
constexpr Lower reduction(Term, Finish) {
  return [](const OperatorCall& op) -> LoweredResults {
    const LazyTensor sum = sum_over(op, read_axes(op), "sum", combine, Term{});
    return op.expression([sum](const Dims& at) { return Finish{}(sum.at(at)); });
  };
}
template <BinaryOp combine, class Term>
constexpr Lower reduction(Term) {
  return [](const OperatorCall& op) -> LoweredResults {
    return std::vector{sum_over(op, read_axes(op), "sum", combine, Term{})};
  };
}
constexpr auto kItself = [](const Expr& x) { return itself(x); };
constexpr auto kSquare = [](const Expr& x) { return square(x); };

Dim count_of(Context& context, const Dims& over) { return context.product(over); }

LoweredResults mean(const OperatorCall& op) {
  const Axes axes = read_axes(op);
  const LazyTensor sum = sum_over(op, axes, "sum", BinaryOp::kAdd, kItself);
  const Expr count = loop::convert(op.dtype(), loop::index_value(count_of(op.context(), axes.over)));
  return op.expression([sum, count](const Dims& at) { return sum.at(at) / count; });
}

LoweredResults log_sum_exp(const OperatorCall& op) {
  const Axes axes = read_axes(op);
  const LazyTensor top = sum_over(op, axes, "top", BinaryOp::kMax, kItself);
  const LazyTensor sum =
      op.emit.reduce("sum", {.dims = axes.kept, .over = axes.over, .term = [axes, top, x = op.arg(0)](const Dims& at) {
                               const Dims kept(at.begin(), at.begin() + static_cast<ptrdiff_t>(axes.kept.size()));
                               return exponential(x.at(axes.indices(at)) - top.at(kept));
                             }});
  return op.expression([top, sum](const Dims& at) {
    const Expr t = top.at(at);
    return select(is_equal(absolute(t), like(t, HUGE_VAL)), t, t + logarithm(sum.at(at)));
  });
}

// The index of the extreme element: first the extreme value, then the first or last index with this value. NaN counts
// as the extreme value.
template <BinaryOp best>
LazyTensor index_of_extreme(const OperatorCall& op, const Axes& axes, bool last) {
  const LazyTensor extreme = sum_over(op, axes, "best", best, kItself);
  size_t axis = 0;
  while (!axes.reduced[axis]) ++axis;
  return op.emit.reduce("place", {.dims = axes.kept,
                                  .over = axes.over,
                                  .op = last ? BinaryOp::kMax : BinaryOp::kMin,
                                  .term = [=, x = op.arg(0)](const Dims& at) {
                                    const Dims kept(at.begin(), at.begin() + static_cast<ptrdiff_t>(axes.kept.size()));
                                    const Expr value = x.at(axes.indices(at)), target = extreme.at(kept);
                                    Expr equal = is_equal(value, target);
                                    if (loop::is_float(x.dtype))
                                      equal = logical_or(
                                          equal, logical_and(is_not_equal(value, value), is_not_equal(target, target)));
                                    return select(equal, loop::index_value(at.back()),
                                                  loop::integer_literal(DType::kI64, last ? -1 : INT64_MAX));
                                  }});
}
template <BinaryOp best>
LoweredResults index_of_best(const OperatorCall& op) {
  const Axes axes = read_axes(op, {op.integer("axis")}, op.integer("keep") == 1);
  const LazyTensor index = index_of_extreme<best>(op, axes, op.integer("select_last") == 1);
  const Dim length = axes.over.front();
  if (DimProver(op.context()).less(op.dim(0), length) == Answer::kYes) return std::vector{index};
  // Without elements the index is out of range, which at_index() reports.
  return op.expression([index, length, &emit = op.emit](const Dims& at) {
    return emit.at_index(index.at(at), length, [](Dim index) { return loop::index_value(index); });
  });
}

// The axes of a reduction along one axis, which the result of the reduction lacks.
Axes line_axes(const OperatorCall& op) {
  Axes axes = read_axes(op, {op.integer("axis")}, false);
  axes.kept.erase(axes.kept.begin() + static_cast<ptrdiff_t>(op.axis("axis", op.arg(0).rank())));
  return axes;
}
Dims without(const Dims& at, size_t axis) {
  Dims others = at;
  others.erase(others.begin() + static_cast<ptrdiff_t>(axis));
  return others;
}

LoweredResults softmax(const OperatorCall& op, bool logarithmic) {
  const Axes axes = line_axes(op);
  const size_t axis = op.axis("axis", op.arg(0).rank());
  const LazyTensor x = op.emit.stored("x", op.arg(0));
  const LazyTensor top = sum_over(op, axes, "top", BinaryOp::kMax, kItself, true);
  if (logarithmic) {
    const LazyTensor sum = op.emit.reduce("sum", {.dims = axes.kept, .over = axes.over, .term = [=](const Dims& at) {
                                                    const Dims kept(at.begin(), at.end() - 1);
                                                    return exponential(x.at(axes.indices(at)) - top.at(kept));
                                                  }});
    return op.expression([=](const Dims& at) {
      const Dims others = without(at, axis);
      return x.at(at) - top.at(others) - logarithm(sum.at(others));
    });
  }
  const LazyTensor power = op.emit.stored("power", op.emit.expression(op.dims(), op.dtype(), [=](const Dims& at) {
    return exponential(x.at(at) - top.at(without(at, axis)));
  }));
  const LazyTensor sum = op.emit.reduce("sum", {.dims = axes.kept, .over = axes.over, .term = [=](const Dims& at) {
                                                  return power.at(axes.indices(at));
                                                }});
  return op.expression([=](const Dims& at) { return power.at(at) / sum.at(without(at, axis)); });
}

LoweredResults hardmax(const OperatorCall& op) {
  const size_t axis = op.axis("axis", op.arg(0).rank());
  const LazyTensor index = index_of_extreme<BinaryOp::kMax>(op, line_axes(op), false);
  return op.expression([=, dtype = op.dtype()](const Dims& at) {
    return select(is_equal(index.at(without(at, axis)), loop::index_value(at[axis])), loop::literal(dtype, 1),
                  loop::literal(dtype, 0));
  });
}

template <BinaryOp combine>
LoweredResults cumulate(const OperatorCall& op) {
  Context& context = op.context();
  const size_t axis = op.axis("axis", op.arg(0).rank());
  const bool exclusive = op.integer("exclusive") == 1, reverse = op.integer("reverse") == 1;
  const Dims& dims = op.dims();
  // A scan from the end reverses both its input and its result.
  const auto maybe_reversed = [&context, dims, axis, reverse](Dims at) {
    if (reverse) at[axis] = context.subtract(context.subtract(dims[axis], context.dim(1)), at[axis]);
    return at;
  };
  const LazyTensor sums =
      op.emit.scan("sums", dims, axis, op.dtype(), [=, x = op.arg(0)](const Dims& at, const Expr& before) {
        const Expr element = x.at(maybe_reversed(at));
        return before ? loop::binary(combine, before, element) : element;
      });
  if (!exclusive && !reverse) return std::vector{sums};
  return op.expression([&context, maybe_reversed, sums, axis, exclusive](const Dims& at) {
    Dims from = maybe_reversed(at);
    if (!exclusive) return sums.at(from);
    const Expr is_first = less(loop::index_value(from[axis]), loop::integer_literal(DType::kI64, 1));
    from[axis] = context.subtract(from[axis], context.dim(1));
    const Expr before = sums.at(from);
    return select(is_first, like(before, combine == BinaryOp::kAdd ? 0 : 1), before);
  });
}

}  // namespace

std::span<const Lowering> reduce_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {ops::kSum, reduction<BinaryOp::kAdd>(kItself)},
      {ops::kMean, mean},
      {ops::kProd, reduction<BinaryOp::kMultiply>(kItself)},
      {ops::kMax, reduction<BinaryOp::kMax>(kItself)},
      {ops::kMin, reduction<BinaryOp::kMin>(kItself)},
      {ops::kAll, reduction<BinaryOp::kAnd>(kItself)},
      {ops::kAny, reduction<BinaryOp::kOr>(kItself)},
      {ops::kSumSquare, reduction<BinaryOp::kAdd>(kSquare)},
      {ops::kNormL1, reduction<BinaryOp::kAdd>([](const Expr& x) { return absolute(x); })},
      {ops::kNormL2, reduction<BinaryOp::kAdd>(kSquare, [](const Expr& x) { return square_root(x); })},
      {ops::kLogSum, reduction<BinaryOp::kAdd>(kItself, [](const Expr& x) { return logarithm(x); })},
      {ops::kLogSumExp, log_sum_exp},
      {ops::kArgMax, index_of_best<BinaryOp::kMax>, require_axis},
      {ops::kArgMin, index_of_best<BinaryOp::kMin>, require_axis},
      {ops::kSoftmax, [](const OperatorCall& op) { return softmax(op, false); }},
      {ops::kLogSoftmax, [](const OperatorCall& op) { return softmax(op, true); }},
      {ops::kHardmax, hardmax},
      {ops::kCumsum, cumulate<BinaryOp::kAdd>},
      {ops::kCumprod, cumulate<BinaryOp::kMultiply>},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
