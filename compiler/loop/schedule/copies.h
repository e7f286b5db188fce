// Copies of statements, and stages that use another buffer, for the primitives of schedules.
#pragma once

#include <map>
#include <string_view>

#include "compiler/loop/loop.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::loop {

using BufferMap = std::map<BufferId, BufferId>;

// Makes all statements of the body use other buffers.
void replace_buffers(Body& body, const BufferMap& buffers);
// A copy of the statements with stages and allocated buffers of its own, whose names end in `suffix`.
Body copy_of(TypeContext& context, Function& function, const Body& original, std::string_view suffix);
// Makes the stage use `to` instead of `from`.
void redirect(Stage& stage, BufferId from, BufferId to);
// The only buffer that a stage writes, allocated inside the function.
Expected<BufferId> only_result(const TypeContext& context, Function& function, Stage& stage);

}  // namespace tenon::compiler::loop
