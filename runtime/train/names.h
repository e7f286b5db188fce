// The names of the parameters of a step of training, which say what they are for.
//
// "weight.NAME", "state.NAME.KIND", "rate", "step", then the model's inputs by their own names, then "labels". Results
// are the loss, and the new weights and states in their order.
#pragma once

#include <string_view>

namespace tenon::runtime {

inline constexpr std::string_view kWeightPrefix = "weight.", kStatePrefix = "state.", kRate = "rate", kStep = "step",
                                  kLabels = "labels";

}  // namespace tenon::runtime
