#include "compiler/ir/groups.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace tenon::compiler {
namespace {

constexpr uint64_t kEdges = 8;  // for each group that a question may look at

}  // namespace

ConvexGroups::ConvexGroups(const std::vector<std::vector<uint32_t>>& operands, size_t reach)
    : reach_(reach),
      parent_(operands.size()),
      place_(operands.size()),
      needs_(operands.size()),
      feeds_(operands.size()),
      seen_(operands.size(), 0) {
  std::iota(parent_.begin(), parent_.end(), 0u);
  std::iota(place_.begin(), place_.end(), 0u);
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

bool ConvexGroups::between(Way way, uint32_t from, uint32_t to, std::vector<uint32_t>& found) {
  const auto [lo, hi] = std::minmax(place_[from], place_[to]);
  ++searches_;
  found.clear();
  std::vector<uint32_t> open{from};
  const uint64_t last = reach_ == SIZE_MAX ? UINT64_MAX : steps_ + kEdges * reach_;
  while (!open.empty()) {
    const uint32_t group = open.back();
    open.pop_back();
    for (const uint32_t node : (way == Way::kUp ? feeds_ : needs_)[group].nodes) {
      if (++steps_ > last) return false;
      const uint32_t next = find(node);
      if (next == to && group != from) return false;
      if (place_[next] <= lo || place_[next] >= hi || seen_[next] == searches_) continue;
      seen_[next] = searches_;
      found.push_back(next);
      open.push_back(next);
      if (found.size() > reach_) return false;
    }
  }
  return true;
}

bool ConvexGroups::can_merge(uint32_t a, uint32_t b) {
  a = find(a);
  b = find(b);
  if (place_[a] > place_[b]) std::swap(a, b);
  std::vector<uint32_t> found;
  return a == b || (between(Way::kUp, a, b, found) && between(Way::kDown, b, a, found));
}

// Takes over the shorter list into the longer, and drops inner edges and repeated ones when it has doubled.
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
  if (place_[a] > place_[b]) std::swap(a, b);
  std::vector<uint32_t> behind, before;
  if (!between(Way::kUp, a, b, behind) || !between(Way::kDown, b, a, before)) return false;
  // All that b needs goes in front of the merged group, all that needs a behind it, on the places that they had.
  const auto by_place = [&](uint32_t g) { return place_[g]; };
  std::ranges::sort(before, {}, by_place);
  std::ranges::sort(behind, {}, by_place);
  std::vector<uint32_t> places{place_[a], place_[b]};
  for (const uint32_t group : before) places.push_back(place_[group]);
  for (const uint32_t group : behind) places.push_back(place_[group]);
  std::ranges::sort(places);
  steps_ += places.size();
  for (size_t i = 0; i < before.size(); ++i) place_[before[i]] = places[i];
  for (size_t i = 0; i < behind.size(); ++i) place_[behind[i]] = places[places.size() - behind.size() + i];
  place_[a] = places[before.size()];
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
  std::ranges::sort(groups, {}, [&](uint32_t group) { return place_[group]; });
  return groups;
}

}  // namespace tenon::compiler
