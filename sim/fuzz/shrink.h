// Makes a failing program small: fewer launches and instructions, smaller extents, as long as it stays legal and fails.
//
// An instruction leaves with the token partners of its own tokens, so counters keep their pairs; where that loses an
// order that is needed, it leaves its tokens behind in a SYNC. Legal means: the behavioral simulator runs it to its end
// without race or deadlock.
#pragma once

#include <functional>

#include "sim/fuzz/program.h"

namespace tenon::sim::fuzz {

using Fails = std::function<bool(const Program&)>;

// Whether the behavioral simulator runs all launches without a stop.
bool legal(const Program& program);

// Removes one instruction and its tokens' partners.
Program without(const Program& program, size_t launch, size_t position);

// `fails` is asked only about legal programs, at most `budget` times. Returns the smallest one found.
Program shrink(Program program, const Fails& fails, int budget = 2000);

}  // namespace tenon::sim::fuzz
