// Inputs and results of a model for benchmarks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/executable/executable.h"

namespace tenon::cli {

// The same values at each call: floats in -1 .. 1, integers 0 or 1, which are small indices and small lengths too. An
// error if an input has no fixed shape.
Expected<std::vector<runtime::Tensor>> random_inputs(std::span<const runtime::Port> ports, const std::string& model);

// The inputs that the file (npz, npy) has by name, random ones without a file.
Expected<std::vector<runtime::Tensor>> bench_inputs(const runtime::Executable& executable, const std::string& file);
// Writes the results of a run by name into an npz file.
Status save_results(const std::string& file, const runtime::Executable& executable,
                    const std::vector<runtime::Tensor>& results);

}  // namespace tenon::cli
