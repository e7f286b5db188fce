// The primitive fuse_axes: two axes of a stage, and of the buffer that it writes, become one.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/schedule/copies.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/region.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// The position of a stage's axis that is spatial, and has a loop of its own of the axis's size.
Expected<size_t> axis_with_loop(const TypeContext& context, const Path& path, Symbol name) {
  const std::vector<Axis>& axes = path.stage().axes;
  const auto axis = std::ranges::find(axes, name, &Axis::var);
  const std::string shown(context.name(name));
  if (axis == axes.end())
    return error(fmt::format("the stage '{}' has no axis '{}'", context.name(path.stage().name), shown));
  if (axis->kind != AxisKind::kSpatial) return error(fmt::format("'{}' is not a spatial axis", shown));
  const auto var = axis->value.variable();
  const auto step = var ? path.loop(*var) : std::nullopt;
  if (!step || path.loop_at(*step).extent != axis->extent)
    return error(fmt::format("'{}' has no loop of its own", shown), {}, "fuse the axes before the loops are changed");
  return static_cast<size_t>(axis - axes.begin());
}

// The layout of the buffer with the axes `first` and the one after it joined.
std::string joined_layout(size_t rank, size_t first) {
  std::string before, after;
  for (size_t i = 0; i < rank; ++i) {
    before += fmt::format("a{} ", i);
    after += fmt::format("{}a{}", i == first + 1 ? "*" : " ", i);
  }
  return before + "->" + after;
}

}  // namespace

Expected<Function> fuse_axes(TypeContext& context, Function function, Symbol stage, Symbol outer, Symbol inner) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(outer_axis, axis_with_loop(context, *path, outer));
  TENON_TRY_ASSIGN(inner_axis, axis_with_loop(context, *path, inner));
  TENON_TRY_ASSIGN(buffer, only_result(context, function, path->stage()));
  const std::vector<Axis> axes = path->stage().axes;
  for (const Axis& axis : axes) {
    for (const Symbol fused : {outer, inner})
      if (mentions({&axis.extent, 1}, fused))
        return error(fmt::format("the size of '{}' depends on '{}'", context.name(axis.var), context.name(fused)));
  }
  std::optional<size_t> position;
  const std::vector<BufferAxis> sizes = function.buffer(*buffer).axes;
  for_each_access(path->stage(), [&](const Access& access) {
    if (!access.writes) return;
    for (size_t i = 0; i + 1 < access.indices.size(); ++i) {
      if (access.indices[i] == context.dim(outer) && access.indices[i + 1] == context.dim(inner) &&
          extent_at(context, function.buffer(*buffer), i + 1, access.indices) == axes[*inner_axis].extent)
        position = i;
    }
  });
  if (!position)
    return error(fmt::format("'{}' and '{}' are not adjacent axes of {}, of its sizes", context.name(outer),
                             context.name(inner), local(context, function, *buffer)));
  const Symbol outer_loop = *axes[*outer_axis].value.variable(), inner_loop = *axes[*inner_axis].value.variable();
  const Symbol buffer_name = function.buffer(*buffer).name;
  TENON_TRY_ASSIGN(laid_out, layout(context, std::move(function), buffer_name, joined_layout(sizes.size(), *position)));
  TENON_TRY_ASSIGN(fused, fuse(context, std::move(*laid_out), stage, outer_loop, inner_loop));
  TENON_TRY_ASSIGN(now, find_stage(context, *fused, stage));
  Stage& result = now->stage();
  const Dim size = axes[*inner_axis].extent;
  const Symbol both = fresh(context, *fused, fmt::format("{}_{}", context.name(outer), context.name(inner)));
  substitute_axes(
      context, result,
      {{outer, context.floor_divide(context.dim(both), size)}, {inner, context.modulo(context.dim(both), size)}});
  // The remainder of the fused loop's variable is the value of the inner axis.
  const Dim value = context.add(context.multiply(result.axes[*outer_axis].value, size), result.axes[*inner_axis].value);
  result.axes[*outer_axis] = {.var = both,
                              .extent = context.multiply(axes[*outer_axis].extent, size),
                              .kind = AxisKind::kSpatial,
                              .value = value};
  result.axes.erase(result.axes.begin() + static_cast<ptrdiff_t>(*inner_axis));
  return std::move(*fused);
}

}  // namespace tenon::compiler::loop
