// The work of a model: its multiply-accumulates, and the share of each target.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "compiler/ir/module.h"
#include "compiler/partition/partition.h"

namespace tenon::compiler {

// Multiply-accumulates of convolutions, products and recurrent layers by target ("" is the CPU), of a partitioned
// module: one run of every function, loops and closures counted once. Sizes that are not known count as 1, and calls of
// loop functions and of libraries are not counted, which summarize() says.
std::map<std::string, int64_t> macs_by_target(const Module& partitioned);

// A line for each target: its number of operators and its share of the multiply-accumulates; for the CPU also which
// operators.
std::string summarize(const Module& partitioned, std::span<const Placement> placements);

}  // namespace tenon::compiler
