#include "compiler/kernels/pack.h"

#include <cstring>
#include <type_traits>

namespace tenon::compiler::kernels {
namespace {

Tensor packed(const Tensor& w, size_t axis, int64_t size) {
  const runtime::Shape& shape = w.shape();
  const int64_t length = shape[axis], blocks = (length + size - 1) / size;
  runtime::Shape result{blocks};
  int64_t before = 1, after = 1;  // numbers of elements of the axes before it and after it
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i == axis) continue;
    result.push_back(shape[i]);
    (i < axis ? before : after) *= shape[i];
  }
  result.push_back(size);
  Tensor out(w.dtype(), result);
  // A few columns of each row at a time, so that both source and destination are accessed in whole cache lines.
  constexpr int64_t kColumns = 16;
  const auto copy = [&]<size_t width>(std::integral_constant<size_t, width>) {
    const std::byte* from = w.bytes().data();
    std::byte* to = out.bytes().data();
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t rows = std::min(size, length - block * size);
      for (int64_t i = 0; i < before; ++i, to += static_cast<size_t>(after * size) * width) {
        for (int64_t begin = 0; begin < after; begin += kColumns) {
          const int64_t end = std::min(begin + kColumns, after);
          for (int64_t k = 0; k < rows; ++k) {
            const std::byte* row = from + static_cast<size_t>((i * length + block * size + k) * after) * width;
            for (int64_t j = begin; j < end; ++j)
              std::memcpy(to + static_cast<size_t>(j * size + k) * width, row + static_cast<size_t>(j) * width, width);
          }
        }
      }
    }
  };
  switch (runtime::bytes(w.dtype())) {
    case 1: copy(std::integral_constant<size_t, 1>()); break;
    case 2: copy(std::integral_constant<size_t, 2>()); break;
    case 4: copy(std::integral_constant<size_t, 4>()); break;
    default: copy(std::integral_constant<size_t, 8>()); break;
  }
  return out;
}

}  // namespace

LazyTensor pack(Emitter& emit, const LazyTensor& w, size_t axis, int64_t size) {
  if (w.constant) return emit.constant(packed(*w.constant, axis, size));
  Context& context = emit.context();
  Dims dims{context.ceil_divide(w.dims[axis], size)};
  for (size_t i = 0; i < w.rank(); ++i) {
    if (i != axis) dims.push_back(w.dims[i]);
  }
  dims.push_back(context.dim(size));
  return emit.stored("packed", emit.expression(dims, w.dtype, [=, &context](const Dims& at) {
    Dims from(at.begin() + 1, at.end() - 1);
    const Dim index = context.add(context.multiply(at.front(), context.dim(size)), at.back());
    from.insert(from.begin() + static_cast<ptrdiff_t>(axis), index);
    const Expr element = w.at(from);
    if (w.dims[axis].constant().value_or(1) % size == 0) return element;
    return select(less(loop::index_value(index), loop::index_value(w.dims[axis])), element, like(element, 0));
  }));
}

}  // namespace tenon::compiler::kernels
