// The primitive mark: annotation of a loop with its kind.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/bindings.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/region.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

constexpr int64_t kMaxUnrolled = 1024;

// Analysis of the elements of a buffer that several iterations of a loop use.
class Sharing {
 public:
  Sharing(TypeContext& context, Function& function, Symbol loop)
      : context_(context), function_(function), loop_(loop) {}

  // Whether no element is used by two iterations.
  bool disjoint(const std::vector<Use>& uses, size_t rank) {
    for (size_t axis = 0; axis < rank; ++axis)
      if (windows_disjoint(uses, axis)) return true;
    return same_element(uses);
  }

 private:
  // Whether one index is c*loop plus less than c, in all uses.
  bool windows_disjoint(const std::vector<Use>& uses, size_t axis) {
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
  // Whether all uses of a point are of one element, and no point is in two iterations.
  bool same_element(const std::vector<Use>& uses) {
    bool inner = false, stages = false;
    for (const Use& use : uses) {
      if (!use.stage || use.indices.empty() || use.indices != uses[0].indices || use.sizes != uses[0].sizes)
        return false;
      stages |= use.stage != uses[0].stage;
      for (const For* loop : use.loops) inner |= mentions(use.indices, loop->var);
      const auto path = find_stage(context_, function_, use.stage->name);
      if (use.writes && !visits_points_once(context_, function_, *path, *path->loop(loop_))) return false;
    }
    return !(stages && inner);
  }

  TypeContext& context_;
  Function& function_;
  Symbol loop_;
};

// Whether iterations write disjoint elements or private buffers, and read no elements that other iterations write.
Status independent(TypeContext& context, Function& function, const Path& path, size_t step) {
  For& target = path.loop_at(step);
  Status status;
  auto refuse = [&](std::string reason) {
    if (status) status = error(std::move(reason));
  };
  std::set<BufferId> private_buffers;
  for_each_statement(target.body, [&](Stmt& stmt) {
    if (const auto* alloc = std::get_if<Alloc>(&stmt.form)) private_buffers.insert(alloc->buffer);
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
  for (BufferId buffer : buffers_written(path.steps[step].stmt())) {
    if (private_buffers.contains(buffer)) continue;
    const size_t rank = function.buffer(buffer).rank();
    const std::vector<Use> uses = uses_of(context, target.body, buffer);
    std::vector<Use> writes = uses;
    std::erase_if(writes, [](const Use& use) { return !use.writes; });
    if (!sharing.disjoint(writes, rank))
      return error(fmt::format("several iterations write the same elements of {}", local(context, function, buffer)));
    if (!sharing.disjoint(uses, rank))
      return error(fmt::format("an iteration may read elements of {} that another one writes",
                               local(context, function, buffer)));
  }
  return {};
}

}  // namespace

Expected<Function> annotate(TypeContext& context, Function function, Symbol stage, Symbol loop, LoopKind kind) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(step, find_loop(context, *path, loop));
  For& target = path->loop_at(*step);
  const auto size = target.extent.constant();
  if ((kind == LoopKind::kVectorized || kind == LoopKind::kUnrolled) && !size)
    return error(
        fmt::format("the size of '{}' is not a constant but {}", context.name(loop), context.str(target.extent)), {},
        "split it by a constant, and set the kind of the inner loop");
  if (kind == LoopKind::kUnrolled && *size > kMaxUnrolled)
    return error(
        fmt::format("'{}' has {} iterations, at most {} are unrolled", context.name(loop), *size, kMaxUnrolled));
  if (kind == LoopKind::kVectorized) {
    if (*step + 2 != path->steps.size() || target.body.size() != 1)
      return error(fmt::format("'{}' is not the innermost loop of one stage", context.name(loop)));
    if (is_instruction(path->stage()))
      return error(fmt::format("the stage '{}' is an instruction", context.name(stage)));
  }
  if (binds_thread(kind) && (!size || *size > kMaxThreads))
    return error(fmt::format("'{}' has {} iterations, a block has at most {} threads", context.name(loop),
                             context.str(target.extent), kMaxThreads),
                 {}, "split it, and bind the inner loop");
  if (kind != LoopKind::kSerial && kind != LoopKind::kUnrolled) TENON_TRY(independent(context, function, *path, *step));
  target.kind = kind;
  return function;
}

namespace {

std::string_view participle(LoopKind kind) {
  switch (kind) {
    case LoopKind::kSerial: return "serial";
    case LoopKind::kParallel: return "parallel";
    case LoopKind::kVectorized: return "vectorized";
    case LoopKind::kUnrolled: return "unrolled";
    case LoopKind::kBlockX:
    case LoopKind::kBlockY:
    case LoopKind::kBlockZ: return "bound to blocks";
    case LoopKind::kThreadX:
    case LoopKind::kThreadY:
    case LoopKind::kThreadZ: return "bound to threads";
  }
  return {};
}

}  // namespace

Status check_loop_kinds(TypeContext& context, const Function& function) {
  Status status;
  for_each_statement(function.body, [&](const Stmt& stmt) {
    const auto* loop = std::get_if<For>(&stmt.form);
    if (!status || !loop || loop->kind == LoopKind::kSerial) return;
    const Stage* inside = nullptr;
    bool calls = false;
    for_each_statement(loop->body, [&](const Stmt& inner) {
      if (const auto* stage = std::get_if<Stage>(&inner.form); stage && !inside) inside = stage;
      calls |= std::holds_alternative<CallLibrary>(inner.form);
    });
    if (calls && loop->kind != LoopKind::kUnrolled) {
      status = error(fmt::format("the loop '{}' cannot be {}: a library is called inside", context.name(loop->var),
                                 participle(loop->kind)),
                     fmt::format("@{}", context.name(function.name)));
      return;
    }
    if (!inside) return;  // no stages, whose order could matter
    if (auto annotated = annotate(context, function, inside->name, loop->var, loop->kind); !annotated) {
      status = error(fmt::format("the loop '{}' cannot be {}: {}", context.name(loop->var), participle(loop->kind),
                                 annotated.error().what),
                     fmt::format("@{}, stage '{}'", context.name(function.name), context.name(inside->name)),
                     annotated.error().help);
    }
  });
  return status;
}

bool has_independent_iterations(TypeContext& context, const Function& function, Symbol stage, Symbol loop) {
  return annotate(context, function, stage, loop, LoopKind::kParallel).has_value();
}

}  // namespace tenon::compiler::loop
