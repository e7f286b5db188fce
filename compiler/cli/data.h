// Data on the command line: samples and labels from NumPy files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/executable/executable.h"
#include "runtime/tensor.h"

namespace tenon::cli {

// "FILE.npy" or "FILE.npz:NAME".
Expected<runtime::Tensor> load_tensor(std::string_view spec);

// The batch as samples for one input: [M * B, ...] becomes M tensors of the port's shape, whose first dim is B.
// Integers become floats where the port is f32, and are divided by `divide`.
Expected<std::vector<runtime::Tensor>> split_samples(const runtime::Tensor& batch, const runtime::Port& port,
                                                     double divide);

// The index of the largest element of each of a result's rows.
std::vector<int64_t> arg_max(const runtime::Tensor& tensor, int64_t rows);

// Labels of any integer type.
Expected<std::vector<int64_t>> load_labels(std::string_view spec, size_t samples);

}  // namespace tenon::cli
