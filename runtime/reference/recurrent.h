// The functions that the gates of recurrent layers pass through, as the attributes of rnn, gru and lstm name them.
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
  kLeakyRelu,        // x, or alpha x where that is below 0
  kThresholdedRelu,  // x, or 0 where that is not above alpha
  kScaledTanh,       // alpha tanh(beta x)
  kHardSigmoid,      // alpha x + beta, in 0 .. 1
  kElu,              // x, or alpha (exp(x) - 1) where that is below 0
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
  bool alpha, beta;  // whether it has such a number
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

// How many functions a direction of a layer of so many gates has: 1 of one gate, f and g of 3, f, g and h of 4.
constexpr int64_t functions_of(int64_t gates) { return gates == 1 ? 1 : gates - 1; }

// Those of each direction, by `activations` ("relu" or "sigmoid,tanh,sigmoid,relu", each direction's; empty or absent:
// the usual ones) and a number of `alpha` and of `beta` for each, where those are not empty.
Expected<std::vector<GateFunction>> gate_functions(const Attrs& attrs, int64_t gates, int64_t directions);

}  // namespace tenon::runtime::reference
