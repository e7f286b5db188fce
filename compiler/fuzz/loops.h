// Random loop functions: what a random module calls beside functions.
#pragma once

#include "compiler/fuzz/types.h"

namespace tenon::compiler::fuzz {

// Elementwise, moving, reducing, scanning or gathering, of constant or symbolic sizes; verified. Only gathers may fail.
loop::Function random_loop_function(Context& context, Types& types, Random& random, std::string_view name);

}  // namespace tenon::compiler::fuzz
