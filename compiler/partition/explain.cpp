// Where each operator runs and why, as a table for people.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/partition/partition.h"

namespace tenon::compiler {

std::string explain(const Module& module, std::span<const Placement> placements) {
  struct Row {
    std::string node, ops, where;
  };
  std::vector<Row> rows;
  for (size_t i = 0; i < placements.size(); ++i) {
    const Placement& p = placements[i];
    const std::string where = !p.target.empty()  ? fmt::format("{:<6} {}", p.target, p.composite)
                              : p.kernel.empty() ? fmt::format("cpu    {}", p.reason)
                                                 : fmt::format("cpu    {} ({})", p.kernel, p.reason);
    // What came from one node and runs in one place is one line.
    const bool joins = i > 0 && p.span == placements[i - 1].span && where == rows.back().where;
    if (joins) rows.back().ops += " + " + p.op;
    else rows.push_back({module.span(p.span).node, p.op, where});
  }
  size_t node_width = 0, op_width = 0;
  for (const Row& row : rows) {
    node_width = std::max(node_width, row.node.size());
    op_width = std::max(op_width, row.ops.size());
  }
  std::string text;
  for (const Row& row : rows)
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", row.node, node_width, row.ops, op_width, row.where);
  return text;
}

}  // namespace tenon::compiler
