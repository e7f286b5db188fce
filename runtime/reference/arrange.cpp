// Rearranged and repeated elements: split, stack, tile, triangles, blocks, padding with elements of the tensor.
#include <numeric>

#include "runtime/reference/elements.h"

namespace tenon::runtime::reference {
namespace {

Result split(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("split", attrs, inputs);
  call.expect_inputs(1);
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  const auto sizes = call.integers("sizes", 0, 0, kMaxExtent);
  if (!call.ok()) return call.fail();
  int64_t sum = 0;
  for (int64_t size : sizes) sum = std::min(sum + size, 2 * kMaxExtent);
  call.expect(sum == inputs[0].shape()[axis], "the sizes are not the axis");
  if (!call.ok()) return call.fail();
  const AxisView view = view_axis(inputs[0].shape(), axis);
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (int64_t size : sizes) {
    Shape shape = inputs[0].shape();
    shape[axis] = size;
    Tensor part(inputs[0].dtype(), shape);
    for (int64_t i = 0; i < part.size(); ++i) {
      const int64_t o = i / (size * view.inner), inner = i % (size * view.inner);
      copy_element(inputs[0], (o * view.length + first) * view.inner + inner, part, i);
    }
    parts.push_back(std::move(part));
    first += size;
  }
  return parts;
}

Result stack(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("stack", attrs, inputs);
  call.expect_inputs(std::max<size_t>(inputs.size(), 1));
  call.expect_one_dtype();
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()) + 1);
  for (const Tensor& input : inputs) call.expect(input.shape() == call.input(0).shape(), "the shapes differ");
  if (!call.ok()) return call.fail();
  Shape shape = inputs[0].shape();
  shape.insert(shape.begin() + axis, static_cast<int64_t>(inputs.size()));
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), shape);
  const AxisView view = view_axis(shape, axis);
  int64_t next = 0;
  for_each_line(view, [&](auto at) {
    for (int64_t k = 0; k < view.length; ++k) copy_element(inputs[k], next, out, at(k));
    ++next;
  });
  return std::vector{out};
}

Result tile(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("tile", attrs, inputs);
  call.expect_inputs(1);
  const size_t rank = call.input(0).shape().size();
  const auto repeats = call.integers("repeats", rank, 0, kMaxExtent);
  call.expect(repeats.size() == rank, "needs a count for each dim");
  if (!call.ok()) return call.fail();
  Shape shape = inputs[0].shape();
  for (size_t d = 0; d < rank; ++d) shape[d] *= repeats[d];
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  const auto strides = dense_strides(inputs[0].shape());
  Tensor out(inputs[0].dtype(), shape);
  gather_elements(inputs[0], out, [&](const Shape& at) {
    int64_t offset = 0;
    for (size_t d = 0; d < rank; ++d) offset += at[d] % inputs[0].shape()[d] * strides[d];
    return offset;
  });
  return std::vector{out};
}

// The attribute has the sizes of the result, aligned at the last dim; -1 keeps the size of x.
Result broadcast(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("broadcast_to", attrs, inputs);
  call.expect_inputs(1);
  Shape shape = call.integers("shape", 0, -1, kMaxExtent);
  if (!call.ok()) return call.fail();
  const Shape& x = inputs[0].shape();
  call.expect(shape.size() >= x.size(), "x has more dims");
  for (size_t back = 1; back <= shape.size() && call.ok(); ++back) {
    int64_t& size = shape[shape.size() - back];
    const int64_t extent = back <= x.size() ? x[x.size() - back] : 1;
    if (size == -1) size = extent;
    call.expect(extent == size || extent == 1, "x does not broadcast to the shape");
  }
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  return std::vector{broadcast_to(inputs[0], shape)};
}

Result broadcast_dynamic(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("broadcast_dynamic", attrs, inputs);
  call.expect_inputs(2);
  call.expect_dtype(1, DTypes{DType::kI64});
  call.expect_rank(1, 1);
  if (!call.ok()) return call.fail();
  const auto wanted = inputs[1].data<int64_t>();
  const Shape& x = inputs[0].shape();
  Shape shape(std::max(x.size(), wanted.size()), 1);
  for (size_t back = 1; back <= shape.size() && call.ok(); ++back) {
    const int64_t extent = back <= x.size() ? x[x.size() - back] : 1;
    const int64_t other = back <= wanted.size() ? wanted[wanted.size() - back] : 1;
    call.expect(other >= 0, "a size is negative");
    call.expect(extent == other || extent == 1 || other == 1, "x does not broadcast to the shape");
    shape[shape.size() - back] = extent == 1 ? other : extent;
  }
  if (call.ok()) call.expect_size(shape);
  if (!call.ok()) return call.fail();
  return std::vector{broadcast_to(inputs[0], shape)};
}

