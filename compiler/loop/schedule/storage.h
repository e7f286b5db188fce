// Where buffers are made, and how much of them is kept.
#pragma once

#include "compiler/loop/schedule/region.h"

namespace tenon::compiler::loop {

Expected<BufferId> find_buffer(const TypeContext& context, const Function& function, Symbol name);
// The buffer is made in the loop of the stage, and holds what one iteration uses of it.
Expected<Function> store_in_loop(TypeContext& context, Function function, BufferId buffer, Symbol stage, Symbol loop,
                                 Scope scope);

}  // namespace tenon::compiler::loop
