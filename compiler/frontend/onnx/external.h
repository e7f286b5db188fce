// Tensors that an ONNX model stores in files of their own.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/tensor.h"
#include "support/diagnostic.h"

namespace tenon::compiler::onnx {

// The entries of TensorProto.external_data, as they stand in the model.
struct ExternalData {
  std::string location = {}, offset = {}, length = {};  // empty: the entry is missing
  std::string what, model;                              // for messages
};

// Reads the elements of a tensor. The model is not trusted: the location is relative and leads, also through symbolic
// links, to a regular file below `folder`; nothing is allocated before the file is known to have the bytes.
Expected<runtime::Tensor> read_external(const ExternalData& data, const std::filesystem::path& folder,
                                        runtime::DType dtype, runtime::Shape shape);

}  // namespace tenon::compiler::onnx
