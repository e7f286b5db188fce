// The assignment of a target to each unit of a block, as a problem of numbers: what the partitioner makes of a block's
// operators and prices, without the IR.
//
// The cost of a placement (a label for each unit, 0 is the host) is the sum
//   over units           of the unit's cost at its label
//   over values          of `down` of the producer's label, once, if any reader is at another label
//   over values, labels  of `up` of the label, once, if a reader is there and the producer is not
//   over gains           of minus the amount, if all the gain's units are at its label
//   over regions         of the label's launch, where regions are the neighbours of one label, as ConvexGroups merges
//   them.
//
// Without launches, the best relabelling of any set of units to one label is a minimum cut: each term is the price of a
// set that is divided, which one auxiliary node of the network expresses (Kolmogorov and Zabih 2004, "What energy
// functions can be minimized via graph cuts?"; the higher-order terms as in Kohli, Ladicky and Torr 2009, "Robust
// higher order potentials"). With the host and one target a cut is the optimum; with more, cuts are repeated until none
// improves (expansion moves: Boykov, Veksler and Zabih 2001, "Fast approximate energy minimization via graph cuts").
// Launches do not decompose so: candidates come from cuts with shares of a launch spread over the edges into a unit,
// and a local search improves them by the cost itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tenon::compiler {

using Ticks = int64_t;                             // of time: any unit, as picoseconds
inline constexpr Ticks kNever = INT64_MAX;         // the cost of a unit at a label that does not support it
inline constexpr Ticks kMaxCost = Ticks{1} << 50;  // the largest other cost or launch, about 18 minutes of picoseconds

using Labels = std::vector<uint32_t>;  // by unit

struct AssignmentProblem {
  struct Value {
    std::optional<uint32_t> producer;  // nullopt: it comes from outside, and is at the host
    std::vector<uint32_t> readers;     // units
    bool read_by_host = false;         // whether something at the host reads it besides
    std::vector<Ticks> down, up;       // by label; of label 0 unused
  };
  struct Gain {
    uint32_t label = 0;
    std::vector<uint32_t> units;
    Ticks amount = 0;  // not negative
  };
  std::vector<std::vector<Ticks>> units;  // by unit and label; at the host always a cost
  std::vector<Value> values;
  std::vector<Gain> gains;
  std::vector<Ticks> launches;                 // by label; 0 of label 0
  std::vector<std::vector<uint32_t>> follows;  // by unit: the units before it that it depends on, values and effects

  size_t labels() const { return launches.size(); }
};

struct Assignment {
  Labels labels;
  Ticks cost = 0;
  Ticks bound = 0;       // no placement costs less
  bool optimal = false;  // that is proved
  uint64_t evaluations = 0;
};

// The cost as above. Each unit is at a label that supports it.
Ticks cost_of(const AssignmentProblem& problem, const Labels& labels);
// The regions of a placement: by unit, the id of its region, which is a unit of it; at the host its own id.
std::vector<uint32_t> regions_of(const AssignmentProblem& problem, const Labels& labels);
// All units at the label that supports them, the others at the host.
Labels all_at(const AssignmentProblem& problem, uint32_t label);

struct AssignmentOptions {
  bool exact = true;  // branch and bound, where at most kMaxExactUnits units have several labels
  std::vector<Labels> candidates = {};
};
inline constexpr size_t kMaxExactUnits = 20;

// A placement that costs no more than all units at the host, all at each target, and the candidates. Ties break by the
// order of units and labels, so that the result depends on the problem alone.
Assignment assign(const AssignmentProblem& problem, const AssignmentOptions& options = {});

}  // namespace tenon::compiler