Result squeeze(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("squeeze", attrs, inputs);
  call.expect_inputs(1);
  const auto rank = static_cast<int64_t>(call.input(0).shape().size());
  const auto axes = call.integers("axes", 0, -rank, rank - 1);
  if (!call.ok()) return call.fail();
  std::vector<bool> gone(rank, false);
  for (int64_t axis : axes) gone[axis < 0 ? axis + rank : axis] = true;
  Shape shape;
  for (int64_t d = 0; d < rank; ++d) {
    call.expect(!gone[d] || inputs[0].shape()[d] == 1, "an axis is not 1");
    if (!gone[d]) shape.push_back(inputs[0].shape()[d]);
  }
  if (!call.ok()) return call.fail();
  return std::vector{inputs[0].reshaped(shape)};
}

Result expand_dims(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("expand_dims", attrs, inputs);
  call.expect_inputs(1);
  auto axes = call.integers("axes", 0, -64, 63);
  if (!call.ok()) return call.fail();
  const auto rank = static_cast<int64_t>(inputs[0].shape().size() + axes.size());
  for (int64_t& axis : axes) axis = wrap_index(axis, rank);
  std::ranges::sort(axes);
  call.expect(axes.empty() || axes.front() >= 0, "an axis is outside of the result");
  call.expect(std::ranges::adjacent_find(axes) == axes.end(), "an axis comes twice");
  if (!call.ok()) return call.fail();
  Shape shape = inputs[0].shape();
  for (int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
  return std::vector{inputs[0].reshaped(shape)};
}

Result reverse(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("reverse", attrs, inputs);
  call.expect_inputs(1);
  const auto rank = static_cast<int64_t>(call.input(0).shape().size());
  const auto axes = call.integers("axes", 0, -rank, rank - 1);
  if (!call.ok()) return call.fail();
  std::vector<bool> reversed(rank, false);
  for (int64_t axis : axes) reversed[axis < 0 ? axis + rank : axis] = true;
  const auto strides = dense_strides(inputs[0].shape());
  Tensor out(inputs[0].dtype(), inputs[0].shape());
  gather_elements(inputs[0], out, [&](const Shape& at) {
    int64_t offset = 0;
    for (int64_t d = 0; d < rank; ++d) offset += (reversed[d] ? out.shape()[d] - 1 - at[d] : at[d]) * strides[d];
    return offset;
  });
  return std::vector{out};
}

Result reverse_sequence(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("reverse_sequence", attrs, inputs);
  call.expect_inputs(2);
  call.expect_dtype(1, kIndices);
  call.expect_rank(1, 1);
  const auto rank = static_cast<int64_t>(call.input(0).shape().size());
  const int64_t batch = call.axis("batch_axis", rank), time = call.axis("time_axis", rank);
  call.expect(batch != time, "batch_axis and time_axis are the same");
  call.expect(call.dim(0, batch) == call.dim(1, 0), "needs a length for each batch");
  if (!call.ok()) return call.fail();
  const auto lengths = to_int64(inputs[1]);
  for (int64_t length : lengths)
    call.expect(length >= 0 && length <= call.dim(0, time), "a length is outside of the axis");
  if (!call.ok()) return call.fail();
  const auto strides = dense_strides(inputs[0].shape());
  Tensor out(inputs[0].dtype(), inputs[0].shape());
  gather_elements(inputs[0], out, [&](const Shape& at) {
    const int64_t length = lengths[at[batch]];
    int64_t offset = 0;
    for (int64_t d = 0; d < rank; ++d) {
      offset += (d == time && at[d] < length ? length - 1 - at[d] : at[d]) * strides[d];
    }
    return offset;
  });
  return std::vector{out};
}

// Padding with elements of x: F(i, n) is the index in 0 .. n - 1 for index i, which may be outside.
template <Name op, class F>
Result pad_from_itself(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  call.expect_inputs(1);
  const size_t rank = call.input(0).shape().size();
  const auto before = call.integers("before", rank, 0, kMaxExtent), after = call.integers("after", rank, 0, kMaxExtent);
  call.expect(before.size() == rank && after.size() == rank, "needs a pad for each dim");
  if (!call.ok()) return call.fail();
  Shape shape = inputs[0].shape();
  for (size_t d = 0; d < rank; ++d) {
    call.expect(shape[d] > 0 || before[d] + after[d] == 0, "an axis without elements cannot be padded");
    shape[d] += before[d] + after[d];
  }
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  const auto strides = dense_strides(inputs[0].shape());
  Tensor out(inputs[0].dtype(), shape);
  gather_elements(inputs[0], out, [&](const Shape& at) {
    int64_t offset = 0;
    for (size_t d = 0; d < rank; ++d) offset += F{}(at[d] - before[d], inputs[0].shape()[d]) * strides[d];
    return offset;
  });
  return std::vector{out};
}
template <Name op, class F>
constexpr Entry padding(F) {
  return {op.view(), pad_from_itself<op, F>};
}

int64_t modulo(int64_t a, int64_t n) { return ((a % n) + n) % n; }

Result triangle(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("triangle", attrs, inputs);
  call.expect_inputs(1);
  const bool upper = call.integer("upper", 0, 1) == 1;
  const int64_t diagonal = call.integer("diagonal", -kMaxExtent, kMaxExtent);
  const size_t rank = call.input(0).shape().size();
  call.expect(rank >= 2, "needs at least 2 dims");
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), inputs[0].shape());
  for_each_index(out.shape(), [&](const Shape& at, int64_t i) {
    const int64_t right = at[rank - 1] - at[rank - 2];
    if (upper ? right >= diagonal : right <= diagonal) copy_element(inputs[0], i, out, i);
  });
  return std::vector{out};
}

