// The placement of each operator and its reason, as a table for people.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/partition/partition.h"

namespace tenon::compiler {

std::string explain(const Module& module, std::span<const Placement> placements) {
  struct Row {
    std::string node, ops, placement;
  };
  std::vector<Row> rows;
  for (size_t i = 0; i < placements.size(); ++i) {
    const Placement& p = placements[i];
    const std::string placement = !p.target.empty()  ? fmt::format("{:<6} {}", p.target, p.composite)
                                  : p.kernel.empty() ? fmt::format("cpu    {}", p.reason)
                                                     : fmt::format("cpu    {} ({})", p.kernel, p.reason);
    // The operators of one node that run on one target share a line.
    const bool joins = i > 0 && p.span == placements[i - 1].span && placement == rows.back().placement;
    if (joins) rows.back().ops += " + " + p.op;
    else rows.push_back({module.span(p.span).node, p.op, placement});
  }
  size_t node_width = 0, op_width = 0;
  for (const Row& row : rows) {
    node_width = std::max(node_width, row.node.size());
    op_width = std::max(op_width, row.ops.size());
  }
  std::string text;
  for (const Row& row : rows)
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", row.node, node_width, row.ops, op_width, row.placement);
  return text;
}

}  // namespace tenon::compiler
