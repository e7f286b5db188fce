// The linear network of the paper's theorem: N layers of unit cost and size, forward and backward, in O(N) operators
// with memory for about 2 sqrt(N) tensors (Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021, section 3).
//
// Semantics: layer i is computed from layer i - 1, gradient i from layer i - 1 and gradient i + 1; each is released
// after its last use. Undisturbed, these are 2 N operators.
#pragma once

#include <cstdint>

#include "runtime/remat/log.h"

namespace tenon::runtime::remat {

// A step log of the network, layers >= 1.
StepLog linear_network(int64_t layers);

// The theorem's budget: 2 ceil(sqrt(layers)), and at least the three tensors that a gradient needs.
int64_t linear_budget(int64_t layers);

}  // namespace tenon::runtime::remat