Result depth_to_space(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("depth_to_space", attrs, inputs);
  call.expect_inputs(1);
  call.expect_rank(0, 4);
  const int64_t b = call.integer("block", 1, 1 << 15);
  const std::string order = call.string("order");
  call.expect(order == "DCR" || order == "CRD", "order must be DCR or CRD");
  call.expect(call.dim(0, 1) % (b * b) == 0, "the channels do not divide into the blocks");
  if (!call.ok()) return call.fail();
  const int64_t n = call.dim(0, 0), c = call.dim(0, 1) / (b * b), h = call.dim(0, 2), w = call.dim(0, 3);
  const Tensor blocks = order == "DCR" ? transposed(inputs[0].reshaped({n, b, b, c, h, w}), {0, 3, 4, 1, 5, 2})
                                       : transposed(inputs[0].reshaped({n, c, b, b, h, w}), {0, 1, 4, 2, 5, 3});
  return std::vector{blocks.reshaped({n, c, h * b, w * b})};
}

Result space_to_depth(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("space_to_depth", attrs, inputs);
  call.expect_inputs(1);
  call.expect_rank(0, 4);
  const int64_t b = call.integer("block", 1, 1 << 15);
  call.expect(call.dim(0, 2) % b == 0 && call.dim(0, 3) % b == 0, "the maps do not divide into the blocks");
  if (!call.ok()) return call.fail();
  const int64_t n = call.dim(0, 0), c = call.dim(0, 1), h = call.dim(0, 2) / b, w = call.dim(0, 3) / b;
  return std::vector{
      transposed(inputs[0].reshaped({n, c, h, b, w, b}), {0, 3, 5, 1, 2, 4}).reshaped({n, c * b * b, h, w})};
}

Result shape_of(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("shape_of", attrs, inputs);
  call.expect_inputs(1);
  if (!call.ok()) return call.fail();
  const Shape& shape = inputs[0].shape();
  return std::vector{Tensor::of<int64_t>({static_cast<int64_t>(shape.size())}, shape)};
}

}  // namespace

std::span<const Entry> arrange_kernels() {
  static constexpr Entry kEntries[] = {
      {"split", split},
      {"stack", stack},
      {"tile", tile},
      {"broadcast_to", broadcast},
      {"broadcast_dynamic", broadcast_dynamic},
      {"squeeze", squeeze},
      {"expand_dims", expand_dims},
      {"reverse", reverse},
      {"reverse_sequence", reverse_sequence},
      padding<"pad_edge">([](int64_t i, int64_t n) { return std::clamp<int64_t>(i, 0, n - 1); }),
      padding<"pad_wrap">([](int64_t i, int64_t n) { return modulo(i, n); }),
      // Forward and backward, with the first and the last element once: a period of 2 * n - 2.
      padding<"pad_reflect">([](int64_t i, int64_t n) {
        const int64_t period = std::max<int64_t>(2 * n - 2, 1), at = modulo(i, period);
        return at < n ? at : period - at;
      }),
      {"triangle", triangle},
      {"depth_to_space", depth_to_space},
      {"space_to_depth", space_to_depth},
      {"shape_of", shape_of},
  };
  return kEntries;
}

}  // namespace tenon::runtime::reference
