// Maps sampled between their elements, at places that are computed: grid_sample and roi_align. For each sample and axis
// its taps are found first, the places of elements and their weights; a result is a sum over the taps of both axes.
#include <array>
#include <cmath>

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

Expr whole(int64_t value) { return loop::integer_literal(DType::kI64, value); }
Expr clamped(const Expr& x, const Expr& lo, const Expr& hi) { return smaller(larger(x, lo), hi); }
// x to an integer, where it is beyond the range of none.
Expr to_integer(const Expr& x) { return loop::convert(DType::kI64, x); }

// Taps along one axis: of each sample so many, the last axis of both. One that has no element is at -1.
struct Taps {
  Value place, weight;
};

// The sum, or the best, of weight times element over the taps of both axes; `sample`: the indices of a sample in the
// tables of rows and columns, from those of the result.
Value over_taps(const Operation& op, std::string_view name, const std::array<Taps, 2>& taps, BinaryOp combine,
                const std::function<Dims(const Dims& at, size_t axis)>& sample,
                const std::function<Expr(const Dims& at, Dim row, Dim column)>& element) {
  Emitter& emit = op.emit;
  const Dims over{taps[0].place.dims.back(), taps[1].place.dims.back()};
  const size_t rank = op.dims().size();
  const auto term = [=, x = op.arg(0), &emit](const Dims& at) {
    std::array<Expr, 2> places, weights;
    for (const size_t axis : {0, 1}) {
      Dims from = sample(Dims(at.begin(), at.begin() + static_cast<ptrdiff_t>(rank)), axis);
      from.push_back(at[rank + axis]);
      places[axis] = taps[axis].place.at(from), weights[axis] = taps[axis].weight.at(from);
    }
    const Expr value = emit.at_index(places[0], x.dims[2], [&](Dim row) {
      return emit.at_index(places[1], x.dims[3], [&](Dim column) { return element(at, row, column); });
    });
    const Expr product = weights[0] * weights[1] * value;
    return choose(either(below(places[0], 0), below(places[1], 0)), like(product, 0), product);
  };
  return emit.reduce(
      name, {.dims = op.dims(), .over = over, .op = combine, .term = term, .ordered = combine == BinaryOp::kMax});
}

// --- grid_sample ---

// Mirrored at the borders: centres of the outer elements where corners are aligned, else their outer edges.
Expr mirrored(const Expr& i, const Expr& n, bool align) {
  const Expr period = align ? (n - 1.0) * 2.0 : n * 2.0;
  const auto rest = [&](const Expr& x) { return loop::binary(BinaryOp::kRemainder, x, period); };
  const Expr at = rest(rest(i) + period);
  const Expr back = choose(less(at, n), at, align ? period - at : period - 1.0 - at);
  return align ? choose(same(n, whole(1)), whole(0), back) : back;
}

