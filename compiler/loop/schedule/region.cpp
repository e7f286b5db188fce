#include "compiler/loop/schedule/region.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/expr.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

class UseCollector {
 public:
  UseCollector(TypeContext& context, BufferId buffer, std::vector<Use>& uses)
      : context_(context), buffer_(buffer), uses_(uses) {}

  void body(Body& body) {
    for (size_t i = 0; i < body.size(); ++i) {
      steps_.emplace_back(&body, i);
      statement(body[i]);
      steps_.pop_back();
    }
  }

 private:
  void add(const Stage* stage, const Access& access) {
    if (access.buffer != buffer_) return;
    uses_.push_back({.stage = stage,
                     .writes = access.writes,
                     .indices = stage ? over_loops(context_, *stage, access.indices) : access.indices,
                     .sizes = access.sizes,
                     .steps = steps_,
                     .loops = loops_});
  }
  void statement(Stmt& stmt) {
    if (const auto* stage = std::get_if<Stage>(&stmt.form)) {
      for_each_access(*stage, [&](const Access& access) { add(stage, access); });
      return;
    }
    for_each_direct_access(stmt, [&](const Access& access) { add(nullptr, access); });
    if (const auto* call = std::get_if<CallLibrary>(&stmt.form)) {
      for (const auto& [list, writes] : {std::pair{&call->inputs, false}, std::pair{&call->outputs, true}}) {
        if (std::ranges::find(*list, buffer_) == list->end()) continue;
        uses_.push_back(
            {.stage = nullptr, .writes = writes, .indices = {}, .sizes = {}, .steps = steps_, .loops = loops_});
      }
    }
    const auto* loop = std::get_if<For>(&stmt.form);
    if (loop) loops_.push_back(loop);
    for_each_body(stmt, [&](Body& inner) { body(inner); });
    if (loop) loops_.pop_back();
  }

  TypeContext& context_;
  BufferId buffer_;
  std::vector<Use>& uses_;
  std::vector<std::pair<Body*, size_t>> steps_;
  std::vector<const For*> loops_;
};

}  // namespace

std::vector<Use> uses_of(TypeContext& context, Body& body, BufferId buffer) {
  std::vector<Use> uses;
  UseCollector(context, buffer, uses).body(body);
  return uses;
}

Box box_of(TypeContext& context, const Function& function, BufferId buffer, const Use& use, size_t shared,
           const std::set<Symbol>& outside) {
  Box box(function.buffer(buffer).rank());
  const std::vector<const For*> inner(use.loops.begin() + static_cast<ptrdiff_t>(shared), use.loops.end());
  for (size_t i = 0; i < use.indices.size(); ++i) {
    auto interval = interval_of(context, use.indices[i], inner);
    // Any other variable than a loop's is a computed index, whose value is unknown.
    if (!interval || !only_mentions(interval->lo, outside) || !only_mentions(interval->hi, outside)) continue;
    if (!use.sizes.empty()) interval->hi = context.add(interval->hi, context.dim(use.sizes[i] - 1));
    box[i] = interval;
  }
  return box;
}

Box hull(TypeContext& context, const Box& a, const Box& b) {
  Box result(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] && b[i])
      result[i] = Interval{context.minimum({a[i]->lo, b[i]->lo}), context.maximum({a[i]->hi, b[i]->hi})};
  }
  return result;
}

