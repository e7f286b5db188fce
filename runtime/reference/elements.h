// Copies of elements of any dtype, broadcasts and transposes, and tensors as lines along an axis.
#pragma once

#include <cstring>

#include "runtime/reference/support.h"

namespace tenon::runtime::reference {

std::vector<int64_t> dense_strides(const Shape& shape);

// Visits all indices of `shape`, the last dim fastest.
template <class F>
void for_each_index(const Shape& shape, F&& visit) {
  Shape at(shape.size(), 0);
  const int64_t count = element_count(shape);
  for (int64_t i = 0; i < count; ++i) {
    visit(at, i);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

inline void copy_element(const Tensor& from, int64_t source, Tensor& to, int64_t target) {
  const auto width = static_cast<size_t>(bytes(from.dtype()));
  std::memcpy(to.bytes().data() + static_cast<size_t>(target) * width,
              from.bytes().data() + static_cast<size_t>(source) * width, width);
}

// to[at] = from[offset(at)] for every index of `to`; a negative offset leaves the element as it is.
template <class F>
void gather_elements(const Tensor& from, Tensor& to, F&& offset) {
  for_each_index(to.shape(), [&](const Shape& at, int64_t i) {
    const int64_t source = offset(at);
    if (source >= 0) copy_element(from, source, to, i);
  });
}

// The shape to which all inputs broadcast: sizes are equal, or 1.
Shape broadcast_shape(Call& call);
// `tensor` repeated to `shape`, to which it broadcasts; the tensor itself if it has that shape.
Tensor broadcast_to(const Tensor& tensor, const Shape& shape);
// Dim i of the result is dim axes[i] of `tensor`.
Tensor transposed(const Tensor& tensor, const std::vector<int64_t>& axes);

// visit(at) for each line along the axis; at(k) is the offset of its k-th element.
template <class F>
void for_each_line(const AxisView& view, F&& visit) {
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < view.inner; ++i) {
      visit([=](int64_t k) { return (o * view.length + k) * view.inner + i; });
    }
  }
}

// `index` of an axis of `size` elements; negative ones count from the end. -1: out of bounds.
inline int64_t wrap_index(int64_t index, int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

// An input of i32 or i64 as int64.
std::vector<int64_t> to_int64(const Tensor& tensor);

}  // namespace tenon::runtime::reference
