// Names of layouts: a letter an axis, as NCHW; NCHW16c splits axis C into blocks of 16, which are the last axis.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/diagnostic.h"

namespace tenon::runtime::reference {

struct Layout {
  std::string text;
  std::string axes;   // "NCHW"
  char blocked = 0;   // 'C', or 0
  int64_t block = 0;  // 16, or 0

  int64_t rank() const { return static_cast<int64_t>(axes.size()) + (blocked ? 1 : 0); }
  static Expected<Layout> parse(std::string_view text);
};

// Both must have the same axes, in any order.
Status check_same_axes(const Layout& from, const Layout& to);

}  // namespace tenon::runtime::reference
