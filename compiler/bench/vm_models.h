// Modules that show what the virtual machine costs beside its kernels: their text, and inputs for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace tenon::compiler::bench {

struct VmModel {
  std::string text;
  std::vector<runtime::Tensor> inputs;  // random
};

// A decoder of `layers` layers of one attention head and a perceptron, with a KV cache for `tokens` tokens; main takes
// the first token's vector of `width` elements, and how many steps follow it.
VmModel decoder_model(int64_t layers, int64_t width, int64_t tokens, int64_t steps);
// `steps` steps of an LSTM cell in a loop, for one sequence; `hoisted`: the products of the inputs before the loop.
VmModel lstm_model(int64_t steps, int64_t hidden, bool hoisted);
// `calls` calls of a kernel that takes next to no time, in a loop; `bound` > 0: its size is at most `bound`.
VmModel call_model(int64_t calls, int64_t bound);
// relu(dense(x, w)) of x (m, 768), w (768, 768); `bound` > 0: m is a size of at most `bound`.
VmModel dense_model(int64_t m, int64_t bound);

}  // namespace tenon::compiler::bench
