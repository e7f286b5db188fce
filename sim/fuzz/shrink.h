// Shrinks a failing program: fewer launches and instructions, smaller extents, as long as the program is legal and
// fails.
//
// An instruction is removed together with the partners of its tokens, so that counters keep their pairs; where the
// removal loses a required order, a SYNC with its tokens replaces the instruction. A program is legal if the behavioral
// simulator runs it to its end without race or deadlock.
#pragma once

#include <functional>

#include "sim/fuzz/program.h"

namespace tenon::sim::fuzz {

using Fails = std::function<bool(const Program&)>;

// Whether the behavioral simulator runs all launches without a stop.
bool legal(const Program& program);

// The program without one instruction and without the partners of its tokens.
Program without(const Program& program, size_t launch, size_t index);

// Returns the smallest failing program found. `fails` is called only with legal programs, and at most `budget` programs
// are tried.
Program shrink(Program program, const Fails& fails, int budget = 2000);

}  // namespace tenon::sim::fuzz
