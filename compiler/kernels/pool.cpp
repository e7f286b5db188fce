// Reductions over windows and maps of x [N, C, ...].
#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/kernels/map_sum.h"
#include "compiler/kernels/slide.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

// The smallest value, and the larger of two, as the reference has them: what is no number never wins.
Expr lowest(DType dtype) { return loop::identity(BinaryOp::kMax, dtype); }

Windows read_pool(const Operation& op) {
  Dims kernel;
  for (const int64_t size : op.integers("kernel")) kernel.push_back(op.dim(size));
  return read_windows(op, std::move(kernel));
}

// Windows that pay to be unrolled.
bool few_taps(const Windows& windows) {
  int64_t taps = 1;
  for (const Dim size : windows.kernel) taps *= size.constant().value_or(1 << 10);
  return taps <= 25 && windows.out.back().constant().value_or(0) >= 4;
}

// term(x) over the taps of each window, of x padded with `pad`.
template <class Term>
Value over_windows(const Operation& op, const Windows& windows, const Expr& pad, bool maximum, Term term) {
  Context& context = op.context();
  if (slides(windows) && few_taps(windows)) {
    return slide(op, "pool",
                 {.windows = windows,
                  .pad = pad,
                  .init = loop::identity(maximum ? BinaryOp::kMax : BinaryOp::kAdd, term(pad)->dtype),
                  .element = term,
                  .step = [=](const Expr& sum, const Expr& x, const Dims&, const Dims&) {
                    return maximum ? larger(sum, x) : sum + x;
                  }});
  }
  const Value x = padded(op, windows, op.arg(0), pad);
  return op.emit.reduce("pool", {.dims = op.dims(),
                                 .over = windows.kernel,
                                 .op = maximum ? BinaryOp::kMax : BinaryOp::kAdd,
                                 .term =
                                     [=, &context](const Dims& at) {
                                       const size_t rank = windows.rank();
                                       Dims from{at[0], at[1]};
                                       for (size_t d = 0; d < rank; ++d)
                                         from.push_back(windows.place(context, d, at[2 + d], at[2 + rank + d]));
                                       return term(x.at(from));
                                     },
                                 .ordered = maximum});
}

Values max_pool(const Operation& op) {
  return std::vector{over_windows(op, read_pool(op), lowest(op.dtype()), true, [](const Expr& x) { return x; })};
}

constexpr int64_t kMostCounts = 1 << 12;

// How many taps count of each window along a dim, as a table: divisors that are computed of indices cost more than the
// sums do. A window without any counts for one: its sum is 0. Nothing where sizes are not known.
std::optional<Value> table_of_counts(const Operation& op, const Windows& windows, size_t d, bool count_pad) {
  const auto out = windows.out[d].constant(), in = windows.in[d].constant(), kernel = windows.kernel[d].constant();
  if (!out || !in || !kernel || *out <= 0 || *out > kMostCounts || op.dtype() != DType::kF32) return std::nullopt;
  const int64_t end = *in + (count_pad ? windows.after[d] : 0), begin = count_pad ? -windows.before[d] : 0;
  Tensor counts(DType::kF32, {*out});
  for (int64_t i = 0; float& count : counts.data<float>()) {
    const int64_t first = windows.strides[d] * i++ - windows.before[d];
    const auto up_to = [&](int64_t place) {  // how many taps lie before it
      return std::clamp<int64_t>((place - first + windows.dilation[d] - 1) / windows.dilation[d], 0, *kernel);
    };
    const int64_t taps = up_to(end) - up_to(begin);
    if (taps <= 0 && count_pad) return std::nullopt;
    count = static_cast<float>(std::max<int64_t>(taps, 1));
  }
  const auto all = std::as_const(counts).data<float>();
  if (std::ranges::all_of(all, [&](float one) { return one == all[0]; }))
    return op.emit.constant(Tensor::of<float>({1}, {&all[0], 1}));
  return op.emit.constant(counts);
}

