// Primitives on the storage of buffers, in which loop it is allocated, how large and in which order: store_at,
// fold_storage, align_storage, swizzle.
#include "compiler/loop/schedule/storage.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/schedule/primitives.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// Whether the box `outer` contains every element of the box `inner` that is inside the buffer.
bool holds(TypeContext& context, const Buffer& buffer, const Box& outer, const Box& inner) {
  const DimProver prover(context);
  for (size_t i = 0; i < outer.size(); ++i) {
    if (!outer[i]) return false;
    const Dim lo = inner[i] ? inner[i]->lo : context.dim(0);
    const Dim last = is_ragged(buffer, i) ? context.invalid() : context.subtract(buffer.axes[i].extent, context.dim(1));
    auto below = [&](Dim a, Dim b) { return prover.less_equal(a, b) == Answer::kYes; };
    if (!below(outer[i]->lo, lo) && !below(outer[i]->lo, context.dim(0))) return false;
    if (!(inner[i] && below(inner[i]->hi, outer[i]->hi)) && !below(last, outer[i]->hi)) return false;
  }
  return true;
}

// Whether every point of a stage writes the buffer unconditionally, or its reduction's init does.
bool writes_always(const Stage& stage, BufferId buffer) {
  for (const Body* body : {&stage.init, &stage.body}) {
    for (const Stmt& stmt : *body) {
      bool writes = false;
      for_each_direct_access(stmt, [&](const Access& access) { writes |= access.writes && access.buffer == buffer; });
      if (writes) return true;
    }
  }
  return false;
}

// The loop in which a buffer is to be allocated.
struct Target {
  const Path& path;
  size_t step = 0;
  std::set<Symbol> outside;  // the variables of the loops up to this one, and the function's dims
  BufferId buffer{};
  std::string shown, name;  // of the buffer and the loop

  For& loop() const { return path.loop_at(step); }
};

// Whether an earlier stage wrote all elements that `use` reads, in the same iteration.
bool written_before(TypeContext& context, const Function& function, const Target& target, const std::vector<Use>& uses,
                    const Use& use) {
  return std::any_of(uses.data(), &use, [&](const Use& writer) {
    if (!writer.writes || !writer.stage || writer.stage == use.stage || !writes_always(*writer.stage, target.buffer))
      return false;
    size_t common = 0, shared = 0;  // enclosing statements of both, and loops among them
    while (writer.steps[common] == use.steps[common]) {
      shared += std::holds_alternative<For>((*use.steps[common].first)[use.steps[common].second].form);
      ++common;
    }
    if (writer.steps[common].first != use.steps[common].first || !fills_box(context, writer, shared, use.stage->where))
      return false;
    std::set<Symbol> outside = target.outside;
    for (size_t k = 0; k < shared; ++k) outside.insert(use.loops[k]->var);
    return holds(context, function.buffer(target.buffer),
                 box_of(context, function, target.buffer, writer, shared, outside),
                 box_of(context, function, target.buffer, use, shared, outside));
  });
}

// Whether each iteration of the loop reads only elements that it wrote itself.
Status iterations_are_self_contained(TypeContext& context, const Function& function, const Target& target,
                                     const std::vector<Use>& uses) {
  const std::set<Symbol> dims(function.dims.begin(), function.dims.end());
  for (const Use& use : uses) {
    if (!use.stage) return error(fmt::format("{} is used by an if, a let or a library", target.shown));
    for (const Axis& axis : use.stage->axes) {
      bool continues = false;
      for_each_variable(axis.value,
                        [&](Symbol var) { continues |= target.outside.contains(var) && !dims.contains(var); });
      if (use.writes && continues && (axis.kind == AxisKind::kReduce || axis.kind == AxisKind::kScan))
        return error(fmt::format("'{}' of the stage '{}' continues from one iteration of '{}' to the next",
                                 context.name(axis.var), context.name(use.stage->name), target.name));
    }
    // A reduction reads the element that its init wrote.
    const bool begins = std::ranges::all_of(use.stage->axes, [&](const Axis& axis) {
      return axis.kind != AxisKind::kReduce || begins_at_zero(context, axis, use.loops);
    });
    const bool starts = begins && !use.stage->init.empty() && writes_always(*use.stage, target.buffer) &&
                        std::ranges::any_of(uses, [&](const Use& other) {
                          return other.stage == use.stage && other.writes && other.indices == use.indices;
                        });
    if (!use.writes && !starts && !written_before(context, function, target, uses, use))
      return error(fmt::format("an iteration of '{}' may read elements of {} that it did not write: in the stage '{}'",
                               target.name, target.shown, context.name(use.stage->name)));
  }
  return {};
}

