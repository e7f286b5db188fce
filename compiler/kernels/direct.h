// Convolutions over one or two spatial dims of constant sizes as products (product.h), for sums of many terms, which
// repay a padded copy of x.
#pragma once

#include <functional>
#include <optional>

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// A term of the sum: the product of a weight and an element of x.
using Times = std::function<Expr(const Expr& w, const Expr& x)>;
// The convolution of the operator's arguments and attributes, with `pad` as the padding value. nullopt where a size is
// not constant; nothing is emitted then.
std::optional<LazyTensor> direct_convolution(const OperatorCall& op, const Expr& pad, const Times& times,
                                             Factors factors = Factors::kElements);

}  // namespace tenon::compiler::kernels
