// Convolutions over one to three spatial dims, with groups, as plain sums, which a template
// (compiler/schedules/convolution.h) turns into register tiles.
#pragma once

#include <functional>

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// A term of the sum: the product of a weight and an element of x.
using Times = std::function<Expr(const Expr& w, const Expr& x)>;
// The convolution of the operator's arguments and attributes, with `pad` as the padding value.
LazyTensor plain_convolution(const OperatorCall& op, const Expr& pad, const Times& times);

}  // namespace tenon::compiler::kernels