// Shrinks the buffer to the box of the uses; returns the box's first indices.
Expected<Dims> shrink(TypeContext& context, Function& function, const Target& target, const std::vector<Use>& uses,
                      Scope scope) {
  const std::set<Symbol> dims(function.dims.begin(), function.dims.end());
  Box box = box_of(context, function, target.buffer, uses[0], 0, target.outside);
  for (const Use& use : uses)
    box = hull(context, box, box_of(context, function, target.buffer, use, 0, target.outside));
  Dims begins(box.size(), context.dim(0));
  for (size_t i = 0; i < box.size(); ++i) {
    BufferAxis& axis = function.buffers[index(target.buffer)].axes[i];
    if (box[i]) {
      const Dim size = context.add(context.subtract(box[i]->hi, box[i]->lo), context.dim(1));
      const bool smaller = DimProver(context).less_equal(axis.extent, size) != Answer::kYes;
      if (size.valid() && only_mentions(size, dims) && smaller) {
        // Sizes that depend on the index have the index in the whole buffer, relative to the start of the box.
        const Dim index = size.constant() == 1 ? box[i]->lo : context.add(box[i]->lo, context.dim(axis.var));
        for (size_t k = i + 1; axis.var != Symbol{} && k < box.size(); ++k) {
          Dim& later = function.buffers[loop::index(target.buffer)].axes[k].extent;
          later = context.substitute(later, {{axis.var, index}});
        }
        axis.extent = size, begins[i] = box[i]->lo;
      }
    }
    if (scope != Scope::kHeap && (!axis.extent.constant() || is_ragged(function.buffer(target.buffer), i)))
      return error(fmt::format("{} cannot be placed {}: its size {} is not a constant", target.shown,
                               scope == Scope::kStack       ? "on the stack"
                               : scope == Scope::kRegisters ? "in registers"
                                                            : "in shared memory",
                               context.str(axis.extent)));
  }
  return begins;
}

}  // namespace

Expected<Function> store_in_loop(TypeContext& context, Function function, BufferId buffer, Symbol stage, Symbol loop,
                                 Scope scope) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(step, find_loop(context, *path, loop));
  const Target target{.path = *path,
                      .step = *step,
                      .outside = outside_variables(function, *path, *step),
                      .buffer = buffer,
                      .shown = local(context, function, buffer),
                      .name = std::string(context.name(loop))};
  const bool allocated_outside = std::any_of(path->steps.begin(), path->steps.begin() + static_cast<ptrdiff_t>(*step),
                                             [&](const Path::Step& outer) {
                                               const auto* alloc = std::get_if<Alloc>(&outer.stmt().form);
                                               return alloc && alloc->buffer == buffer;
                                             });
  if (!allocated_outside)
    return error(fmt::format("{} is not allocated outside of the loop '{}'", target.shown, target.name));
  Body& body = target.loop().body;
  const std::vector<Use> uses = uses_of(context, body, buffer);
  if (uses.empty()) return error(fmt::format("{} is not used in the loop '{}'", target.shown, target.name));
  if (uses.size() != uses_of(context, function.body, buffer).size())
    return error(fmt::format("{} is used outside the loop '{}' too", target.shown, target.name));
  rename_indices(context, function, buffer);
  TENON_TRY(iterations_are_self_contained(context, function, target, uses));
  TENON_TRY_ASSIGN(begins, shrink(context, function, target, uses, scope));
  const std::vector<const For*> loops = loops_up_to(*path, *step);
  for (Stmt& stmt : body) {
    for_each_stage(stmt, [&](Stage& user) {
      if (std::ranges::none_of(uses, [&](const Use& use) { return use.stage == &user; })) return;
      std::map<Symbol, Dim> values;
      for (size_t k = 0; k < loops.size(); ++k) {
        if (!mentions(*begins, loops[k]->var)) continue;
        const Symbol axis = axis_of_loop(context, function, user, std::span(loops).first(k + 1), AxisKind::kGiven);
        values[loops[k]->var] = context.dim(axis);
      }
      for_each_index(user, buffer, [&](size_t i, Dim& dim) {
        dim = context.subtract(dim, context.substitute((*begins)[i], values));
      });
    });
  }
  Alloc alloc{.buffer = buffer, .scope = scope, .body = std::move(body)};
  body.clear();
  body.push_back({std::move(alloc)});
  remove_alloc(function, buffer);  // of the two Allocs the outer one, which is found first
  return function;
}

