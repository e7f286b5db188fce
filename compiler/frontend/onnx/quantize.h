// Quantized tensors of a node as real ones and back, for the converters of quantized operators.
#pragma once

#include <optional>

#include "compiler/frontend/onnx/node.h"

namespace tenon::compiler::onnx {

// How the parameters of a tensor are laid out.
struct Scales {
  int64_t axis = 1;                // of vectors, and of blocks
  int64_t block = 0;               // the elements along the axis that share parameters; 0: all of them
  std::optional<DType> real = {};  // the dtype of dequantized values; nothing: that of the scale
};

// (input `i` - zero point) * scale, where these are the inputs `scale` and `zero`, of which the second may be omitted.
Expected<Atom> dequantized(NodeImport& node, size_t i, size_t scale, size_t zero, const Scales& layout);
// `value` quantized to the dtype of the zero point, or to `dtype` without one, which receives the result's dtype.
Expected<Atom> quantized(NodeImport& node, Atom value, size_t scale, size_t zero, const Scales& layout, DType& dtype);

}  // namespace tenon::compiler::onnx
