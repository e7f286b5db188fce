// Assigns the operators of one block to targets by cost: from matches and prices to the problem of numbers of
// assignment.h, and back. Internal to the partitioner.
//
// A unit is what some target computes as a whole: the operators of a match, or of matches of several targets that
// overlap; and each other binding, which stays at the host. The units at the host are kernels, of which neighbours gain
// by fusion: a call, and the bytes that the second one does not read.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compiler/ir/dependencies.h"
#include "compiler/partition/composites.h"
#include "compiler/partition/partition.h"

namespace tenon::compiler {

struct AssignedBlock {
  Composites composites;
  std::vector<std::vector<TargetPrice>> prices;  // by binding: of the first one of each unit
};

// `is_valid`: whether a composite can become a function of the module; else its operators stay at the host. The costs
// are added to `summary`.
Expected<AssignedBlock> assign_targets(Context& context, Module& module, const Function& function, const Block& block,
                                       const Dependencies& graph, std::span<const Target> targets,
                                       const PartitionOptions& options, TargetAnswers& answers,
                                       FunctionRef<bool(Composites&, Composite&)> is_valid, PlacementCosts& summary);

}  // namespace tenon::compiler
