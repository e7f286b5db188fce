// The primitive mark: how the iterations of a loop run.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/region.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

constexpr int64_t kMaxUnrolled = 1024;

// How iterations of a loop use a buffer.
class Sharing {
 public:
  Sharing(TypeContext& context, Function& function, Symbol loop)
      : context_(context), function_(function), loop_(loop) {}

  // Whether no element is used by two iterations.
  bool apart(const std::vector<Use>& uses, size_t rank) {
    for (size_t axis = 0; axis < rank; ++axis)
      if (windows_apart(uses, axis)) return true;
    return same_element(uses);
  }

 private:
  // One index is c*loop plus less than c, in all uses.
  bool windows_apart(const std::vector<Use>& uses, size_t axis) {
    std::optional<int64_t> stride;
    Dims begins, ends;
    for (const Use& use : uses) {
      if (use.indices.empty()) return false;
      const auto interval = interval_of(context_, use.indices[axis], use.loops);
      const auto lo = interval ? context_.linear_in(loop_, interval->lo) : std::nullopt;
      const auto hi = interval ? context_.linear_in(loop_, interval->hi) : std::nullopt;
      if (!lo || !hi || lo->first != hi->first) return false;
      const auto factor = lo->first.constant();
      if (!factor || *factor < 1 || (stride && *stride != *factor)) return false;
      stride = factor;
      begins.push_back(lo->second);
      ends.push_back(context_.add(hi->second, context_.dim(use.sizes.empty() ? 0 : use.sizes[axis] - 1)));
    }
    for (Dim begin : begins) {
      for (Dim end : ends) {
        const auto width = context_.subtract(end, begin).constant();
        if (!width || *width >= *stride) return false;
      }
    }
    return true;
  }
  // All uses are of the element that belongs to the point, and no point is in two iterations.
  bool same_element(const std::vector<Use>& uses) {
    bool inner = false, stages = false;
    for (const Use& use : uses) {
      if (!use.stage || use.indices.empty() || use.indices != uses[0].indices || use.sizes != uses[0].sizes)
        return false;
      stages |= use.stage != uses[0].stage;
      for (const For* loop : use.loops) inner |= mentions(use.indices, loop->var);
      const auto path = find_stage(context_, function_, use.stage->name);
      if (use.writes && !visits_points_once(context_, *path, *path->loop(loop_))) return false;
    }
    return !(stages && inner);
  }

  TypeContext& context_;
  Function& function_;
  Symbol loop_;
};

// Iterations write different elements, or buffers of their own, and read nothing that others write.
Status independent(TypeContext& context, Function& function, const Path& path, size_t at) {
  For& target = path.loop_at(at);
  Status status;
  auto refuse = [&](std::string what) {
    if (status) status = error(std::move(what));
  };
  std::set<BufferId> own;
  for_each_statement(target.body, [&](Stmt& stmt) {
    if (const auto* alloc = std::get_if<Alloc>(&stmt.form)) own.insert(alloc->buffer);
    if (std::holds_alternative<CallLibrary>(stmt.form)) refuse("a library is called inside");
    const auto* inside = std::get_if<Stage>(&stmt.form);
    if (!inside) return;
    for (const Axis& axis : inside->axes) {
      const bool ordered = axis.kind == AxisKind::kReduce || axis.kind == AxisKind::kScan;
      if (ordered && mentions({&axis.value, 1}, target.var))
        refuse(fmt::format("'{}' is a {} axis of the stage '{}'", context.name(axis.var),
                           axis.kind == AxisKind::kScan ? "scan" : "reduction", context.name(inside->name)));
    }
  });
  TENON_TRY(status);
  Sharing sharing(context, function, target.var);
  for (BufferId buffer : buffers_written(path.steps[at].stmt())) {
    if (own.contains(buffer)) continue;
    const size_t rank = function.buffer(buffer).rank();
    const std::vector<Use> uses = uses_of(context, target.body, buffer);
    std::vector<Use> writes = uses;
    std::erase_if(writes, [](const Use& use) { return !use.writes; });
    if (!sharing.apart(writes, rank))
      return error(fmt::format("several iterations write the same elements of {}", local(context, function, buffer)));
    if (!sharing.apart(uses, rank))
      return error(fmt::format("an iteration may read elements of {} that another one writes",
                               local(context, function, buffer)));
  }
  return {};
}

}  // namespace

Expected<Function> mark(TypeContext& context, Function function, Symbol stage, Symbol loop, Mark mark) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(at, find_loop(context, *path, loop));
  For& target = path->loop_at(*at);
  const auto size = target.extent.constant();
  if ((mark == Mark::kVector || mark == Mark::kUnroll) && !size)
    return error(fmt::format("the size of '{}' is no constant but {}", context.name(loop), context.str(target.extent)),
                 {}, "split it by a constant, and mark the inner loop");
  if (mark == Mark::kUnroll && *size > kMaxUnrolled)
    return error(
        fmt::format("'{}' has {} iterations, more than {} are not unrolled", context.name(loop), *size, kMaxUnrolled));
  if (mark == Mark::kVector) {
    if (*at + 2 != path->steps.size() || target.body.size() != 1)
      return error(fmt::format("'{}' is not the innermost loop of one stage", context.name(loop)));
    if (is_instruction(path->stage()))
      return error(fmt::format("the stage '{}' is an instruction", context.name(stage)));
  }
  if (mark == Mark::kParallel || mark == Mark::kVector) TENON_TRY(independent(context, function, *path, *at));
  target.mark = mark;
  return function;
}

Status check_marks(TypeContext& context, const Function& function) {
  Status status;
  for_each_statement(function.body, [&](const Stmt& stmt) {
    const auto* loop = std::get_if<For>(&stmt.form);
    if (!status || !loop || loop->mark == Mark::kSerial) return;
    const Stage* inside = nullptr;
    bool calls = false;
    for_each_statement(loop->body, [&](const Stmt& inner) {
      if (const auto* stage = std::get_if<Stage>(&inner.form); stage && !inside) inside = stage;
      calls |= std::holds_alternative<CallLibrary>(inner.form);
    });
    if (calls && loop->mark != Mark::kUnroll) {
      status = error(fmt::format("'{}' cannot be marked: a library is called inside", context.name(loop->var)),
                     fmt::format("@{}", context.name(function.name)));
      return;
    }
    if (!inside) return;  // there is nothing to run in another order
    if (auto marked = mark(context, function, inside->name, loop->var, loop->mark); !marked) {
      status = error(fmt::format("'{}' cannot be marked: {}", context.name(loop->var), marked.error().what),
                     fmt::format("@{}, stage '{}'", context.name(function.name), context.name(inside->name)),
                     marked.error().help);
    }
  });
  return status;
}

}  // namespace tenon::compiler::loop
