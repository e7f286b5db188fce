// The activation functions of the gates of recurrent layers, as the attributes of rnn, gru and lstm name them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/attrs.h"
#include "support/diagnostic.h"

namespace tenon::runtime::reference {

enum class GateKind : uint8_t {
  kSigmoid,
  kTanh,
  kRelu,
  kAffine,           // alpha x + beta
  kLeakyRelu,        // x, or alpha x if x is below 0
  kThresholdedRelu,  // x, or 0 if x is not above alpha
  kScaledTanh,       // alpha tanh(beta x)
  kHardSigmoid,      // alpha x + beta, in 0 .. 1
  kElu,              // x, or alpha (exp(x) - 1) if x is below 0
  kSoftsign,
  kSoftplus,
};
struct GateFunction {
  GateKind kind = GateKind::kTanh;
  double alpha = 0, beta = 0;
};
struct GateName {
  std::string_view name;
  GateKind kind;
  bool alpha, beta;  // whether the function has the parameter
};
inline constexpr GateName kGateNames[] = {{"sigmoid", GateKind::kSigmoid, false, false},
                                          {"tanh", GateKind::kTanh, false, false},
                                          {"relu", GateKind::kRelu, false, false},
                                          {"affine", GateKind::kAffine, true, true},
                                          {"leaky_relu", GateKind::kLeakyRelu, true, false},
                                          {"thresholded_relu", GateKind::kThresholdedRelu, true, false},
                                          {"scaled_tanh", GateKind::kScaledTanh, true, true},
                                          {"hard_sigmoid", GateKind::kHardSigmoid, true, true},
                                          {"elu", GateKind::kElu, true, false},
                                          {"softsign", GateKind::kSoftsign, false, false},
                                          {"softplus", GateKind::kSoftplus, false, false}};

// The number of functions of one direction, by the number of gates: 1 gate has one, 3 have f and g, 4 have f, g and h.
constexpr int64_t functions_of(int64_t gates) { return gates == 1 ? 1 : gates - 1; }

// The functions of all directions, by the attributes `activations` ("relu" or "sigmoid,tanh,sigmoid,relu", one
// direction after another; empty or absent: the defaults), and `alpha` and `beta` with an element for each function, if
// they are not empty.
Expected<std::vector<GateFunction>> gate_functions(const Attrs& attrs, int64_t gates, int64_t directions);

}  // namespace tenon::runtime::reference
