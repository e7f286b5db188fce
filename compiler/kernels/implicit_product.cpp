#include "compiler/kernels/implicit_product.h"

#include <algorithm>
#include <utility>

#include "compiler/kernels/bytes.h"
#include "compiler/kernels/indices.h"
#include "compiler/kernels/product.h"
#include "compiler/kernels/short_floats.h"
#include "compiler/kernels/zero_points.h"
#include "compiler/schedules/thread_product.h"
#include "runtime/reference/elements.h"

namespace tenon::compiler::kernels {
namespace {

constexpr int64_t kFewPixels = 1024;

struct Factors {
  LazyTensor x, w;
  Expr pad;
  std::optional<LazyTensor> corrections = {};  // which the sums lack
};

// Bytes, which tensor cores multiply; nullopt where the operands are none, or the weights have a zero point.
std::optional<Factors> byte_factors(const OperatorCall& op, const Windows& windows) {
  Emitter& emit = op.emit;
  const auto left = as_bytes(emit, op.arg(0)), right = left ? as_bytes(emit, op.arg(1)) : std::nullopt;
  if (!right) return std::nullopt;
  const Bytes &x = *left, w = as_signed(emit, *right);
  const int64_t padding = op.integer("pad_value");
  if (w.zero != 0) return std::nullopt;
  Factors factors{x.bytes, w.bytes, loop::integer_literal(x.bytes.dtype, 0)};
  if (x.zero != 0 || padding != 0) {
    if (w.bytes.constant) factors.corrections = zero_point_corrections(op, windows, *w.bytes.constant, x.zero, padding);
    if (!factors.corrections) {
      const int64_t lowest = x.bytes.dtype == DType::kI8 ? INT8_MIN : 0;
      if (x.zero != 0 || padding < lowest || padding > lowest + UINT8_MAX) return std::nullopt;
      factors.pad = loop::integer_literal(x.bytes.dtype, padding);
    }
  }
  return factors;
}

// The operands; as bytes where they are some, or as f16 or bf16, which tensor cores multiply.
Factors factors_of(const OperatorCall& op, const Windows& windows, const Expr& pad) {
  const LazyTensor &x = op.arg(0), &w = op.arg(1);
  if (x.stored_as && w.stored_as) {
    const LazyTensor &left = matrix_operand(op.emit, x), &right = matrix_operand(op.emit, w);
    const auto value = static_cast<double>(op.integer("pad_value"));
    if (left.dtype == right.dtype) return {left, right, loop::literal(left.dtype, value)};
  }
  auto bytes = op.dtype() == DType::kI32 ? byte_factors(op, windows) : std::nullopt;
  return bytes ? std::move(*bytes) : Factors{x, w, pad};
}

class ImplicitProduct {
 public:
  ImplicitProduct(const OperatorCall& op, const Windows& windows, Factors factors)
      : emit_(op.emit),
        context_(op.context()),
        windows_(windows),
        x_(std::move(factors.x)),
        w_(std::move(factors.w)),
        padded_(padded_elements(op, windows, x_, factors.pad)),
        corrections_(std::move(factors.corrections)),
        groups_(context_.dim(op.integer("groups"))),
        outputs_(context_.floor_divide(w_.dims[0], groups_)),
        inputs_(w_.dims[1]),
        channels_last_(emit_.is_contiguous(x_, 1)) {}

  std::optional<LazyTensor> run(const OperatorCall& op) {
    const auto pixels = product_of(windows_.out), terms = product_of(Dims(w_.dims.begin() + 1, w_.dims.end()));
    if (!terms || !pixels || !product_of(windows_.in) || *terms == 0) return std::nullopt;
    if (outputs_.constant().value_or(0) < schedules::kBlockSide || *pixels < schedules::kBlockSide) return std::nullopt;
    // Pixels of several images are lanes of one product, where each image has few; else each image has one product,
    // whose indices cost less.
    is_joined_ = x_.dims[0].constant().value_or(1) > 1 && *pixels <= kFewPixels;
    matrices_ = {groups_}, lanes_ = windows_.out;
    if (is_joined_) lanes_.insert(lanes_.begin(), x_.dims[0]);
    else matrices_.insert(matrices_.begin(), x_.dims[0]);
    const auto pixel_count = product_of(lanes_);
    if (!pixel_count) return std::nullopt;
    pixels_ = context_.dim(*pixel_count), terms_ = context_.dim(*terms);
    filter_ = windows_.kernel;
    filter_.insert(channels_last_ ? filter_.end() : filter_.begin(), inputs_);
    return product(op, weights(), windows_of_pixels());
  }

 private:
  // The channel of a term, and then the kernel's indices.
  Dims weight_of(Dim term) const {
    Dims weight = unravel(context_, term, filter_);
    if (channels_last_) std::rotate(weight.begin(), weight.end() - 1, weight.end());
    return weight;
  }

