// Reductions over axes, and what runs along one axis.
#include <cmath>

#include "compiler/base/dim_prover.h"
#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

// Which axes of x a reduction takes, and the way between the indices of x and those of the result and of the sum.
struct Axes {
  std::vector<bool> reduced;
  bool keep = false;
  Dims kept, over;  // the result's sizes, and those of the sum

  Dims indices(const Dims& at) const {  // of x, from those of the result and of the sum
    Dims from;
    size_t next = 0, sum = kept.size();
    for (const bool gone : reduced) {
      if (gone && keep) ++next;
      from.push_back(gone ? at[sum++] : at[next++]);
    }
    return from;
  }
};

Axes read_axes(const Operation& op, const std::vector<int64_t>& axes, bool keep) {
  const Dims& x = op.arg(0).dims;
  Axes result{.reduced = std::vector(x.size(), axes.empty()), .keep = keep, .kept = op.dims(), .over = {}};
  for (const int64_t axis : axes)
    result.reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.size()) : axis)] = true;
  for (size_t i = 0; i < x.size(); ++i) {
    if (result.reduced[i]) result.over.push_back(x[i]);
  }
  return result;
}
Axes read_axes(const Operation& op) { return read_axes(op, op.integers("axes"), op.integer("keep") == 1); }

Expr itself(const Expr& x) { return x; }
Expr square(const Expr& x) { return x * x; }

template <class F>
Value sum_over(const Operation& op, const Axes& axes, const std::string& name, BinaryOp combine, F term,
               bool ordered = false) {
  return op.emit.reduce(name,
                        {.dims = axes.kept,
                         .over = axes.over,
                         .op = combine,
                         .term = [axes, term, x = op.arg(0)](const Dims& at) { return term(x.at(axes.indices(at))); },
                         .ordered = ordered});
}

// finish(sum of term(x)); both capture nothing.
template <BinaryOp combine, class Term, class Finish>
constexpr Lower reduction(Term, Finish) {
  return [](const Operation& op) -> Values {
    const Value sum = sum_over(op, read_axes(op), "sum", combine, Term{});
    return op.expression([sum](const Dims& at) { return Finish{}(sum.at(at)); });
  };
}
template <BinaryOp combine, class Term>
constexpr Lower reduction(Term) {
  return [](const Operation& op) -> Values { return std::vector{sum_over(op, read_axes(op), "sum", combine, Term{})}; };
}
constexpr auto kItself = [](const Expr& x) { return itself(x); };
constexpr auto kSquare = [](const Expr& x) { return square(x); };

Dim count_of(Context& context, const Dims& over) { return context.product(over); }

Values mean(const Operation& op) {
  const Axes axes = read_axes(op);
  const Value sum = sum_over(op, axes, "sum", BinaryOp::kAdd, kItself);
  const Expr count = loop::convert(op.dtype(), loop::index_value(count_of(op.context(), axes.over)));
  return op.expression([sum, count](const Dims& at) { return sum.at(at) / count; });
}

Values log_sum_exp(const Operation& op) {
  const Axes axes = read_axes(op);
  const Value top = sum_over(op, axes, "top", BinaryOp::kMax, kItself, true);
  const Value sum =
      op.emit.reduce("sum", {.dims = axes.kept, .over = axes.over, .term = [axes, top, x = op.arg(0)](const Dims& at) {
                               const Dims kept(at.begin(), at.begin() + static_cast<ptrdiff_t>(axes.kept.size()));
                               return exponential(x.at(axes.indices(at)) - top.at(kept));
                             }});
  return op.expression([top, sum](const Dims& at) {
    const Expr t = top.at(at);
    return choose(same(absolute(t), like(t, HUGE_VAL)), t, t + logarithm(sum.at(at)));
  });
}

// The place of the best element: the best first, then the first or last place that has it. What is no number is best.
template <BinaryOp best>
Value place_of_best(const Operation& op, const Axes& axes, bool last) {
  const Value champion = sum_over(op, axes, "best", best, kItself);
  size_t axis = 0;
  while (!axes.reduced[axis]) ++axis;
  return op.emit.reduce("place", {.dims = axes.kept,
                                  .over = axes.over,
                                  .op = last ? BinaryOp::kMax : BinaryOp::kMin,
                                  .term = [=, x = op.arg(0)](const Dims& at) {
                                    const Dims kept(at.begin(), at.begin() + static_cast<ptrdiff_t>(axes.kept.size()));
                                    const Expr value = x.at(axes.indices(at)), wanted = champion.at(kept);
                                    Expr equal = same(value, wanted);
                                    if (loop::is_float(x.dtype))
                                      equal = either(equal, both(differs(value, value), differs(wanted, wanted)));
                                    return choose(equal, loop::index_value(at.back()),
                                                  loop::integer_literal(DType::kI64, last ? -1 : INT64_MAX));
                                  }});
}
template <BinaryOp best>
Values index_of_best(const Operation& op) {
  const Axes axes = read_axes(op, {op.integer("axis")}, op.integer("keep") == 1);
  const Value place = place_of_best<best>(op, axes, op.integer("select_last") == 1);
  const Dim length = axes.over.front();
  if (DimProver(op.context()).less(op.dim(0), length) == Answer::kYes) return std::vector{place};
  // Of no element none is the best: the place is an index that must be there.
  return op.expression([place, length, &emit = op.emit](const Dims& at) {
    return emit.at_index(place.at(at), length, [](Dim index) { return loop::index_value(index); });
  });
}

