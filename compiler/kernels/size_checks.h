// The conditions on sizes by which a reference kernel refuses arguments that its type rule accepts, since they are not
// constants: the window of a pooling is larger than the map, an axis has no element. A native kernel has them too, so
// that a program fails with native kernels where the interpreter does. A lowering names its condition in its row; where
// it names none, the type rule has all conditions, or the kernel reports the others.
#pragma once

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// The axis that the attribute `axis` names has an element.
void require_axis(const OperatorCall& call);
// The window of a pooling, and the kernel of a convolution, which is its second argument, fit into the padded input.
void require_window(const OperatorCall& call);
void require_kernel(const OperatorCall& call);
// The result has elements after the padding is removed.
void require_result(const OperatorCall& call);
// Each spatial dim has an element; `message` as the reference kernel states it.
void require_maps(const OperatorCall& call, std::string_view message);
// Each axis that is padded with its own elements has one.
void require_padded_axes(const OperatorCall& call);

}  // namespace tenon::compiler::kernels
