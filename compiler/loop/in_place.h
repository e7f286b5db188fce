// Which results of a loop function may be computed in the memory of a parameter that nothing reads afterwards.
#pragma once

#include <vector>

#include "compiler/loop/loop.h"
#include "runtime/native/signature.h"

namespace tenon::compiler::loop {

// Pairs of a result and a parameter of equal type and sizes, where each element of the result is written once, by one
// statement, and the elements of the parameter that are read there are those with the same indices. Other statements of
// the same stage may read the same elements before, and loops before those of the result may read any. Several stages
// may write the result, as those of full blocks and of tails, where their elements lie in disjoint boxes. A result that
// overlaps the parameter exactly then replaces each element after its only use, in any order of the points and by any
// number of threads. Of a scheduled function; a function with a ragged buffer has no pairs.
std::vector<runtime::InPlace> find_in_place(TypeContext& context, const Function& function);

}  // namespace tenon::compiler::loop
