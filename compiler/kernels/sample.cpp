// Maps sampled at computed coordinates: grid_sample and roi_align. For each sample and axis the indices of the source
// elements and their interpolation weights are computed first; a result is a sum over the source elements of both axes.
#include <array>
#include <cmath>

#include "compiler/kernels/lowerings.h"
#include "compiler/kernels/size_checks.h"
#include "support/function_ref.h"

namespace tenon::compiler::kernels {
namespace {

Expr i64(int64_t value) { return loop::integer_literal(DType::kI64, value); }
Expr clamped(const Expr& x, const Expr& lo, const Expr& hi) { return minimum(maximum(x, lo), hi); }
// x as an i64; x must be in range.
Expr to_integer(const Expr& x) { return loop::convert(DType::kI64, x); }

// The source elements of each sample along one axis, by the last axis of both tensors. The index -1 is outside of the
// map.
struct SampleTaps {
  LazyTensor index, weight;
};

// The sum or maximum of weight times element over the source elements of both axes. `sample` maps indices of the result
// to those of the sample in the tables of rows and columns.
LazyTensor reduce_taps(const OperatorCall& op, std::string_view name, const std::array<SampleTaps, 2>& sources,
                       BinaryOp combine, FunctionRef<Dims(const Dims& at, size_t axis)> sample,
                       FunctionRef<Expr(const Dims& at, Dim row, Dim column)> element) {
  Emitter& emit = op.emit;
  const Dims over{sources[0].index.dims.back(), sources[1].index.dims.back()};
  const size_t rank = op.dims().size();
  const auto term = [=, x = op.arg(0), &emit](const Dims& at) {
    std::array<Expr, 2> indices, weights;
    for (const size_t axis : {0, 1}) {
      Dims from = sample(Dims(at.begin(), at.begin() + static_cast<ptrdiff_t>(rank)), axis);
      from.push_back(at[rank + axis]);
      indices[axis] = sources[axis].index.at(from), weights[axis] = sources[axis].weight.at(from);
    }
    const Expr value = emit.at_index(indices[0], x.dims[2], [&](Dim row) {
      return emit.at_index(indices[1], x.dims[3], [&](Dim column) { return element(at, row, column); });
    });
    const Expr product = weights[0] * weights[1] * value;
    return select(logical_or(below(indices[0], 0), below(indices[1], 0)), like(product, 0), product);
  };
  return emit.reduce(
      name, {.dims = op.dims(), .over = over, .op = combine, .term = term, .ordered = combine == BinaryOp::kMax});
}

// --- grid_sample ---

// The index reflected at the boundary: at the centers of the outer elements where corners are aligned, else at their
// outer edges.
Expr mirrored(const Expr& i, const Expr& n, bool align) {
  const Expr period = align ? (n - 1.0) * 2.0 : n * 2.0;
  const auto remainder = [&](const Expr& x) { return loop::binary(BinaryOp::kRemainder, x, period); };
  const Expr at = remainder(remainder(i) + period);
  const Expr reflected = select(less(at, n), at, align ? period - at : period - 1.0 - at);
  return align ? select(is_equal(n, i64(1)), i64(0), reflected) : reflected;
}

// The weight of a source element for a sample at distance `t` after the element below it.
Expr interpolation_weight(const std::string& mode, const Expr& t, Dim source) {
  const auto is = [&](double column) { return is_equal(loop::index_value(source), i64(static_cast<int64_t>(column))); };
  if (mode == "nearest") return like(t, 1);
  if (mode == "linear") return select(is(0), 1.0 - t, t);
  constexpr double a = -0.75;
  const auto outer = [&](const Expr& x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const auto inner = [&](const Expr& x) { return ((a + 2) * x - (a + 3)) * x * x + 1.0; };
  return select(is(0), outer(t + 1.0), select(is(1), inner(t), select(is(2), inner(1.0 - t), outer(2.0 - t))));
}

LoweredResults grid_sample(const OperatorCall& op) {
  if (op.arg(0).rank() != 4) return error("maps of three dims are not supported");
  Emitter& emit = op.emit;
  const std::string &mode = op.text("mode"), &padding = op.text("padding");
  const bool align = op.integer("align_corners") == 1, normalized = op.integer("normalized") == 1;
  const LazyTensor& x = op.arg(0);
  const LazyTensor grid = emit.stored("grid", op.arg(1));
  const int64_t count = mode == "nearest" ? 1 : mode == "linear" ? 2 : 4, before = mode == "cubic" ? 1 : 0;
  if (x.dims[2].constant() == 0 || x.dims[3].constant() == 0) return error("the maps are empty");
  std::array<SampleTaps, 2> sources;
  for (const size_t axis : {0, 1}) {  // rows, which are the second component of the grid, and columns
    const Dim size = x.dims[2 + axis];
    const Expr n = loop::index_value(size);
    const auto coordinate = [=, dtype = op.dtype(), &emit](const Dims& at) {
      const Expr value = grid.at({at[0], at[1], at[2], emit.dim(axis == 0 ? 1 : 0)}), length = loop::convert(dtype, n);
      if (!normalized) return value;
      return align ? (value + 1.0) / 2.0 * (length - 1.0) : ((value + 1.0) * length - 1.0) / 2.0;
    };
    const auto first = [=](const Expr& at) {
      return loop::unary(mode == "nearest" ? UnaryOp::kRound : UnaryOp::kFloor, at);
    };
    const Dims dims{grid.dims[0], grid.dims[1], grid.dims[2], emit.dim(count)};
    sources[axis].index = emit.stored("place", emit.expression(dims, DType::kI64, [=](const Dims& at) {
      // Clamping to the limit changes no result and keeps integers exact.
      const Expr y = coordinate(at), limit = like(y, 1 << 24);
      const Expr finite = below(absolute(y), HUGE_VAL);
      const Expr source = loop::convert(y->dtype, loop::index_value(at[3]));
      const Expr index = to_integer(clamped(
          select(finite, first(y), like(y, 0)) + (source - like(source, static_cast<double>(before))), -limit, limit));
      const Expr inside = padding == "border"       ? clamped(index, i64(0), n - 1.0)
                          : padding == "reflection" ? mirrored(index, n, align)
                                                    : select(less(index, n), maximum(index, i64(-1)), i64(-1));
      return select(finite, inside, i64(-1));
    }));
    sources[axis].weight = emit.stored("weight", emit.expression(dims, op.dtype(), [=](const Dims& at) {
      const Expr y = coordinate(at);
      return interpolation_weight(mode, y - first(y), at[3]);
    }));
  }
  return std::vector{reduce_taps(
      op, "sample", sources, BinaryOp::kAdd,
      [](const Dims& at, size_t) {
        return Dims{at[0], at[2], at[3]};
      },
      [x](const Dims& at, Dim row, Dim column) {
        return x.at({at[0], at[1], row, column});
      })};
}

// --- roi_align ---

LoweredResults roi_align(const OperatorCall& op) {
  Emitter& emit = op.emit;
  Context& context = op.context();
  const int64_t ratio = op.integer("sampling_ratio");
  if (ratio == 0) return error("a sampling_ratio of 0 is not supported: the number of samples depends on the regions");
  const bool half = op.integer("half_pixel") == 1, is_max = op.text("mode") == "max";
  const double scale = op.real("spatial_scale");
  const DType dtype = op.dtype();
  const LazyTensor &x = op.arg(0), &batch_indices = op.arg(2);
  const LazyTensor rois = emit.stored("rois", op.arg(1));
  if (x.dims[2].constant() == 0 || x.dims[3].constant() == 0 || !std::isfinite(scale))
    return error("the maps are empty, or the scale is not finite");
  const LazyTensor batches =
      emit.stored("batches", emit.expression(batch_indices.dims, DType::kI64, [=, &emit](const Dims& at) {
        const Symbol batch = emit.fresh_index();
        return loop::let_index(batch, x.dims[0], loop::convert(DType::kI64, batch_indices.at(at)),
                               loop::index_value(emit.context().dim(batch)));
      }));
  std::array<SampleTaps, 2> sources;
  for (const size_t axis : {0, 1}) {
    const int64_t bins = op.integers("size")[axis];
    const Expr n = loop::index_value(x.dims[2 + axis]), last = loop::convert(dtype, n - 1.0);
    // The coordinate of a sample, which has two source elements along each axis.
    const auto coordinate = [=, &emit, &context](const Dims& at) {
      const auto edge = [&](int64_t column) { return rois.at({at[0], emit.dim(column)}) * scale - (half ? 0.5 : 0.0); };
      const Expr begin = edge(axis == 0 ? 1 : 0);
      Expr size = edge(axis == 0 ? 3 : 2) - begin;
      if (!half) size = maximum(size, like(size, 1));
      const auto to_real = [&](Dim index) { return loop::convert(dtype, loop::index_value(index)); };
      const Expr sample = (to_real(context.floor_divide(at[2], context.dim(2))) + 0.5) / static_cast<double>(ratio);
      return begin + (to_real(at[1]) + sample) * (size / static_cast<double>(bins));
    };
    const auto clamped_to_map = [=](const Expr& y) { return clamped(y, like(y, 0), last); };
    const auto is_second = [&context](const Dims& at) {
      return is_equal(loop::index_value(context.modulo(at[2], context.dim(2))), i64(1));
    };
    const Dims dims{rois.dims[0], emit.dim(bins), emit.dim(2 * ratio)};
    sources[axis].index = emit.stored("place", emit.expression(dims, DType::kI64, [=](const Dims& at) {
      const Expr y = coordinate(at);
      // A sample more than one element outside of the map counts as 0; others are clamped to its boundary.
      const Expr inside = logical_and(less_equal(like(y, -1), y), less_equal(y, loop::convert(dtype, n)));
      const Expr lower = to_integer(select(inside, clamped_to_map(y), like(y, 0)));
      return select(inside, select(is_second(at), minimum(lower + 1.0, n - 1.0), lower), i64(-1));
    }));
    sources[axis].weight = emit.stored("weight", emit.expression(dims, dtype, [=](const Dims& at) {
      const Expr y = clamped_to_map(coordinate(at)), part = y - loop::unary(UnaryOp::kFloor, y);
      return select(is_second(at), part, 1.0 - part);
    }));
  }
  const LazyTensor result = reduce_taps(
      op, "align", sources, is_max ? BinaryOp::kMax : BinaryOp::kAdd,
      [](const Dims& at, size_t axis) {
        return Dims{at[0], at[2 + axis]};
      },
      [=, &emit](const Dims& at, Dim row, Dim column) {
        return emit.at_index(batches.at({at[0]}), x.dims[0], [&](Dim batch) {
          return x.at({batch, at[1], row, column});
        });
      });
  if (is_max) return std::vector{result};
  return op.expression([=](const Dims& at) { return result.at(at) / static_cast<double>(ratio * ratio); });
}

}  // namespace

std::span<const Lowering> sample_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {ops::kGridSample, grid_sample,
       [](const OperatorCall& call) { require_maps(call, "the maps are empty or too large"); }},
      {ops::kRoiAlign, roi_align,
       [](const OperatorCall& call) { require_maps(call, "the maps are empty, or the scale is not finite"); }}};
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
