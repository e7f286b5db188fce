// Batched functions: a function of one instance as a function of several instances at once.
#pragma once

#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler::batch {

struct Batched {
  Function function;
  // Of each tensor of the result, in the order of the tuple's fields: whether it has the leading axis. A tensor that
  // depends on no own parameter is the same for all instances.
  std::vector<bool> own;
};

// The function of several instances, as @f.batched[b]: a parameter with `own` has one more, leading axis of size b in
// each of its tensors; all instances share the other parameters. Row i of an own result is what `function` computes of
// row i of the own parameters, to the bit. The function must be of operators, tuples and sizes, without type variables,
// and at least one parameter is own. An error says which operator has no batching rule, or what its rule lacks, and
// where it is. Constants are added to the module.
//
// `of_sequences`: of instances whose sequences have different lengths. Such a function is one application whose rule
// supports that (Batching::sequences), of a parameter whose first dim is a variable; the batched one has the lengths as
// its last parameter, Tensor[(b,), i64], and the axis of the longest one in place of this dim.
Expected<Batched> batched(Context& context, Module& module, const Function& function, const std::vector<bool>& own,
                          bool of_sequences = false);
// Whether there is such a function: the sequence is one of the parameters with `own`.
bool is_of_sequences(const Function& function, const std::vector<bool>& own);

}  // namespace tenon::compiler::batch
