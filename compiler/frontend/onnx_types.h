// The types of values that a model states beside its graph.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "compiler/frontend/onnx_model.h"

namespace tenon::compiler {

// The types of intermediate values and outputs of the main graph, as far as they are stated and supported; the bytes
// are a model that read_onnx() has read.
std::map<std::string, OnnxType> read_onnx_types(std::span<const std::byte> bytes);

}  // namespace tenon::compiler
