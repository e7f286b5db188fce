#include "compiler/kernels/short_floats.h"

#include <algorithm>
#include <utility>

namespace tenon::compiler::kernels {
namespace {

Tensor widened(const Tensor& tensor) {
  Tensor wide(DType::kF32, tensor.shape());
  runtime::with_dtype<runtime::kShortFloats>(tensor.dtype(), [&]<class T>(T) {
    std::ranges::transform(tensor.data<T>(), wide.data<float>().begin(),
                           [](T value) { return static_cast<float>(value); });
  });
  return wide;
}

Expr widened(const Expr& value) {
  const auto* literal = std::get_if<loop::Literal>(&value->form);
  return literal ? loop::literal(DType::kF32, literal->real) : loop::convert(DType::kF32, value);
}

Expr rounded(const Expr& value, DType dtype) {
  const auto* converted = std::get_if<loop::Convert>(&value->form);
  return converted && converted->value->dtype == dtype ? converted->value : loop::convert(dtype, value);
}

}  // namespace

LazyTensor widened(Emitter& emit, const LazyTensor& value) {
  if (!runtime::kShortFloats.contains(value.dtype)) return value;
  LazyTensor wide = emit.expression(value.dims, DType::kF32, [at = value.at](const Dims& i) { return widened(at(i)); });
  // A processor reads constants as often as it multiplies them: they are converted once.
  if (value.constant && emit.machine().threads == 0) wide = emit.constant(widened(*value.constant));
  wide.stored_as = std::make_shared<const LazyTensor>(value);
  return wide;
}

LazyTensor rounded(Emitter& emit, const LazyTensor& value, DType dtype) {
  if (value.dtype == dtype || !runtime::kShortFloats.contains(dtype) || value.dtype != DType::kF32) return value;
  LazyTensor result =
      emit.expression(value.dims, dtype, [at = value.at, dtype](const Dims& i) { return rounded(at(i), dtype); });
  if (value.view) {
    LazyTensor of = rounded(emit, value.view->of, dtype);
    result.view = std::make_shared<const TransposedView>(std::move(of), value.view->axes);
  }
  return result;
}

const LazyTensor& matrix_operand(const Emitter& emit, const LazyTensor& value) {
  return value.stored_as && emit.machine().threads > 0 ? *value.stored_as : value;
}

}  // namespace tenon::compiler::kernels
