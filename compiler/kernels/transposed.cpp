#include "compiler/kernels/transposed.h"

#include <algorithm>
#include <numeric>

#include "compiler/kernels/product.h"
#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {
namespace {

class Transposed {
 public:
  Transposed(const OperatorCall& op, const Windows& windows)
      : op_(op), context_(op.context()), windows_(windows), rank_(windows.rank()), groups_(op.integer("groups")) {}

  // Whether all sizes that the schedule depends on are constant.
  bool fits() const {
    const auto is_constant = [](Dim dim) { return dim.constant().value_or(0) > 0; };
    // Where there are more phases than pixels, most of the phases are empty.
    const bool few_phases = std::ranges::all_of(windows_.strides, [](int64_t stride) { return stride <= 512; });
    return few_phases && !is_empty(windows_.in) && !is_empty(windows_.out) &&
           std::ranges::all_of(op_.arg(1).dims, is_constant) && is_constant(op_.arg(0).dims[1]);
  }

  LazyTensor run() {
    const LazyTensor &x = op_.arg(0), &w = op_.arg(1);
    channels_ = *x.dims[1].constant() / groups_, outputs_ = *w.dims[1].constant();
    bool is_uniform = true, is_exact = true;
    for (size_t d = 0; d < rank_; ++d) {
      axes_.push_back(spatial_axis(d));
      const SpatialAxis& axis = axes_.back();
      is_uniform &= axis.is_uniform;
      is_exact &= context_.multiply(axis.count, dim(axis.stride)) == axis.out;
    }
    const LazyTensor input = padded(x), weights = op_.emit.stored("weights", w);
    Product product{.batch = {x.dims[0], dim(groups_)},
                    .rows = dim(outputs_),
                    .columns = axes_.back().count,
                    .terms = {dim(channels_)},
                    .term = nullptr,
                    .template_stages = [](const schedules::ProductStages& stages) {
                      return schedules::TransposedConvolutionStages{stages.sums, stages.results};
                    }};
    for (SpatialAxis& axis : axes_) {
      // The phases of a row are adjacent loops: they write the same cache lines.
      axis.phase = product.batch.size(), product.batch.push_back(dim(axis.stride));
      axis.pixel = product.batch.size();
      if (&axis != &axes_.back()) product.batch.push_back(axis.count);
      product.terms.push_back(dim(axis.max_taps));
    }
    if (!is_uniform) {
      product.terms_of = [self = *this](const Dims& batch) {
        Dims terms{self.dim(self.channels_)};
        for (const SpatialAxis& axis : self.axes_) terms.push_back(self.num_taps(axis, batch[axis.phase]));
        return terms;
      };
    }
    product.term = [=, self = *this](const Dims& batch, Dim output, const Dims& k, Dim pixel) {
      return self.term(input, weights, batch, output, k, pixel);
    };
    Dims& dims = product.dims = {x.dims[0], op_.dims()[1]};
    for (const SpatialAxis& axis : axes_) dims.push_back(context_.multiply(axis.count, dim(axis.stride)));
    product.result_index = [self = *this](const Dims& at) {
      Context& context = self.context_;
      const Dims batch(at.begin(), at.end() - 2);
      Dims to{at[0], context.add(context.multiply(at[1], self.dim(self.outputs_)), at[at.size() - 2])};
      for (const SpatialAxis& axis : self.axes_)
        to.push_back(context.add(context.multiply(self.pixel_of(axis, batch, at.back()), self.dim(axis.stride)),
                                 at[axis.phase]));
      return to;
    };
    const LazyTensor sums = multiply(op_, "conv", product);
    // Some phases of the last pixels are not part of the result.
    return is_exact ? sums : op_.emit.expression(op_.dims(), op_.dtype(), sums.at);
  }

 private:
  // A spatial dim: the output pixel q * stride + p of the phase p is the sum over m < num_taps(p) of the kernel tap
  // first_tap(p) + m * tap_step times x at q + first_source(p) - m * source_step.
  struct SpatialAxis {
    Dim in, out;
    int64_t kernel, stride, dilation, before;
    // common is gcd(stride, dilation), the steps are stride and dilation divided by it; source_step * inverse is 1 mod
    // tap_step.
    int64_t common, tap_step, source_step, inverse;
    Dim count;  // pixels of a phase
    int64_t max_taps = 0;
    bool is_uniform = true;       // all phases have max_taps
    int64_t offset = 0;           // of x in the padded input,
    Dim size;                     // whose size this is
    size_t phase = 0, pixel = 0;  // axes of the product's batch; the last pixel is a row or column instead
  };

  Dim dim(int64_t value) const { return context_.dim(value); }
  static Dim pixel_of(const SpatialAxis& axis, const Dims& batch, Dim last) {
    return axis.pixel < batch.size() ? batch[axis.pixel] : last;
  }