Values avg_pool(const Operation& op) {
  Context& context = op.context();
  const Windows windows = read_pool(op);
  const bool count_pad = op.integer("count_include_pad") == 1;
  const Value sum = over_windows(op, windows, loop::literal(op.dtype(), 0), false, [](const Expr& x) { return x; });
  std::vector<Value> tables;
  for (size_t d = 0; d < windows.rank(); ++d)
    if (auto table = table_of_counts(op, windows, d, count_pad)) tables.push_back(std::move(*table));
  if (tables.size() == windows.rank()) {
    return op.expression([=](const Dims& at) {
      Expr count;
      for (size_t d = 0; d < tables.size(); ++d) {
        const Expr one = tables[d].at({at[2 + d]});
        count = count ? count * one : one;
      }
      return sum.at(at) / count;
    });
  }
  return op.expression([=, &context, dtype = op.dtype()](const Dims& at) {
    // Taps that count: those inside, or with the padding, but not what hangs over its end.
    Dim count = context.dim(1);
    for (size_t d = 0; d < windows.rank(); ++d) {
      const Dim start = context.subtract(context.multiply(at[2 + d], context.dim(windows.strides[d])),
                                         context.dim(windows.before[d]));
      const Dim end = context.add(windows.in[d], context.dim(count_pad ? windows.after[d] : 0));
      const Dim behind = context.ceil_divide(context.subtract(end, start), windows.dilation[d]);
      const bool reaches = DimProver(context).less_equal(
                               context.add(windows.place(context, d, context.subtract(windows.out[d], context.dim(1)),
                                                         context.subtract(windows.kernel[d], context.dim(1))),
                                           context.dim(1 - windows.before[d])),
                               end) == Answer::kYes;
      Dim taps = reaches ? windows.kernel[d] : context.minimum({windows.kernel[d], behind});
      if (!count_pad && windows.before[d] > 0) {
        const Dim missing = context.ceil_divide(context.subtract(context.dim(0), start), windows.dilation[d]);
        taps = context.subtract(taps, context.maximum({missing, context.dim(0)}));
      }
      count = context.multiply(count, taps);
    }
    if (!count.constant()) count = context.maximum({count, context.dim(1)});
    return sum.at(at) / loop::convert(dtype, loop::index_value(count));
  });
}

Expr power_of(const Expr& x, int64_t p) {
  return p == 1 ? absolute(x) : p == 2 ? x * x : power(absolute(x), like(x, static_cast<double>(p)));
}
Expr norm(const Expr& sum, int64_t p) {
  return p == 1 ? sum : p == 2 ? root(sum) : power(sum, 1.0 / like(sum, static_cast<double>(p)));
}

Values lp_pool(const Operation& op) {
  const int64_t p = op.integer("p");
  const Value sum = over_windows(op, read_pool(op), loop::literal(op.dtype(), 0), false,
                                 [p](const Expr& x) { return power_of(x, p); });
  return op.expression([=](const Dims& at) { return norm(sum.at(at), p); });
}

// term(x) over whole maps.
template <class Term>
Value over_maps(const Operation& op, bool maximum, Term term) {
  const Value& x = op.arg(0);
  const Expr pad = maximum ? lowest(x.dtype) : like(loop::literal(x.dtype, 0), 0);
  if (sums_maps(x, term(pad)->dtype)) {
    return sum_maps(op, "pool", {.pad = pad, .term = term, .step = [=](const Expr& a, const Expr& b) {
                                   return maximum ? larger(a, b) : a + b;
                                 }});
  }
  return op.emit.reduce("pool", {.dims = op.dims(),
                                 .over = Dims(x.dims.begin() + 2, x.dims.end()),
                                 .op = maximum ? BinaryOp::kMax : BinaryOp::kAdd,
                                 .term =
                                     [=](const Dims& at) {
                                       Dims from{at[0], at[1]};
                                       from.insert(from.end(), at.begin() + static_cast<ptrdiff_t>(x.rank()), at.end());
                                       return term(x.at(from));
                                     },
                                 .ordered = maximum});
}

