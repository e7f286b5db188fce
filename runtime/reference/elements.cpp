#include "runtime/reference/elements.h"

namespace tenon::runtime::reference {

std::vector<int64_t> dense_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Shape broadcast_shape(Call& call) {
  Shape shape;
  for (size_t n = 0; n < call.count(); ++n) {
    const Shape& input = call.input(n).shape();
    if (input.size() > shape.size()) shape.insert(shape.begin(), input.size() - shape.size(), 1);
    for (size_t back = 1; back <= input.size(); ++back) {
      int64_t& size = shape[shape.size() - back];
      const int64_t next = input[input.size() - back];
      call.expect(size == next || size == 1 || next == 1, "the shapes do not broadcast");
      if (size == 1) size = next;
    }
  }
  call.expect_size(shape);
  return shape;
}

Tensor broadcast_to(const Tensor& tensor, const Shape& shape) {
  if (tensor.shape() == shape) return tensor;
  const std::vector<int64_t> from_strides = dense_strides(tensor.shape());
  std::vector<int64_t> strides(shape.size(), 0);
  const size_t lead = shape.size() - from_strides.size();
  for (size_t i = 0; i < from_strides.size(); ++i) strides[lead + i] = tensor.shape()[i] == 1 ? 0 : from_strides[i];
  Tensor out(tensor.dtype(), shape);
  gather_elements(tensor, out, [&](const Shape& at) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
    return offset;
  });
  return out;
}

Tensor transposed(const Tensor& tensor, const std::vector<int64_t>& axes) {
  const std::vector<int64_t> strides = dense_strides(tensor.shape());
  Shape shape;
  for (int64_t axis : axes) shape.push_back(tensor.shape()[axis]);
  Tensor out(tensor.dtype(), shape);
  gather_elements(tensor, out, [&](const Shape& at) {
    int64_t offset = 0;
    for (size_t d = 0; d < axes.size(); ++d) offset += at[d] * strides[axes[d]];
    return offset;
  });
  return out;
}

std::vector<int64_t> to_int64(const Tensor& tensor) {
  std::vector<int64_t> values;
  with_arithmetic<kIndices>(tensor.dtype(),
                            [&]<class T>(T) { values.assign(tensor.data<T>().begin(), tensor.data<T>().end()); });
  return values;
}

}  // namespace tenon::runtime::reference