  SpatialAxis spatial_axis(size_t d) const {
    SpatialAxis axis{.in = windows_.in[d],
                     .out = windows_.out[d],
                     .kernel = *windows_.kernel[d].constant(),
                     .stride = windows_.strides[d],
                     .dilation = windows_.dilation[d],
                     .before = windows_.before[d],
                     .common = std::gcd(windows_.strides[d], windows_.dilation[d]),
                     .tap_step = 0,
                     .source_step = 0,
                     .inverse = 0,
                     .count = context_.ceil_divide(windows_.out[d], windows_.strides[d]),
                     .size = dim(0)};
    axis.tap_step = axis.stride / axis.common, axis.source_step = axis.dilation / axis.common;
    while (axis.inverse < axis.tap_step && axis.inverse * axis.source_step % axis.tap_step != 1 % axis.tap_step)
      ++axis.inverse;
    int64_t first = 0, last = 0;
    for (int64_t p = 0; p < axis.stride; ++p) {
      const int64_t count = *num_taps(axis, dim(p)).constant(), source = *first_source(axis, dim(p)).constant();
      axis.is_uniform &= p == 0 || count == axis.max_taps;
      axis.max_taps = std::max(axis.max_taps, count);
      if (count == 0) continue;
      first = std::min(first, source - (count - 1) * axis.source_step), last = std::max(last, source);
    }
    axis.offset = -first;
    axis.size = context_.add(context_.maximum({context_.add(axis.count, dim(last)), axis.in}), dim(axis.offset));
    return axis;
  }

  Dim remainder(const SpatialAxis& axis, Dim phase) const {
    return context_.modulo(context_.add(phase, dim(axis.before)), dim(axis.stride));
  }
  // The first kernel tap of a phase: tap * dilation has the remainder of the phase.
  Dim first_tap(const SpatialAxis& axis, Dim phase) const {
    const Dim quotient = context_.floor_divide(remainder(axis, phase), dim(axis.common));
    return context_.modulo(context_.multiply(quotient, dim(axis.inverse)), dim(axis.tap_step));
  }
  Dim num_taps(const SpatialAxis& axis, Dim phase) const {
    const Dim remaining = context_.subtract(dim(axis.kernel - 1 + axis.tap_step), first_tap(axis, phase));
    const Dim count = context_.floor_divide(remaining, dim(axis.tap_step));
    if (axis.common == 1) return count;
    // A phase whose remainder is not a multiple of `common` has no kernel taps.
    const Dim excess = context_.modulo(remainder(axis, phase), dim(axis.common));
    return context_.multiply(count, context_.subtract(dim(1), context_.minimum({excess, dim(1)})));
  }
  // The index in x of the first kernel tap of the phase's first pixel.
  Dim first_source(const SpatialAxis& axis, Dim phase) const {
    const Dim distance =
        context_.subtract(context_.multiply(first_tap(axis, phase), dim(axis.dilation)), remainder(axis, phase));
    return context_.subtract(context_.floor_divide(context_.add(phase, dim(axis.before)), dim(axis.stride)),
                             context_.floor_divide(distance, dim(axis.stride)));
  }

  // x padded with zeros, as far as kernel taps read.
  LazyTensor padded(const LazyTensor& x) const {
    bool is_padded = !axes_.back().count.constant();
    for (const SpatialAxis& axis : axes_) is_padded |= axis.size != axis.in;
    if (!is_padded) return op_.emit.stored("x", x);
    Dims dims{x.dims[0], x.dims[1]};
    std::vector<int64_t> offsets;
    for (const SpatialAxis& axis : axes_) dims.push_back(axis.size), offsets.push_back(axis.offset);
    const Expr zero = like(loop::literal(x.dtype, 0), 0);
    return op_.emit.stored("padded",
                           surrounded(op_.emit, x, dims, offsets, std::vector<bool>(axes_.size(), true), zero));
  }

  // `output`: the channel in its group; `pixel`: the index along the last dim.
  Expr term(const LazyTensor& input, const LazyTensor& weights, const Dims& batch, Dim output, const Dims& k,
            Dim pixel) const {
    const Dim channel = context_.add(context_.multiply(batch[1], dim(channels_)), k[0]);
    Dims from{batch[0], channel}, weight{channel, output};
    for (size_t d = 0; d < rank_; ++d) {
      const SpatialAxis& axis = axes_[d];
      const Dim phase = batch[axis.phase], m = k[1 + d];
      const Dim first =
          context_.add(context_.add(pixel_of(axis, batch, pixel), first_source(axis, phase)), dim(axis.offset));
      from.push_back(context_.subtract(first, context_.multiply(m, dim(axis.source_step))));
      weight.push_back(context_.add(first_tap(axis, phase), context_.multiply(m, dim(axis.tap_step))));
    }
    return weights.at(weight) * input.at(from);
  }

  OperatorCall op_;
  Context& context_;
  Windows windows_;
  size_t rank_;
  int64_t groups_, channels_ = 0, outputs_ = 0;  // channels_, outputs_: of a group
  std::vector<SpatialAxis> axes_;
};

}  // namespace

std::optional<LazyTensor> transposed_convolution_in_tiles(const OperatorCall& op) {
  const Dims& w = op.arg(1).dims;
  Transposed transposed(op, read_windows(op, Dims(w.begin() + 2, w.end())));
  return transposed.fits() ? std::optional(transposed.run()) : std::nullopt;
}

}  // namespace tenon::compiler::kernels