Values global_avg_pool(const Operation& op) {
  const Value& x = op.arg(0);
  const Value sum = over_maps(op, false, [](const Expr& value) { return value; });
  const Dim count = op.context().product(std::span(x.dims).subspan(2));
  return op.expression([=](const Dims& at) {
    const Expr value = sum.at(at);
    return value / loop::convert(value->dtype, loop::index_value(count));
  });
}
Values global_max_pool(const Operation& op) {
  return std::vector{over_maps(op, true, [](const Expr& x) { return x; })};
}
Values global_sum_pool(const Operation& op) {
  return std::vector{over_maps(op, false, [](const Expr& x) { return loop::convert(DType::kI32, x); })};
}
Values global_lp_pool(const Operation& op) {
  const int64_t p = op.integer("p");
  const Value sum = over_maps(op, false, [p](const Expr& x) { return power_of(x, p); });
  return op.expression([=](const Dims& at) { return norm(sum.at(at), p); });
}

// Window i of n over a dim of size s reaches from floor(i * s / n) to ceil((i + 1) * s / n).
template <bool average>
Values adaptive_pool(const Operation& op) {
  Context& context = op.context();
  const Value& x = op.arg(0);
  const Dims in(x.dims.begin() + 2, x.dims.end()), out(op.dims().begin() + 2, op.dims().end());
  if (std::ranges::all_of(out, [](Dim size) { return size.constant() == 1; }))
    return average ? global_avg_pool(op) : global_max_pool(op);
  const size_t rank = in.size();
  const auto first = [=, &context](size_t d, Dim i) {
    return context.floor_divide(context.multiply(i, in[d]), out[d]);
  };
  const auto end = [=, &context](size_t d, Dim i) {
    const Dim top =
        context.add(context.multiply(context.add(i, context.dim(1)), in[d]), context.subtract(out[d], context.dim(1)));
    return context.floor_divide(top, out[d]);
  };
  Dims over;
  std::vector<bool> uneven;
  for (size_t d = 0; d < rank; ++d) {
    const auto exact = context.divide(in[d], out[d]);
    uneven.push_back(!exact);
    // At most what a window of ceil(s / n) elements that begins within an element takes.
    const Dim most = context.add(
        context.floor_divide(context.add(in[d], context.subtract(out[d], context.dim(1))), out[d]), context.dim(1));
    over.push_back(exact ? *exact : most);
  }
  const Value sum = op.emit.reduce(
      "pool", {.dims = op.dims(),
               .over = over,
               .op = average ? BinaryOp::kAdd : BinaryOp::kMax,
               .term =
                   [=, &context](const Dims& at) {
                     Dims from{at[0], at[1]};
                     Expr inside;
                     for (size_t d = 0; d < rank; ++d) {
                       from.push_back(context.add(first(d, at[2 + d]), at[2 + rank + d]));
                       if (!uneven[d]) continue;
                       const Expr here = less(loop::index_value(from.back()), loop::index_value(end(d, at[2 + d])));
                       inside = inside ? both(inside, here) : here;
                     }
                     const Expr value = x.at(from);
                     return inside ? choose(inside, value, average ? like(value, 0) : lowest(value->dtype)) : value;
                   },
               .ordered = !average});
  if (!average) return std::vector{sum};
  return op.expression([=, &context](const Dims& at) {
    Dim count = context.dim(1);
    for (size_t d = 0; d < rank; ++d)
      count = context.multiply(count, uneven[d] ? context.subtract(end(d, at[2 + d]), first(d, at[2 + d])) : over[d]);
    const Expr value = sum.at(at);
    return value / loop::convert(value->dtype, loop::index_value(count));
  });
}

}  // namespace

std::span<const Lowering> pool_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {"max_pool1d", max_pool},
      {"max_pool2d", max_pool},
      {"max_pool3d", max_pool},
      {"avg_pool1d", avg_pool},
      {"avg_pool2d", avg_pool},
      {"avg_pool3d", avg_pool},
      {"lp_pool1d", lp_pool},
      {"lp_pool2d", lp_pool},
      {"lp_pool3d", lp_pool},
      {"global_avg_pool", global_avg_pool},
      {"global_max_pool", global_max_pool},
      {"global_lp_pool", global_lp_pool},
      {"global_sum_pool", global_sum_pool},
      {"adaptive_avg_pool", adaptive_pool<true>},
      {"adaptive_max_pool", adaptive_pool<false>},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