bool fills_box(TypeContext& context, const Use& use, size_t shared, const std::vector<Guard>& allowed) {
  if (!use.stage) return false;
  std::set<Symbol> taken;
  for (size_t i = 0; i < use.indices.size(); ++i) {
    std::vector<std::pair<int64_t, std::optional<int64_t>>> digits;  // of a mixed-radix sum: factor and size
    for (size_t k = shared; k < use.loops.size(); ++k) {
      const For& loop = *use.loops[k];
      if (!mentions({&use.indices[i], 1}, loop.var)) continue;
      const auto linear = context.linear_in(loop.var, use.indices[i]);
      const auto factor = linear ? linear->first.constant() : std::nullopt;
      if (!factor || *factor < 1 || !taken.insert(loop.var).second) return false;
      digits.emplace_back(*factor, loop.extent.constant());
    }
    std::ranges::sort(digits);
    int64_t covered = use.sizes.empty() ? 1 : use.sizes[i];
    for (const auto& [factor, size] : digits) {
      if (factor > covered) return false;
      if (size) covered += factor * (*size - 1);
      else if (&size != &digits.back().second) return false;
    }
  }
  for (const Guard& guard : use.stage->where) {
    std::map<Symbol, Dim> values;
    bool ends = std::ranges::find(allowed, guard) != allowed.end();
    for (const Axis& axis : use.stage->axes) {
      const bool has_points = axis.kind != AxisKind::kGiven;
      ends |= has_points && guard == Guard{axis.value, context.substitute(axis.extent, values)};
      ends |= has_points && guard == Guard{context.dim(-1), axis.value};
      values[axis.var] = axis.value;
    }
    if (!ends) return false;
  }
  size_t loops = 0;
  for (const auto& [body, index] : use.steps) {
    const Stmt& stmt = (*body)[index];
    if (std::holds_alternative<For>(stmt.form)) ++loops;
    const bool condition = std::holds_alternative<If>(stmt.form) || std::holds_alternative<Let>(stmt.form);
    if (condition && loops >= shared) return false;
  }
  return true;
}

Symbol axis_of_loop(TypeContext& context, const Function& function, Stage& stage, std::span<const For* const> loops,
                    AxisKind kind) {
  const For& loop = *loops.back();
  for (Axis& axis : stage.axes) {
    if (axis.value != context.dim(loop.var)) continue;
    if (kind == AxisKind::kScan) axis.kind = kind;
    return axis.var;
  }
  std::map<Symbol, Dim> values;
  size_t position = 0;
  for (size_t i = 0; i + 1 < loops.size(); ++i) {
    if (!mentions({&loop.extent, 1}, loops[i]->var)) continue;
    const Symbol other = axis_of_loop(context, function, stage, loops.first(i + 1), AxisKind::kGiven);
    values[loops[i]->var] = context.dim(other);
    const auto found = std::ranges::find(stage.axes, other, &Axis::var);
    position = std::max(position, static_cast<size_t>(found - stage.axes.begin()) + 1);
  }
  const Axis axis{.var = fresh(context, function, std::string(context.name(loop.var))),
                  .extent = context.substitute(loop.extent, values),
                  .kind = kind,
                  .value = context.dim(loop.var)};
  stage.axes.insert(stage.axes.begin() + static_cast<ptrdiff_t>(position), axis);
  return axis.var;
}

bool writes_whole(TypeContext& context, const Function& function, const Stage& stage, BufferId buffer) {
  bool whole = true, writes = false;
  for_each_access(stage, [&](const Access& access) {
    if (!access.writes || access.buffer != buffer) return;
    writes = true;
    std::map<Symbol, Dim> axes;
    for (size_t i = 0; i < access.indices.size(); ++i) {
      const BufferAxis& buffer_axis = function.buffer(buffer).axes[i];
      const auto var = access.indices[i].variable();
      const auto axis =
          std::ranges::find_if(stage.axes, [&](const Axis& candidate) { return var && candidate.var == *var; });
      whole &= access.size(i) == 1 && axis != stage.axes.end() &&
               axis->extent == context.substitute(buffer_axis.extent, axes);
      if (axis != stage.axes.end()) axes[buffer_axis.var] = context.dim(axis->var);
    }
  });
  return whole && writes;
}

size_t outermost_step(const Path& path) {
  size_t step = 0;
  while (std::holds_alternative<Alloc>(path.steps[step].stmt().form)) ++step;
  return step;
}

