// The primitive fuse_axes: two axes of a stage, and of the buffer that it writes, become one.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/schedule/copies.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/region.h"
#include "compiler/loop/tables.h"
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

// Joins the axis of rows and the next one, whose size is that of the row, of a buffer that stages use alone: the new
// index counts the elements of all rows.
Status join_rows(TypeContext& context, Function& function, BufferId id, size_t position, Symbol offsets) {
  const std::string shown = local(context, function, id);
  for (const Use& use : uses_of(context, function.body, id)) {
    if (!use.stage || !use.sizes.empty())
      return error(fmt::format("{} is used by an if, a let, a library or an instruction", shown));
  }
  Buffer& buffer = function.buffers[index(id)];
  for (size_t axis = position + 2; axis < buffer.rank(); ++axis) {
    for (const size_t joined : {position, position + 1}) {
      if (buffer.axes[joined].var != Symbol{} && mentions({&buffer.axes[axis].extent, 1}, buffer.axes[joined].var))
        return error(fmt::format("the size {} of {} depends on an axis that would be joined",
                                 context.str(buffer.axes[axis].extent), shown));
    }
  }
  if (!buffer.swizzles.empty()) return error(fmt::format("the elements of {} are rotated", shown));
  buffer.axes[position].extent = context.apply(offsets, {buffer.axes[position].extent});
  buffer.axes.erase(buffer.axes.begin() + static_cast<ptrdiff_t>(position) + 1);
  for (Stmt& stmt : function.body) {
    for_each_stage(stmt, [&](Stage& stage) {
      map_indices(stage, id, [&](Dims indices) {
        indices[position] = context.add(context.apply(offsets, {indices[position]}), indices[position + 1]);
        indices.erase(indices.begin() + static_cast<ptrdiff_t>(position) + 1);
        return indices;
      });
    });
  }
  return {};
}

}  // namespace

Expected<Function> fuse_axes(TypeContext& context, Function function, Symbol stage, Symbol outer, Symbol inner) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(outer_axis, axis_with_loop(context, *path, outer));
  TENON_TRY_ASSIGN(inner_axis, axis_with_loop(context, *path, inner));
  TENON_TRY_ASSIGN(buffer, only_result(context, function, path->stage()));
  const std::vector<Axis> axes = path->stage().axes;
  const bool ragged = mentions({&axes[*inner_axis].extent, 1}, outer);
  for (const Axis& axis : axes) {
    for (const Symbol fused : {outer, inner}) {
      const bool of_row = ragged && fused == outer && &axis == &axes[*inner_axis];
      if (!of_row && mentions({&axis.extent, 1}, fused))
        return error(fmt::format("the size of '{}' depends on '{}'", context.name(axis.var), context.name(fused)));
    }
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
  const Dim count = axes[*outer_axis].extent, size = axes[*inner_axis].extent;
  if (!ragged) {
    const Symbol buffer_name = function.buffer(*buffer).name;
    TENON_TRY_ASSIGN(laid_out,
                     layout(context, std::move(function), buffer_name, joined_layout(sizes.size(), *position)));
    function = std::move(*laid_out);
  }
  TENON_TRY_ASSIGN(fused, fuse(context, std::move(function), stage, outer_loop, inner_loop));
  const Symbol both = fresh(context, *fused, fmt::format("{}_{}", context.name(outer), context.name(inner)));
  const Dim index = context.dim(both);
  std::map<Symbol, Dim> values{{outer, context.floor_divide(index, size)}, {inner, context.modulo(index, size)}};
  Dim extent = context.multiply(count, size);
  std::optional<Symbol> offsets;  // of the rows
  if (ragged) {
    offsets = table_of(context, *fused, Table::Kind::kOffsets, outer, count, size, "offsets");
    const Symbol rows = table_of(context, *fused, Table::Kind::kRows, outer, count, size, "rows");
    const Dim row = context.apply(rows, {index});
    values = {{outer, row}, {inner, context.subtract(index, context.apply(*offsets, {row}))}};
    extent = context.apply(*offsets, {count});
    TENON_TRY(join_rows(context, *fused, *buffer, *position, *offsets));
  }
  TENON_TRY_ASSIGN(now, find_stage(context, *fused, stage));
  Stage& result = now->stage();
  substitute_axes(context, result, values);
  // The remainder of the fused loop's variable is the value of the inner axis.
  const Dim row = result.axes[*outer_axis].value;
  const Dim begin = offsets ? context.apply(*offsets, {row}) : context.multiply(row, size);
  result.axes[*outer_axis] = {.var = both,
                              .extent = extent,
                              .kind = AxisKind::kSpatial,
                              .value = context.add(begin, result.axes[*inner_axis].value)};
  result.axes.erase(result.axes.begin() + static_cast<ptrdiff_t>(*inner_axis));
  return std::move(*fused);
}

}  // namespace tenon::compiler::loop
