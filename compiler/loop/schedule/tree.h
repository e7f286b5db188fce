// The statements of a loop function as the schedule's primitives see them.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "compiler/ir/dim_prover.h"
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

Expected<Path> find_stage(const Context& context, Function& function, Symbol stage);
Expected<size_t> find_loop(const Context& context, const Path& path, Symbol var);

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
void substitute(Context& context, Function& function, Stmt& stmt, const std::map<Symbol, Dim>& values);

// Dims over the axes of a stage, over the loops around it.
Dims over_loops(Context& context, const Stage& stage, const Dims& dims);

// A name that no variable or buffer of the function has: `base`, or it with underscores.
Symbol fresh(Context& context, const Function& function, std::string base);
// The Alloc of a buffer, and where; nothing where it is none.
std::optional<Path::Step> find_alloc(Body& body, BufferId buffer);
// What is known of the loops around a stage: constant sizes.
DimBounds bounds_of(const Path& path, size_t steps);
// Whether the loops from `step` on visit each point of the stage at most once, as is seen where its axes are sums of
// the loops' variables. Where a stage was moved to its reader, points may be computed again.
bool visits_points_once(Context& context, const Path& path, size_t step);
// A nest of loops, the first outermost, around a statement.
Stmt nest(std::vector<For> loops, Stmt inner);
// A stage that copies a whole buffer, with its loops.
Stmt copy_nest(Context& context, const Function& function, Symbol name, BufferId from, BufferId to);

}  // namespace tenon::compiler::loop
