// A copy of some rows of a channel, or of whole small channels, for windows that slide over them: surrounded by what
// pads it, its columns taken apart by their remainder by the stride, and each row whole vectors wide. So all places of
// the result are alike, and a tap's elements for neighbouring places lie side by side.
#pragma once

#include "compiler/kernels/slide_loops.h"

namespace tenon::compiler::kernels {

class SlidePlane {
 public:
  // For `out` rows of the result; its vectors of `lanes` places end at `end`. `pad` is an element as it is stored.
  SlidePlane(const SlideDim& rows, const SlideDim& columns, int64_t out, int64_t end, const Expr& pad);

  int64_t size() const { return size_; }  // of one channel
  DType dtype() const { return pad_->dtype; }

  // The buffer, of `group` channels.
  void make(const SlideLoops& loops, int64_t group);
  loop::Alloc alloc(loop::Body body) const;

  // How an element of x is stored; `inside`: x at a row and a column; `first`: the first row of the result.
  struct Source {
    std::function<Expr(Dim row, Dim column)> x;
    std::function<Expr(const Expr& x)> element;
    Expr pad;
    Dim first;
    bool whole = true;  // all rows of the result: then it is known which lie outside
  };
  // For channel `member` of the group.
  loop::Body copy(const SlideLoops& loops, Dim member, const Source& source) const;

  // What the tap of that number takes for a place of the result, whose row is counted from the first.
  Expr load(const SlideLoops& loops, Dim member, const Dims& place, const Dims& tap) const;

 private:
  void fill(const SlideLoops& loops, Dim member, int64_t begin, int64_t end, loop::Body& to) const;
  void copy_row(const SlideLoops& loops, Dim member, const Source& source, Dim from, Dim to,
                const std::vector<Axis>& axes, loop::Body& body) const;

  SlideDim rows_, columns_;
  Expr pad_;
  int64_t lanes_ = 1, phases_ = 1, height_ = 1, pitch_ = 1, size_ = 1, group_ = 1;
  loop::BufferId buffer_{};
};

}  // namespace tenon::compiler::kernels
