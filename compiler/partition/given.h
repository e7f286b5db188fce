// Modules that arrive with regions, as a printed one does: what they say must be so before code is made of it.
// Internal to the partitioner.
#pragma once

#include <span>

#include "compiler/partition/target.h"

namespace tenon::compiler {

// Every function of a target is an instance of the pattern that it names, or a region: transforms of layouts and calls
// of such instances, a tuple of results at most behind them. Targets that are not among `targets` are not looked at.
Status check_given(Context& context, const Module& module, std::span<const Target> targets);

}  // namespace tenon::compiler
