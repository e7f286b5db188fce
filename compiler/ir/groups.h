// Groups of nodes of a DAG that merge without making a cycle between groups: the engine under partitioning and fusion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::compiler {

// Nodes 0 .. n-1 in topological order; edges go upward. Every node begins as a group of its own. Group ids are nodes.
//
// The groups are kept in an order in which each comes behind all that it needs, and a path between two groups lies
// between their places: a question looks at no group outside of that window, and a merge moves only the groups that it
// found there. (Pearce and Kelly 2007, with contraction in place of insertion.)
class ConvexGroups {
 public:
  // `operands[i]`: the nodes that node i reads, all smaller than i. A question that would look at more than `reach`
  // groups, or several times as many edges, is answered with no.
  explicit ConvexGroups(const std::vector<std::vector<uint32_t>>& operands, size_t reach = SIZE_MAX);

  uint32_t find(uint32_t node) const;
  // Merges the groups of two nodes, unless a path between them leads through a third group: then the merged group
  // would both feed it and need it. Returns whether they are one group now.
  bool merge(uint32_t a, uint32_t b);
  // Whether merge() would say yes; for callers with conditions of their own.
  bool can_merge(uint32_t a, uint32_t b);
  // Groups in an order in which each comes behind all that it needs.
  std::vector<uint32_t> topological() const;

  // Edges looked at so far: the work done.
  uint64_t steps() const { return steps_; }

 private:
  // The nodes at the other ends of a group's edges; some may have joined the group, or one another, since.
  struct Edges {
    std::vector<uint32_t> nodes;
    size_t distinct = 0;  // how many there were when repeated ones were last dropped
  };
  enum class Way : uint8_t { kUp, kDown };

  // The groups strictly between two groups that are reached from the first; false where the second is among those that
  // they lead to, or where there are more than `reach_`.
  bool between(Way way, uint32_t from, uint32_t to, std::vector<uint32_t>& found);
  void append(Edges& edges, Edges& more, uint32_t self);

  size_t reach_;
  uint64_t steps_ = 0;
  mutable std::vector<uint32_t> parent_;
  std::vector<uint32_t> place_;       // by group: its place in the order
  std::vector<Edges> needs_, feeds_;  // by group
  std::vector<uint32_t> seen_;        // by group: the number of the search that met it last
  uint32_t searches_ = 0;
};

}  // namespace tenon::compiler
