// Matrix products of bytes.
#pragma once

#include <optional>

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// The operator's first argument [batch..., rows, terms] times its second one, whose axes of terms and of columns are
// given, where both are bytes less a number (bytes.h) and columns and terms are known.
std::optional<Value> byte_product(const Operation& op, std::string_view name, size_t terms_axis, size_t columns_axis);

}  // namespace tenon::compiler::kernels
