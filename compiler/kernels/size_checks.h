// The conditions on sizes by which a reference kernel refuses arguments that its type rule accepts, since they are not
// constants: the window of a pooling is larger than the map, an axis has no element. A native kernel has them too, so
// that a program fails with native kernels where the interpreter does.
#pragma once

#include "compiler/ir/operator.h"
#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// Requires the operator's conditions of the kernel that computes this call, unless the sizes prove them.
void require_sizes(const Operator& op, const OperatorCall& call);

}  // namespace tenon::compiler::kernels
