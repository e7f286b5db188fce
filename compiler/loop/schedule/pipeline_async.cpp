// The primitive pipeline with asynchronous copies: a stage copies the elements of later iterations to shared memory
// while the present one is computed.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/schedule/copies.h"
#include "compiler/loop/schedule/pipelining.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/storage.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// The statements of a loop that copies ahead: wait, barrier, copies, commit, and the others.
constexpr size_t kFirstCopy = 2;

// The position of the commit in the body of such a loop; nothing where the loop does not copy ahead yet.
std::optional<size_t> commit_in(const Body& body) {
  if (body.size() < kFirstCopy || !std::holds_alternative<Wait>(body[0].form)) return std::nullopt;
  const auto commit =
      std::ranges::find_if(body, [](const Stmt& stmt) { return std::holds_alternative<Commit>(stmt.form); });
  return commit == body.end() ? std::nullopt : std::optional(static_cast<size_t>(commit - body.begin()));
}

// Allocates the buffers of the loop's last statements before the others: then all statements are in one body.
void allocate_first(For& loop) {
  for (Body* body = &inner_body(loop); std::holds_alternative<Alloc>(body->back().form); body = &inner_body(loop)) {
    Alloc last = std::move(std::get<Alloc>(body->back().form));
    body->pop_back();
    Body others = std::exchange(*body, {});
    last.body.insert(last.body.begin(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
    body->push_back({std::move(last)});
  }
}

// Takes the Alloc of the buffer from around the loop's statements and returns its scope.
std::optional<Scope> take_alloc(For& loop, BufferId buffer) {
  for (Body* body = &loop.body; body->size() == 1 && std::holds_alternative<Alloc>(body->front().form);
       body = &std::get<Alloc>(body->front().form).body) {
    auto& alloc = std::get<Alloc>(body->front().form);
    if (alloc.buffer != buffer) continue;
    const Scope scope = alloc.scope;
    Body inner = std::move(alloc.body);
    *body = std::move(inner);
    return scope;
  }
  return std::nullopt;
}

}  // namespace

Expected<Function> pipeline_async(TypeContext& context, Function function, Symbol stage, Symbol loop, int64_t buffers) {
  if (buffers < 2) return error(fmt::format("{} buffers do not hold a copy ahead", buffers), {}, "use two or more");
  TENON_TRY_ASSIGN(found, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(found_step, find_loop(context, *found, loop));
  allocate_first(found->loop_at(*found_step));
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(step, find_loop(context, *path, loop));
  For& target = path->loop_at(*step);
  const std::string name(context.name(loop));
  if (target.kind != LoopKind::kSerial) return error(fmt::format("the loop '{}' has a loop kind already", name));
  Body& body = inner_body(target);
  const auto own = std::ranges::find(path->steps, &body, &Path::Step::body);
  const std::optional<size_t> commit = commit_in(body);
  const size_t first = commit ? *commit + 1 : 0;
  if (own == path->steps.end() || own->index != first || body.size() < first + 2)
    return error(fmt::format("the stage '{}' is not the first of several statements in the loop '{}'",
                             context.name(stage), name));
  if (commit && std::get<Wait>(body[0].form).groups != buffers - 2)
    return error(fmt::format("the loop '{}' has {} buffers already", name, std::get<Wait>(body[0].form).groups + 2));
  TENON_TRY(only_stages_depend(context, function, target));
  TENON_TRY(may_run_ahead(context, function, target, body, first));
  const std::set<BufferId> written = buffers_written(body[first]);
  size_t stages = 0;
  for_each_stage(body[first], [&](Stage&) { ++stages; });
  if (written.size() != 1 || stages != 1)
    return error(fmt::format("the stage '{}' is not the only one of its statement", context.name(stage)));
  const BufferId buffer = *written.begin();

  // Each access to the buffer gets the index of its iteration's copy.
  const std::vector<const For*> loops = loops_up_to(*path, *step);
  for (size_t i = first; i < body.size(); ++i) {
    for_each_stage(body[i], [&](Stage& user) {
      bool uses = false;
      for_each_access(user, [&](const Access& access) { uses |= access.buffer == buffer; });
      if (!uses) return;
      const Symbol axis = axis_of_loop(context, function, user, loops, i == first ? AxisKind::kScan : AxisKind::kGiven);
      add_index(user, buffer, context.modulo(context.dim(axis), context.dim(buffers)));
    });
  }
  function.buffers[index(buffer)].add_outermost_axis(context.dim(buffers));

  // The copies of the first iterations are made before the loop, those of later ones in it.
  const Dim ahead = context.dim(buffers - 1), extent = target.extent;
  path->stage().async = true;
  Body before = copy_of(context, function, Body{body[first]}, "ahead");
  const Symbol var = fresh(context, function, fmt::format("{}_ahead", name));
  const auto shift = [&](Stmt& stmt, Dim iteration, bool always) {
    substitute(context, function, stmt, {{loop, iteration}});
    if (always) return;
    for_each_stage(stmt, [&](Stage& copied) { copied.where.push_back({iteration, extent}); });
  };
  const bool has_all = DimProver(context).less_equal(ahead, extent) == Answer::kYes;
  Stmt in_loop = std::move(body[first]);
  body.erase(body.begin() + static_cast<ptrdiff_t>(first));
  shift(in_loop, context.add(context.dim(loop), ahead), false);
  if (commit) {
    body.insert(body.begin() + static_cast<ptrdiff_t>(*commit), std::move(in_loop));
  } else {
    Body start;
    start.push_back({Wait{buffers - 2}}), start.push_back({Barrier{}});
    start.push_back(std::move(in_loop)), start.push_back({Commit{}});
    body.insert(body.begin(), std::make_move_iterator(start.begin()), std::make_move_iterator(start.end()));
  }
  const std::optional<Scope> scope = take_alloc(target, buffer);
  if (!scope)
    return error(fmt::format("{} is not allocated in the loop '{}'", local(context, function, buffer), name), {},
                 "allocate it there with store_at");

  Body& around = *path->steps[*step].body;
  const size_t at = path->steps[*step].index;
  Body whole;
  if (commit) {
    auto& prologue = std::get<For>(around[at - 1].form);
    shift(before.front(), context.dim(prologue.var), has_all);
    prologue.body.insert(prologue.body.end() - 1, std::move(before.front()));
    whole.push_back(std::move(around[at - 1]));
  } else {
    shift(before.front(), context.dim(var), has_all);
    For prologue{.var = var, .extent = ahead, .kind = LoopKind::kSerial, .body = std::move(before)};
    prologue.body.push_back({Commit{}});
    whole.push_back({std::move(prologue)});
  }
  whole.push_back(std::move(around[at]));
  Stmt allocated{Alloc{.buffer = buffer, .scope = *scope, .body = std::move(whole)}};
  around.erase(around.begin() + static_cast<ptrdiff_t>(commit ? at - 1 : at),
               around.begin() + static_cast<ptrdiff_t>(at) + 1);
  around.insert(around.begin() + static_cast<ptrdiff_t>(commit ? at - 1 : at), std::move(allocated));
  return function;
}

}  // namespace tenon::compiler::loop
