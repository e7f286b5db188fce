// Quantization: a float function becomes one over int8 tensors, with the integer semantics of hw/spec/requantize.h.
//
// Convolutions and dense layers with constant weights take in the bias, a residual addition and the rectifiers around
// it: one requantization each, so placement can never change a bit. Weights are symmetric per channel, activations per
// tensor. A value without an int8 form (softmax, an operator unknown here) is computed in float between a dequantize
// and a quantize. Results of the function stay float.
#pragma once

#include "compiler/quantize/calibrate.h"

namespace tenon::compiler {

struct QuantizeOptions {
  bool symmetric = false;  // activations: zero points are 0
};

// A module with `entry` quantized; `ranges` are calibrate()'s for the same function. Batch norms should be folded
// before: those that are left run in float.
Expected<Module> quantize(Context& context, const Module& module, Symbol entry, const Ranges& ranges,
                          const QuantizeOptions& options = {});

}  // namespace tenon::compiler
