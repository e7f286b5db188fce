// Quantized tensors of a node as real ones and back, for the converters of quantized operators.
#pragma once

#include "compiler/frontend/onnx_node.h"

namespace tenon::compiler {

// (input `i` - zero point) * scale, where these are the inputs `scale` and `zero`, of which the second may be omitted;
// vectors are along `axis`.
Expected<Atom> onnx_dequantized(NodeImport& node, size_t i, size_t scale, size_t zero, int64_t axis);
// `value` quantized to the dtype of the zero point, or to `dtype` without one, which receives the result's dtype.
Expected<Atom> onnx_quantized(NodeImport& node, Atom value, size_t scale, size_t zero, int64_t axis, DType& dtype);

}  // namespace tenon::compiler
