// Random problems of assigning units to targets (compiler/partition/assignment.h), small ones against exhaustive
// search: the library behind `tenon fuzz partition --optimal`.
#pragma once

#include <cstdint>
#include <functional>

#include "compiler/partition/assignment.h"
#include "support/diagnostic.h"

namespace tenon::compiler::fuzz {

struct ProblemOptions {
  uint32_t units = 12, labels = 2;
  bool launches = true;
};

// Units of up to 200 ticks, copies of up to 60, and launches of up to 400.
AssignmentProblem random_problem(uint64_t seed, const ProblemOptions& options);

// The least cost of all placements: labels^units of them.
Ticks exhaustive_cost(const AssignmentProblem& problem);

struct AssignmentTally {
  int64_t problems = 0;
  int64_t optimal = 0;  // by the search alone, without branch and bound
  double worst = 0;     // of the search: cost / optimum - 1
};

// Problems of up to 12 units for two labels and 9 for three, with seeds from `seed` on. An error where a promise does
// not hold, with the seed: the result costs no more than all units at each target, the bound no more than the optimum,
// and branch and bound finds the optimum; without launches, so does the search.
Expected<AssignmentTally> check_assignments(uint64_t seed, int64_t count, uint32_t labels, bool launches);

}  // namespace tenon::compiler::fuzz
