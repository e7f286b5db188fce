// Which part of a buffer the statements of a loop use, and buffers that hold no more than that.
//
// A part is a box: an interval of indices for each axis of the buffer, whose ends are over the loops outside.
#pragma once

#include "compiler/loop/access.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::loop {

// One access, by a stage or by a condition outside of all stages.
struct Use {
  const Stage* stage = nullptr;  // nullptr: an if or a let in the loops
  bool writes = false;
  Dims indices;                              // over the loops
  std::vector<int64_t> sizes;                // of a block; empty: one element
  std::vector<std::pair<Body*, size_t>> at;  // the statement, and those around it, from the body searched on
  std::vector<const For*> loops;             // around it, from the body searched on
};
// What uses the buffer in a body, in order. A library call is a use without indices.
std::vector<Use> uses_of(TypeContext& context, Body& body, BufferId buffer);

using Box = std::vector<std::optional<Interval>>;  // of each axis; nothing: the whole axis
// What one use takes while those of its loops run that stand behind the first `shared` of them. The ends are over the
// variables in `outside`.
Box box_of(TypeContext& context, const Function& function, BufferId buffer, const Use& use, size_t shared,
           const std::set<Symbol>& outside);
// What holds both.
Box hull(TypeContext& context, const Box& a, const Box& b);
// Whether each point of the box is used: the loops behind the first `shared` fill it, and nothing skips one but where
// an axis of the stage ends, or for a guard in `also`.
bool fills_box(TypeContext& context, const Use& use, size_t shared, const std::vector<Guard>& also);

// The axis of the stage, in front of the others, whose value is that of the loop. It is made where there is none, of
// that kind. The loop is the last of `loops`, which are all the loops around the stage up to it.
Symbol axis_of_loop(TypeContext& context, const Function& function, Stage& stage, std::span<const For* const> loops,
                    AxisKind kind);

// The statement of the outermost body that the stage stands in, behind the buffers that are made around it.
size_t outermost(const Path& path);
// Whether the stage writes the whole buffer: at its axes, everywhere.
bool writes_whole(TypeContext& context, const Function& function, const Stage& stage, BufferId buffer);
// Why the stage does not write the buffer alone and completely in the loop at a step, or, without one, in all.
Status writes_alone(TypeContext& context, Function& function, const Path& path, std::optional<size_t> loop,
                    BufferId to);

// A stage that copies a box, with its loops, `lo` and sizes over the loops outside. What lies outside of the buffer is
// left out, and everything where a guard, over the loops outside, does not hold.
Stmt copy_nest(TypeContext& context, const Function& function, Symbol name, BufferId from, BufferId to, const Box& box,
               std::vector<Guard> guards);

}  // namespace tenon::compiler::loop
