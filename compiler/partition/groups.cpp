#include "compiler/partition/groups.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace tenon::compiler {

ConvexGroups::ConvexGroups(const std::vector<std::vector<uint32_t>>& operands)
    : parent_(operands.size()), needs_(operands.size(), Bits((operands.size() + 63) / 64)) {
  std::iota(parent_.begin(), parent_.end(), 0u);
  for (uint32_t node = 0; node < operands.size(); ++node) {
    for (const uint32_t operand : operands[node]) {
      assert(operand < node);
      needs_[node][operand / 64] |= uint64_t{1} << (operand % 64);
      for (size_t word = 0; word < needs_[node].size(); ++word) needs_[node][word] |= needs_[operand][word];
    }
  }
}

uint32_t ConvexGroups::find(uint32_t node) const {
  while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
  return node;
}

// Is there a group c with from -> c -> to?
bool ConvexGroups::passes_third(uint32_t from, uint32_t to) const {
  for (uint32_t c = 0; c < parent_.size(); ++c) {
    if (parent_[c] == c && c != from && c != to && test(needs_[to], c) && test(needs_[c], from)) return true;
  }
  return false;
}

bool ConvexGroups::can_merge(uint32_t a, uint32_t b) const {
  a = find(a);
  b = find(b);
  return a == b || (!passes_third(a, b) && !passes_third(b, a));
}

bool ConvexGroups::merge(uint32_t a, uint32_t b) {
  a = find(a);
  b = find(b);
  if (a == b) return true;
  if (!can_merge(a, b)) return false;
  parent_[b] = a;
  const auto clear = [](Bits& bits, uint32_t i) { bits[i / 64] &= ~(uint64_t{1} << (i % 64)); };
  for (size_t word = 0; word < needs_[a].size(); ++word) needs_[a][word] |= needs_[b][word];
  clear(needs_[a], a);
  clear(needs_[a], b);
  for (uint32_t g = 0; g < parent_.size(); ++g) {
    if (parent_[g] != g || g == a || (!test(needs_[g], a) && !test(needs_[g], b))) continue;
    for (size_t word = 0; word < needs_[g].size(); ++word) needs_[g][word] |= needs_[a][word];
    clear(needs_[g], b);
    needs_[g][a / 64] |= uint64_t{1} << (a % 64);
  }
  return true;
}

std::vector<uint32_t> ConvexGroups::topological() const {
  // A group needs strictly more groups than each that it needs.
  std::vector<std::pair<int, uint32_t>> order;
  for (uint32_t g = 0; g < parent_.size(); ++g) {
    if (parent_[g] != g) continue;
    int count = 0;
    for (uint32_t other = 0; other < parent_.size(); ++other)
      count += parent_[other] == other && test(needs_[g], other);
    order.emplace_back(count, g);
  }
  std::ranges::sort(order);
  std::vector<uint32_t> groups;
  for (const auto& [count, g] : order) groups.push_back(g);
  return groups;
}

}  // namespace tenon::compiler
