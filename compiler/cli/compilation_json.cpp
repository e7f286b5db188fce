#include "compiler/cli/compilation_json.h"

namespace tenon::cli {
namespace {

// Where each operator runs, and why; where targets are assigned by cost, what it costs on each, in seconds, and the
// source of the figure.
void write_operators(Json& out, const compiler::Compilation& compiled) {
  out.key("operators").begin_array();
  for (const compiler::Placement& placement : compiled.placements) {
    out.begin_object()
        .field("node", compiled.partitioned.span(placement.span).node)
        .field("op", placement.op)
        .field("target", placement.target.empty() ? "cpu" : placement.target);
    if (!placement.composite.empty()) out.field("composite", placement.composite);
    if (!placement.kernel.empty()) out.field("kernel", placement.kernel);
    if (!placement.reason.empty()) out.field("reason", placement.reason);
    if (!placement.prices.empty()) {
      out.key("prices").begin_object();
      for (const auto& [target, price, change] : placement.prices) {
        out.key(target).begin_object().field("seconds", price.seconds).field("source", price.source);
        if (change) out.field("total_change", *change);
        out.end();
      }
      out.end();
    }
    out.end();
  }
  out.end();
}

}  // namespace

void write_compilation(Json& out, const compiler::Compilation& compiled) {
  out.field("partition_seconds", compiled.partition_seconds);
  if (compiled.memory) {
    const compiler::MemoryPlans& plans = *compiled.memory;
    out.key("memory").begin_object().field("planned_bytes", plans.plan().peak);
    if (plans.bound) out.field("most_bytes", *plans.bound);
    out.field("again", plans.repeated(plans.plan())).end();
  }
  if (const auto& costs = compiled.costs) {
    out.key("costs").begin_object().field("total", costs->total).field("bound", costs->bound);
    out.field("all_cpu", costs->all_cpu).field("first_match", costs->first_match).key("all_at").begin_object();
    for (const auto& [target, seconds] : costs->all_at) out.field(target, seconds);
    out.end().end();
  }
  write_operators(out, compiled);
}

}  // namespace tenon::cli
