// Matrix products of 8-bit integers.
#pragma once

#include <optional>

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// The product of the operator's first argument [batch..., rows, terms] and its second one, in which `terms_axis` is the
// reduction axis and `columns_axis` the axis of the columns. Requires two operands that are bytes minus a zero point
// (bytes.h) and constant numbers of terms and columns; else nullopt.
std::optional<LazyTensor> byte_product(const OperatorCall& op, std::string_view name, size_t terms_axis,
                                       size_t columns_axis);

}  // namespace tenon::compiler::kernels
