// The line-by-line difference of two texts, for --diff-passes.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/passes/pass.h"

namespace tenon::compiler {
namespace {

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

struct Change {
  char sign;  // ' ', '-', '+'
  std::string_view line;
};

// Whether each line of a and b is kept; empty where more than `limit` lines differ.
struct Kept {
  std::vector<bool> a, b;
};
std::optional<Kept> common(std::span<const std::string_view> a, std::span<const std::string_view> b, int limit) {
  const int n = static_cast<int>(a.size()), m = static_cast<int>(b.size()), max_changes = std::min(n + m, limit);
  // furthest[d + k]: the largest index in a on diagonal k (index in a minus index in b) with d changes.
  std::vector<int> furthest(2 * static_cast<size_t>(max_changes) + 3, 0);
  std::vector<std::vector<int>> steps;
  const auto at = [&](std::vector<int>& row, int k) -> int& {
    return row[static_cast<size_t>(int64_t{max_changes} + 1 + k)];
  };
  for (int d = 0; d <= max_changes; ++d) {
    steps.push_back(furthest);
    for (int k = -d; k <= d; k += 2) {
      const bool down = k == -d || (k != d && at(furthest, k - 1) < at(furthest, k + 1));
      int x = down ? at(furthest, k + 1) : at(furthest, k - 1) + 1;
      while (x < n && x - k < m && a[static_cast<size_t>(x)] == b[static_cast<size_t>(x - k)]) ++x;
      at(furthest, k) = x;
      if (x < n || x - k < m) continue;
      Kept kept{std::vector<bool>(a.size()), std::vector<bool>(b.size())};
      int y = m;
      x = n;
      for (int back = d; back > 0; --back) {
        std::vector<int>& row = steps[static_cast<size_t>(back)];
        const int diagonal = x - y;
        const bool was_down = diagonal == -back || (diagonal != back && at(row, diagonal - 1) < at(row, diagonal + 1));
        const int from = was_down ? diagonal + 1 : diagonal - 1, start = at(row, from);
        for (const int diagonal_start = was_down ? start : start + 1; x > diagonal_start;) {
          kept.a[static_cast<size_t>(--x)] = true;
          kept.b[static_cast<size_t>(--y)] = true;
        }
        x = start, y = start - from;
      }
      while (x > 0) kept.a[static_cast<size_t>(--x)] = kept.b[static_cast<size_t>(--y)] = true;
      return kept;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string diff_lines(std::string_view before, std::string_view after) {
  constexpr int kLimit = 2000;
  constexpr size_t kContextLines = 3;
  const Lines a = lines_of(before), b = lines_of(after);
  size_t head = 0, tail = 0;
  while (head < std::min(a.size(), b.size()) && a[head] == b[head]) ++head;
  while (tail < std::min(a.size(), b.size()) - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  if (head + tail == a.size() && head + tail == b.size()) return "";
  const std::span inner_a = std::span(a).subspan(head, a.size() - head - tail);
  const std::span inner_b = std::span(b).subspan(head, b.size() - head - tail);
  auto kept = common(inner_a, inner_b, kLimit);
  if (!kept) kept = Kept{std::vector<bool>(inner_a.size()), std::vector<bool>(inner_b.size())};

  std::vector<Change> changes;
  for (size_t i = 0; i < head; ++i) changes.push_back({' ', a[i]});
  for (size_t i = 0, j = 0; i < inner_a.size() || j < inner_b.size();) {
    if (i < inner_a.size() && !kept->a[i]) changes.push_back({'-', inner_a[i++]});
    else if (j < inner_b.size() && !kept->b[j]) changes.push_back({'+', inner_b[j++]});
    else changes.push_back({' ', inner_a[i++]}), ++j;
  }
  for (size_t i = a.size() - tail; i < a.size(); ++i) changes.push_back({' ', a[i]});

  std::vector<bool> shown(changes.size());
  for (size_t i = 0; i < changes.size(); ++i) {
    if (changes[i].sign == ' ') continue;
    for (size_t near = i - std::min(i, kContextLines); near < std::min(changes.size(), i + kContextLines + 1); ++near)
      shown[near] = true;
  }
  std::string text;
  for (size_t i = 0; i < changes.size(); ++i) {
    if (shown[i]) text += fmt::format("{}{}\n", changes[i].sign, changes[i].line);
    else if (i == 0 || shown[i - 1]) text += "...\n";
  }
  return text;
}

}  // namespace tenon::compiler
