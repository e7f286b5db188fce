// Convolutions over one or two spatial dims of constant sizes, in tiles of registers (tiles.h): with many terms a sum,
// which a copy of x pays for.
#pragma once

#include <functional>
#include <optional>

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// A term of the sum.
using Times = std::function<Expr(const Expr& w, const Expr& x)>;
// Of the operator's arguments and attributes, but for what lies around x. Nothing where a size is not known; nothing is
// emitted then.
std::optional<Value> direct_convolution(const Operation& op, const Expr& pad, const Times& times);

}  // namespace tenon::compiler::kernels