Expected<BufferId> find_buffer(const TypeContext& context, const Function& function, Symbol name) {
  for (size_t i = 0; i < function.buffers.size(); ++i)
    if (function.buffers[i].name == name) return static_cast<BufferId>(i);
  return error(fmt::format("there is no buffer %{}", context.name(name)));
}

Expected<Function> store_at(TypeContext& context, Function function, Symbol stage, Symbol buffer,
                            CachePlacement placement) {
  TENON_TRY_ASSIGN(id, find_buffer(context, function, buffer));
  return store_in_loop(context, std::move(function), *id, stage, placement.loop, placement.scope);
}

namespace {

// The indices that are live at a time: `elements` of them, starting at stride*loop + first.
struct Window {
  size_t axis = 0;
  int64_t stride = 0;
  Dim first;
};

// The first axis on which the iterations use sliding windows.
std::optional<Window> find_window(TypeContext& context, const std::vector<Use>& uses, Symbol loop, size_t rank,
                                  int64_t elements) {
  for (size_t axis = 0; axis < rank; ++axis) {
    std::optional<Window> window;
    Dims begins, ends;
    bool linear = true;
    for (const Use& use : uses) {
      const auto interval = interval_of(context, use.indices[axis], use.loops);
      const auto lo = interval ? context.linear_in(loop, interval->lo) : std::nullopt;
      const auto hi = interval ? context.linear_in(loop, interval->hi) : std::nullopt;
      linear &= lo && hi && lo->first == hi->first && lo->first.constant().value_or(0) >= 1 &&
                (!window || window->stride == *lo->first.constant());
      if (!linear) break;
      if (!window) window = Window{axis, *lo->first.constant(), lo->second};
      begins.push_back(lo->second);
      ends.push_back(hi->second);
    }
    if (!linear || !window) continue;
    bool small = true;
    for (Dim begin : begins) {
      if (const auto before = context.subtract(begin, window->first).constant(); before && *before < 0)
        window->first = begin;
      for (Dim end : ends) {
        const auto width = context.subtract(end, begin).constant();
        small &= width && *width < elements;
      }
    }
    if (small) return window;
  }
  return std::nullopt;
}

// Whether a use before (or after) the loop accesses only elements of the window of its first (or last) iteration.
bool in_window(TypeContext& context, const Use& use, const Window& window, const For& loop, bool before,
               int64_t elements) {
  const Dim iteration = before ? context.dim(0) : context.subtract(loop.extent, context.dim(1));
  const Dim first = context.add(context.multiply(context.dim(window.stride), iteration), window.first);
  const auto interval = interval_of(context, use.indices[window.axis], use.loops);
  if (!interval) return false;
  const DimProver prover(context);
  return prover.less_equal(first, interval->lo) == Answer::kYes &&
         prover.less(interval->hi, context.add(first, context.dim(elements))) == Answer::kYes;
}

}  // namespace

