// Inputs of a model as command lines give them: which argument is for which input, and the tensors read from NumPy
// files.
//
// An argument is "[NAME=]SOURCE". Named arguments go to the inputs of these names, the others to the remaining inputs
// in the order given. A source is FILE.npy, FILE.npz:MEMBER, or FILE.npz, whose members go to the inputs of their
// names; a scalar input also takes a literal, as "steps=20".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/executable/executable.h"
#include "runtime/tensor.h"

namespace tenon::runtime {

// "FILE.npy" or "FILE.npz:MEMBER".
Expected<Tensor> load_tensor(std::string_view source);

// An input that an argument can be for.
struct InputSlot {
  std::string name;
  std::string type;                    // for messages, as "f32 (1, 3)"
  std::optional<DType> literal_dtype;  // of a scalar, which may be given as a literal; none: a file is required
};
std::vector<InputSlot> input_slots(std::span<const Port> params);

// The context that the errors of read_inputs() add to the fault.
struct InputErrors {
  std::string where = {};       // the model
  std::string help = {};        // a list of the inputs; empty: it is made of the slots
  Fault fault = Fault::kInput;  // of an unknown, missing or repeated input
};

// One tensor for each slot, in order. Types and shapes are not checked.
Expected<std::vector<Tensor>> read_inputs(std::span<const InputSlot> slots, std::span<const std::string> arguments,
                                          const InputErrors& errors = {});

}  // namespace tenon::runtime
