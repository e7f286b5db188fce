// Quantization: converts a float function, and those that it calls, to int8 tensors, with the integer semantics of
// hw/spec/requantize.h.
//
// Convolutions and dense layers with constant weights are fused with the bias, a residual addition and the ReLUs or
// clips around it into one requantization each, so placement never changes a bit. Weights are symmetric per channel,
// activations per tensor. A value without an int8 form (softmax, an operator that this pass does not support) is
// computed in float between a dequantize and a quantize. Arguments and results of functions, what arms result in and
// fields of constructed values stay float, and so does code that no sample of the calibration reached.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "compiler/quantize/calibrate.h"
#include "compiler/quantize/layers.h"
#include "compiler/quantize/parameters.h"

namespace tenon::compiler {

// The means of a value's channels in calibration.
using ChannelMeans = std::map<std::pair<Symbol, VarId>, std::vector<double>>;

struct QuantizeOptions {
  bool symmetric = false;  // activations: zero points are 0
  // The largest weight. With 64, sums of two products fit into 16 bits, which processors without dot products use.
  double weight_limit = 127;
  LayerSet keep = {};  // layers that stay in float
  // Of the inputs of chains. What the rounding of weights adds to the mean of a result, which is the sum of their
  // errors times these means, is subtracted from the bias (Nagel et al. 2019, section 4.2). Empty: nothing is.
  ChannelMeans means = {};
  // For training: the layers are calls of functions of float weights and biases, which stay constants of the entry, and
  // of values on the grids of their scales; their derivatives are those of the real layers (trained_layer.h). With
  // constant weights, the passes make of it the function that it is without this option. Corrected biases are rounded
  // to f32 first.
  bool trained = false;
};

// The entry alone, which is straight-line code, with a tuple as its result: of each layer, what its quantization on
// float operands adds to its float result. `layers` receives these layers, without those that the options keep.
Expected<Module> isolated_errors(Context& context, const Module& module, Symbol entry, const Ranges& ranges,
                                 const QuantizeOptions& options, std::vector<Layer>& layers);

// The entry and all that it depends on, quantized; `ranges` are the results of calibrate() for the same module. Batch
// norms should be folded before: the remaining ones run in float. `scales` receives those of the int8 values.
Expected<Module> quantize(Context& context, const Module& module, Symbol entry, const Ranges& ranges,
                          const QuantizeOptions& options = {}, ValueScales* scales = nullptr);

}  // namespace tenon::compiler