Expected<Function> fold_storage(TypeContext& context, Function function, Symbol stage, Symbol buffer, Symbol loop,
                                int64_t elements) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(loop_step, find_loop(context, *path, loop));
  TENON_TRY_ASSIGN(id, find_buffer(context, function, buffer));
  const std::string shown = local(context, function, *id), name(context.name(loop));
  size_t alloc_step = 0;
  while (alloc_step < *loop_step) {
    const auto* alloc = std::get_if<Alloc>(&path->steps[alloc_step].stmt().form);
    if (alloc && alloc->buffer == *id) break;
    ++alloc_step;
  }
  if (alloc_step == *loop_step) return error(fmt::format("{} is not allocated outside of the loop '{}'", shown, name));
  for (size_t step = alloc_step + 1; step < *loop_step; ++step) {
    if (!std::holds_alternative<Alloc>(path->steps[step].stmt().form))
      return error(fmt::format("statements other than allocations are between {} and the loop '{}'", shown, name));
  }
  const For& target = path->loop_at(*loop_step);
  const std::vector<Use> inside = uses_of(context, path->loop_at(*loop_step).body, *id);
  const std::vector<Use> uses = uses_of(context, function.body, *id);
  for (const Use& use : uses) {
    if (!use.stage || !use.sizes.empty())
      return error(fmt::format("{} is used by an if, a let, a library or an instruction", shown));
  }
  const auto window = find_window(context, inside, loop, function.buffer(*id).rank(), elements);
  if (!window)
    return error(
        fmt::format("cannot prove that each iteration of '{}' uses a window of at most {} elements of {}, whose window "
                    "moves forward",
                    name, elements, shown));
  for (const BufferAxis& axis : function.buffer(*id).axes) {
    if (mentions({&axis.extent, 1}, function.buffer(*id).axes[window->axis].var))
      return error(fmt::format("{} is ragged: its size {} depends on an index", shown, context.str(axis.extent)));
  }
  bool before = true;
  for (const Use& use : uses) {
    const bool in_loop = std::ranges::any_of(use.loops, [&](const For* enclosing) { return enclosing == &target; });
    if (in_loop) before = false;
    else if (!in_window(context, use, *window, target, before, elements))
      return error(fmt::format("the stage '{}' uses elements of {} that are not live {} the loop '{}'",
                               context.name(use.stage->name), shown, before ? "in" : "after", name));
  }
  // Axes along the folded index become scans: their order determines which element an index refers to.
  Status status;
  std::set<const Stage*> stages;
  for (const Use& use : uses) stages.insert(use.stage);
  for (Stmt& stmt : function.body) {
    for_each_stage(stmt, [&](Stage& user) {
      if (!stages.contains(&user)) return;
      for_each_access(user, [&](const Access& access) {
        if (!access.writes || access.buffer != *id || access.indices[window->axis].constant()) return;
        bool has_scan = false;
        for (Axis& axis : user.axes) {
          const auto index = offset_index({access.indices[window->axis]}, axis.var);
          if (!index || index->fold != 0 || (axis.kind != AxisKind::kSpatial && axis.kind != AxisKind::kScan)) continue;
          axis.kind = AxisKind::kScan;
          has_scan = true;
        }
        if (!has_scan)
          status = error(fmt::format("the stage '{}' writes {} at {}, which is not an axis of the stage",
                                     context.name(user.name), shown, context.str(access.indices[window->axis])));
      });
      for_each_index(user, *id, [&](size_t i, Dim& dim) {
        if (i == window->axis) dim = context.modulo(dim, context.dim(elements));
      });
    });
  }
  TENON_TRY(status);
  function.buffers[index(*id)].axes[window->axis].extent = context.dim(elements);
  return function;
}

// The padding is after the elements of the axis, so indices stay as they are.
Expected<Function> align_storage(TypeContext& context, Function function, Symbol buffer, int64_t axis,
                                 int64_t multiple) {
  TENON_TRY_ASSIGN(id, find_buffer(context, function, buffer));
  const std::string shown = local(context, function, *id);
  if (!find_alloc(function.body, *id)) return error(fmt::format("{} is a parameter or a result", shown));
  if (axis >= static_cast<int64_t>(function.buffer(*id).rank()))
    return error(fmt::format("{} has {} axes, so none has the number {}", shown, function.buffer(*id).rank(), axis), {},
                 "axes are numbered from 0");
  BufferAxis& padded = function.buffers[index(*id)].axes[static_cast<size_t>(axis)];
  const Dim factor = context.dim(multiple);
  const bool ragged = loop::is_ragged(function.buffer(*id), static_cast<size_t>(axis));
  if (!ragged && !padded.extent.constant())
    return error(fmt::format("the size {} of {} is not a constant", context.str(padded.extent), shown));
  if (DimProver(context).divides(factor, padded.extent) == Answer::kYes)
    return error(
        fmt::format("the size {} of {} is already a multiple of {}", context.str(padded.extent), shown, multiple));
  for (const Use& use : uses_of(context, function.body, *id)) {
    if (!use.stage || !use.sizes.empty())
      return error(fmt::format("{} is used by an if, a let, a library or an instruction", shown));
  }
  padded.extent = context.multiply(context.ceil_divide(padded.extent, multiple), factor);
  return function;
}

// The verifier checks the axes.
Expected<Function> swizzle(TypeContext& context, Function function, Symbol buffer, const Swizzle& swizzle) {
  TENON_TRY_ASSIGN(id, find_buffer(context, function, buffer));
  if (!find_alloc(function.body, *id))
    return error(fmt::format("{} is a parameter or a result", local(context, function, *id)));
  function.buffers[index(*id)].swizzles.push_back(swizzle);
  return function;
}

}  // namespace tenon::compiler::loop