// The weight of a tap beside what lies `t` behind the element before it.
Expr weight_of(const std::string& mode, const Expr& t, Dim tap) {
  const auto is = [&](double number) { return same(loop::index_value(tap), whole(static_cast<int64_t>(number))); };
  if (mode == "nearest") return like(t, 1);
  if (mode == "linear") return choose(is(0), 1.0 - t, t);
  constexpr double a = -0.75;
  const auto outer = [&](const Expr& x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const auto inner = [&](const Expr& x) { return ((a + 2) * x - (a + 3)) * x * x + 1.0; };
  return choose(is(0), outer(t + 1.0), choose(is(1), inner(t), choose(is(2), inner(1.0 - t), outer(2.0 - t))));
}

Values grid_sample(const Operation& op) {
  Emitter& emit = op.emit;
  const std::string &mode = op.text("mode"), &padding = op.text("padding");
  const bool align = op.integer("align_corners") == 1;
  const Value& x = op.arg(0);
  const Value grid = emit.stored("grid", op.arg(1));
  const int64_t count = mode == "nearest" ? 1 : mode == "linear" ? 2 : 4, before = mode == "cubic" ? 1 : 0;
  if (x.dims[2].constant() == 0 || x.dims[3].constant() == 0) return error("the maps are empty");
  std::array<Taps, 2> taps;
  for (const size_t axis : {0, 1}) {  // rows, which are the grid's second number, and columns
    const Dim size = x.dims[2 + axis];
    const Expr n = loop::index_value(size);
    const auto coordinate = [=, dtype = op.dtype(), &emit](const Dims& at) {
      const Expr value = grid.at({at[0], at[1], at[2], emit.dim(axis == 0 ? 1 : 0)}), length = loop::convert(dtype, n);
      return align ? (value + 1.0) / 2.0 * (length - 1.0) : ((value + 1.0) * length - 1.0) / 2.0;
    };
    const auto first = [=](const Expr& at) {
      return loop::unary(mode == "nearest" ? UnaryOp::kRound : UnaryOp::kFloor, at);
    };
    const Dims dims{grid.dims[0], grid.dims[1], grid.dims[2], emit.dim(count)};
    taps[axis].place = emit.stored("place", emit.expression(dims, DType::kI64, [=](const Dims& at) {
      const Expr y = coordinate(at), far = like(y, 1 << 24);  // beyond it nothing changes, and whole numbers are exact
      const Expr finite = below(absolute(y), HUGE_VAL);
      const Expr tap = loop::convert(y->dtype, loop::index_value(at[3]));
      const Expr place = to_integer(
          clamped(choose(finite, first(y), like(y, 0)) + (tap - like(tap, static_cast<double>(before))), -far, far));
      const Expr inside = padding == "border"       ? clamped(place, whole(0), n - 1.0)
                          : padding == "reflection" ? mirrored(place, n, align)
                                                    : choose(less(place, n), larger(place, whole(-1)), whole(-1));
      return choose(finite, inside, whole(-1));
    }));
    taps[axis].weight = emit.stored("weight", emit.expression(dims, op.dtype(), [=](const Dims& at) {
      const Expr y = coordinate(at);
      return weight_of(mode, y - first(y), at[3]);
    }));
  }
  return std::vector{over_taps(
      op, "sample", taps, BinaryOp::kAdd,
      [](const Dims& at, size_t) {
        return Dims{at[0], at[2], at[3]};
      },
      [x](const Dims& at, Dim row, Dim column) {
        return x.at({at[0], at[1], row, column});
      })};
}

// --- roi_align ---

Values roi_align(const Operation& op) {
  Emitter& emit = op.emit;
  Context& context = op.context();
  const int64_t ratio = op.integer("sampling_ratio");
  if (ratio == 0) return error("how many samples it takes depends on the regions");
  const bool half = op.integer("half_pixel") == 1, best = op.text("mode") == "max";
  const double scale = op.real("spatial_scale");
  const DType dtype = op.dtype();
  const Value &x = op.arg(0), &given = op.arg(2);
  const Value rois = emit.stored("rois", op.arg(1));
  if (x.dims[2].constant() == 0 || x.dims[3].constant() == 0 || !std::isfinite(scale))
    return error("the maps are empty, or the scale is no number");
  const Value batches = emit.stored("batches", emit.expression(given.dims, DType::kI64, [=, &emit](const Dims& at) {
    const Symbol batch = emit.fresh_index();
    return loop::let_index(batch, x.dims[0], loop::convert(DType::kI64, given.at(at)),
                           loop::index_value(emit.context().dim(batch)));
  }));
  std::array<Taps, 2> taps;
  for (const size_t axis : {0, 1}) {
    const int64_t bins = op.integers("size")[axis];
    const Expr n = loop::index_value(x.dims[2 + axis]), last = loop::convert(dtype, n - 1.0);
    // Where a sample lies; two taps each.
    const auto coordinate = [=, &emit, &context](const Dims& at) {
      const auto border = [&](int64_t number) {
        return rois.at({at[0], emit.dim(number)}) * scale - (half ? 0.5 : 0.0);
      };
      const Expr begin = border(axis == 0 ? 1 : 0);
      Expr size = border(axis == 0 ? 3 : 2) - begin;
      if (!half) size = larger(size, like(size, 1));
      const auto real = [&](Dim index) { return loop::convert(dtype, loop::index_value(index)); };
      const Expr sample = (real(context.floor_divide(at[2], context.dim(2))) + 0.5) / static_cast<double>(ratio);
      return begin + (real(at[1]) + sample) * (size / static_cast<double>(bins));
    };
    const auto moved = [=](const Expr& y) { return clamped(y, like(y, 0), last); };
    const auto is_second = [&context](const Dims& at) {
      return same(loop::index_value(context.modulo(at[2], context.dim(2))), whole(1));
    };
    const Dims dims{rois.dims[0], emit.dim(bins), emit.dim(2 * ratio)};
    taps[axis].place = emit.stored("place", emit.expression(dims, DType::kI64, [=](const Dims& at) {
      const Expr y = coordinate(at);
      // What is more than an element outside counts as zero; the rest is moved to the border.
      const Expr inside = both(less_equal(like(y, -1), y), less_equal(y, loop::convert(dtype, n)));
      const Expr low = to_integer(choose(inside, moved(y), like(y, 0)));
      return choose(inside, choose(is_second(at), smaller(low + 1.0, n - 1.0), low), whole(-1));
    }));
    taps[axis].weight = emit.stored("weight", emit.expression(dims, dtype, [=](const Dims& at) {
      const Expr y = moved(coordinate(at)), part = y - loop::unary(UnaryOp::kFloor, y);
      return choose(is_second(at), part, 1.0 - part);
    }));
  }
  const Value result = over_taps(
      op, "align", taps, best ? BinaryOp::kMax : BinaryOp::kAdd,
      [](const Dims& at, size_t axis) {
        return Dims{at[0], at[2 + axis]};
      },
      [=, &emit](const Dims& at, Dim row, Dim column) {
        return emit.at_index(batches.at({at[0]}), x.dims[0], [&](Dim batch) {
          return x.at({batch, at[1], row, column});
        });
      });
  if (best) return std::vector{result};
  return op.expression([=](const Dims& at) { return result.at(at) / static_cast<double>(ratio * ratio); });
}

}  // namespace

std::span<const Lowering> sample_lowerings() {
  static constexpr Lowering kLowerings[] = {{"grid_sample", grid_sample}, {"roi_align", roi_align}};
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
