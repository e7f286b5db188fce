// The region of a buffer that the statements of a loop use, and buffers that hold only this region.
//
// A region is a box: an interval of indices for each axis of the buffer, whose ends are dims over the outer loops.
#pragma once

#include "compiler/loop/access.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::loop {

// One access to a buffer, by a stage or by a condition outside of all stages.
struct Use {
  const Stage* stage = nullptr;  // nullptr: an if or a let in the loops
  bool writes = false;
  Dims indices;                                 // over the loops
  std::vector<int64_t> sizes;                   // of a block; empty: one element
  std::vector<std::pair<Body*, size_t>> steps;  // the enclosing statements from the searched body on, and the user
  std::vector<const For*> loops;                // the enclosing loops from the searched body on
};
// The uses of the buffer in a body, in order. A library call is a use without indices.
std::vector<Use> uses_of(TypeContext& context, Body& body, BufferId buffer);

using Box = std::vector<std::optional<Interval>>;  // one interval for each axis; nothing: the whole axis
// The box that one use accesses during the iterations of its loops after the first `shared` ones. The ends are over the
// variables in `outside`.
Box box_of(TypeContext& context, const Function& function, BufferId buffer, const Use& use, size_t shared,
           const std::set<Symbol>& outside);
// The smallest box that contains both.
Box hull(TypeContext& context, const Box& a, const Box& b);
// Whether every element of the box is used: the loops after the first `shared` ones cover it, and elements are skipped
// only beyond the end of an axis of the stage, or by a guard in `allowed`.
bool fills_box(TypeContext& context, const Use& use, size_t shared, const std::vector<Guard>& allowed);

// The axis of the stage whose value is the variable of the loop; created before the other axes, of this kind, if none
// exists. The loop is the last one of `loops`, which are all the loops around the stage up to it.
Symbol axis_of_loop(TypeContext& context, const Function& function, Stage& stage, std::span<const For* const> loops,
                    AxisKind kind);

// The first step of the path that is not an Alloc: the outermost statement that contains the stage.
size_t outermost_step(const Path& path);
// Whether the stage writes the whole buffer: the indices of its store are its axes, of the buffer's sizes.
bool writes_whole(TypeContext& context, const Function& function, const Stage& stage, BufferId buffer);
// Whether the stage alone writes the buffer, and writes it completely, in the loop at a step; without a loop, in the
// whole function. The error states the reason.
Status writes_exclusively(TypeContext& context, Function& function, const Path& path, std::optional<size_t> loop,
                          BufferId to);

// A stage that copies a box, with its loops; the box's ends are over the outer loops. Elements outside of the buffer
// are not copied, and nothing is copied if a guard, over the outer loops, fails.
Stmt copy_nest(TypeContext& context, const Function& function, Symbol name, BufferId from, BufferId to, const Box& box,
               std::vector<Guard> guards, const std::vector<const For*>& around);

}  // namespace tenon::compiler::loop
