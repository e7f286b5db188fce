// Groups of nodes of a DAG that merge without a cycle between groups: the data structure of partitioning and fusion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::compiler {

// The nodes are 0 .. n-1 in topological order; edges go from lower to higher nodes. Initially every node is a group by
// itself. The id of a group is one of its nodes.
//
// The groups are kept in a topological order. A path between two groups visits only positions between the two, so a
// query visits no group outside of this window, and a merge moves only the groups that the query found there. (Pearce
// and Kelly 2007, with contraction in place of insertion.)
class ConvexGroups {
 public:
  // `operands[i]`: the nodes that node i reads, all smaller than i. A query that would visit more than `max_visited`
  // groups, or a multiple of this number of edges, returns false.
  explicit ConvexGroups(const std::vector<std::vector<uint32_t>>& operands, size_t max_visited = SIZE_MAX);

  uint32_t find(uint32_t node) const;
  // Merges the groups of two nodes, unless a path between them leads through a third group: then the merged group and
  // the third group would form a cycle. Returns whether the two nodes are in the same group now.
  bool merge(uint32_t a, uint32_t b);
  // Whether merge() would succeed, for callers with additional conditions.
  bool can_merge(uint32_t a, uint32_t b);
  // The groups in topological order.
  std::vector<uint32_t> topological() const;

  // The number of edges visited so far, as a measure of the work.
  uint64_t steps() const { return steps_; }

 private:
  // The nodes at the other ends of a group's edges. Some of these nodes may have joined the group, or the same group,
  // since the edges were added.
  struct Edges {
    std::vector<uint32_t> nodes;
    size_t distinct = 0;  // the number of edges after the last removal of duplicates
  };
  enum class Direction : uint8_t { kUp, kDown };

  // Finds the groups at positions strictly between two groups that are reachable from the first. Returns false where an
  // edge leads from one of them to the second group, or where there are more than `max_visited_`.
  bool between(Direction direction, uint32_t from, uint32_t to, std::vector<uint32_t>& found);
  void append(Edges& edges, Edges& more, uint32_t self);

  size_t max_visited_;
  uint64_t steps_ = 0;
  mutable std::vector<uint32_t> parent_;
  std::vector<uint32_t> position_;    // by group: its position in the topological order
  std::vector<Edges> needs_, feeds_;  // by group
  std::vector<uint32_t> seen_;        // by group: the id of the last search that visited it
  uint32_t searches_ = 0;
};

}  // namespace tenon::compiler
