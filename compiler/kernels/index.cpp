// Elements by indices that are computed: gathers, and resampling, whose indices are tables.
#include <algorithm>

#include "compiler/kernels/lowerings.h"
#include "runtime/reference/resize.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

Values gather(const Operation& op) {
  Emitter& emit = op.emit;
  const size_t axis = op.axis("axis", op.arg(0).rank());
  return op.expression([=, &emit, x = op.arg(0), indices = op.arg(1)](const Dims& at) {
    const auto begin = at.begin() + static_cast<ptrdiff_t>(axis), end = begin + static_cast<ptrdiff_t>(indices.rank());
    return emit.at_index(indices.at(Dims(begin, end)), x.dims[axis], [&](Dim index) {
      Dims from(at.begin(), begin);
      from.push_back(index);
      from.insert(from.end(), end, at.end());
      return x.at(from);
    });
  });
}

Values gather_elements(const Operation& op) {
  Emitter& emit = op.emit;
  const size_t axis = op.axis("axis", op.arg(0).rank());
  return op.expression([=, &emit, x = op.arg(0), indices = op.arg(1)](const Dims& at) {
    return emit.at_index(indices.at(at), x.dims[axis], [&](Dim index) {
      Dims from = at;
      from[axis] = index;
      return x.at(from);
    });
  });
}

Values gather_nd(const Operation& op) {
  Emitter& emit = op.emit;
  const Value &x = op.arg(0), &indices = op.arg(1);
  const auto depth = indices.dims.back().constant();
  if (!depth) return error("the length of the index tuples is not known");
  const auto batch = static_cast<ptrdiff_t>(op.integer("batch_dims"));
  return op.expression([=, &emit](const Dims& at) {
    const auto tuple = at.begin() + static_cast<ptrdiff_t>(indices.rank()) - 1;
    // One index after the other, each inside the one before.
    const std::function<Expr(Dims)> next = [&](Dims from) -> Expr {
      const auto k = static_cast<int64_t>(from.size()) - batch;
      if (k == *depth) {
        from.insert(from.end(), tuple, at.end());
        return x.at(from);
      }
      Dims place(at.begin(), tuple);
      place.push_back(emit.dim(k));
      return emit.at_index(indices.at(place), x.dims[from.size()], [&](Dim index) {
        Dims longer = from;
        longer.push_back(index);
        return next(longer);
      });
    };
    return next(Dims(at.begin(), at.begin() + batch));
  });
}

// An index outside is hot nowhere.
Values one_hot(const Operation& op) {
  const size_t axis = op.axis("axis", op.arg(0).rank() + 1);
  return op.expression([=, indices = op.arg(0), depth = op.integer("depth"), on = op.real("on"), off = op.real("off"),
                        dtype = op.dtype()](const Dims& at) {
    Dims place = at;
    place.erase(place.begin() + static_cast<ptrdiff_t>(axis));
    const Expr index = loop::convert(DType::kI64, indices.at(place)), k = loop::index_value(at[axis]);
    const Expr hot = either(same(index, k), same(index, k - static_cast<double>(depth)));
    const Expr zero = loop::literal(dtype, 0);
    return choose(hot, like(zero, on), like(zero, off));
  });
}

// One axis resampled: each place has some taps, whose places and weights are tables.
template <class T>
Value resize_axis(const Operation& op, const runtime::reference::Resize& how, const Value& x, size_t axis, int64_t in,
                  int64_t out, T scale) {
  Emitter& emit = op.emit;
  size_t count = 0;
  std::vector<int64_t> places;
  std::vector<T> weights;
  for (int64_t i = 0; i < out; ++i) {
    const auto taps = runtime::reference::taps_of<T>(how, i, in, out, scale);
    count = taps.index.size();
    places.insert(places.end(), taps.index.begin(), taps.index.end());
    weights.insert(weights.end(), taps.weight.begin(), taps.weight.end());
  }
  Dims dims = x.dims;
  dims[axis] = emit.dim(out);
  const auto read = [=, &emit](const Dims& at, const Value& table, Dim tap) {
    const Expr place = table.at({at[axis], tap});
    return emit.at_index(place, x.dims[axis], [&](Dim index) {
      Dims from(at.begin(), at.begin() + static_cast<ptrdiff_t>(dims.size()));
      from[axis] = index;
      return x.at(from);
    });
  };
  // A whole factor needs no table: element i is x's i // factor.
  const int64_t factor = in > 0 ? out / in : 0;
  bool repeats = count == 1 && factor * in == out;
  for (int64_t i = 0; repeats && i < out; ++i) repeats = places[static_cast<size_t>(i)] == i / factor;
  if (repeats) {
    return emit.expression(dims, x.dtype, [=, &emit](const Dims& at) {
      Dims from = at;
      from[axis] = emit.context().floor_divide(at[axis], emit.dim(factor));
      return x.at(from);
    });
  }
  const runtime::Shape shape{out, static_cast<int64_t>(count)};
  const Value table = emit.constant(Tensor::of<int64_t>(shape, places));
  if (count == 1)
    return emit.expression(dims, x.dtype, [=, &emit](const Dims& at) { return read(at, table, emit.dim(0)); });
  const Value weight = emit.constant(Tensor::of<T>(shape, weights));
  return emit.reduce("resize",
                     {.dims = dims, .over = {emit.dim(static_cast<int64_t>(count))}, .term = [=](const Dims& at) {
                        return weight.at({at[axis], at.back()}) * read(at, table, at.back());
                      }});
}

Values resize(const Operation& op) {
  const runtime::reference::Resize how{op.text("mode"), op.text("coordinates"), op.text("nearest"), op.real("cubic"),
                                       op.integer("exclude_outside") == 1};
  Value x = op.arg(0);
  const auto& scales = op.reals("scales");
  for (size_t d = 0; d < op.dims().size(); ++d) {
    if (scales.empty() ? op.dims()[d] == x.dims[d] : scales[d] == 1 && op.dims()[d] == x.dims[d]) continue;
    const auto in = x.dims[d].constant(), out = op.dims()[d].constant();
    if (!in || !out) return error("a size that changes is not known");
    if (*in == 0) return error("there is nothing to resize");
    const auto one = [&]<class T>(T) {
      const T scale = scales.empty() ? static_cast<T>(*out) / static_cast<T>(*in) : static_cast<T>(scales[d]);
      return resize_axis<T>(op, how, x, d, *in, *out, scale);
    };
    x = op.dtype() == DType::kF32 ? one(float{}) : one(double{});
  }
  return std::vector{x};
}

}  // namespace

std::span<const Lowering> index_lowerings() {
  static constexpr Lowering kLowerings[] = {{"gather", gather},
                                            {"gather_elements", gather_elements},
                                            {"gather_nd", gather_nd},
                                            {"one_hot", one_hot},
                                            {"resize", resize}};
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