Status writes_exclusively(TypeContext& context, Function& function, const Path& path, std::optional<size_t> loop,
                          BufferId to) {
  Stage& stage = path.stage();
  const std::string shown = local(context, function, to), name(context.name(stage.name));
  for (const Axis& axis : stage.axes) {
    if (axis.kind == AxisKind::kScan) return error(fmt::format("'{}' is a scan axis", context.name(axis.var)));
  }
  bool reads = false, conditional = false;
  for_each_access(stage, [&](const Access& access) { reads |= !access.writes && access.buffer == to; });
  for (const Stmt& stmt : stage.body)
    conditional |= !std::holds_alternative<Store>(stmt.form) && !std::holds_alternative<Intrinsic>(stmt.form);
  if (!loop && !writes_whole(context, function, stage, to))
    return error(fmt::format("{} is not written completely, at the axes of the stage", shown));
  if (reads && stage.init.empty())
    return error(fmt::format("the stage '{}' accumulates into previous values of {}", name, shown));
  if (conditional) return error(fmt::format("the stage '{}' does not write at every point", name));
  const size_t first = loop ? *loop + 1 : outermost_step(path);
  for (size_t step = first; step < path.steps.size(); ++step) {
    if (std::holds_alternative<If>(path.steps[step].stmt().form) ||
        std::holds_alternative<Let>(path.steps[step].stmt().form))
      return error(fmt::format("the stage '{}' is inside an if or a let", name));
  }
  Status status;
  auto refuse = [&](std::string reason) {
    if (status) status = error(std::move(reason));
  };
  auto touches = [&](const Stage& other, bool writes_only) {
    bool found = false;
    for_each_access(other,
                    [&](const Access& access) { found |= access.buffer == to && (access.writes || !writes_only); });
    return found && &other != &stage;
  };
  Stmt& around = path.steps[loop.value_or(outermost_step(path))].stmt();
  for_each_stage(around, [&](Stage& other) {
    if (touches(other, false))
      refuse(fmt::format("the stage '{}' uses {} in the same loops", context.name(other.name), shown));
  });
  for (Stmt& stmt : function.body) {
    for_each_stage(stmt, [&](Stage& other) {
      if (!loop && touches(other, true))
        refuse(fmt::format("the stage '{}' also writes {}", context.name(other.name), shown));
    });
  }
  for_each_statement(function.body, [&](const Stmt& stmt) {
    const auto* call = std::get_if<CallLibrary>(&stmt.form);
    if (call && (std::ranges::find(call->inputs, to) != call->inputs.end() ||
                 std::ranges::find(call->outputs, to) != call->outputs.end()))
      refuse(fmt::format("{} is passed to a library", shown));
  });
  return status;
}

Stmt copy_nest(TypeContext& context, const Function& function, Symbol name, BufferId from, BufferId to, const Box& box,
               std::vector<Guard> guards, const std::vector<const For*>& around) {
  Stage stage;
  stage.name = name;
  stage.where = std::move(guards);
  std::vector<For> loops;
  Dims indices;
  std::map<Symbol, Dim> over_axes, over_loops;  // for the sizes of ragged axes
  const Buffer& buffer = function.buffer(from);
  const DimProver prover(context);
  for (size_t i = 0; i < buffer.rank(); ++i) {
    const Symbol axis = fresh(context, function, fmt::format("c{}", i));
    const Symbol loop = fresh(context, function, fmt::format("{}_{}", context.name(name), i));
    const Dim extent = context.substitute(buffer.axes[i].extent, over_loops);
    const Dim size = box[i] ? context.add(context.subtract(box[i]->hi, box[i]->lo), context.dim(1)) : extent;
    const Dim value = box[i] ? context.add(box[i]->lo, context.dim(loop)) : context.dim(loop);
    loops.push_back({.var = loop, .extent = size, .kind = LoopKind::kSerial, .body = {}});
    stage.axes.push_back({.var = axis,
                          .extent = context.substitute(buffer.axes[i].extent, over_axes),
                          .kind = AxisKind::kSpatial,
                          .value = value});
    if (box[i]) {
      std::vector<const For*> within = around;
      for (const For& other : loops) within.push_back(&other);
      const auto require = [&](const Guard& guard) {
        if (!always_below(context, guard.left, guard.right, within)) stage.where.push_back(guard);
      };
      if (prover.less_equal(context.dim(0), box[i]->lo) != Answer::kYes) require({context.dim(-1), value});
      if (prover.less(box[i]->hi, extent) != Answer::kYes) require({value, extent});
    }
    indices.push_back(context.dim(axis));
    over_axes[buffer.axes[i].var] = context.dim(axis);
    over_loops[buffer.axes[i].var] = value;
  }
  stage.body.push_back({Store{to, indices, load(function, from, indices)}});
  return nest(std::move(loops), Stmt{std::move(stage)});
}

}  // namespace tenon::compiler::loop
