// Operations on lists of indices.
#pragma once

#include <utility>

#include "compiler/base/dim.h"

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

}  // namespace tenon::compiler::kernels
