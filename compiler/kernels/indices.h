// Operations on lists of indices.
#pragma once

#include <optional>
#include <utility>

#include "compiler/ir/context.h"

namespace tenon::compiler::kernels {

inline Dims with(Dims at, size_t axis, Dim index) {
  at.insert(at.begin() + static_cast<ptrdiff_t>(axis), index);
  return at;
}
inline Dims without(Dims at, size_t axis) {
  at.erase(at.begin() + static_cast<ptrdiff_t>(axis));
  return at;
}
// The first `count` indices, and the remaining ones.
inline std::pair<Dims, Dims> split_at(const Dims& at, size_t count) {
  const auto middle = at.begin() + static_cast<ptrdiff_t>(count);
  return {{at.begin(), middle}, {middle, at.end()}};
}

// The product of all sizes; nullopt where one is not constant.
inline std::optional<int64_t> product_of(const Dims& sizes) {
  int64_t result = 1;
  for (const Dim size : sizes) {
    const auto constant = size.constant();
    if (!constant || __builtin_mul_overflow(result, *constant, &result)) return std::nullopt;
  }
  return result;
}
// The indices of the element at this position of a dense tensor of these sizes.
inline Dims unravel(Context& context, Dim position, const Dims& sizes) {
  Dims indices(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    indices[d] = d == 0 ? position : context.modulo(position, sizes[d]);
    position = context.floor_divide(position, sizes[d]);
  }
  return indices;
}

}  // namespace tenon::compiler::kernels