  // [groups, outputs, terms]
  LazyTensor weights() {
    if (w_.constant) {
      const Tensor weights =
          channels_last_ ? runtime::reference::transposed(*w_.constant, channels_innermost(w_.rank())) : *w_.constant;
      return emit_.constant(weights.reshaped({*groups_.constant(), *outputs_.constant(), *terms_.constant()}));
    }
    return emit_.stored("weights",
                        emit_.expression({groups_, outputs_, terms_}, w_.dtype, [self = *this](const Dims& at) {
                          Dims from{self.context_.add(self.context_.multiply(at[0], self.outputs_), at[1])};
                          std::ranges::copy(self.weight_of(at[2]), std::back_inserter(from));
                          return self.w_.at(from);
                        }));
  }

  // The image of a pixel, and its indices there.
  Dims pixel_of(const Dims& matrix, Dim index) const {
    Dims pixel = unravel(context_, index, lanes_);
    if (!is_joined_) pixel.insert(pixel.begin(), matrix[0]);
    return pixel;
  }

  // The elements of x in the window of each pixel: [images, groups, pixels, terms], without the images where they are
  // joined. With channels innermost, neighbouring terms are adjacent in memory, else neighbouring pixels; the last two
  // axes are in this order.
  LazyTensor windows_of_pixels() {
    Dims dims = matrices_;
    dims.insert(dims.end(), {channels_last_ ? pixels_ : terms_, channels_last_ ? terms_ : pixels_});
    return emit_.stored(
        channels_last_ ? "rows" : "columns", emit_.expression(dims, x_.dtype, [self = *this](const Dims& at) {
          const auto [matrix, element] = split_at(at, self.matrices_.size());
          const auto [pixel_index, term] =
              self.channels_last_ ? std::pair(element[0], element[1]) : std::pair(element[1], element[0]);
          const Dims weight = self.weight_of(term), pixel = self.pixel_of(matrix, pixel_index);
          Dims from{pixel[0], self.context_.add(self.context_.multiply(matrix.back(), self.inputs_), weight[0])};
          for (size_t d = 0; d < self.windows_.rank(); ++d)
            from.push_back(self.windows_.input_index(self.context_, d, pixel[1 + d], weight[1 + d]));
          return self.padded_.at(from);
        }));
  }

  LazyTensor product(const OperatorCall& op, const LazyTensor& weights, const LazyTensor& windows) {
    Product product{.batch = matrices_,
                    .rows = outputs_,
                    .columns = pixels_,
                    .terms = {terms_},
                    .term =
                        [=](const Dims& matrix, Dim i, const Dims& k, Dim j) {
                          Dims from = matrix;
                          from.push_back(k[0]), from.push_back(j);
                          return factor(weights.at({matrix.back(), i, k[0]})) * factor(windows.at(from));
                        },
                    .dims = op.dims()};
    if (channels_last_) {
      std::swap(product.rows, product.columns);
      product.term = [=](const Dims& matrix, Dim i, const Dims& k, Dim j) {
        Dims from = matrix;
        from.push_back(i), from.push_back(k[0]);
        return factor(windows.at(from)) * factor(weights.at({matrix.back(), j, k[0]}));
      };
    }
    product.result_index = [self = *this](const Dims& at) {
      const auto [matrix, element] = split_at(at, self.matrices_.size());
      const auto [channel, pixel] =
          self.channels_last_ ? std::pair(element[1], element[0]) : std::pair(element[0], element[1]);
      Dims index = self.pixel_of(matrix, pixel);
      index.insert(index.begin() + 1, self.context_.add(self.context_.multiply(matrix.back(), self.outputs_), channel));
      return index;
    };
    const LazyTensor sums = multiply(op, "conv", product);
    if (!corrections_) return sums;
    return emit_.expression(op.dims(), DType::kI32, [sums, corrections = *corrections_](const Dims& at) {
      return sums.at(at) + corrections.at(at);
    });
  }

  Emitter& emit_;
  Context& context_;
  const Windows windows_;
  const LazyTensor x_, w_, padded_;
  const std::optional<LazyTensor> corrections_;
  const Dim groups_, outputs_, inputs_;  // outputs, inputs: channels of a group
  const bool channels_last_;             // x has its channels innermost
  bool is_joined_ = false;               // pixels of all images are of one product
  Dims matrices_;                        // the batch of products
  Dims lanes_;                           // the sizes of which a product's pixels are the indices
  Dims filter_;                          // of which terms are the indices
  Dim pixels_, terms_;
};

}  // namespace

std::optional<LazyTensor> implicit_product(const OperatorCall& op, const Windows& windows,
                                           const Expr& value_of_padding) {
  if (op.emit.machine().threads == 0) return std::nullopt;
  return ImplicitProduct(op, windows, factors_of(op, windows, value_of_padding)).run(op);
}

}  // namespace tenon::compiler::kernels
