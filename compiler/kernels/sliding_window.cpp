#include "compiler/kernels/sliding_window.h"

#include "compiler/kernels/plain_sums.h"

namespace tenon::compiler::kernels {
namespace {

// The element of x that a kernel tap reads, or the padding. The condition of each dim has a select of its own, and as
// few comparisons as it needs, so that a template decides them one by one.
Expr window_element(Context& context, const SlidingWindow& sliding, Dims from, const Dims& pixel,
                    const Dims& kernel_index) {
  const Windows& windows = sliding.windows;
  std::vector<Expr> conditions;
  for (size_t d = 0; d < windows.rank(); ++d) {
    const int64_t out = *windows.out[d].constant(), kernel = *windows.kernel[d].constant(),
                  last = (out - 1) * windows.strides[d] + (kernel - 1) * windows.dilation[d] - windows.before[d];
    const Dim index =
        context.subtract(windows.input_index(context, d, pixel[d], kernel_index[d]), context.dim(windows.before[d]));
    from.push_back(index);
    Expr inside;
    if (windows.before[d] > 0) inside = less_equal(loop::index_value(context.dim(0)), loop::index_value(index));
    if (last >= *windows.in[d].constant()) {
      const Expr ends = less(loop::index_value(index), loop::index_value(windows.in[d]));
      inside = inside ? logical_and(inside, ends) : ends;
    }
    conditions.push_back(inside);
  }
  Expr value = sliding.x.at(from);
  // The column is selected first: one condition of the row then serves all lanes.
  for (size_t d = windows.rank(); d-- > 0;)
    if (conditions[d]) value = select(conditions[d], value, sliding.pad);
  return value;
}

}  // namespace

bool has_sliding_window(const Windows& windows) {
  const auto is_positive = [](Dim dim) { return dim.constant().value_or(0) > 0; };
  return windows.rank() <= 2 && windows.few_phases() && std::ranges::all_of(windows.in, is_positive) &&
         std::ranges::all_of(windows.out, is_positive) && std::ranges::all_of(windows.kernel, is_positive);
}

LazyTensor sliding_window(const OperatorCall& op, std::string_view name, SlidingWindow sliding) {
  sliding.x = op.emit.stored("x", sliding.x);
  const Windows& windows = sliding.windows;
  const size_t rank = windows.rank(), first = 4 - rank;  // of the axes of pixels; a line of pixels has one row
  PlainSums sums{.name = std::string(name), .init = sliding.init, .axes = {}, .terms = {}, .step = nullptr};
  sums.axes = {{"n", op.dims()[0]},
               {"c", op.dims()[1]},
               {"h", rank == 2 ? windows.out[0] : op.dim(1)},
               {"w", windows.out.back()}};
  sums.terms = {{"kw", windows.kernel.back()}};
  if (rank == 2) sums.terms.emplace_back("kh", windows.kernel[0]);
  sums.step = [&context = op.context(), sliding, first](const Expr& sum, const Dims& at, const Dims& terms) {
    const Dims pixel(at.begin() + static_cast<ptrdiff_t>(first), at.end()), kernel_index(terms.rbegin(), terms.rend()),
        channel(at.begin(), at.begin() + 2);
    return sliding.step(sum, window_element(context, sliding, channel, pixel, kernel_index), channel, kernel_index);
  };
  if (rank == 1) {
    // The only row is a part of the index, which all axes determine.
    sums.result_index = [&context = op.context(), width = windows.out[0]](const Dims& at) {
      return Dims{at[0], at[1], context.add(context.multiply(at[2], width), at[3])};
    };
  }
  return op.emit.contract(
      name, op.dims(), sliding.init->dtype,
      [&emit = op.emit, sums, index = op.emit.operator_index()](const std::vector<TileResult>& results) {
        PlainStages plain = emit_plain_sums(emit, sums, results);
        emit.add_template(schedules::WindowStages{plain.sums, plain.results}, index);
        return std::move(plain.body);
      });
}

}  // namespace tenon::compiler::kernels
