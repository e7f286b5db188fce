// Reshapes, transposes, slices and concatenations of elements of any type.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/reference/elements.h"
#include "runtime/reference/layout.h"
#include "runtime/reference/slice.h"
#include "support/try.h"

namespace tenon::runtime::reference {
namespace {

Result flatten(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("flatten", attrs, inputs);
  call.expect_inputs(1);
  const auto rank = static_cast<int64_t>(call.input(0).shape().size());
  int64_t axis = call.integer("axis", -rank, rank);
  if (!call.ok()) return call.fail();
  if (axis < 0) axis += rank;
  const std::span<const int64_t> shape(inputs[0].shape());
  return std::vector{inputs[0].reshaped(Shape{element_count(shape.first(axis)), element_count(shape.subspan(axis))})};
}

Result reshape(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("reshape", attrs, inputs);
  call.expect_inputs(1);
  Shape shape = call.integers("shape", 0, -1, kMaxExtent);
  const bool copies = call.integer("zero", 0, 1) == 0;
  if (!call.ok()) return call.fail();
  int64_t product = 1;
  int64_t* inferred = nullptr;
  for (size_t i = 0; i < shape.size(); ++i) {
    call.expect(!copies || shape[i] != 0 || i < inputs[0].shape().size(),
                "0 copies a size that the input does not have");
    call.expect(shape[i] != -1 || !inferred, "only one size may be -1");
    if (!call.ok()) return call.fail();
    if (copies && shape[i] == 0) shape[i] = inputs[0].shape()[i];
    if (shape[i] == -1) inferred = &shape[i];
    else product = std::min(product, kMaxExtent) * shape[i];
  }
  if (inferred) {
    call.expect(product > 0 && inputs[0].size() % product == 0, "the number of elements differs");
    if (call.ok()) *inferred = inputs[0].size() / product;
  } else {
    call.expect(product == inputs[0].size(), "the number of elements differs");
  }
  if (!call.ok()) return call.fail();
  return std::vector{inputs[0].reshaped(std::move(shape))};
}

Result transpose(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("transpose", attrs, inputs);
  call.expect_inputs(1);
  const size_t rank = call.input(0).shape().size();
  const std::vector<int64_t> axes = call.integers("axes", 0, 0, static_cast<int64_t>(rank) - 1);
  std::vector<int64_t> sorted = axes, identity(rank);
  std::ranges::sort(sorted);
  std::iota(identity.begin(), identity.end(), 0);
  call.expect(sorted == identity, "axes must be a permutation");
  if (!call.ok()) return call.fail();
  return std::vector{transposed(inputs[0], axes)};
}

Result concat(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("concat", attrs, inputs);
  call.expect_inputs(std::max<size_t>(inputs.size(), 1));
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  if (!call.ok()) return call.fail();
  Shape shape = inputs[0].shape();
  for (const Tensor& next : inputs.subspan(1)) {
    Shape other = next.shape();
    if (other.size() == shape.size()) other[axis] = inputs[0].shape()[axis];
    call.expect(next.dtype() == inputs[0].dtype() && other == inputs[0].shape(), "the inputs differ beside the axis");
    if (!call.ok()) return call.fail();
    shape[axis] += next.shape()[axis];
  }
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), shape);
  const AxisView view = view_axis(shape, axis);
  const int64_t row = view.inner * bytes(out.dtype());
  int64_t done = 0;
  for (const Tensor& next : inputs) {
    const int64_t length = next.shape()[axis] * row;
    for (int64_t o = 0; o < view.outer && length > 0; ++o) {
      std::memcpy(out.bytes().data() + o * view.length * row + done, next.bytes().data() + o * length, length);
    }
    done += length;
  }
  return std::vector{out};
}

Result slice(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("slice", attrs, inputs);
  call.expect_inputs(1);
  const size_t rank = call.input(0).shape().size();
  const auto begin = call.integers("begin", 0, INT64_MIN, INT64_MAX),
             end = call.integers("end", 0, INT64_MIN, INT64_MAX), step = call.integers("step", 0, INT64_MIN, INT64_MAX);
  call.expect(begin.size() == rank && end.size() == rank && step.size() == rank, "needs bounds for each dim");
  call.expect(std::ranges::find(step, 0) == step.end(), "a step is 0");
  if (!call.ok()) return call.fail();
  Shape shape;
  for (size_t d = 0; d < rank; ++d) shape.push_back(slice_length(inputs[0].shape()[d], begin[d], end[d], step[d]));
  const std::vector<int64_t> strides = dense_strides(inputs[0].shape());
  Tensor out(inputs[0].dtype(), shape);
  gather_elements(inputs[0], out, [&](const Shape& at) {
    int64_t offset = 0;
    for (size_t d = 0; d < rank; ++d) {
      offset += (slice_begin(inputs[0].shape()[d], begin[d], step[d]) + at[d] * step[d]) * strides[d];
    }
    return offset;
  });
  return std::vector{out};
}

