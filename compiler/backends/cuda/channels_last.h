// Layouts of the values that pass from one kernel of a region to the next: with channels innermost, the terms of a
// convolution are adjacent in memory in words of 16 bytes, which tensor cores and cp.async want.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/machine/machine.h"

namespace tenon::compiler::cuda {

// The bindings of a region whose operators share a kernel, in order; the last one is its result.
using Members = std::vector<size_t>;

// Whether a kernel of the operator alone would copy its argument: a transpose, or another shape.
bool only_copies(const Operator& op);

// The bindings that read each value; their number where the region returns it.
using Readers = std::map<VarId, std::vector<size_t>>;

// The results of kernels that the region stores with channels innermost. Such a value
// - is read as the input of a convolution of tensor cores, whose words it fills, or by operators that pass the layout
//   on to such a value: poolings, depthwise convolutions, and elementwise operators of its shape;
// - is read by no other operator, and is no result of the region;
// - comes from a convolution, a pooling or elementwise operators, which store any layout.
// `groups`: the kernel that ends with each binding of the region; empty for other bindings.
std::set<VarId> channels_last(const Function& region, const std::vector<Members>& groups, const Readers& readers,
                              const Machine& machine);

}  // namespace tenon::compiler::cuda
