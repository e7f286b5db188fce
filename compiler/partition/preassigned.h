// Checks modules that already have regions when they are read, as a printed partitioned module does: their composites
// and regions must be valid before code is generated from them. Internal to the partitioner.
#pragma once

#include <span>

#include "compiler/partition/target.h"

namespace tenon::compiler {

// Every function with a target must be an instance of the pattern that it names, or a region: layout transforms and
// calls of such instances, followed by at most one tuple of results. Functions of targets outside `targets` are not
// checked.
Status check_preassigned(Context& context, const Module& module, std::span<const Target> targets);

}  // namespace tenon::compiler
