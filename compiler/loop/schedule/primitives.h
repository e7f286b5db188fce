// The primitives: each takes a function apart by value and gives the new one, or the reason why not. schedule.h says
// what they do.
#pragma once

#include <optional>
#include <span>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

Expected<Function> split(Context& context, Function function, Symbol stage, Symbol loop, int64_t factor);
Expected<Function> fuse(Context& context, Function function, Symbol stage, Symbol outer, Symbol inner);
Expected<Function> reorder(Context& context, Function function, Symbol stage, std::span<const Symbol> loops);
Expected<Function> mark(Context& context, Function function, Symbol stage, Symbol loop, Mark mark);
// Whether each loop of a function that was not made by steps has a mark that mark() would give it.
Status check_marks(Context& context, const Function& function);
Expected<Function> partition(Context& context, Function function, Symbol stage, Symbol loop);
Expected<Function> hfuse(Context& context, Function function, Symbol first, Symbol first_loop, Symbol second,
                         Symbol second_loop);

Expected<Function> inlined(Context& context, Function function, Symbol stage);
Expected<Function> compute_at(Context& context, Function function, Symbol stage, Symbol reader, Symbol loop);
Expected<Function> split_init(Context& context, Function function, Symbol stage, Symbol loop);
Expected<Function> rfactor(Context& context, Function function, Symbol stage, Symbol loop);
Expected<Function> pad(Context& context, Function function, Symbol stage, Symbol axis, int64_t multiple);

// Where a copy is made: in a loop, and where it lies.
struct CachePlace {
  Symbol loop{};
  Scope scope = Scope::kHeap;
};
Expected<Function> cache_read(Context& context, Function function, Symbol stage, Symbol buffer,
                              std::optional<CachePlace> place);
Expected<Function> cache_write(Context& context, Function function, Symbol stage, std::optional<CachePlace> place);
Expected<Function> store_at(Context& context, Function function, Symbol stage, Symbol buffer, CachePlace place);
Expected<Function> fold_storage(Context& context, Function function, Symbol stage, Symbol buffer, Symbol loop,
                                int64_t elements);
Expected<Function> pipeline(Context& context, Function function, Symbol stage, Symbol loop);

Expected<Function> tensorize(Context& context, Function function, Symbol stage, Symbol loop, Symbol intrinsic);

}  // namespace tenon::compiler::loop
