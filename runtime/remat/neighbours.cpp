// Classes of evicted storages, and exact neighbourhoods whose sums are cached until something in them changes.
#include "runtime/remat/neighbours.h"

#include <algorithm>

namespace tenon::runtime::remat {
namespace {

void insert_once(std::vector<StorageId>& ids, StorageId id) {
  if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
}

}  // namespace

void NeighbourGraph::add(StorageId storage) {
  if (storage >= nodes_.size()) {
    nodes_.resize(storage + size_t{1});
    visits_.resize(storage + size_t{1});
  }
  nodes_[storage].clear();
}

void NeighbourGraph::add_edge(StorageId parent, StorageId child) {
  insert_once(nodes_[child].parents, parent);
  // Edges of a pending child come one after the other, so that a parent of many children is not searched.
  std::vector<StorageId>& children = nodes_[parent].children;
  if (!pending(child)) insert_once(children, child);
  else if (children.empty() || children.back() != child) children.push_back(child);
  if (exact_kept_ && !pending(child)) {
    nodes_[child].dirty[kUp] = nodes_[parent].dirty[kDown] = true;
    invalidate(child);
    invalidate(parent);
  }
}

void NeighbourGraph::add_cost(StorageId storage, int64_t cost) {
  nodes_[storage].cost += cost;
  if (exact_kept_ && evicted(storage)) invalidate(storage);
}

void NeighbourGraph::remove(StorageId storage) {
  Node& node = nodes_[storage];
  if (evicted(storage)) {
    if (classes_kept_) sets_[find(node.set)].cost -= node.cost;
    if (exact_kept_) invalidate(storage);
  }
  for (const StorageId parent : node.parents) std::erase(nodes_[parent].children, storage);
  for (const StorageId child : node.children) std::erase(nodes_[child].parents, storage);
  node.clear();
}

void NeighbourGraph::set_resident(StorageId storage) {
  Node& node = nodes_[storage];
  const bool again = evicted(storage);
  node.state = State::kResident;
  node.dirty[kUp] = node.dirty[kDown] = true;
  if (!again) return;
  if (classes_kept_) sets_[find(node.set)].cost -= node.cost;
  if (exact_kept_) invalidate(storage);
}

void NeighbourGraph::set_evicted(StorageId storage) {
  if (classes_kept_ && sets_.size() > 4 * nodes_.size() + 1024) compact();
  Node& node = nodes_[storage];
  node.state = State::kEvicted;
  if (exact_kept_) invalidate(storage);
  if (!classes_kept_) return;
  node.set = static_cast<uint32_t>(sets_.size());
  sets_.push_back({node.set, node.cost});
  for (const Direction direction : {kUp, kDown}) {
    for (const StorageId other : next(storage, direction)) {
      if (evicted(other)) unite(node.set, nodes_[other].set);
    }
  }
}

int64_t NeighbourGraph::class_cost(StorageId storage) const {
  int64_t sum = 0;
  ++visit_;
  for (const Direction direction : {kUp, kDown}) {
    for (const StorageId other : next(storage, direction)) {
      if (!evicted(other)) continue;
      const Set& set = sets_[find(nodes_[other].set)];
      if (set.visit == visit_) continue;
      set.visit = visit_;
      sum += set.cost;
    }
  }
  return sum;
}

int64_t NeighbourGraph::exact_cost(StorageId storage, Direction direction) const {
  const Node& node = nodes_[storage];
  if (!node.dirty[direction]) return node.sum[direction];
  int64_t sum = 0;
  ++visit_;
  work_.assign(1, storage);
  while (!work_.empty()) {
    const StorageId at = work_.back();
    work_.pop_back();
    for (const StorageId other : next(at, direction)) {
      if (!evicted(other) || visits_[other] == visit_) continue;
      visits_[other] = visit_;
      sum += nodes_[other].cost;
      work_.push_back(other);
    }
  }
  node.sum[direction] = sum;
  node.dirty[direction] = false;
  return sum;
}

void NeighbourGraph::invalidate(StorageId storage) {
  for (const Direction direction : {kUp, kDown}) {
    const Direction back = direction == kUp ? kDown : kUp;
    ++visit_;
    work_.assign(1, storage);
    while (!work_.empty()) {
      const StorageId at = work_.back();
      work_.pop_back();
      for (const StorageId other : next(at, direction)) {
        if (visits_[other] == visit_) continue;
        visits_[other] = visit_;
        if (evicted(other)) work_.push_back(other);
        else nodes_[other].dirty[back] = true;
      }
    }
  }
}

uint32_t NeighbourGraph::find(uint32_t set) const {
  while (sets_[set].parent != set) set = sets_[set].parent = sets_[sets_[set].parent].parent;
  return set;
}

void NeighbourGraph::unite(uint32_t a, uint32_t b) {
  a = find(a);
  b = find(b);
  if (a == b) return;
  sets_[b].parent = a;
  sets_[a].cost += sets_[b].cost;
}

// Keeps the sets that evicted storages refer to, so that their number does not grow with the number of evictions.
void NeighbourGraph::compact() {
  constexpr uint32_t kUnseen = UINT32_MAX;
  std::vector<uint32_t> renamed(sets_.size(), kUnseen);
  std::vector<Set> kept;
  for (Node& node : nodes_) {
    if (node.state != State::kEvicted) continue;
    const uint32_t root = find(node.set);
    if (renamed[root] == kUnseen) {
      renamed[root] = static_cast<uint32_t>(kept.size());
      kept.push_back({renamed[root], sets_[root].cost});
    }
  }
  for (Node& node : nodes_) {
    if (node.state == State::kEvicted) node.set = renamed[find(node.set)];
  }
  sets_ = std::move(kept);
}

}  // namespace tenon::runtime::remat
