// The padded input of a sliding window: a copy of a band of rows of a channel, or of small channels, with its padding.
// Its columns are split into phases by their remainders by the stride, and each row is whole vectors wide. So all
// output pixels are alike, and the elements that a kernel tap reads for adjacent pixels are contiguous.
#pragma once

#include "compiler/kernels/sliding_window_loops.h"

namespace tenon::compiler::kernels {

class PaddedInput {
 public:
  // For `out` rows of the result, whose last vector of pixels ends at `end`. `pad` is a padding element as it is
  // stored.
  PaddedInput(const SlidingWindowDim& rows, const SlidingWindowDim& columns, int64_t out, int64_t end, const Expr& pad);

  int64_t size() const { return size_; }  // elements of one channel
  DType dtype() const { return pad_->dtype; }

  // Makes the buffer for `group` channels.
  void make(const SlidingWindowLoops& loops, int64_t group);
  loop::Alloc alloc(loop::Body body) const;

  // The source of the copy: `x` returns an element by row and column, `element` its stored form; `first` is the first
  // row of the result.
  struct Source {
    std::function<Expr(Dim row, Dim column)> x;
    std::function<Expr(const Expr& x)> element;
    Expr pad;
    Dim first;
    bool all_rows = true;  // copies all rows of x: the rows outside of x are constants then
  };
  // The copy of channel `member` of the group.
  loop::Body copy(const SlidingWindowLoops& loops, Dim member, const Source& source) const;

  // The element that a kernel tap reads for an output pixel, whose row is relative to Source::first.
  Expr load(const SlidingWindowLoops& loops, Dim member, const Dims& pixel, const Dims& kernel_index) const;

 private:
  void fill(const SlidingWindowLoops& loops, Dim member, int64_t begin, int64_t end, loop::Body& to) const;
  void copy_row(const SlidingWindowLoops& loops, Dim member, const Source& source, Dim from, Dim to,
                const std::vector<Axis>& axes, loop::Body& body) const;

  SlidingWindowDim rows_, columns_;
  Expr pad_;
  int64_t lanes_ = 1, phases_ = 1, height_ = 1, pitch_ = 1, size_ = 1, group_ = 1;
  loop::BufferId buffer_{};
};

}  // namespace tenon::compiler::kernels
