// Partitioning of random modules for synthetic targets: the library behind `tenon fuzz partition`.
#pragma once

#include "compiler/passes/pass.h"

namespace tenon::compiler::fuzz {

// The pass "partition", which keeps the meaning of a module as every pass does. It draws three targets, which support
// some operators and matches of up to three, limits of regions, and figures of costs, by the text of the module; every
// second module is partitioned by cost. An error where partitioning a copy gives another module, or where two
// neighbouring regions of a target without limits remain that could be one.
Pass random_partition();

}  // namespace tenon::compiler::fuzz
