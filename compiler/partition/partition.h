// Partitioning: assigns each operator of a function, and of those that it calls, to a target, or leaves it to the CPU.
// It works within one block at a time; control flow, calls, closures and references stay on the host.
//
// 1. patterns group operators into composite functions; the first row of the first target that matches wins, or, with a
//    costs file, targets are assigned so that the sum of all costs is least (assign_targets.h);
// 2. regions of one target grow by merging groups as long as no cycle between groups appears and the target's code
//    generator supports them;
// 3. each region becomes a function with a target; values cross its boundary in the layouts that the target requires,
//    by explicit layout_transforms on the caller's side.
// The meaning of the function does not change. Bring Your Own Codegen (Chen et al. 2021), with composites and regions
// as global functions.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/partition/composites.h"
#include "compiler/partition/costs.h"
#include "compiler/partition/target.h"

namespace tenon::compiler {

// A price of operators that are computed together, on one target.
struct TargetPrice {
  std::string target;  // "cpu", or a target that supports it
  Price price;
  // By how many seconds the total would change if these operators alone were there instead: copies, launches and lost
  // fusion included, each layer by its own price. 0 where they are; nullopt where a pin forbids it.
  std::optional<double> change = {};
};

// The target on which one operator of the model runs, and the reason.
struct Placement {
  std::string op;      // "conv2d", or "@banded" for the call of a loop function
  SpanId span{};       // the model's node
  std::string target;  // empty: the CPU
  std::string composite;
  std::string reason;       // why no target supports it; empty where a target does
  std::string kernel = {};  // on the CPU: the kernel that computes it, where it is known
  // Where targets are assigned by cost: of the first operator of what some target computes as a whole.
  std::vector<TargetPrice> prices = {};
  SpanId root{};  // on a target: the model's node of the composite's result
};

// Costs of placements, in seconds: the sums over all blocks, each run once.
struct PlacementCosts {
  double total = 0, bound = 0;           // of the placement, and a bound: none costs less
  double all_cpu = 0, first_match = 0;   // of others: no target, and the first target that matches
  std::map<std::string, double> all_at;  // by target: all that it supports there
  bool optimal = true;                   // that is proved of each block
};

struct PartitionOptions {
  const Costs* costs =
      nullptr;  // targets are assigned by cost; nullptr: the first row of the first target that matches
  // A pin to a target that does not support the layer of the node is an error with the reason; operators that change
  // types and shapes around the layer may be at the host.
  Pins pins = {};
  PlacementCosts* summary = nullptr;  // receives the costs
};

// Partitions function `entry` of the module and the functions that it may call, in place. Composites are named
// @TARGET_OP_i, regions @TARGET_i.
Expected<std::vector<Placement>> partition(Context& context, Module& module, Symbol entry,
                                           std::span<const Target> targets, const PartitionOptions& options = {});

// The costs of a placement and of others, and how far from the bound it is.
std::string explain(const PlacementCosts& costs);

// A table for people, one line per node of the model: its operators, their target, and why no other target runs them.
std::string explain(const Module& module, std::span<const Placement> placements);

}  // namespace tenon::compiler
