// Groups of nodes of a DAG that merge without making a cycle between groups: the engine under partitioning and fusion.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::compiler {

// Nodes 0 .. n-1 in topological order; edges go upward. Every node begins as a group of its own. Group ids are nodes.
class ConvexGroups {
 public:
  // `operands[i]`: the nodes that node i reads, all smaller than i.
  explicit ConvexGroups(const std::vector<std::vector<uint32_t>>& operands);

  uint32_t find(uint32_t node) const;
  // Merges the groups of two nodes, unless a path between them leads through a third group: then the merged group
  // would both feed it and need it. Returns whether they are one group now.
  bool merge(uint32_t a, uint32_t b);
  // Whether merge() would say yes; for callers with conditions of their own.
  bool can_merge(uint32_t a, uint32_t b) const;
  // Groups in an order in which each comes behind all that it needs.
  std::vector<uint32_t> topological() const;

 private:
  using Bits = std::vector<uint64_t>;
  static bool test(const Bits& bits, uint32_t i) { return bits[i / 64] >> (i % 64) & 1; }
  bool passes_third(uint32_t from, uint32_t to) const;

  mutable std::vector<uint32_t> parent_;
  std::vector<Bits> needs_;  // by group: every group that it needs, directly or not; only roots are kept up to date
};

}  // namespace tenon::compiler
