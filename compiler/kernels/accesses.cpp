#include "compiler/kernels/accesses.h"

namespace tenon::compiler::kernels {

Dim offset(TypeContext& context, const loop::Buffer& buffer, const Dims& indices) {
  Dim result = context.dim(0);
  for (size_t i = 0; i < indices.size(); ++i)
    result = context.add(context.multiply(result, buffer.axes[i].extent), indices[i]);
  return result;
}

std::optional<int64_t> stride(TypeContext& context, Symbol var, Dim offset) {
  const auto linear = context.linear_in(var, offset);
  if (linear) return linear->first.constant();
  return loop::mentions({&offset, 1}, var) ? std::nullopt : std::optional<int64_t>(0);
}

}  // namespace tenon::compiler::kernels
