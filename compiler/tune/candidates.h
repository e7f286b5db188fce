// The search space: the operators of a model that have knobs, and the candidate settings of each.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/kernels/knob.h"
#include "compiler/machine/machine.h"

namespace tenon::compiler::tune {

// An operator with knobs, in the first group of the model that contains it.
struct Task {
  std::string key;   // kernels::operator_key
  Function group;    // in the module of the tasks
  int64_t uses = 0;  // in the model
};

// The tasks of the entry function of a module that is grouped into kernels: each operator once, in execution order.
Expected<std::vector<Task>> find_tasks(Context& context, const Module& kernels, Symbol entry, const Machine& machine);

struct Candidate {
  kernels::KnobSettings settings;
  double cost = 1;  // by the cost model: the product over the knobs of the cost relative to the best option
};
// The candidates, at most `limit`: the default first, then by cost, and in the order of the options where costs are
// equal. Options of more than twice the cost of the best one are left out, except for the second best.
Expected<std::vector<Candidate>> find_candidates(Context& context, const Module& kernels, const Task& task,
                                                 const Machine& machine, size_t limit = 256);

}  // namespace tenon::compiler::tune
