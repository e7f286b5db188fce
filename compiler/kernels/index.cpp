// Elements at computed indices: gathers, and resizing, whose indices are constant tables.
#include <algorithm>

#include "compiler/kernels/lowerings.h"
#include "runtime/reference/resize.h"

namespace tenon::compiler::kernels {
namespace {

LoweredResults gather(const OperatorCall& op) {
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

LoweredResults gather_elements(const OperatorCall& op) {
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

LoweredResults gather_nd(const OperatorCall& op) {
  Emitter& emit = op.emit;
  const LazyTensor &x = op.arg(0), &indices = op.arg(1);
  const auto depth = indices.dims.back().constant();
  if (!depth) return error("the length of the index tuples must be constant");
  const auto batch = static_cast<ptrdiff_t>(op.integer("batch_dims"));
  return op.expression([=, &emit](const Dims& at) {
    const auto tuple = at.begin() + static_cast<ptrdiff_t>(indices.rank()) - 1;
    // Binds one index after the other, each in the scope of the previous one.
    const std::function<Expr(Dims)> gather_from = [&](Dims from) -> Expr {
      const auto k = static_cast<int64_t>(from.size()) - batch;
      if (k == *depth) {
        from.insert(from.end(), tuple, at.end());
        return x.at(from);
      }
      Dims indices_at(at.begin(), tuple);
      indices_at.push_back(emit.dim(k));
      return emit.at_index(indices.at(indices_at), x.dims[from.size()], [&](Dim index) {
        Dims longer = from;
        longer.push_back(index);
        return gather_from(longer);
      });
    };
    return gather_from(Dims(at.begin(), at.begin() + batch));
  });
}

// An index out of range gives a vector of `off` values.
LoweredResults one_hot(const OperatorCall& op) {
  const size_t axis = op.axis("axis", op.arg(0).rank() + 1);
  return op.expression([=, indices = op.arg(0), depth = op.integer("depth"), on = op.real("on"), off = op.real("off"),
                        dtype = op.dtype()](const Dims& at) {
    Dims indices_at = at;
    indices_at.erase(indices_at.begin() + static_cast<ptrdiff_t>(axis));
    const Expr index = loop::convert(DType::kI64, indices.at(indices_at)), k = loop::index_value(at[axis]);
    const Expr hot = logical_or(is_equal(index, k), is_equal(index, k - static_cast<double>(depth)));
    const Expr zero = loop::literal(dtype, 0);
    return select(hot, like(zero, on), like(zero, off));
  });
}

// Resizes one axis: each element is a weighted sum of a few source elements, whose indices and weights are tables.
template <class T>
LazyTensor resize_axis(const OperatorCall& op, const runtime::reference::Resize& how, const LazyTensor& x, size_t axis,
                       int64_t in, int64_t out, T scale) {
  Emitter& emit = op.emit;
  size_t count = 0;
  std::vector<int64_t> source_indices;
  std::vector<T> weights;
  for (int64_t i = 0; i < out; ++i) {
    const auto sources = runtime::reference::weighted_indices<T>(how, i, in, out, scale);
    count = sources.index.size();
    source_indices.insert(source_indices.end(), sources.index.begin(), sources.index.end());
    weights.insert(weights.end(), sources.weight.begin(), sources.weight.end());
  }
  Dims dims = x.dims;
  dims[axis] = emit.dim(out);
  const auto read = [=, &emit](const Dims& at, const LazyTensor& table, Dim source) {
    const Expr index_at = table.at({at[axis], source});
    return emit.at_index(index_at, x.dims[axis], [&](Dim index) {
      Dims from(at.begin(), at.begin() + static_cast<ptrdiff_t>(dims.size()));
      from[axis] = index;
      return x.at(from);
    });
  };
  // An integer factor needs no table: element i is element i / factor of x.
  const int64_t factor = in > 0 ? out / in : 0;
  bool repeats = count == 1 && factor * in == out;
  for (int64_t i = 0; repeats && i < out; ++i) repeats = source_indices[static_cast<size_t>(i)] == i / factor;
  if (repeats) {
    return emit.expression(dims, x.dtype, [=, &emit](const Dims& at) {
      Dims from = at;
      from[axis] = emit.context().floor_divide(at[axis], emit.dim(factor));
      return x.at(from);
    });
  }
  const runtime::Shape shape{out, static_cast<int64_t>(count)};
  const LazyTensor table = emit.constant(Tensor::of<int64_t>(shape, source_indices));
  if (count == 1)
    return emit.expression(dims, x.dtype, [=, &emit](const Dims& at) { return read(at, table, emit.dim(0)); });
  const LazyTensor weight = emit.constant(Tensor::of<T>(shape, weights));
  return emit.reduce("resize",
                     {.dims = dims, .over = {emit.dim(static_cast<int64_t>(count))}, .term = [=](const Dims& at) {
                        return weight.at({at[axis], at.back()}) * read(at, table, at.back());
                      }});
}

LoweredResults resize(const OperatorCall& op) {
  const runtime::reference::Resize how{op.text("mode"),
                                       op.text("coordinates"),
                                       op.text("nearest"),
                                       op.real("cubic"),
                                       op.integer("exclude_outside") == 1,
                                       op.integer("antialias") == 1};
  LazyTensor x = op.arg(0);
  const auto& scales = op.reals("scales");
  for (size_t d = 0; d < op.dims().size(); ++d) {
    if ((scales.empty() || scales[d] == 1) && op.dims()[d] == x.dims[d]) continue;
    const auto in = x.dims[d].constant(), out = op.dims()[d].constant();
    if (!in || !out) return error("a resized dim must be constant");
    if (*in == 0) return error("a resized dim must not be 0");
    const auto resize_as = [&]<class T>(T) {
      const T scale = scales.empty() ? static_cast<T>(*out) / static_cast<T>(*in) : static_cast<T>(scales[d]);
      return resize_axis<T>(op, how, x, d, *in, *out, scale);
    };
    x = op.dtype() == DType::kF32 ? resize_as(float{}) : resize_as(double{});
  }
  return std::vector{x};
}

}  // namespace

std::span<const Lowering> index_lowerings() {
  static constexpr Lowering kLowerings[] = {{ops::kGather, gather},
                                            {ops::kGatherElements, gather_elements},
                                            {ops::kGatherNd, gather_nd},
                                            {ops::kOneHot, one_hot},
                                            {ops::kResize, resize}};
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
