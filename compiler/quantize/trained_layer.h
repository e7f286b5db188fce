// Integer layers as functions of floats, for training: the forward pass computes the integers that the accelerator
// computes, and the derivative is that of the real layer, which the integer layer rounds once.
//
// A value between layers is a tensor of floats on the grid of its scale, scale * (q - zero): it stands for the int8
// tensor q, from which it is converted back exactly. The derivative of a rounding is 1 (a straight-through estimator,
// Bengio et al., arXiv:1308.3432, 2013), and 0 where a result or a weight is at the end of its range.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/quantize/chains.h"
#include "compiler/quantize/parameters.h"
#include "support/function_ref.h"

namespace tenon::compiler {

// A value on the grid of its scale, in the function that calls the layer.
struct GridValue {
  Atom value;
  Scale scale;
};

// The weights and the bias of a layer, floats, and how they are rounded: of output channel c to multiples of
// steps[c], from -limit to limit of them, and of bias_steps[c].
struct TrainedWeights {
  Atom values;
  std::optional<Atom> bias;
  std::vector<double> steps, bias_steps;
  double limit = 127;
};

struct TrainedLayer {
  std::vector<GridValue> operands;
  std::optional<TrainedWeights> weights;
  Scale scale;                 // of the result
  int8_t lo = -128, hi = 127;  // the ends of the result's range
  struct Values {
    Atoms operands;
    std::optional<Atom> weights, bias;
  };
  // The int8 result from the int8 operands, the int8 weights and the bias in i32.
  FunctionRef<Expected<Atom>(Builder&, const Values&)> integers;
  // The real layer, whose derivative is taken.
  FunctionRef<Expected<Atom>(Builder&, const Values&)> reals;
};

// Appends a call of the layer's function, which is added to the module with the function of its derivative; the result
// is on the grid of the layer's scale. `name` is that of the result.
Expected<Atom> call_trained_layer(Builder& caller, const TrainedLayer& layer, std::string_view name);

// Of a module whose layers are inlined: the rounded constants in place of the roundings of constant weights, and int8
// operators in place of those that move, select or clip floats on one grid.
Expected<Module> integer_form(Context& context, Module module);

}  // namespace tenon::compiler
