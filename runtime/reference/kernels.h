// Reference kernels: the semantics of every operator, naive and obvious. The compiler's interpreter runs models with
// them, the runtime falls back to them, and every back end is tested against them.
//
// A kernel checks its inputs and attributes itself (an executable may be hostile) and returns new tensors or views of
// its inputs. Integer arithmetic wraps unless an operator says otherwise; float sums are taken in f32 in memory order.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "runtime/attrs.h"
#include "runtime/tensor.h"

namespace tenon::runtime::reference {

using Kernel = Expected<std::vector<Tensor>> (*)(const Attrs& attrs, std::span<const Tensor> inputs);

// The kernel of an operator; nullptr if it has none.
Kernel find(std::string_view op);
std::vector<std::string_view> names();

}  // namespace tenon::runtime::reference
