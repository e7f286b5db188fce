// Gradients of reductions over axes, and of operators along one axis.
#include "compiler/ir/gradients/rules.h"

namespace tenon::compiler::gradients {
namespace {

// dy along the reduced axes.
Status sum(GradientBuilder& g) {
  if (g.wants(0)) g.add(0, unreduced(g, g.cotangent()).broadcast_to(g.arg(0).dims()));
  return g.status();
}

Status mean(GradientBuilder& g) {
  const Term x = g.arg(0), dy = g.cotangent();
  if (!g.ok() || !g.wants(0)) return g.status();
  Context& context = g.builder().context();
  const Dims all = x.dims(), left = dy.dims();
  const Dim results = context.product(left), elements = context.product(all);
  const auto exact = context.divide(elements, results);
  // Without elements there is no element of the adjoint either.
  const Dim count = exact ? *exact : context.floor_divide(elements, context.maximum({results, context.dim(1)}));
  g.add(0, unreduced(g, dy / size_value(g, count, x.dtype())).broadcast_to(all));
  return g.status();
}

// The elements that equal the maximum or minimum share dy evenly.
Status extreme(GradientBuilder& g) {
  if (!g.wants(0)) return g.status();
  const Term x = g.arg(0);
  const Term best = equal(x, unreduced(g, g.result())).cast(x.dtype());
  const Term count = g.apply(ops::kSum, {best}, g.attrs(), g.computed());
  g.add(0, best * unreduced(g, g.cotangent() / g.named(count)));
  return g.status();
}

// dy times the product of all other elements, which are those before and those after: no division by a zero.
Status prod(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  const Term x = g.arg(0);
  const Dims dims = x.dims();
  Context& context = g.builder().context();
  if (g.computed().contains("axes")) {
    g.fail("the gradient of prod requires axes that are constants");
    return g.status();
  }
  std::vector<int64_t> first, last;
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto& axes = ints_attr(g, "axes");
    const auto reduced = [&](int64_t axis) {
      return axis == static_cast<int64_t>(i) || axis + x.rank() == static_cast<int64_t>(i);
    };
    (axes.empty() || std::ranges::any_of(axes, reduced) ? last : first).push_back(static_cast<int64_t>(i));
  }
  std::vector<int64_t> order = first, back(dims.size());
  order.insert(order.end(), last.begin(), last.end());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  Dims moved, flat;
  for (const int64_t axis : order) moved.push_back(dims[static_cast<size_t>(axis)]);
  flat.assign(moved.begin(), moved.begin() + static_cast<ptrdiff_t>(first.size()));
  flat.push_back(context.product(std::span(moved).subspan(first.size())));
  const Term others = (order.empty() ? x : x.transpose(order)).reshape_to(flat);
  const auto axis = static_cast<int64_t>(first.size());
  const Term before = g.apply(ops::kCumprod, {others}, {{"axis", axis}, {"exclusive", int64_t{1}}});
  const Term after =
      g.apply(ops::kCumprod, {others}, {{"axis", axis}, {"exclusive", int64_t{1}}, {"reverse", int64_t{1}}});
  const Term product = (before * after).reshape_to(moved);
  g.add(0, unreduced(g, g.cotangent()) * (back.empty() ? product : product.transpose(back)));
  return g.status();
}

// x / y, and 0 where all elements are 0.
Status norm_l2(GradientBuilder& g) {
  if (!g.wants(0)) return g.status();
  const Term y = g.result();
  g.add(0, g.arg(0) * unreduced(g, drop_where(equal(y, 0), g.cotangent() / y)));
  return g.status();
}

Status softmax_gradient(GradientBuilder& g) {
  if (!g.wants(0)) return g.status();
  const Term part = g.cotangent() * g.result();
  g.add(0, part - g.result() * part.reduce(ops::kSum, {int_attr(g, "axis")}, true));
  return g.status();
}

Status log_softmax(GradientBuilder& g) {
  if (!g.wants(0)) return g.status();
  const Term dy = g.cotangent();
  g.add(0, dy - exp(g.result()) * dy.reduce(ops::kSum, {int_attr(g, "axis")}, true));
  return g.status();
}

// The sums of dy over all results that an element is part of: those from it on.
Status cumsum(GradientBuilder& g) {
  if (!g.wants(0)) return g.status();
  Attrs attrs = g.attrs();
  attrs.insert_or_assign("reverse", 1 - int_attr(g, "reverse"));
  g.add(0, g.apply(ops::kCumsum, {g.cotangent()}, std::move(attrs), g.computed()));
  return g.status();
}

// An axis of cumprod as the last but one axis k and the last axis i of a matrix whose elements are x_i where i is after
// k, and 1 otherwise: the products along i are those of the factors between k and i, without any division.
Status cumprod(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  if (g.computed().contains("axis")) {
    g.fail("the gradient of cumprod requires an axis that is a constant");
    return g.status();
  }
  const Term x = g.arg(0);
  const int64_t rank = x.rank(), axis = axis_attr(g, "axis", rank);
  const bool exclusive = int_attr(g, "exclusive") == 1, reverse = int_attr(g, "reverse") == 1;
  Dims dims = x.dims();
  const Dim size = dims[static_cast<size_t>(axis)];
  dims.insert(dims.begin() + axis, size);
  const Term k = along(indices_below(g, size), axis, rank + 1), i = along(indices_below(g, size), axis + 1, rank + 1);
  const Term after = reverse ? less(i, k) : less(k, i);
  // Row k, column i: the product of x from k to i, without x_k.
  const Term factors = select(after, x.expand_dims({axis}), g.scalar(1, x.dtype())).broadcast_to(dims);
  const Attrs attrs{{"axis", axis + 1}, {"exclusive", int64_t{exclusive}}, {"reverse", int64_t{reverse}}};
  const Term between = g.apply(ops::kCumprod, {factors}, attrs);
  const Term before =
      g.apply(ops::kCumprod, {x}, {{"axis", axis}, {"exclusive", int64_t{1}}, {"reverse", int64_t{reverse}}});
  // x_k is a factor of y_i where i is k or after it, and of an exclusive one where i is after it.
  const Term part = exclusive ? after : reverse ? less_equal(i, k) : less_equal(k, i);
  const Term sum = keep_where(part, between * g.cotangent().expand_dims({axis})).reduce(ops::kSum, {axis + 1});
  g.add(0, before * sum);
  return g.status();
}

constexpr GradientRow kReductions[] = {
    {ops::kSum, sum},
    {ops::kMean, mean},
    {ops::kProd, prod},
    {ops::kMax, extreme, "equal maxima share it evenly"},
    {ops::kMin, extreme, "equal minima share it evenly"},
    {ops::kSumSquare,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.arg(0) * unreduced(g, g.cotangent() * 2));
       return g.status();
     }},
    {ops::kNormL1,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, sign(g.arg(0)) * unreduced(g, g.cotangent()));
       return g.status();
     },
     "0 at 0"},
    {ops::kNormL2, norm_l2, "0 where all elements are 0"},
    {ops::kLogSum,
     [](GradientBuilder& g) {
       if (!g.wants(0)) return g.status();
       const Term total = g.named(g.apply(ops::kSum, {g.arg(0)}, g.attrs(), g.computed()));
       g.add(0, unreduced(g, g.cotangent() / total).broadcast_to(g.arg(0).dims()));
       return g.status();
     }},
    {ops::kLogSumExp,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, exp(g.arg(0) - unreduced(g, g.result())) * unreduced(g, g.cotangent()));
       return g.status();
     }},
    {ops::kSoftmax, softmax_gradient},
    {ops::kLogSoftmax, log_softmax},
    {ops::kHardmax, zero, "0 everywhere"},
    {ops::kCumsum, cumsum},
    {ops::kCumprod, cumprod},
};

}  // namespace

std::span<const GradientRow> reduce_gradients() { return kReductions; }

}  // namespace tenon::compiler::gradients
