// The reader of constants: const $w: TYPE = side; or side("MEMBER"); or [VALUES];
#pragma once

#include "compiler/base/cursor.h"
#include "compiler/ir/context.h"
#include "runtime/npy.h"

namespace tenon::compiler {

// Reads the value after the type. `name`: the name of the constant and of its member in the side file. `type_at`: the
// offset of the type.
Expected<runtime::Tensor> read_constant(const Context& context, Cursor& cursor, const std::string& name, Type type,
                                        size_t type_at, const runtime::Npz& side);
// Whether the cursor is at a scalar: a number followed by its dtype, as 3i64, -0.5f32, inff32 or nanf16.
bool at_scalar(const Cursor& cursor);
Expected<runtime::Tensor> read_scalar(Cursor& cursor);

}  // namespace tenon::compiler
