// The primitives: each takes a function apart by value and gives the new one, or the reason why not. schedule.h says
// what they do.
#pragma once

#include <optional>
#include <span>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

Expected<Function> split(TypeContext& context, Function function, Symbol stage, Symbol loop, int64_t factor);
Expected<Function> fuse(TypeContext& context, Function function, Symbol stage, Symbol outer, Symbol inner);
Expected<Function> reorder(TypeContext& context, Function function, Symbol stage, std::span<const Symbol> loops);
Expected<Function> mark(TypeContext& context, Function function, Symbol stage, Symbol loop, Mark mark);
// Whether each loop of a function that was not made by steps has a mark that mark() would give it.
Status check_marks(TypeContext& context, const Function& function);
Expected<Function> partition(TypeContext& context, Function function, Symbol stage, Symbol loop);
Expected<Function> hfuse(TypeContext& context, Function function, Symbol first, Symbol first_loop, Symbol second,
                         Symbol second_loop);

Expected<Function> inlined(TypeContext& context, Function function, Symbol stage);
Expected<Function> compute_at(TypeContext& context, Function function, Symbol stage, Symbol reader, Symbol loop);
Expected<Function> split_init(TypeContext& context, Function function, Symbol stage, Symbol loop);
Expected<Function> rfactor(TypeContext& context, Function function, Symbol stage, Symbol loop);
Expected<Function> pad(TypeContext& context, Function function, Symbol stage, Symbol axis, int64_t multiple);

// Where a copy is made: in a loop, and where it lies.
struct CachePlace {
  Symbol loop{};
  Scope scope = Scope::kHeap;
};
Expected<Function> cache_read(TypeContext& context, Function function, Symbol stage, Symbol buffer,
                              std::optional<CachePlace> place);
Expected<Function> cache_write(TypeContext& context, Function function, Symbol stage, std::optional<CachePlace> place);
Expected<Function> store_at(TypeContext& context, Function function, Symbol stage, Symbol buffer, CachePlace place);
Expected<Function> fold_storage(TypeContext& context, Function function, Symbol stage, Symbol buffer, Symbol loop,
                                int64_t elements);
Expected<Function> pipeline(TypeContext& context, Function function, Symbol stage, Symbol loop);

Expected<Function> tensorize(TypeContext& context, Function function, Symbol stage, Symbol loop, Symbol intrinsic);

}  // namespace tenon::compiler::loop
