// Partitioning: assigns each operator of a function, and of those that it calls, to a target, or leaves it to the CPU.
// It works within one block at a time; control flow, calls, closures and references stay on the host.
//
// 1. patterns group operators into composite functions; the first row of the first target that matches wins;
// 2. regions of one target grow by merging groups as long as no cycle between groups appears and the target's code
//    generator supports them;
// 3. each region becomes a function with a target; values cross its boundary in the layouts that the target requires,
//    by explicit layout_transforms on the caller's side.
// The meaning of the function does not change. Bring Your Own Codegen (Chen et al. 2021), with composites and regions
// as global functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/partition/target.h"

namespace tenon::compiler {

// The target on which one operator of the model runs, and the reason.
struct Placement {
  std::string op;      // "conv2d", or "@banded" for the call of a loop function
  SpanId span{};       // the model's node
  std::string target;  // empty: the CPU
  std::string composite;
  std::string reason;       // why no target supports it; empty where a target does
  std::string kernel = {};  // on the CPU: the kernel that computes it, where it is known
};

// Partitions function `entry` of the module and the functions that it may call, in place. Composites are named
// @TARGET_OP_i, regions @TARGET_i.
Expected<std::vector<Placement>> partition(Context& context, Module& module, Symbol entry,
                                           std::span<const Target> targets);

// A table for people, one line per node of the model: its operators, their target, and why no other target runs them.
std::string explain(const Module& module, std::span<const Placement> placements);

}  // namespace tenon::compiler
