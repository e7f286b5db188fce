// The statements of a loop function as the schedule's primitives see them.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// From the outermost statement to a stage; each stands in the body beside it.
struct Path {
  struct Step {
    Body* body = nullptr;
    size_t at = 0;
    Stmt& stmt() const { return (*body)[at]; }
  };
  std::vector<Step> steps;

  Stage& stage() const { return std::get<Stage>(steps.back().stmt().form); }
  // Where the loop of that variable is.
  std::optional<size_t> loop(Symbol var) const;
  For& loop_at(size_t step) const { return std::get<For>(steps[step].stmt().form); }
  bool is_loop(size_t step) const { return std::holds_alternative<For>(steps[step].stmt().form); }
};

Expected<Path> find_stage(const TypeContext& context, Function& function, Symbol stage);
Expected<size_t> find_loop(const TypeContext& context, const Path& path, Symbol var);

// Each stage of a statement or body.
void for_each_stage(Stmt& stmt, const std::function<void(Stage&)>& visit);
// Each expression of a stage's statements, and each store; none of an instruction.
void for_each_expr(Stage& stage, const std::function<void(Expr&)>& visit);
void for_each_store(Stage& stage, const std::function<void(Store&)>& visit);
// What statements of a body, stages and library calls, read and write.
std::set<BufferId> buffers_read(const Stmt& stmt);
std::set<BufferId> buffers_written(const Stmt& stmt);

// Variables of loops replaced in the statement and in the sizes of the buffers that it makes; inside a stage only in
// what its axes are and in its guards.
void substitute(TypeContext& context, Function& function, Stmt& stmt, const std::map<Symbol, Dim>& values);

// Axes of a stage replaced in its statements.
void substitute_axes(TypeContext& context, Stage& stage, const std::map<Symbol, Dim>& values);

// The indices of a buffer in a stage's statements, and the axes of the buffer that they are of.
void for_each_index(Stage& stage, BufferId buffer, const std::function<void(size_t axis, Dim& index)>& visit);
// Each access to the buffer gets another index, before the others.
void add_index(Stage& stage, BufferId buffer, Dim index);

// Dims over the axes of a stage, over the loops around it.
Dims over_loops(TypeContext& context, const Stage& stage, const Dims& dims);

// "%a"
std::string local(const TypeContext& context, const Function& function, BufferId id);
// A name that no variable or buffer of the function has: `base`, or it with underscores.
Symbol fresh(TypeContext& context, const Function& function, std::string base);
// The Alloc of a buffer, and where; nothing where it is none.
std::optional<Path::Step> find_alloc(Body& body, BufferId buffer);
// The outermost statement of the path that holds its stage and nothing else.
size_t root_of(const Path& path);
void erase(const Path::Step& step);
// How many steps both paths have in common, from the outermost on.
size_t common_steps(const Path& a, const Path& b);
// Another buffer of this type.
BufferId add_buffer(Function& function, Symbol name, BufferId like);
// The buffer's Alloc gives way to what is in it. Paths into the body around it are wrong behind this.
void remove_alloc(Function& function, BufferId buffer);
// The loops around the stage, or up to a step, or behind it; the outermost first.
std::vector<const For*> all_loops(const Path& path);
std::vector<const For*> loops_up_to(const Path& path, size_t step);
std::vector<const For*> loops_behind(const Path& path, size_t step);
// The variables of the loops up to a step, and the function's.
std::set<Symbol> outside_variables(const Function& function, const Path& path, size_t step);
bool only_mentions(Dim dim, const std::set<Symbol>& variables);
bool is_instruction(const Stage& stage);
// What is known of the loops around a stage: constant sizes.
DimBounds bounds_of(const Path& path, size_t steps);
// Whether the loops from `step` on visit each point of the stage at most once, as is seen where its axes are sums of
// the loops' variables. Where a stage was moved to its reader, points may be computed again.
bool visits_points_once(TypeContext& context, const Path& path, size_t step);
// A nest of loops, the first outermost, around a statement.
Stmt nest(std::vector<For> loops, Stmt inner);

// Both inside.
struct Interval {
  Dim lo, hi;
};
// The values that an index takes while the loops inside run, the outermost first; nothing where that is not seen.
std::optional<Interval> interval_of(TypeContext& context, Dim dim, const std::vector<const For*>& inner);
// Whether the axis is 0 in the first iteration of all the loops, which are those in its value.
bool begins_at_zero(TypeContext& context, const Axis& axis, const std::vector<const For*>& loops);
// Whether left < right at all points of the loops; they are all the loops in the dims.
bool always_below(TypeContext& context, Dim left, Dim right, const std::vector<const For*>& loops);

}  // namespace tenon::compiler::loop
