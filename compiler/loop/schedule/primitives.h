// The primitives: each takes a function apart by value and gives the new one, or the reason why not. schedule.h says
// what they do.
#pragma once

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

Expected<Function> split(Context& context, Function function, Symbol stage, Symbol loop, int64_t factor);
Expected<Function> fuse(Context& context, Function function, Symbol stage, Symbol outer, Symbol inner);
Expected<Function> reorder(Context& context, Function function, Symbol stage, std::span<const Symbol> loops);
Expected<Function> mark(Context& context, Function function, Symbol stage, Symbol loop, Mark mark);
Expected<Function> inlined(Context& context, Function function, Symbol stage);
Expected<Function> compute_at(Context& context, Function function, Symbol stage, Symbol reader, Symbol loop);
Expected<Function> split_init(Context& context, Function function, Symbol stage, Symbol loop);
Expected<Function> cache_read(Context& context, Function function, Symbol stage, Symbol buffer);
Expected<Function> cache_write(Context& context, Function function, Symbol stage);

}  // namespace tenon::compiler::loop
