// Cross-layer equalization: the channels between two layers get similar ranges, by factors that the second layer
// undoes.
#pragma once

#include <map>
#include <vector>

#include "compiler/quantize/distributions.h"

namespace tenon::compiler {

struct Equalized {
  Module module;      // with the variables of the original
  size_t layers = 0;  // whose results have other ranges
};

// Divides channel i of a chain's result by a factor s_i > 0, and multiplies the weights of the chains that read it by
// s_i: its users are chains alone, and its clamp is none or begins at 0, so that the function is the same (Nagel et
// al., "Data-free quantization through weight equalization and bias correction", 2019, section 4.1). As weights have a
// scale for each output channel, the ranges to be balanced are those of the activations that calibration observed and,
// of the users' weights, the largest magnitude relative to that of the output channel: s_i is the root of the first by
// the second. Where all users are depthwise, the weights' scales take the factors for free, and s_i is the range
// itself. Factors are at most 1: a clip at an upper bound cuts a channel at or above its observed maximum, as int8
// does.
Equalized equalize(const Module& module, const Distributions& observed);

}  // namespace tenon::compiler