void fill(Tensor& tensor, double value) {
  with_arithmetic<kAnyDType>(tensor.dtype(),
                             [&]<class T>(T) { std::ranges::fill(tensor.data<T>(), static_cast<T>(value)); });
}

Result pad(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("pad", attrs, inputs);
  call.expect_inputs(1);
  const size_t rank = call.input(0).shape().size();
  const auto before = call.integers("before", rank, 0, kMaxExtent), after = call.integers("after", rank, 0, kMaxExtent);
  const double value = call.real("value");
  if (call.ok()) {
    call.expect(before.size() == rank && after.size() == rank, "needs a pad for each dim");
    call.expect(representable(inputs[0].dtype(), value), "the value is none of the dtype");
  }
  if (!call.ok()) return call.fail();
  Shape shape = inputs[0].shape();
  for (size_t d = 0; d < rank; ++d) shape[d] += before[d] + after[d];
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), shape);
  fill(out, value);
  const std::vector<int64_t> strides = dense_strides(inputs[0].shape());
  gather_elements(inputs[0], out, [&](const Shape& at) -> int64_t {
    int64_t offset = 0;
    for (size_t d = 0; d < rank; ++d) {
      const int64_t source = at[d] - before[d];
      if (source < 0 || source >= inputs[0].shape()[d]) return -1;
      offset += source * strides[d];
    }
    return offset;
  });
  return std::vector{out};
}

Result layout_transform(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("layout_transform", attrs, inputs);
  call.expect_inputs(1);
  const std::string from_text = call.string("from"), to_text = call.string("to");
  const int64_t channels = call.integer("channels", 0, kMaxExtent);
  if (!call.ok()) return call.fail();
  TENON_TRY_ASSIGN(from, Layout::parse(from_text));
  TENON_TRY_ASSIGN(to, Layout::parse(to_text));
  TENON_TRY(check_same_axes(*from, *to));
  call.expect_rank(0, from->rank());
  if (!call.ok()) return call.fail();
  const Shape& x = inputs[0].shape();
  call.expect(!from->blocked || x.back() == from->block, "the last dim is not the block");
  if (!call.ok()) return call.fail();

  const size_t axes = to->axes.size();
  Shape shape(axes), logical(axes);  // by the axes of `to`
  std::vector<size_t> source(axes);  // the axis of x
  for (size_t i = 0; i < axes; ++i) {
    source[i] = from->axes.find(to->axes[i]);
    logical[i] = x[source[i]];
    if (from->blocked == to->axes[i]) {
      const int64_t stored = logical[i] * from->block;
      call.expect(!channels || (channels <= stored && channels > stored - from->block),
                  "channels do not fill the blocks");
      logical[i] = channels ? channels : stored;
    }
    shape[i] = to->blocked == to->axes[i] ? (logical[i] + to->block - 1) / to->block : logical[i];
  }
  if (to->blocked) shape.push_back(to->block);
  call.expect_size(shape);
  if (!call.ok()) return call.fail();

  const std::vector<int64_t> strides = dense_strides(x);
  Tensor out(inputs[0].dtype(), shape);  // zeros
  gather_elements(inputs[0], out, [&](const Shape& at) -> int64_t {
    int64_t offset = 0;
    for (size_t i = 0; i < axes; ++i) {
      int64_t index = at[i];
      if (to->blocked == to->axes[i]) index = index * to->block + at.back();
      if (index >= logical[i]) return -1;
      if (from->blocked == to->axes[i]) {
        offset += index / from->block * strides[source[i]] + index % from->block;
      } else {
        offset += index * strides[source[i]];
      }
    }
    return offset;
  });
  return std::vector{out};
}

}  // namespace

std::span<const Entry> shape_kernels() {
  static constexpr Entry kEntries[] = {{"flatten", flatten},
                                       {"reshape", reshape},
                                       {"transpose", transpose},
                                       {"concat", concat},
                                       {"slice", slice},
                                       {"pad", pad},
                                       {"layout_transform", layout_transform}};
  return kEntries;
}

}  // namespace tenon::runtime::reference
