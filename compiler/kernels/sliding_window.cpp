#include "compiler/kernels/sliding_window.h"

#include "compiler/kernels/bytes.h"
#include "compiler/kernels/plain_sums.h"

namespace tenon::compiler::kernels {
namespace {

// The element of x that a kernel tap reads, or the padding. The condition of each dim has a select of its own, and as
// few comparisons as it needs, so that a template decides them one by one.
class WindowElement {
 public:
  WindowElement(Context& context, const SlidingWindow& sliding, const Dims& channel, const Dims& pixel)
      : context_(context), sliding_(sliding), channel_(channel), pixel_(pixel) {}

  Expr element(const Dims& kernel_index) {
    return within_rows(within(rank() - 1, sliding_.x.at(indices(kernel_index)), sliding_.pad, kernel_index),
                       sliding_.pad, kernel_index);
  }
  // Adjacent elements of a row. The rows' conditions select the whole word.
  Expr word(Dims kernel_index) {
    const Dim first = context_.multiply(kernel_index.back(), context_.dim(sliding_.word));
    std::vector<Expr> elements;
    for (int64_t i = 0; i < sliding_.word; ++i) {
      kernel_index.back() = context_.add(first, context_.dim(i));
      elements.push_back(within(rank() - 1, sliding_.x.at(indices(kernel_index)), sliding_.pad, kernel_index));
    }
    const std::vector<Expr> pads(elements.size(), sliding_.pad);
    return within_rows(pack_word(elements), pack_word(pads), kernel_index);
  }

 private:
  size_t rank() const { return sliding_.windows.rank(); }
  Dim index(size_t d, const Dims& kernel_index) {
    const Windows& windows = sliding_.windows;
    return context_.subtract(windows.input_index(context_, d, pixel_[d], kernel_index[d]),
                             context_.dim(windows.before[d]));
  }
  Dims indices(const Dims& kernel_index) {
    Dims from = channel_;
    for (size_t d = 0; d < rank(); ++d) from.push_back(index(d, kernel_index));
    return from;
  }
  // The value where the index of this dim is inside x; the padding elsewhere.
  Expr within(size_t d, Expr value, const Expr& pad, const Dims& kernel_index) {
    const Windows& windows = sliding_.windows;
    const int64_t out = *windows.out[d].constant(), kernel = *windows.kernel[d].constant(),
                  last = (out - 1) * windows.strides[d] + (kernel - 1) * windows.dilation[d] - windows.before[d];
    const Dim at = index(d, kernel_index);
    Expr inside;
    if (windows.before[d] > 0) inside = less_equal(loop::index_value(context_.dim(0)), loop::index_value(at));
    if (last >= *windows.in[d].constant()) {
      const Expr ends = less(loop::index_value(at), loop::index_value(windows.in[d]));
      inside = inside ? logical_and(inside, ends) : ends;
    }
    return inside ? select(inside, std::move(value), pad) : value;
  }
  // The column is selected first: one condition of the row then serves all lanes.
  Expr within_rows(Expr value, const Expr& pad, const Dims& kernel_index) {
    for (size_t d = rank() - 1; d-- > 0;) value = within(d, std::move(value), pad, kernel_index);
    return value;
  }

  Context& context_;
  const SlidingWindow& sliding_;
  const Dims &channel_, &pixel_;
};

}  // namespace

bool has_sliding_window(const Windows& windows) {
  // The elements of each remainder by the stride are copied side by side.
  constexpr int64_t kMostRemainders = 32;
  const auto is_positive = [](Dim dim) { return dim.constant().value_or(0) > 0; };
  for (size_t d = 0; d < windows.rank(); ++d) {
    const int64_t stride = windows.strides[d], kernel = windows.kernel[d].constant().value_or(stride);
    if ((windows.dilation[d] == 1 ? std::min(kernel, stride) : stride) > kMostRemainders) return false;
  }
  return windows.rank() <= 2 && std::ranges::all_of(windows.in, is_positive) &&
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
  sums.terms = {{"kw", op.context().ceil_divide(windows.kernel.back(), sliding.word)}};
  if (rank == 2) sums.terms.emplace_back("kh", windows.kernel[0]);
  sums.step = [&context = op.context(), sliding, first](const Expr& sum, const Dims& at, const Dims& terms) {
    const Dims pixel(at.begin() + static_cast<ptrdiff_t>(first), at.end()), kernel_index(terms.rbegin(), terms.rend()),
        channel(at.begin(), at.begin() + 2);
    WindowElement window(context, sliding, channel, pixel);
    const Expr term = sliding.word == 1 ? window.element(kernel_index) : window.word(kernel_index);
    return sliding.step(sum, term, channel, kernel_index);
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
