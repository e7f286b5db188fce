// Unknown sizes of a model, taken from the data that it is calibrated with or run on.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "compiler/pipeline/pipeline.h"

namespace tenon::cli {

// Values of the unknown sizes of the model's inputs, by name. A first dim that all inputs share is the batch: each row
// of the data is a sample, so it is 1. Every other size is that of the data. Sizes that the data does not determine are
// not in the result; data of another rank is an error.
Expected<std::map<std::string, int64_t>> sizes_of_data(const compiler::Model& model,
                                                       std::span<const runtime::Tensor> data);
// The same of files, as runtime::read_inputs() takes them.
Expected<std::map<std::string, int64_t>> sizes_of_data(const compiler::Model& model,
                                                       std::span<const std::string> arguments);

}  // namespace tenon::cli
