// Elements by their indices: gather, scatter, one_hot. Negative indices count from the end; an index out of bounds is
// an error.
#include <fmt/format.h>

#include <optional>

#include "runtime/reference/elements.h"
#include "support/try.h"

namespace tenon::runtime::reference {
namespace {

// The index from the front of an axis of `size` elements, or -1, which the call reports.
int64_t checked_index(Call& call, int64_t index, int64_t size) {
  const int64_t wrapped = wrap_index(index, size);
  if (wrapped >= 0) return wrapped;
  call.expect(false, size == 0 ? fmt::format("the index {} is on an axis of no elements", index)
                               : fmt::format("the index {} is not in {} .. {}", index, -size, size - 1));
  return -1;
}

Result gather(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("gather", attrs, inputs);
  call.expect_inputs(2);
  call.expect_dtype(1, kIndices);
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  if (!call.ok()) return call.fail();
  const Shape &x = inputs[0].shape(), &picked = inputs[1].shape();
  Shape shape(x.begin(), x.begin() + axis);
  shape.insert(shape.end(), picked.begin(), picked.end());
  shape.insert(shape.end(), x.begin() + axis + 1, x.end());
  call.expect_size(shape);
  std::vector<int64_t> indices = to_int64(inputs[1]);
  for (int64_t& index : indices) {
    index = checked_index(call, index, x[axis]);
  }
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), shape);
  const AxisView view = view_axis(x, axis);
  const auto count = static_cast<int64_t>(indices.size());
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t k = 0; k < count; ++k) {
      for (int64_t i = 0; i < view.inner; ++i) {
        copy_element(inputs[0], (o * view.length + indices[k]) * view.inner + i, out, (o * count + k) * view.inner + i);
      }
    }
  }
  return std::vector{out};
}

// The offset in a tensor of that shape of index `at` with `index` along `axis`, or -1, which the call reports.
int64_t replaced(Call& call, const Shape& shape, const std::vector<int64_t>& strides, const Shape& at, int64_t axis,
                 int64_t index) {
  index = checked_index(call, index, shape[axis]);
  if (index < 0) return -1;
  int64_t offset = 0;
  for (size_t d = 0; d < at.size(); ++d) offset += (static_cast<int64_t>(d) == axis ? index : at[d]) * strides[d];
  return offset;
}

// Whether `part` is at most as large as `whole` along all axes except `skipped`.
bool within(const Shape& part, const Shape& whole, int64_t skipped) {
  if (part.size() != whole.size()) return false;
  for (size_t d = 0; d < part.size(); ++d) {
    if (static_cast<int64_t>(d) != skipped && part[d] > whole[d]) return false;
  }
  return true;
}

Result gather_along(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("gather_elements", attrs, inputs);
  call.expect_inputs(2);
  call.expect_dtype(1, kIndices);
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  call.expect(within(call.input(1).shape(), call.input(0).shape(), axis),
              "indices have more elements than x along another axis");
  if (!call.ok()) return call.fail();
  const Shape& x = inputs[0].shape();
  const auto indices = to_int64(inputs[1]), strides = dense_strides(x);
  Tensor out(inputs[0].dtype(), inputs[1].shape());
  for_each_index(out.shape(), [&](const Shape& at, int64_t i) {
    const int64_t offset = replaced(call, x, strides, at, axis, indices[i]);
    if (offset >= 0) copy_element(inputs[0], offset, out, i);
  });
  if (!call.ok()) return call.fail();
  return std::vector{out};
}

// The part of x at an index tuple: dims before `batch` are shared, the last dim of the indices is the tuple.
struct Parts {
  int64_t depth = 0, size = 1, tuples_per_batch = 1;  // of the tuple; elements of a part
  std::vector<int64_t> offsets;                       // of the parts in x
};

Parts find_parts(Call& call, int64_t batch) {
  Parts parts;
  const Shape &x = call.input(0).shape(), &indices = call.input(1).shape();
  call.expect(!indices.empty() && static_cast<int64_t>(indices.size()) > batch &&
                  static_cast<int64_t>(x.size()) >= batch + indices.back(),
              "the index tuples are longer than x has dims");
  if (!call.ok()) return parts;
  for (int64_t d = 0; d < batch; ++d) call.expect(x[d] == indices[d], "the batch dims differ");
  if (!call.ok()) return parts;
  parts.depth = indices.back();
  for (size_t d = static_cast<size_t>(batch + parts.depth); d < x.size(); ++d) parts.size *= x[d];
  for (size_t d = static_cast<size_t>(batch); d + 1 < indices.size(); ++d) parts.tuples_per_batch *= indices[d];
  const auto values = to_int64(call.input(1)), strides = dense_strides(x);
  const int64_t tuples = element_count(std::span(indices).first(indices.size() - 1));
  for (int64_t n = 0; n < tuples; ++n) {
    const int64_t in_batch = batch > 0 ? n / parts.tuples_per_batch * strides[static_cast<size_t>(batch) - 1] : 0;
    int64_t offset = in_batch;
    for (int64_t k = 0; k < parts.depth; ++k) {
      const auto d = static_cast<size_t>(batch + k);
      offset += checked_index(call, values[n * parts.depth + k], x[d]) * strides[d];
    }
    parts.offsets.push_back(offset);
  }
  return parts;
}

