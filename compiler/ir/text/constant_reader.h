// Reads constants: const $0: TYPE = side(OFFSET) or [VALUES];
#pragma once

#include "compiler/ir/text/cursor.h"

namespace tenon::compiler {

// The part behind the type. `type_at`: its place.
Expected<runtime::Tensor> read_constant(const Context& context, Cursor& cursor, Type type, size_t type_at,
                                        std::span<const std::byte> side);
// A scalar of this dtype; `at` is its place.
Expected<runtime::Tensor> make_scalar(const Cursor& cursor, size_t at, const Attr& value, DType dtype);

}  // namespace tenon::compiler
