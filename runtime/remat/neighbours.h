// The graph of storages as policies see it: who was computed from whom, who is evicted, and what it would cost to
// compute the evicted neighbourhood of a resident storage again.
//
// Semantics: a storage is pending (not computed yet), resident or evicted. Two sums are kept. The *class* of an evicted
// storage is a set of a union-find structure: on eviction a storage becomes a class of its own cost, which is united
// with the classes of its evicted parents and children; when it becomes resident, its cost is subtracted from its
// class, which is not split (Kirisame et al. 2021, appendix C.2). The *exact neighbourhood* of a resident storage are
// the evicted storages from which evicted ones alone lead to it, and those to which they lead.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::runtime::remat {

using StorageId = uint32_t;

class NeighbourGraph {
 public:
  // Which sums are asked for: the others are not kept.
  NeighbourGraph(bool classes, bool exact) : classes_kept_(classes), exact_kept_(exact) {}

  void add(StorageId storage);  // a pending one without edges, also in place of one that was removed
  void add_edge(StorageId parent, StorageId child);  // an edge that exists is not added again
  void add_cost(StorageId storage, int64_t cost);
  void remove(StorageId storage);  // with its edges and its cost

  bool resident(StorageId storage) const { return nodes_[storage].state == State::kResident; }
  bool evicted(StorageId storage) const { return nodes_[storage].state == State::kEvicted; }
  bool pending(StorageId storage) const { return nodes_[storage].state == State::kPending; }
  int64_t cost(StorageId storage) const { return nodes_[storage].cost; }
  const std::vector<StorageId>& parents(StorageId storage) const { return nodes_[storage].parents; }
  const std::vector<StorageId>& children(StorageId storage) const { return nodes_[storage].children; }

  void set_resident(StorageId storage);
  void set_evicted(StorageId storage);

  // Sums of costs, without the storage's own.
  int64_t class_cost(StorageId storage) const;
  int64_t ancestors_cost(StorageId storage) const { return exact_cost(storage, kUp); }
  int64_t descendants_cost(StorageId storage) const { return exact_cost(storage, kDown); }

 private:
  enum class State : unsigned char { kPending, kResident, kEvicted };
  enum Direction : unsigned char { kUp, kDown };
  struct Node {
    State state = State::kPending;
    int64_t cost = 0;
    uint32_t set = 0;  // of an evicted one, in sets_
    std::vector<StorageId> parents, children;
    mutable int64_t sum[2] = {0, 0};         // of the exact neighbourhood, by Direction
    mutable bool dirty[2] = {false, false};  // the sum must be computed again

    void clear() {  // keeps the memory of the lists
      std::vector<StorageId> kept[2] = {std::move(parents), std::move(children)};
      kept[0].clear(), kept[1].clear();
      *this = Node();
      parents = std::move(kept[0]), children = std::move(kept[1]);
    }
  };
  struct Set {
    uint32_t parent = 0;
    int64_t cost = 0;
    mutable uint64_t visit = 0;
  };

  const std::vector<StorageId>& next(StorageId storage, Direction direction) const {
    return direction == kUp ? nodes_[storage].parents : nodes_[storage].children;
  }
  int64_t exact_cost(StorageId storage, Direction direction) const;
  // The sums of all resident storages in whose neighbourhood the storage is or was become dirty.
  void invalidate(StorageId storage);
  uint32_t find(uint32_t set) const;
  void unite(uint32_t a, uint32_t b);
  void compact();

  bool classes_kept_, exact_kept_;
  std::vector<Node> nodes_;
  mutable std::vector<Set> sets_;
  mutable std::vector<uint64_t> visits_;  // by storage: the search that saw it last
  mutable uint64_t visit_ = 0;
  mutable std::vector<StorageId> work_;
};

}  // namespace tenon::runtime::remat
