// Partitioning: gives each operator of a function to a target, or leaves it to the CPU.
//
// 1. patterns group operators into composite functions; the first row of the first target that matches wins;
// 2. regions of one target grow by merging groups as long as no cycle between groups appears and the target's code
//    generator can take them;
// 3. each region becomes a function with a target; values cross its border in the layouts that the target asks for, by
//    explicit layout_transforms on the caller's side.
// The meaning of the function does not change. Bring Your Own Codegen (Chen et al. 2021), with composites and regions
// as global functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/partition/target.h"

namespace tenon::compiler {

// Where one operator of the model runs, and why.
struct Placement {
  std::string op;      // "conv2d", or "@banded" where it is a loop function's call
  SpanId span{};       // the model's node
  std::string target;  // empty: the CPU
  std::string composite;
  std::string reason;       // why no target took it; empty where one did
  std::string kernel = {};  // on the CPU: what computes it, where that is known
};

// Partitions function `entry` of the module in place. Composites are named @TARGET_OP_i, regions @TARGET_i.
Expected<std::vector<Placement>> partition(Context& context, Module& module, Symbol entry,
                                           std::span<const Target> targets);

// One line an operator of the model, for people: its node, its operators, where they run, and why not elsewhere.
std::string explain(const Module& module, std::span<const Placement> placements);

}  // namespace tenon::compiler
