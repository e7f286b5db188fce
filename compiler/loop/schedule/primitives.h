// The primitives of schedules, documented in schedule.h: each takes a function by value and returns the rewritten one,
// or the reason for the refusal.
#pragma once

#include <optional>
#include <span>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

Expected<Function> split(TypeContext& context, Function function, Symbol stage, Symbol loop, int64_t factor);
Expected<Function> fuse(TypeContext& context, Function function, Symbol stage, Symbol outer, Symbol inner);
Expected<Function> reorder(TypeContext& context, Function function, Symbol stage, std::span<const Symbol> loops);
// The step `mark`: sets the kind of a loop.
Expected<Function> annotate(TypeContext& context, Function function, Symbol stage, Symbol loop, LoopKind kind);
// Whether annotate() accepts the kind of each loop, for a function that was not built by steps.
Status check_loop_kinds(TypeContext& context, const Function& function);
Expected<Function> partition(TypeContext& context, Function function, Symbol stage, Symbol loop);
Expected<Function> hfuse(TypeContext& context, Function function, Symbol first, Symbol first_loop, Symbol second,
                         Symbol second_loop);

Expected<Function> inlined(TypeContext& context, Function function, Symbol stage);
Expected<Function> compute_at(TypeContext& context, Function function, Symbol stage, Symbol reader, Symbol loop);
Expected<Function> split_init(TypeContext& context, Function function, Symbol stage, Symbol loop);
Expected<Function> rfactor(TypeContext& context, Function function, Symbol stage, Symbol loop);
Expected<Function> pad(TypeContext& context, Function function, Symbol stage, Symbol axis, int64_t multiple);

// The placement of a copy: the loop that contains it, and its storage.
struct CachePlacement {
  Symbol loop{};
  Scope scope = Scope::kHeap;
};
Expected<Function> cache_read(TypeContext& context, Function function, Symbol stage, Symbol buffer,
                              std::optional<CachePlacement> placement);
Expected<Function> cache_write(TypeContext& context, Function function, Symbol stage,
                               std::optional<CachePlacement> placement);
Expected<Function> store_at(TypeContext& context, Function function, Symbol stage, Symbol buffer,
                            CachePlacement placement);
Expected<Function> fold_storage(TypeContext& context, Function function, Symbol stage, Symbol buffer, Symbol loop,
                                int64_t elements);
Expected<Function> pipeline(TypeContext& context, Function function, Symbol stage, Symbol loop);

Expected<Function> tensorize(TypeContext& context, Function function, Symbol stage, Symbol loop, Symbol intrinsic);

}  // namespace tenon::compiler::loop
