// Reductions over windows and maps of x [N, C, ...].
#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/kernels/map_sum.h"
#include "compiler/kernels/size_checks.h"
#include "compiler/kernels/sliding_window.h"

namespace tenon::compiler::kernels {
namespace {

// The identity of maximum pooling. A NaN in a window is its maximum, as in reductions.
Expr lowest(DType dtype) { return loop::identity(BinaryOp::kMax, dtype); }
Expr larger(const Expr& a, const Expr& b) { return loop::binary(BinaryOp::kMax, a, b); }

Windows read_pool(const OperatorCall& op) {
  Dims kernel;
  for (const int64_t size : op.integers("kernel")) kernel.push_back(op.dim(size));
  return read_windows(op, std::move(kernel));
}

// Whether unrolling the windows pays off.
bool has_few_taps(const Windows& windows) {
  int64_t num_taps = 1;
  for (const Dim size : windows.kernel) num_taps *= size.constant().value_or(1 << 10);
  return num_taps <= 25 && windows.out.back().constant().value_or(0) >= 4;
}

// The sum or maximum of term(x) over the kernel taps of each window, of x padded with `pad`, whose term is `pad`.
template <class Term>
LazyTensor over_windows(const OperatorCall& op, const Windows& windows, const Expr& pad, bool is_max, Term term) {
  Context& context = op.context();
  const bool has_threads = op.emit.machine().threads > 0;  // each computes a pixel, and reads x in place
  if (!has_threads && has_sliding_window(windows) && has_few_taps(windows)) {
    const LazyTensor& x = op.arg(0);
    const LazyTensor terms = op.emit.expression(x.dims, x.dtype, [=](const Dims& at) { return term(x.at(at)); });
    return sliding_window(op, "pool",
                          {.windows = windows,
                           .x = term(pad) == pad ? x : terms,
                           .pad = pad,
                           .init = loop::identity(is_max ? BinaryOp::kMax : BinaryOp::kAdd, x.dtype),
                           .step = [=](const Expr& sum, const Expr& x, const Dims&, const Dims&) {
                             return is_max ? larger(sum, x) : sum + x;
                           }});
  }
  const LazyTensor x = has_threads ? padded_elements(op, windows, op.arg(0), pad) : padded(op, windows, op.arg(0), pad);
  return op.emit.reduce("pool", {.dims = op.dims(),
                                 .over = windows.kernel,
                                 .op = is_max ? BinaryOp::kMax : BinaryOp::kAdd,
                                 .term = [=, &context](const Dims& at) {
                                   const size_t rank = windows.rank();
                                   Dims from{at[0], at[1]};
                                   for (size_t d = 0; d < rank; ++d)
                                     from.push_back(windows.input_index(context, d, at[2 + d], at[2 + rank + d]));
                                   return term(x.at(from));
                                 }});
}

LoweredResults max_pool(const OperatorCall& op) {
  return std::vector{over_windows(op, read_pool(op), lowest(op.dtype()), true, [](const Expr& x) { return x; })};
}

constexpr int64_t kMaxTableSize = 1 << 12;

// The number of counted kernel taps of each window along a dim as a table: divisors computed from indices cost more
// than the sums. A window without counted taps has the divisor 1, since its sum is 0. nullopt where sizes are not
// constant.
std::optional<LazyTensor> divisor_table(const OperatorCall& op, const Windows& windows, size_t d, bool count_pad) {
  const auto out = windows.out[d].constant(), in = windows.in[d].constant(), kernel = windows.kernel[d].constant();
  if (!out || !in || !kernel || *out <= 0 || *out > kMaxTableSize || op.dtype() != DType::kF32) return std::nullopt;
  const int64_t end = *in + (count_pad ? windows.after[d] : 0), begin = count_pad ? -windows.before[d] : 0;
  Tensor counts(DType::kF32, {*out});
  for (int64_t i = 0; float& count : counts.data<float>()) {
    const int64_t first = windows.strides[d] * i++ - windows.before[d];
    const auto taps_before = [&](int64_t limit) {  // number of kernel taps before `limit`
      return std::clamp<int64_t>((limit - first + windows.dilation[d] - 1) / windows.dilation[d], 0, *kernel);
    };
    const int64_t num_taps = taps_before(end) - taps_before(begin);
    if (num_taps <= 0 && count_pad) return std::nullopt;
    count = static_cast<float>(std::max<int64_t>(num_taps, 1));
  }
  const auto values = std::as_const(counts).data<float>();
  if (std::ranges::all_of(values, [&](float value) { return value == values[0]; }))
    return op.emit.constant(Tensor::of<float>({1}, {&values[0], 1}));
  return op.emit.constant(counts);
}

LoweredResults avg_pool(const OperatorCall& op) {
  Context& context = op.context();
  const Windows windows = read_pool(op);
  const bool count_pad = op.integer("count_include_pad") == 1;
  const LazyTensor sum =
      over_windows(op, windows, loop::literal(op.dtype(), 0), false, [](const Expr& x) { return x; });
  std::vector<LazyTensor> tables;
  for (size_t d = 0; d < windows.rank(); ++d)
    if (auto table = divisor_table(op, windows, d, count_pad)) tables.push_back(std::move(*table));
  if (tables.size() == windows.rank()) {
    return op.expression([=](const Dims& at) {
      Expr count;
      for (size_t d = 0; d < tables.size(); ++d) {
        const Expr factor = tables[d].at({at[2 + d]});
        count = count ? count * factor : factor;
      }
      return sum.at(at) / count;
    });
  }
  return op.expression([=, &context, dtype = op.dtype()](const Dims& at) {
    // Counts the kernel taps within x, or within x and its padding, but never those past the end of the padding.
    Dim count = context.dim(1);
    for (size_t d = 0; d < windows.rank(); ++d) {
      const Dim start = context.subtract(context.multiply(at[2 + d], context.dim(windows.strides[d])),
                                         context.dim(windows.before[d]));
      const Dim end = context.add(windows.in[d], context.dim(count_pad ? windows.after[d] : 0));
      const Dim num_before_end = context.ceil_divide(context.subtract(end, start), windows.dilation[d]);
      const bool fits =
          DimProver(context).less_equal(
              context.add(windows.input_index(context, d, context.subtract(windows.out[d], context.dim(1)),
                                              context.subtract(windows.kernel[d], context.dim(1))),
                          context.dim(1 - windows.before[d])),
              end) == Answer::kYes;
      Dim num_taps = fits ? windows.kernel[d] : context.minimum({windows.kernel[d], num_before_end});
      if (!count_pad && windows.before[d] > 0) {
        const Dim num_before_begin = context.ceil_divide(context.subtract(context.dim(0), start), windows.dilation[d]);
        num_taps = context.subtract(num_taps, context.maximum({num_before_begin, context.dim(0)}));
      }
      count = context.multiply(count, num_taps);
    }
    if (!count.constant()) count = context.maximum({count, context.dim(1)});
    return sum.at(at) / loop::convert(dtype, loop::index_value(count));
  });
}

Expr power_of(const Expr& x, int64_t p) {
  return p == 1 ? absolute(x) : p == 2 ? x * x : power(absolute(x), like(x, static_cast<double>(p)));
}
Expr norm(const Expr& sum, int64_t p) {
  return p == 1 ? sum : p == 2 ? square_root(sum) : power(sum, 1.0 / like(sum, static_cast<double>(p)));
}

LoweredResults lp_pool(const OperatorCall& op) {
  const int64_t p = op.integer("p");
  const LazyTensor sum = over_windows(op, read_pool(op), loop::literal(op.dtype(), 0), false,
                                      [p](const Expr& x) { return power_of(x, p); });
  return op.expression([=](const Dims& at) { return norm(sum.at(at), p); });
}

// The sum or maximum of term(x) over whole maps.
template <class Term>
LazyTensor over_maps(const OperatorCall& op, bool is_max, Term term) {
  const LazyTensor& x = op.arg(0);
  const Expr pad = is_max ? lowest(x.dtype) : like(loop::literal(x.dtype, 0), 0);
  if (has_map_sum(x, term(pad)->dtype)) {
    return map_sum(op, "pool", {.pad = pad, .term = term, .step = [=](const Expr& a, const Expr& b) {
                                  return is_max ? larger(a, b) : a + b;
                                }});
  }
  return op.emit.reduce("pool", {.dims = op.dims(),
                                 .over = Dims(x.dims.begin() + 2, x.dims.end()),
                                 .op = is_max ? BinaryOp::kMax : BinaryOp::kAdd,
                                 .term = [=](const Dims& at) {
                                   Dims from{at[0], at[1]};
                                   from.insert(from.end(), at.begin() + static_cast<ptrdiff_t>(x.rank()), at.end());
                                   return term(x.at(from));
                                 }});
}

LoweredResults global_avg_pool(const OperatorCall& op) {
  const LazyTensor& x = op.arg(0);
  const LazyTensor sum = over_maps(op, false, [](const Expr& value) { return value; });
  const Dim count = op.context().product(std::span(x.dims).subspan(2));
  return op.expression([=](const Dims& at) {
    const Expr value = sum.at(at);
    return value / loop::convert(value->dtype, loop::index_value(count));
  });
}
LoweredResults global_max_pool(const OperatorCall& op) {
  return std::vector{over_maps(op, true, [](const Expr& x) { return x; })};
}
LoweredResults global_sum_pool(const OperatorCall& op) {
  return std::vector{over_maps(op, false, [](const Expr& x) { return loop::convert(DType::kI32, x); })};
}
LoweredResults global_lp_pool(const OperatorCall& op) {
  const int64_t p = op.integer("p");
  const LazyTensor sum = over_maps(op, false, [p](const Expr& x) { return power_of(x, p); });
  return op.expression([=](const Dims& at) { return norm(sum.at(at), p); });
}

// Window i of n over a dim of size s covers floor(i * s / n) up to ceil((i + 1) * s / n).
template <bool average>
LoweredResults adaptive_pool(const OperatorCall& op) {
  Context& context = op.context();
  const LazyTensor& x = op.arg(0);
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
    // The largest window: ceil(s / n) elements that start between two elements.
    const Dim largest = context.add(
        context.floor_divide(context.add(in[d], context.subtract(out[d], context.dim(1))), out[d]), context.dim(1));
    over.push_back(exact ? *exact : largest);
  }
  const LazyTensor sum = op.emit.reduce(
      "pool", {.dims = op.dims(),
               .over = over,
               .op = average ? BinaryOp::kAdd : BinaryOp::kMax,
               .term = [=, &context](const Dims& at) {
                 Dims from{at[0], at[1]};
                 Expr inside;
                 for (size_t d = 0; d < rank; ++d) {
                   from.push_back(context.add(first(d, at[2 + d]), at[2 + rank + d]));
                   if (!uneven[d]) continue;
                   const Expr in_range = less(loop::index_value(from.back()), loop::index_value(end(d, at[2 + d])));
                   inside = inside ? logical_and(inside, in_range) : in_range;
                 }
                 const Expr value = x.at(from);
                 return inside ? select(inside, value, average ? like(value, 0) : lowest(value->dtype)) : value;
               }});
  if (!average) return std::vector{sum};
  return op.expression([=, &context](const Dims& at) {
    Dim count = context.dim(1);
    for (size_t d = 0; d < rank; ++d)
      count = context.multiply(count, uneven[d] ? context.subtract(end(d, at[2 + d]), first(d, at[2 + d])) : over[d]);
    const Expr value = sum.at(at);
    return value / loop::convert(value->dtype, loop::index_value(count));
  });
}

void require_map(const OperatorCall& call) { require_maps(call, "the map is empty"); }

}  // namespace

std::span<const Lowering> pool_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {ops::kMaxPool1d, max_pool, require_window},
      {ops::kMaxPool2d, max_pool, require_window},
      {ops::kMaxPool3d, max_pool, require_window},
      {ops::kAvgPool1d, avg_pool, require_window},
      {ops::kAvgPool2d, avg_pool, require_window},
      {ops::kAvgPool3d, avg_pool, require_window},
      {ops::kLpPool1d, lp_pool, require_window},
      {ops::kLpPool2d, lp_pool, require_window},
      {ops::kLpPool3d, lp_pool, require_window},
      {ops::kGlobalAvgPool, global_avg_pool},
      {ops::kGlobalMaxPool, global_max_pool},
      {ops::kGlobalLpPool, global_lp_pool},
      {ops::kGlobalSumPool, global_sum_pool},
      {ops::kAdaptiveAvgPool, adaptive_pool<true>, require_map},
      {ops::kAdaptiveMaxPool, adaptive_pool<false>, require_map},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
