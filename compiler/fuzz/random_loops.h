// Random loop functions and random steps of schedules, for tests and campaigns that compare results: a function under
// the steps that were accepted has the results of the plain one.
#pragma once

#include <string>
#include <vector>

#include "compiler/loop/loop.h"
#include "support/random.h"

namespace tenon::compiler::loop {

// Several stages on a matrix of n rows and a constant number of columns, each of which reads results of earlier stages:
// @p(%x: (n, m), %w: (m, m)) -> (%y: (n, m)) of i32, with an instruction @row.
std::string random_program(Random& random);

// A function and its parameters. Its batch has 0 to 5 instances of 0 to 6 rows, whose numbers are `lengths`; some
// functions have a buffer with two ragged axes, or one that grows with the row.
struct RaggedProgram {
  std::string text;  // @p(%lengths: (n,), %x: (b: n, lengths(b), m), %w: (m, m)) -> (%y: (b: n, lengths(b), m)) of i32
  std::vector<runtime::Tensor> params;
};
RaggedProgram random_ragged_program(Random& random);

// A random step, or a few related ones, with arguments that exist in the function.
std::vector<std::string> random_steps(TypeContext& context, const Function& function, Random& random);

}  // namespace tenon::compiler::loop
