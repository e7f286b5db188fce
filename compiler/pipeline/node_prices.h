// The prices of placements, for the report.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/partition/partition.h"
#include "runtime/executable/executable.h"
#include "runtime/profile/report.h"

namespace tenon::compiler {

// By node of the executable's graph: the prices of placements of the module from which it was lowered. Nodes that
// nothing else than the CPU can compute have none, and so has every node where targets are not assigned by cost.
std::map<std::string, std::vector<runtime::NodePrice>> node_prices(const Module& partitioned,
                                                                   std::span<const Placement> placements,
                                                                   const runtime::Graph& graph);

}  // namespace tenon::compiler
