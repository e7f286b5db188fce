// Placement of buffers in loops.
#pragma once

#include "compiler/loop/schedule/region.h"

namespace tenon::compiler::loop {

Expected<BufferId> find_buffer(const TypeContext& context, const Function& function, Symbol name);
// Allocates the buffer in the loop of the stage; it then holds the elements that one iteration uses.
Expected<Function> store_in_loop(TypeContext& context, Function function, BufferId buffer, Symbol stage, Symbol loop,
                                 Scope scope);

}  // namespace tenon::compiler::loop