Result gather_nd(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("gather_nd", attrs, inputs);
  call.expect_inputs(2);
  call.expect_dtype(1, kIndices);
  const int64_t batch = call.integer("batch_dims", 0, 31);
  if (!call.ok()) return call.fail();
  const Parts parts = find_parts(call, batch);
  if (!call.ok()) return call.fail();
  const Shape &x = inputs[0].shape(), &indices = inputs[1].shape();
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), x.begin() + batch + parts.depth, x.end());
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), shape);
  for (size_t n = 0; n < parts.offsets.size(); ++n) {
    for (int64_t i = 0; i < parts.size; ++i) {
      copy_element(inputs[0], parts.offsets[n] + i, out, static_cast<int64_t>(n) * parts.size + i);
    }
  }
  return std::vector{out};
}

enum class Reduction { kNone, kAdd, kMultiply, kMaximum, kMinimum };

std::optional<Reduction> read_reduction(Call& call) {
  const std::string name = call.string("reduction");
  if (name == "none") return Reduction::kNone;
  call.expect(call.input(0).dtype() != DType::kBool, "bools are not combined");
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMultiply;
  if (name == "max") return Reduction::kMaximum;
  if (name == "min") return Reduction::kMinimum;
  call.expect(false, "reduction must be none, add, mul, max or min");
  return std::nullopt;
}

// out[to] = out[to] combined with from[at]
void combine(Reduction reduction, const Tensor& from, int64_t at, Tensor& out, int64_t to) {
  if (reduction == Reduction::kNone) return copy_element(from, at, out, to);
  with_arithmetic<kNumericTypes>(out.dtype(), [&]<class T>(T) {
    using Wrapping = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;  // integers wrap
    T& y = out.data<T>()[static_cast<size_t>(to)];
    const T x = from.data<T>()[static_cast<size_t>(at)];
    switch (reduction) {
      case Reduction::kNone: break;
      case Reduction::kAdd: y = static_cast<T>(static_cast<Wrapping>(y) + static_cast<Wrapping>(x)); break;
      case Reduction::kMultiply: y = static_cast<T>(static_cast<Wrapping>(y) * static_cast<Wrapping>(x)); break;
      case Reduction::kMaximum: y = std::max(y, x); break;
      case Reduction::kMinimum: y = std::min(y, x); break;
    }
  });
}

Result scatter_along(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("scatter_elements", attrs, inputs);
  call.expect_inputs(3);
  call.expect_dtype(1, kIndices);
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  const auto reduction = read_reduction(call);
  call.expect(within(call.input(1).shape(), call.input(0).shape(), axis),
              "indices have more elements than x along another axis");
  call.expect(call.input(1).shape() == call.input(2).shape() && call.input(0).dtype() == call.input(2).dtype(),
              "updates must have the shape of indices and x's dtype");
  if (!call.ok()) return call.fail();
  const Shape& x = inputs[0].shape();
  const auto indices = to_int64(inputs[1]), strides = dense_strides(x);
  Tensor out = inputs[0].clone();
  for_each_index(inputs[1].shape(), [&](const Shape& at, int64_t i) {
    const int64_t offset = replaced(call, x, strides, at, axis, indices[i]);
    if (offset >= 0) combine(*reduction, inputs[2], i, out, offset);
  });
  if (!call.ok()) return call.fail();
  return std::vector{out};
}

Result scatter_nd(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("scatter_nd", attrs, inputs);
  call.expect_inputs(3);
  call.expect_dtype(1, kIndices);
  const auto reduction = read_reduction(call);
  if (!call.ok()) return call.fail();
  const Parts parts = find_parts(call, 0);
  if (!call.ok()) return call.fail();
  const Shape &x = inputs[0].shape(), &indices = inputs[1].shape();
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), x.begin() + parts.depth, x.end());
  call.expect(inputs[2].shape() == shape && inputs[2].dtype() == inputs[0].dtype(),
              "updates have another shape or dtype");
  if (!call.ok()) return call.fail();
  Tensor out = inputs[0].clone();
  for (size_t n = 0; n < parts.offsets.size(); ++n) {
    for (int64_t i = 0; i < parts.size; ++i) {
      combine(*reduction, inputs[2], static_cast<int64_t>(n) * parts.size + i, out, parts.offsets[n] + i);
    }
  }
  return std::vector{out};
}

Result one_hot(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("one_hot", attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, kIndices);
  const int64_t depth = call.integer("depth", 1, kMaxExtent);
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()) + 1);
  const double on = call.real("on"), off = call.real("off");
  const std::string dtype_name = call.string("dtype");
  if (!call.ok()) return call.fail();
  TENON_TRY_ASSIGN(dtype, parse_dtype(dtype_name));
  Shape shape = inputs[0].shape();
  shape.insert(shape.begin() + axis, depth);
  call.expect(representable(*dtype, on) && representable(*dtype, off), "on or off is not representable in the dtype");
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(*dtype, shape);
  const auto indices = to_int64(inputs[0]);
  const AxisView view = view_axis(shape, axis);
  with_arithmetic<kAnyDType>(*dtype, [&]<class T>(T) {
    auto y = out.data<T>();
    int64_t next = 0;
    for_each_line(view, [&](auto at) {
      const int64_t hot = wrap_index(indices[next++], depth);  // an index out of bounds sets no element to `on`
      for (int64_t k = 0; k < depth; ++k) y[at(k)] = static_cast<T>(k == hot ? on : off);
    });
  });
  return std::vector{out};
}

}  // namespace

std::span<const Entry> index_kernels() {
  static constexpr Entry kEntries[] = {{"gather", gather},       {"gather_elements", gather_along},
                                       {"gather_nd", gather_nd}, {"scatter_elements", scatter_along},
                                       {"one_hot", one_hot},     {"scatter_nd", scatter_nd}};
  return kEntries;
}

}  // namespace tenon::runtime::reference