// Lines along one axis, whose size the sums over them lack.
Axes line(const Operation& op) {
  Axes axes = read_axes(op, {op.integer("axis")}, false);
  axes.kept.erase(axes.kept.begin() + static_cast<ptrdiff_t>(op.axis("axis", op.arg(0).rank())));
  return axes;
}
Dims without(const Dims& at, size_t axis) {
  Dims others = at;
  others.erase(others.begin() + static_cast<ptrdiff_t>(axis));
  return others;
}

Values softmax(const Operation& op, bool logarithmic) {
  const Axes axes = line(op);
  const size_t axis = op.axis("axis", op.arg(0).rank());
  const Value x = op.emit.stored("x", op.arg(0));
  const Value top = sum_over(op, axes, "top", BinaryOp::kMax, kItself, true);
  if (logarithmic) {
    const Value sum = op.emit.reduce("sum", {.dims = axes.kept, .over = axes.over, .term = [=](const Dims& at) {
                                               const Dims kept(at.begin(), at.end() - 1);
                                               return exponential(x.at(axes.indices(at)) - top.at(kept));
                                             }});
    return op.expression([=](const Dims& at) {
      const Dims others = without(at, axis);
      return x.at(at) - top.at(others) - logarithm(sum.at(others));
    });
  }
  const Value power = op.emit.stored("power", op.emit.expression(op.dims(), op.dtype(), [=](const Dims& at) {
    return exponential(x.at(at) - top.at(without(at, axis)));
  }));
  const Value sum = op.emit.reduce("sum", {.dims = axes.kept, .over = axes.over, .term = [=](const Dims& at) {
                                             return power.at(axes.indices(at));
                                           }});
  return op.expression([=](const Dims& at) { return power.at(at) / sum.at(without(at, axis)); });
}

Values hardmax(const Operation& op) {
  const size_t axis = op.axis("axis", op.arg(0).rank());
  const Value place = place_of_best<BinaryOp::kMax>(op, line(op), false);
  return op.expression([=, dtype = op.dtype()](const Dims& at) {
    return choose(same(place.at(without(at, axis)), loop::index_value(at[axis])), loop::literal(dtype, 1),
                  loop::literal(dtype, 0));
  });
}

template <BinaryOp combine>
Values cumulate(const Operation& op) {
  Context& context = op.context();
  const size_t axis = op.axis("axis", op.arg(0).rank());
  const bool exclusive = op.integer("exclusive") == 1, reverse = op.integer("reverse") == 1;
  const Dims& dims = op.dims();
  // From the end, it is taken of what is reversed, and reversed again.
  const auto turned = [&context, dims, axis, reverse](Dims at) {
    if (reverse) at[axis] = context.subtract(context.subtract(dims[axis], context.dim(1)), at[axis]);
    return at;
  };
  const Value sums =
      op.emit.scan("sums", dims, axis, op.dtype(), [=, x = op.arg(0)](const Dims& at, const Expr& before) {
        const Expr one = x.at(turned(at));
        return before ? loop::binary(combine, before, one) : one;
      });
  if (!exclusive && !reverse) return std::vector{sums};
  return op.expression([&context, turned, sums, axis, exclusive](const Dims& at) {
    Dims from = turned(at);
    if (!exclusive) return sums.at(from);
    const Expr is_first = less(loop::index_value(from[axis]), loop::integer_literal(DType::kI64, 1));
    from[axis] = context.subtract(from[axis], context.dim(1));
    const Expr before = sums.at(from);
    return choose(is_first, like(before, combine == BinaryOp::kAdd ? 0 : 1), before);
  });
}

}  // namespace

std::span<const Lowering> reduce_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {"sum", reduction<BinaryOp::kAdd>(kItself)},
      {"mean", mean},
      {"prod", reduction<BinaryOp::kMultiply>(kItself)},
      {"max", reduction<BinaryOp::kMax>(kItself)},
      {"min", reduction<BinaryOp::kMin>(kItself)},
      {"all", reduction<BinaryOp::kAnd>(kItself)},
      {"any", reduction<BinaryOp::kOr>(kItself)},
      {"sum_square", reduction<BinaryOp::kAdd>(kSquare)},
      {"norm_l1", reduction<BinaryOp::kAdd>([](const Expr& x) { return absolute(x); })},
      {"norm_l2", reduction<BinaryOp::kAdd>(kSquare, [](const Expr& x) { return root(x); })},
      {"log_sum", reduction<BinaryOp::kAdd>(kItself, [](const Expr& x) { return logarithm(x); })},
      {"log_sum_exp", log_sum_exp},
      {"arg_max", index_of_best<BinaryOp::kMax>},
      {"arg_min", index_of_best<BinaryOp::kMin>},
      {"softmax", [](const Operation& op) { return softmax(op, false); }},
      {"log_softmax", [](const Operation& op) { return softmax(op, true); }},
      {"hardmax", hardmax},
      {"cumsum", cumulate<BinaryOp::kAdd>},
      {"cumprod", cumulate<BinaryOp::kMultiply>},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
