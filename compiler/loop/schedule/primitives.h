// The primitives of schedules, documented in schedule.h: each takes a function by value and returns the rewritten one,
// or the reason for the refusal.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// How the iterations end that are no whole blocks of the first factor.
enum class SplitEnd : uint8_t {
  kFit,      // as many blocks of each following factor as fit; the last ones have guards
  kOverlap,  // a block of the one factor's size computes points of the block before it again
  kRound,    // rounded up to a multiple of the last factor, in as few blocks as possible, which all have guards
};
// No factor exceeds the one before; each but the first one makes a copy of the loop for iterations that remain.
Expected<Function> split(TypeContext& context, Function function, Symbol stage, Symbol loop,
                         std::span<const int64_t> factors, SplitEnd end = SplitEnd::kFit);
Expected<Function> fuse(TypeContext& context, Function function, Symbol stage, Symbol outer, Symbol inner);
// `order`: descending, by the iterations of the loops inside.
Expected<Function> remap(TypeContext& context, Function function, Symbol stage, Symbol loop, std::string_view order);
Expected<Function> skew(TypeContext& context, Function function, Symbol stage, Symbol outer, Symbol inner);
Expected<Function> reorder(TypeContext& context, Function function, Symbol stage, std::span<const Symbol> loops);
// The step `mark`: sets the kind of a loop.
Expected<Function> annotate(TypeContext& context, Function function, Symbol stage, Symbol loop, LoopKind kind);
// Whether annotate() makes the loop a parallel one.
bool has_independent_iterations(TypeContext& context, const Function& function, Symbol stage, Symbol loop);
// Whether annotate() accepts the kind of each loop, for a function that was not built by steps.
Status check_loop_kinds(TypeContext& context, const Function& function);
Expected<Function> partition(TypeContext& context, Function function, Symbol stage, Symbol loop);
Expected<Function> fill(TypeContext& context, Function function, Symbol stage);
Expected<Function> hfuse(TypeContext& context, Function function, Symbol first, Symbol first_loop, Symbol second,
                         Symbol second_loop);

Expected<Function> inlined(TypeContext& context, Function function, Symbol stage);
Expected<Function> compute_at(TypeContext& context, Function function, Symbol stage, Symbol reader, Symbol loop);
Expected<Function> split_init(TypeContext& context, Function function, Symbol stage, Symbol loop);
Expected<Function> rfactor(TypeContext& context, Function function, Symbol stage, Symbol loop);
// Pads to a multiple that is by at least `more` larger.
Expected<Function> pad(TypeContext& context, Function function, Symbol stage, Symbol axis, int64_t multiple,
                       int64_t more);

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
Expected<Function> align_storage(TypeContext& context, Function function, Symbol buffer, int64_t axis,
                                 int64_t multiple);
Expected<Function> swizzle(TypeContext& context, Function function, Symbol buffer, const Swizzle& swizzle);
Expected<Function> pipeline(TypeContext& context, Function function, Symbol stage, Symbol loop);
Expected<Function> pipeline_async(TypeContext& context, Function function, Symbol stage, Symbol loop, int64_t buffers);

Expected<Function> clone(TypeContext& context, Function function, Symbol stage, Symbol reader);
Expected<Function> fuse_axes(TypeContext& context, Function function, Symbol stage, Symbol outer, Symbol inner);
Expected<Function> layout(TypeContext& context, Function function, Symbol buffer, std::string_view order);
// A new parameter of a function, which `load` computes once from parameters with constant elements.
struct LoadStep {
  Function load;
  std::vector<BufferId> inputs;  // of the scheduled function; they are the parameters of `load`
  BufferId operand{};
};
// Returns the function without the stage; sets `load`.
Expected<Function> at_load(TypeContext& context, Function function, Symbol stage, const std::set<BufferId>& constants,
                           LoadStep& load);

Expected<Function> tensorize(TypeContext& context, Function function, Symbol stage, Symbol loop, Symbol intrinsic,
                             bool allows_inexact);

}  // namespace tenon::compiler::loop
