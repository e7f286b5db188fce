// The edit distance of names, which counts insertions, deletions, substitutions and swaps (optimal string alignment,
// the restricted Damerau-Levenshtein distance).
#include "support/suggest.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row_before_last, last_row(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last_row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last_row[j] + 1, row[j - 1] + 1, last_row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], row_before_last[j - 2] + 1);
    }
    row_before_last = std::move(last_row);
    last_row = row;
  }
  return last_row[b.size()];
}

}  // namespace

std::string suggest(std::string_view wrong, const std::vector<std::string_view>& candidates, std::string_view sigil) {
  constexpr size_t kLongest = 64;
  if (wrong.size() > kLongest) return "";
  size_t nearest = std::max<size_t>(1, wrong.size() / 3) + 1;
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    if (candidate.empty() || candidate.size() > kLongest) continue;
    const size_t distance = edit_distance(wrong, candidate);
    if (distance < nearest && distance < candidate.size()) nearest = distance, found = candidate;
  }
  return found.empty() ? "" : fmt::format("did you mean {}{}?", sigil, found);
}

}  // namespace tenon
