// What there is to try: the operators of a model that leave something open, and the ways to write each.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/kernels/choice.h"

namespace tenon::compiler::tune {

// An operator, in the first group of the model that has it.
struct Task {
  std::string key;  // kernels::operator_key
  Function group;   // of the module that the tasks are of
  int64_t uses = 0;
};

// Of the entry function of a module that is grouped into kernels; once an operator, in the order in which they run.
Expected<std::vector<Task>> find_tasks(Context& context, const Module& kernels, Symbol entry);

struct Candidate {
  kernels::Choice choice;
  double cost = 1;  // by counting, 1 for each decision's best option
};
// The default first, then by cost; equal ones in the order of the options. What counts more than twice the best option
// of a decision is left out, but for the second best, and what comes behind `most`.
Expected<std::vector<Candidate>> find_candidates(Context& context, const Module& kernels, const Task& task,
                                                 size_t most = 256);

}  // namespace tenon::compiler::tune
