// Networks and random graphs for tests of passes, built binding by binding with random weights.
#pragma once

#include <random>
#include <string>

#include "compiler/ir/builder.h"

namespace tenon::compiler {

runtime::Tensor random_tensor(std::mt19937& random, runtime::Shape shape, float lo = -1, float hi = 1);

// @main: ResNet-18 (He et al. 2015) for images of `size` by `size`, with batch norms; `width` 64 is the original.
// `early` has norm and ReLU before each convolution instead of after it (He et al. 2016).
Module resnet18(Context& context, uint32_t seed, int64_t size, int64_t width, bool early = false);

// @main: `operators` operators of all patterns on tensors of few elements, each on some of the last values, several
// results.
Module random_graph(Context& context, uint32_t seed, int operators);

}  // namespace tenon::compiler
