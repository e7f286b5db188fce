// Random loop functions, which random modules call.
#pragma once

#include "compiler/fuzz/types.h"

namespace tenon::compiler::fuzz {

// Elementwise, moving, reducing, scanning or gathering, of constant or symbolic sizes; verified. Only gathers may fail.
loop::Function random_loop_function(Context& context, Types& types, Random& random, std::string_view name);

}  // namespace tenon::compiler::fuzz
