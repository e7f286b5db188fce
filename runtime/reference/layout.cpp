#include "runtime/reference/layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::runtime::reference {

Expected<Layout> Layout::parse(std::string_view text) {
  auto fail = [&](std::string_view why) {
    return error(fmt::format("'{}' is not a layout: {}", text, why), "",
                 "layouts are NCHW, NHWC or NCHW16c, for example");
  };
  Layout layout;
  layout.text = text;
  size_t at = 0;
  for (; at < text.size() && text[at] >= 'A' && text[at] <= 'Z'; ++at) {
    if (layout.axes.find(text[at]) != std::string::npos) return fail("an axis comes twice");
    layout.axes += text[at];
  }
  if (layout.axes.empty()) return fail("it must start with an axis, a capital letter");
  if (at == text.size()) return layout;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    layout.block = layout.block * 10 + (text[at] - '0');
    if (layout.block > 65536) return fail("the block is larger than 65536");
  }
  if (layout.block < 1 || at + 1 != text.size()) return fail("a block is a size and one small letter at the end");
  layout.blocked = static_cast<char>(text[at] - 'a' + 'A');
  if (layout.axes.find(layout.blocked) == std::string::npos) return fail("the block's letter is not one of its axes");
  return layout;
}

Status check_same_axes(const Layout& from, const Layout& to) {
  std::string a = from.axes, b = to.axes;
  std::ranges::sort(a);
  std::ranges::sort(b);
  if (a == b) return {};
  return error(fmt::format("layouts {} and {} have different axes", from.text, to.text));
}

}  // namespace tenon::runtime::reference
