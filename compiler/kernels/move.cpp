// Operators that move elements: each element of the result is an element of the argument at indices computed from its
// own.
#include <algorithm>
#include <cmath>

#include "compiler/base/dim_prover.h"
#include "compiler/kernels/lowerings.h"
#include "compiler/kernels/size_checks.h"
#include "runtime/reference/layout.h"
#include "runtime/reference/slice.h"
#include "runtime/reference/support.h"
#include "support/function_ref.h"

namespace tenon::compiler::kernels {
namespace {

// The result at `at` is the argument at from(at).
template <class F>
LoweredResults moved(const OperatorCall& op, const F& from) {
  return op.expression([from, x = op.arg(0)](const Dims& at) { return x.at(from(at)); });
}

// The indices in the argument of an element of a reshaped tensor. Dims are grouped into runs with equal products on
// both sides; within a run indices are converted by way of the row-major offset, and a run of one dim on both sides
// needs no division.
LoweredResults reshape(const OperatorCall& op) {
  Context& context = op.context();
  const Dims &in = op.arg(0).dims, &out = op.dims();
  struct Run {
    size_t in_begin, in_end, out_begin, out_end;
  };
  std::vector<Run> runs;
  const auto is_unit = [&](Dim dim) { return dim.constant() == 1; };
  for (size_t i = 0, o = 0; i < in.size() || o < out.size();) {
    if (i < in.size() && is_unit(in[i])) {
      runs.push_back({i, i + 1, o, o}), ++i;
      continue;
    }
    if (o < out.size() && is_unit(out[o])) {
      runs.push_back({i, i, o, o + 1}), ++o;
      continue;
    }
    // The shortest run of equal products; all remaining dims where none is found.
    Run run{i, in.size(), o, out.size()};
    Dim left = context.dim(1);
    for (size_t i_end = i + 1, shortest = SIZE_MAX; i_end <= in.size(); ++i_end) {
      left = context.multiply(left, in[i_end - 1]);
      Dim right = context.dim(1);
      for (size_t o_end = o + 1; o_end <= out.size(); ++o_end) {
        right = context.multiply(right, out[o_end - 1]);
        if (left == right && i_end - i + o_end - o < shortest) {
          shortest = i_end - i + o_end - o;
          run = {i, i_end, o, o_end};
        }
      }
    }
    runs.push_back(run);
    i = run.in_end, o = run.out_end;
  }
  return moved(op, [&context, in, out, runs](const Dims& at) {
    Dims from(in.size(), context.dim(0));
    for (const Run& run : runs) {
      if (run.in_begin == run.in_end) continue;
      Dim offset = context.dim(0);
      for (size_t o = run.out_begin; o < run.out_end; ++o)
        offset = context.add(context.multiply(offset, out[o]), at[o]);
      for (size_t i = run.in_end; i-- > run.in_begin;) {
        from[i] = i == run.in_begin ? offset : context.modulo(offset, in[i]);
        offset = context.floor_divide(offset, in[i]);
      }
    }
    return from;
  });
}

LoweredResults transpose(const OperatorCall& op) {
  const std::vector<int64_t>& axes = op.integers("axes");
  auto result = moved(op, [axes](const Dims& at) {
    Dims from(at.size());
    for (size_t i = 0; i < at.size(); ++i) from[static_cast<size_t>(axes[i])] = at[i];
    return from;
  });
  result->front().view = std::make_shared<const TransposedView>(op.arg(0), axes);
  return result;
}

// Concatenated parts of an axis: the index selects the part.
Expr select_part(Context& context, Dim index, const std::vector<Dim>& sizes,
                 FunctionRef<Expr(size_t part, Dim index)> read) {
  std::vector<Dim> begins{context.dim(0)};
  for (const Dim size : sizes) begins.push_back(context.add(begins.back(), size));
  Expr result = read(sizes.size() - 1, context.subtract(index, begins[sizes.size() - 1]));
  for (size_t part = sizes.size() - 1; part-- > 0;) {
    result = select(less(loop::index_value(index), loop::index_value(begins[part + 1])),
                    read(part, context.subtract(index, begins[part])), result);
  }
  return result;
}

LoweredResults concat(const OperatorCall& op) {
  const size_t axis = op.axis("axis", op.arg(0).rank());
  return op.expression([axis, args = op.args, &context = op.context()](const Dims& at) {
    std::vector<Dim> sizes;
    for (const LazyTensor& arg : args) sizes.push_back(arg.dims[axis]);
    return select_part(context, at[axis], sizes, [&](size_t part, Dim index) {
      Dims from = at;
      from[axis] = index;
      return args[part].at(from);
    });
  });
}

LoweredResults stack(const OperatorCall& op) {
  const size_t axis = op.axis("axis", op.arg(0).rank() + 1);
  return op.expression([axis, args = op.args, &context = op.context()](const Dims& at) {
    return select_part(context, at[axis], std::vector(args.size(), context.dim(1)), [&](size_t part, Dim) {
      Dims from = at;
      from.erase(from.begin() + static_cast<ptrdiff_t>(axis));
      return args[part].at(from);
    });
  });
}

LoweredResults split(const OperatorCall& op) {
  Context& context = op.context();
  const size_t axis = op.axis("axis", op.arg(0).rank());
  std::vector<LazyTensor> parts;
  int64_t first = 0;
  for (size_t i = 0; i < op.results.size(); ++i) {
    parts.push_back(
        op.emit.expression(op.results[i]->dims, op.dtype(), [&context, axis, first, x = op.arg(0)](const Dims& at) {
          Dims from = at;
          from[axis] = context.add(at[axis], context.dim(first));
          return x.at(from);
        }));
    first += op.integers("sizes")[i];
  }
  return parts;
}

LoweredResults slice(const OperatorCall& op) {
  Context& context = op.context();
  auto begin = op.integers("begin"), step = op.integers("step");
  std::vector<Dim> firsts;
  for (size_t d = 0; d < begin.size(); ++d) {
    const Dim size = op.arg(0).dims[d];
    // Clamping begins to the largest extent and steps to the size does not change the result, and keeps indices within
    // 64 bits.
    constexpr int64_t kLargest = runtime::reference::kMaxExtent;
    const int64_t largest_step = std::max<int64_t>(size.constant().value_or(kLargest), 1);
    begin[d] = std::clamp(begin[d], -kLargest, kLargest), step[d] = std::clamp(step[d], -largest_step, largest_step);
    Dim first = context.dim(begin[d]);
    if (const auto constant = size.constant()) {
      first = context.dim(runtime::reference::slice_begin(*constant, begin[d], step[d]));
    } else if (step[d] > 0) {
      if (begin[d] < 0) first = context.maximum({context.add(size, first), context.dim(0)});
      // A begin past the end gives an empty result.
    } else {
      const Dim last = context.subtract(size, context.dim(1));
      first =
          begin[d] < 0 ? context.maximum({context.add(size, first), context.dim(0)}) : context.minimum({first, last});
    }
    firsts.push_back(first);
  }
  return moved(op, [&context, firsts, step](const Dims& at) {
    Dims from;
    for (size_t d = 0; d < at.size(); ++d)
      from.push_back(context.add(firsts[d], context.multiply(at[d], context.dim(step[d]))));
    return from;
  });
}

LoweredResults pad(const OperatorCall& op) {
  Emitter& emit = op.emit;
  return op.expression([&emit, x = op.arg(0), dims = op.dims(), before = op.integers("before"),
                        value = op.real("value")](const Dims& at) {
    Context& context = emit.context();
    Dims from;
    Expr inside;
    for (size_t d = 0; d < at.size(); ++d) {
      from.push_back(context.subtract(at[d], context.dim(before[d])));
      if (before[d] == 0 && dims[d] == x.dims[d]) continue;
      const Expr in_range = emit.inside(from[d], context.dim(0), x.dims[d]);
      inside = inside ? logical_and(inside, in_range) : in_range;
    }
    const Expr element = x.at(from);
    return inside ? select(inside, element, like(element, value)) : element;
  });
}

// Padding with elements of x: F(index, size) maps an index that may be out of range to one that is in range.
template <class F>
constexpr Lower pad_from_input(F) {
  return [](const OperatorCall& op) -> LoweredResults {
    Context& context = op.context();
    return moved(op, [&context, before = op.integers("before"), dims = op.arg(0).dims](const Dims& at) {
      Dims from;
      for (size_t d = 0; d < at.size(); ++d)
        from.push_back(F{}(context, context.subtract(at[d], context.dim(before[d])), dims[d]));
      return from;
    });
  };
}

LoweredResults reverse(const OperatorCall& op) {
  Context& context = op.context();
  const auto rank = static_cast<int64_t>(op.arg(0).rank());
  std::vector<bool> is_reversed(op.arg(0).rank(), false);
  for (const int64_t axis : op.integers("axes")) is_reversed[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  return moved(op, [&context, is_reversed, dims = op.dims()](const Dims& at) {
    Dims from = at;
    for (size_t d = 0; d < at.size(); ++d) {
      if (is_reversed[d]) from[d] = context.subtract(context.subtract(dims[d], context.dim(1)), at[d]);
    }
    return from;
  });
}

LoweredResults reverse_sequence(const OperatorCall& op) {
  Emitter& emit = op.emit;
  const size_t rank = op.arg(0).rank(), batch = op.axis("batch_axis", rank), time = op.axis("time_axis", rank);
  return op.expression([&emit, batch, time, x = op.arg(0), lengths = op.arg(1)](const Dims& at) {
    const Expr length = loop::convert(DType::kI64, lengths.at({at[batch]})), t = loop::index_value(at[time]);
    return emit.at_index(select(less(t, length), length - 1.0 - t, t), x.dims[time], [&](Dim index) {
      Dims from = at;
      from[time] = index;
      return x.at(from);
    });
  });
}

LoweredResults tile(const OperatorCall& op) {
  Context& context = op.context();
  return moved(op, [&context, dims = op.arg(0).dims](const Dims& at) {
    Dims from;
    for (size_t d = 0; d < at.size(); ++d) from.push_back(context.modulo(at[d], dims[d]));
    return from;
  });
}

LoweredResults broadcast_to(const OperatorCall& op) {
  return op.expression([x = op.arg(0), &context = op.context()](const Dims& at) { return broadcast(context, x, at); });
}

LoweredResults triangle(const OperatorCall& op) {
  const bool upper = op.integer("upper") == 1;
  return op.expression(
      [upper, diagonal = op.integer("diagonal"), x = op.arg(0), &context = op.context()](const Dims& at) {
        const Expr right = loop::index_value(context.subtract(at[at.size() - 1], at[at.size() - 2]));
        const Expr limit = loop::integer_literal(DType::kI64, diagonal), element = x.at(at);
        return select(upper ? less_equal(limit, right) : less_equal(right, limit), element, like(element, 0));
      });
}

LoweredResults depth_to_space(const OperatorCall& op) {
  Context& context = op.context();
  const Dim block = op.dim(op.integer("block")), area = context.multiply(block, block), channels = op.dims()[1];
  const bool blocks_first = op.text("order") == "DCR";
  return moved(op, [&context, block, area, channels, blocks_first](const Dims& at) {
    const Dim position =
        context.add(context.multiply(context.modulo(at[2], block), block), context.modulo(at[3], block));
    const Dim channel = blocks_first ? context.add(context.multiply(position, channels), at[1])
                                     : context.add(context.multiply(at[1], area), position);
    return Dims{at[0], channel, context.floor_divide(at[2], block), context.floor_divide(at[3], block)};
  });
}
LoweredResults space_to_depth(const OperatorCall& op) {
  Context& context = op.context();
  const Dim block = op.dim(op.integer("block")), channels = op.arg(0).dims[1];
  return moved(op, [&context, block, channels](const Dims& at) {
    const Dim position = context.floor_divide(at[1], channels);
    return Dims{at[0], context.modulo(at[1], channels),
                context.add(context.multiply(at[2], block), context.floor_divide(position, block)),
                context.add(context.multiply(at[3], block), context.modulo(position, block))};
  });
}

LoweredResults shape_of(const OperatorCall& op) {
  return op.expression([dims = op.arg(0).dims, &context = op.context()](const Dims& at) {
    if (dims.empty()) return loop::integer_literal(DType::kI64, 0);  // the result has no elements
    return select_part(context, at[0], std::vector(dims.size(), context.dim(1)),
                       [&](size_t part, Dim) { return loop::index_value(dims[part]); });
  });
}

LoweredResults layout_transform(const OperatorCall& op) {
  using runtime::reference::Layout;
  auto from = Layout::parse(op.text("from")), to = Layout::parse(op.text("to"));
  if (!from || !to) return error("the layouts must be valid");
  Context& context = op.context();
  const int64_t channels = op.integer("channels");
  const size_t axes = to->axes.size();
  Dims logical(axes);
  for (size_t i = 0; i < axes; ++i) {
    logical[i] = op.arg(0).dims[from->axes.find(to->axes[i])];
    if (from->blocked == to->axes[i])
      logical[i] = channels != 0 ? context.dim(channels) : context.multiply(logical[i], context.dim(from->block));
  }
  return op.expression([&context, from = *from, to = *to, logical, x = op.arg(0)](const Dims& at) {
    Dims indices(x.rank());
    Expr inside;
    for (size_t i = 0; i < to.axes.size(); ++i) {
      Dim index = at[i];
      if (to.blocked == to.axes[i]) {
        index = context.add(context.multiply(index, context.dim(to.block)), at.back());
        if (DimProver(context).divides(context.dim(to.block), logical[i]) != Answer::kYes)
          inside = less(loop::index_value(index), loop::index_value(logical[i]));
      }
      const size_t source = from.axes.find(to.axes[i]);
      if (from.blocked == to.axes[i]) {
        indices[source] = context.floor_divide(index, context.dim(from.block));
        indices.back() = context.modulo(index, context.dim(from.block));
      } else {
        indices[source] = index;
      }
    }
    const Expr element = x.at(indices);
    return inside ? select(inside, element, like(element, 0)) : element;
  });
}

// --- Tensors generated from attributes ---

LoweredResults full(const OperatorCall& op) {
  return op.expression(
      [value = op.real("value"), dtype = op.dtype()](const Dims&) { return like(loop::literal(dtype, 0), value); });
}
LoweredResults arange(const OperatorCall& op) {
  return op.expression([start = op.real("start"), step = op.real("step"), dtype = op.dtype()](const Dims& at) {
    const Expr i = loop::index_value(at[0]);
    const bool is_integral =
        start == std::trunc(start) && step == std::trunc(step) && std::abs(start) < 0x1p53 && std::abs(step) < 0x1p53;
    if (is_integral && !loop::is_float(dtype)) return loop::convert(dtype, i * step + start);
    return loop::convert(dtype, start + step * loop::convert(DType::kF64, i));
  });
}
LoweredResults eye(const OperatorCall& op) {
  return op.expression(
      [diagonal = op.integer("diagonal"), dtype = op.dtype(), &context = op.context()](const Dims& at) {
        const Expr column = loop::index_value(context.add(at[0], context.dim(diagonal)));
        return select(is_equal(column, loop::index_value(at[1])), loop::literal(dtype, 1), loop::literal(dtype, 0));
      });
}

}  // namespace

std::span<const Lowering> move_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {ops::kReshape, reshape},
      {ops::kFlatten, reshape},
      {ops::kSqueeze, reshape},
      {ops::kExpandDims, reshape},
      {ops::kTranspose, transpose},
      {ops::kConcat, concat},
      {ops::kStack, stack},
      {ops::kSplit, split},
      {ops::kSlice, slice},
      {ops::kPad, pad},
      {ops::kPadEdge, pad_from_input([](Context& context, Dim i, Dim n) {
         return context.minimum({context.maximum({i, context.dim(0)}), context.subtract(n, context.dim(1))});
       }),
       require_padded_axes},
      {ops::kPadWrap, pad_from_input([](Context& context, Dim i, Dim n) { return context.modulo(i, n); }),
       require_padded_axes},
      // Reflects back and forth; the boundary elements are not repeated.
      {ops::kPadReflect, pad_from_input([](Context& context, Dim i, Dim n) {
         const Dim double_length = context.subtract(context.multiply(n, context.dim(2)), context.dim(2));
         const Dim period = context.maximum({double_length, context.dim(1)}), at = context.modulo(i, period);
         return context.minimum({at, context.subtract(period, at)});
       }),
       require_padded_axes},
      {ops::kReverse, reverse},
      {ops::kReverseSequence, reverse_sequence},
      {ops::kTile, tile},
      {ops::kBroadcastTo, broadcast_to},
      {ops::kTriangle, triangle},
      {ops::kDepthToSpace, depth_to_space},
      {ops::kSpaceToDepth, space_to_depth},
      {ops::kShapeOf, shape_of},
      {ops::kLayoutTransform, layout_transform},
      {ops::kFull, full},
      {ops::kArange, arange},
      {ops::kEye, eye},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
