// The effect of each layer's quantization on the function's results.
#pragma once

#include <vector>

#include "compiler/quantize/calibrate.h"
#include "compiler/quantize/layers.h"
#include "compiler/quantize/quantize.h"

namespace tenon::compiler {

struct Sensitivity {
  Layer layer;
  // The squared differences of the results from the float ones where this layer alone is quantized, relative to the
  // squares of these.
  double error = 0;
};

// Of the layers of a straight-line function, the most sensitive first; those that `quantization` keeps are left out.
// One layer at a time is quantized, as in section 6.2 of Wu et al., "Integer quantization for deep learning inference"
// (2020), on the first samples. Two modules are prepared for all layers together: one results in the error of each
// layer on its float operands, the other one takes such an error for each layer and adds it to the layer's result.
Expected<std::vector<Sensitivity>> sensitivities(Context& context, const Module& module, Symbol entry,
                                                 const Samples& samples, const Ranges& ranges,
                                                 const QuantizeOptions& quantization,
                                                 const CalibrationOptions& calibration);

}  // namespace tenon::compiler
