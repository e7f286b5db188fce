// Queries and edits of a loop function's statements, for the primitives of schedules.
#pragma once

#include <map>
#include <set>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/loop.h"
#include "support/function_ref.h"

namespace tenon::compiler::loop {

// The nested statements from an outermost one to a stage, each with the body that contains it.
struct Path {
  struct Step {
    Body* body = nullptr;
    size_t index = 0;
    Stmt& stmt() const { return (*body)[index]; }
  };
  std::vector<Step> steps;

  Stage& stage() const { return std::get<Stage>(steps.back().stmt().form); }
  // The step of the loop with that variable.
  std::optional<size_t> loop(Symbol var) const;
  For& loop_at(size_t step) const { return std::get<For>(steps[step].stmt().form); }
  bool is_loop(size_t step) const { return std::holds_alternative<For>(steps[step].stmt().form); }
};

Expected<Path> find_stage(const TypeContext& context, Function& function, Symbol stage);
Expected<size_t> find_loop(const TypeContext& context, const Path& path, Symbol var);

// Visits each stage of a statement.
void for_each_stage(Stmt& stmt, FunctionRef<void(Stage&)> visit);
// Visit each expression and each store of a stage's statements, but nothing of instructions.
void for_each_expr(Stage& stage, FunctionRef<void(Expr&)> visit);
void for_each_store(Stage& stage, FunctionRef<void(Store&)> visit);
// The buffers that a statement, with its nested stages and library calls, reads and writes.
std::set<BufferId> buffers_read(const Stmt& stmt);
std::set<BufferId> buffers_written(const Stmt& stmt);

// Replaces variables of loops in the statement and in the sizes of the buffers that it allocates; of a stage, only in
// the values of its axes and in its guards.
void substitute(TypeContext& context, Function& function, Stmt& stmt, const std::map<Symbol, Dim>& values);

// Replaces serial, parallel and unrolled loops of one iteration by their bodies, where their variables are 0.
void remove_single_iterations(TypeContext& context, Function& function);

// Replaces axes of a stage in its statements.
void substitute_axes(TypeContext& context, Stage& stage, const std::map<Symbol, Dim>& values);

// Visits each index of the buffer in a stage's statements, with the buffer's axis.
void for_each_index(Stage& stage, BufferId buffer, FunctionRef<void(size_t axis, Dim& index)> visit);
// Replaces the indices of each load and store of the buffer, which no instruction in the stage uses.
void map_indices(Stage& stage, BufferId buffer, FunctionRef<Dims(const Dims& indices)> map);
// Prepends an index to each access to the buffer.
void add_index(Stage& stage, BufferId buffer, Dim index);

// Rewrites dims over a stage's axes as dims over the enclosing loops.
Dims over_loops(TypeContext& context, const Stage& stage, const Dims& dims);

// "%a"
std::string local(const TypeContext& context, const Function& function, BufferId id);
// A name that no variable or buffer of the function has: `base`, with underscores appended if needed.
Symbol fresh(TypeContext& context, const Function& function, std::string base);
// The number of a buffer's elements; nullopt where a size is not constant, or the number is no int64_t.
std::optional<int64_t> constant_elements(const Buffer& buffer);
// The most bytes of the heap that the function allocates at once, where so many threads run its parallel loops. Buffers
// whose sizes are not constants are left out.
int64_t heap_bytes(const Function& function, int64_t threads);
// The Alloc of a buffer and its location; nothing if the buffer has none.
std::optional<Path::Step> find_alloc(Body& body, BufferId buffer);
// The outermost step of the path that contains its stage and no other statement.
size_t root_of(const Path& path);
void erase(const Path::Step& step);
// The number of leading steps that both paths have in common.
size_t common_steps(const Path& a, const Path& b);
// Adds a buffer of the same type.
BufferId add_buffer(Function& function, Symbol name, BufferId like);
// Replaces the buffer's Alloc by its body. Paths into the enclosing body are invalid afterwards.
void remove_alloc(Function& function, BufferId buffer);
// All loops around the stage, and those up to a step; the outermost first.
std::vector<const For*> all_loops(const Path& path);
std::vector<const For*> loops_up_to(const Path& path, size_t step);
// The variables of the loops up to a step, and the function's dims.
std::set<Symbol> outside_variables(const Function& function, const Path& path, size_t step);
bool only_mentions(Dim dim, const std::set<Symbol>& variables);
bool is_instruction(const Stage& stage);
// Whether the function computes dot products of packed integers, or declares instructions, which may.
bool has_dots(const Function& function);
// The bounds of the loops' variables, as far as their sizes are constant; of those in the first `steps` steps.
DimBounds bounds_of(const std::vector<const For*>& loops);
DimBounds bounds_of(const Path& path, size_t steps);
// Whether the loop's variable is in the value of an axis of this kind.
bool feeds(const Stage& stage, Symbol loop, AxisKind kind);
// The statements inside of the allocations around all of them, which are visited from the outside in.
const Body& nests_of(
    const Function& function, FunctionRef<void(const Alloc&)> visit = [](const Alloc&) {});
// Whether the loops from `step` on provably visit each point of the stage at most once: if its axes are mixed-radix
// sums of the loops' variables. The points of a stage that was moved to its reader may be computed repeatedly.
bool visits_points_once(TypeContext& context, const Path& path, size_t step);
// A nest of loops around a statement; the first loop is the outermost one.
Stmt nest(std::vector<For> loops, Stmt inner);

// A closed interval.
struct Interval {
  Dim lo, hi;
};
// The values that an index takes over the iterations of the inner loops (the outermost first); nothing if unknown.
std::optional<Interval> interval_of(TypeContext& context, Dim dim, const std::vector<const For*>& inner);
// Whether the axis is 0 in the first iteration of all the loops; its value contains no other loops.
bool begins_at_zero(TypeContext& context, const Axis& axis, const std::vector<const For*>& loops);
// Whether left < right at all points of the loops; the dims contain no other loops.
bool always_below(TypeContext& context, Dim left, Dim right, const std::vector<const For*>& loops);

}  // namespace tenon::compiler::loop
