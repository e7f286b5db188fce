// The merging of convex groups in an incrementally maintained topological order.
#include "compiler/ir/groups.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace tenon::compiler {
namespace {

constexpr uint64_t kEdges = 8;  // the limit of edges for each group that a query may visit

}  // namespace

ConvexGroups::ConvexGroups(const std::vector<std::vector<uint32_t>>& operands, size_t max_visited)
    : max_visited_(max_visited),
      parent_(operands.size()),
      position_(operands.size()),
      needs_(operands.size()),
      feeds_(operands.size()),
      seen_(operands.size(), 0) {
  std::iota(parent_.begin(), parent_.end(), 0u);
  std::iota(position_.begin(), position_.end(), 0u);
  for (uint32_t node = 0; node < operands.size(); ++node) {
    for (const uint32_t operand : operands[node]) {
      assert(operand < node);
      needs_[node].nodes.push_back(operand);
      feeds_[operand].nodes.push_back(node);
    }
  }
}

uint32_t ConvexGroups::find(uint32_t node) const {
  while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
  return node;
}

bool ConvexGroups::between(Direction direction, uint32_t from, uint32_t to, std::vector<uint32_t>& found) {
  const auto [lo, hi] = std::minmax(position_[from], position_[to]);
  ++searches_;
  found.clear();
  std::vector<uint32_t> open{from};
  const uint64_t last = max_visited_ == SIZE_MAX ? UINT64_MAX : steps_ + kEdges * max_visited_;
  while (!open.empty()) {
    const uint32_t group = open.back();
    open.pop_back();
    for (const uint32_t node : (direction == Direction::kUp ? feeds_ : needs_)[group].nodes) {
      if (++steps_ > last) return false;
      const uint32_t next = find(node);
      if (next == to && group != from) return false;
      if (position_[next] <= lo || position_[next] >= hi || seen_[next] == searches_) continue;
      seen_[next] = searches_;
      found.push_back(next);
      open.push_back(next);
      if (found.size() > max_visited_) return false;
    }
  }
  return true;
}

bool ConvexGroups::can_merge(uint32_t a, uint32_t b) {
  a = find(a);
  b = find(b);
  if (position_[a] > position_[b]) std::swap(a, b);
  std::vector<uint32_t> found;
  return a == b || (between(Direction::kUp, a, b, found) && between(Direction::kDown, b, a, found));
}

// Appends the shorter list to the longer, and removes inner and duplicate edges whenever the list has doubled.
void ConvexGroups::append(Edges& edges, Edges& more, uint32_t self) {
  if (edges.nodes.size() < more.nodes.size()) std::swap(edges, more);
  edges.nodes.insert(edges.nodes.end(), more.nodes.begin(), more.nodes.end());
  more = {};
  if (edges.nodes.size() < 2 * edges.distinct + 4) return;
  steps_ += edges.nodes.size();
  for (uint32_t& node : edges.nodes) node = find(node);
  std::ranges::sort(edges.nodes);
  edges.nodes.erase(std::ranges::unique(edges.nodes).begin(), edges.nodes.end());
  std::erase(edges.nodes, self);
  edges.distinct = edges.nodes.size();
}

bool ConvexGroups::merge(uint32_t a, uint32_t b) {
  a = find(a);
  b = find(b);
  if (a == b) return true;
  if (position_[a] > position_[b]) std::swap(a, b);
  std::vector<uint32_t> after, before;
  if (!between(Direction::kUp, a, b, after) || !between(Direction::kDown, b, a, before)) return false;
  // The groups found move to positions before the merged group where b needs them, and to positions after it where they
  // need a; together the groups keep the same set of positions.
  const auto by_position = [&](uint32_t g) { return position_[g]; };
  std::ranges::sort(before, {}, by_position);
  std::ranges::sort(after, {}, by_position);
  std::vector<uint32_t> positions{position_[a], position_[b]};
  for (const uint32_t group : before) positions.push_back(position_[group]);
  for (const uint32_t group : after) positions.push_back(position_[group]);
  std::ranges::sort(positions);
  steps_ += positions.size();
  for (size_t i = 0; i < before.size(); ++i) position_[before[i]] = positions[i];
  for (size_t i = 0; i < after.size(); ++i) position_[after[i]] = positions[positions.size() - after.size() + i];
  position_[a] = positions[before.size()];
  parent_[b] = a;
  append(needs_[a], needs_[b], a);
  append(feeds_[a], feeds_[b], a);
  return true;
}

std::vector<uint32_t> ConvexGroups::topological() const {
  std::vector<uint32_t> groups;
  for (uint32_t node = 0; node < parent_.size(); ++node) {
    if (parent_[node] == node) groups.push_back(node);
  }
  std::ranges::sort(groups, {}, [&](uint32_t group) { return position_[group]; });
  return groups;
}

}  // namespace tenon::compiler
