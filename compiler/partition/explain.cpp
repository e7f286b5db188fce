// The placement of each operator and its reason, as a table for people.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/partition/partition.h"

namespace tenon::compiler {
namespace {

std::string seconds(double value) {
  if (value >= 1) return fmt::format("{:.3g} s", value);
  if (value >= 1e-3) return fmt::format("{:.3g} ms", value * 1e3);
  return fmt::format("{:.3g} us", value * 1e6);
}

}  // namespace

std::string explain(const Module& module, std::span<const Placement> placements) {
  struct Row {
    std::string node, ops, target, detail, prices;
  };
  std::vector<Row> rows;
  for (size_t i = 0; i < placements.size(); ++i) {
    const Placement& p = placements[i];
    const std::string target = p.target.empty() ? "cpu" : p.target;
    const std::string detail = !p.target.empty()  ? p.composite
                               : p.kernel.empty() ? p.reason
                                                  : fmt::format("{} ({})", p.kernel, p.reason);
    std::string prices;
    for (const auto& [target, price, change] : p.prices) {
      prices += fmt::format("{}{} {} ({})", prices.empty() ? "" : "; ", target, seconds(price.seconds), price.source);
      if (change.value_or(0) != 0)
        prices += fmt::format(", total {}{}", *change > 0 ? "+" : "-", seconds(std::abs(*change)));
    }
    // The operators of one node that run on one target share a line, unless each has a price.
    const bool joins = i > 0 && (prices.empty() || rows.back().prices.empty()) && p.span == placements[i - 1].span &&
                       target == rows.back().target && detail == rows.back().detail;
    if (joins) rows.back().ops += " + " + p.op, rows.back().prices += prices;
    else rows.push_back({module.span(p.span).node, p.op, target, detail, prices});
  }
  size_t node_width = 0, op_width = 0, target_width = 6;
  for (const Row& row : rows) {
    node_width = std::max(node_width, row.node.size());
    op_width = std::max(op_width, row.ops.size());
    target_width = std::max(target_width, row.target.size());
  }
  std::string text;
  for (const Row& row : rows)
    text += fmt::format("  {:<{}}  {:<{}}  {:<{}} {}{}{}\n", row.node, node_width, row.ops, op_width, row.target,
                        target_width, row.detail, row.prices.empty() ? "" : "  | ", row.prices);
  return text;
}

std::string explain(const PlacementCosts& costs) {
  std::string others = fmt::format("all on the CPU {}", seconds(costs.all_cpu));
  for (const auto& [target, total] : costs.all_at) others += fmt::format(", all on {} {}", target, seconds(total));
  const double gap = costs.bound > 0 ? 100 * (costs.total - costs.bound) / costs.bound : 0;
  return fmt::format("estimated total {}, {}; {}, first match {}\n", seconds(costs.total),
                     costs.optimal ? "which is the least" : fmt::format("at most {:.1f} % above the least", gap),
                     others, seconds(costs.first_match));
}

}  // namespace tenon::compiler
