#include "compiler/kernels/plain_convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/kernels/indices.h"
#include "compiler/kernels/plain_sums.h"
#include "compiler/kernels/product.h"
#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {
namespace {

class PlainConvolution {
 public:
  PlainConvolution(const OperatorCall& op, const Expr& pad, Times times)
      : op_(op),
        context_(op.context()),
        times_(std::move(times)),
        num_groups_(op.integer("groups")),
        windows_(read_windows(op, Dims(op.arg(1).dims.begin() + 2, op.arg(1).dims.end()))),
        groups_(context_.dim(num_groups_)),
        outputs_(context_.floor_divide(op.dims()[1], groups_)),
        channels_(op.arg(1).dims[1]) {
    if (is_empty()) return;
    elements_ = selects_elements() ? selected() : padded(op_, windows_, op_.arg(0), pad);
    weights_ = op_.emit.stored("weights", num_groups_ == 1 ? op_.arg(1) : grouped(op_.arg(1)));
  }

  LazyTensor run() const {
    if (is_empty())
      return op_.emit.expression(op_.dims(), op_.dtype(),
                                 [zero = loop::literal(op_.dtype(), 0)](const Dims&) { return zero; });
    return op_.emit.machine().threads > 0 ? product() : sums();
  }

 private:
  bool is_empty() const { return kernels::is_empty(op_.dims()) || kernels::is_empty(op_.arg(1).dims); }

  // Whether the windows have one element each, of which a stride selects some.
  bool selects_elements() const {
    const DimProver prover(context_);
    bool is_strided = false;
    for (size_t d = 0; d < windows_.rank(); ++d) {
      const Dim last =
          context_.multiply(context_.subtract(windows_.out[d], context_.dim(1)), context_.dim(windows_.strides[d]));
      if (windows_.kernel[d].constant() != 1 || windows_.before[d] != 0 ||
          prover.less(last, windows_.in[d]) != Answer::kYes)
        return false;
      is_strided |= windows_.strides[d] != 1;
    }
    return is_strided;
  }
  LazyTensor selected() {
    const LazyTensor& x = op_.arg(0);
    Dims dims{x.dims[0], x.dims[1]};
    dims.insert(dims.end(), windows_.out.begin(), windows_.out.end());
    const LazyTensor result = op_.emit.stored(
        "x", op_.emit.expression(dims, x.dtype, [x, strides = windows_.strides, &context = context_](Dims at) {
          for (size_t d = 0; d < strides.size(); ++d) at[2 + d] = context.multiply(at[2 + d], context.dim(strides[d]));
          return x.at(at);
        }));
    std::ranges::fill(windows_.strides, 1);
    return result;
  }

  // The weights as [groups, outputs of a group, ...].
  LazyTensor grouped(const LazyTensor& w) const {
    Dims dims{groups_, outputs_};
    dims.insert(dims.end(), w.dims.begin() + 1, w.dims.end());
    if (w.constant) {
      runtime::Shape shape;
      for (const Dim dim : dims) shape.push_back(*dim.constant());
      return op_.emit.constant(w.constant->reshaped(shape));
    }
    return op_.emit.expression(dims, w.dtype, [=, outputs = outputs_, &context = context_](const Dims& at) {
      Dims from(at.begin() + 1, at.end());
      from[0] = context.add(context.multiply(at[0], outputs), at[1]);
      return w.at(from);
    });
  }

  // Of a group: the output channel, and the product of a weight and an element of the window of a pixel. `k`: the
  // channel and the kernel's indices.
  Dim output(Dim group, Dim index) const { return context_.add(context_.multiply(group, outputs_), index); }
  Expr term(Dim image, Dim group, Dim output, const Dims& pixel, const Dims& k) const {
    Dims weight{output}, from{image, num_groups_ == 1 ? k[0] : context_.add(context_.multiply(group, channels_), k[0])};
    if (num_groups_ > 1) weight.insert(weight.begin(), group);
    weight.insert(weight.end(), k.begin(), k.end());
    for (size_t d = 0; d < pixel.size(); ++d) {
      const Dim kernel_index = windows_.kernel[d].constant() == 1 ? context_.dim(0) : k[1 + d];
      from.push_back(windows_.input_index(context_, d, pixel[d], kernel_index));
    }
    return times_(weights_.at(weight), elements_.at(from));
  }

  LazyTensor sums() const {
    PlainSums sums{.name = "conv", .init = loop::literal(op_.dtype(), 0), .axes = {}, .terms = {}, .step = nullptr};
    sums.axes = {{"n", op_.dims()[0]}, {"g", groups_}, {"o", outputs_}};
    sums.terms = {{"c", channels_}};
    static constexpr std::string_view kNames[] = {"d", "h", "w"};
    for (size_t d = 0; d < windows_.rank(); ++d) {
      const std::string_view name = kNames[3 - windows_.rank() + d];
      sums.axes.emplace_back(fmt::format("o{}", name), windows_.out[d]);
      sums.terms.emplace_back(fmt::format("k{}", name), windows_.kernel[d]);
    }
    sums.step = [self = *this](const Expr& sum, const Dims& at, const Dims& terms) {
      return sum + self.term(at[0], at[1], at[2], Dims(at.begin() + 3, at.end()), terms);
    };
    sums.result_index = [self = *this](const Dims& at) {
      Dims index{at[0], self.output(at[1], at[2])};
      index.insert(index.end(), at.begin() + 3, at.end());
      return index;
    };
    return op_.emit.contract(
        "conv", op_.dims(), op_.dtype(),
        [&emit = op_.emit, sums, index = op_.emit.operator_index()](const std::vector<TileResult>& results) {
          PlainStages plain = emit_plain_sums(emit, sums, results);
          emit.add_template(schedules::ConvolutionStages{plain.sums, plain.results}, index);
          return std::move(plain.body);
        });
  }

  // The pixels of an image as the columns of a product, for threads.
  LazyTensor product() const {
    Product product{.batch = {op_.dims()[0], groups_},
                    .rows = outputs_,
                    .columns = context_.product(windows_.out),
                    .terms = {channels_},
                    .term =
                        [self = *this](const Dims& batch, Dim output, const Dims& k, Dim pixel) {
                          return self.term(batch[0], batch[1], output, unravel(self.context_, pixel, self.windows_.out),
                                           k);
                        },
                    .dims = op_.dims(),
                    .result_index =
                        [self = *this](const Dims& at) {
                          Dims index = unravel(self.context_, at[3], self.windows_.out);
                          index.insert(index.begin(), {at[0], self.output(at[1], at[2])});
                          return index;
                        }};
    product.terms.insert(product.terms.end(), windows_.kernel.begin(), windows_.kernel.end());
    return multiply(op_, "conv", product);
  }

  OperatorCall op_;
  Context& context_;
  Times times_;
  int64_t num_groups_;
  Windows windows_;
  Dim groups_, outputs_, channels_;  // outputs, channels: of a group
  LazyTensor elements_, weights_;
};

}  // namespace

LazyTensor plain_convolution(const OperatorCall& op, const Expr& pad, const Times& times) {
  return PlainConvolution(op, pad, times).run();
}

}  // namespace tenon::compiler::kernels
