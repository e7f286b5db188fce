// Models that come quantized: float operators between dequantize and quantize become the integer layers that quantize()
// makes for float models.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/quantize/parameters.h"

namespace tenon::compiler {

// quantize(f(dequantize(x), ...)) becomes operators on int8 and one requantization (hw/spec/requantize.h), where f is a
// convolution, dense layer or matrix product with constant weights, scaled by constants and perhaps followed by a leaky
// ReLU, an addition, an average over the map, a clamp, or an operator that only moves or selects elements, of one of
// these too. Values in u8 become values in i8: both the integer and its zero point minus 128. All other operators stay
// as they are, on dequantized values.
//
// Each layer rounds where the model rounds, so nothing is fused over a rounding of the model. For equal integer inputs,
// an element differs by at most one step from f in real arithmetic, and seldom: sums are exact, and a ratio of scales
// has 16 bits.
// `scales` receives those of the int8 values.
Expected<Module> requantize_layers(Context& context, Module module, ValueScales* scales = nullptr);

}  // namespace tenon::compiler
