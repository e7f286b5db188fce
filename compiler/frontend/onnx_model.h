// An ONNX model as plain values, without protobuf: the input of the importer.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/tensor.h"
#include "support/diagnostic.h"

namespace tenon::compiler {

using OnnxAttr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                              std::vector<std::string>, runtime::Tensor>;

struct OnnxNode {
  std::string op, domain, name;
  std::vector<std::string> inputs, outputs;  // an empty name: omitted
  std::map<std::string, OnnxAttr> attrs;
};

struct OnnxDim {
  int64_t value = -1;  // -1: unknown
  std::string name;    // of an unknown size; may be empty
};

struct OnnxValue {
  std::string name;
  runtime::DType dtype = runtime::DType::kF32;
  std::vector<OnnxDim> dims;
};

struct OnnxModel {
  int64_t opset = 0;
  std::vector<OnnxNode> nodes;
  std::map<std::string, runtime::Tensor> initializers;
  std::vector<OnnxValue> inputs;  // without those that are initializers
  std::vector<std::string> outputs;
};

// The bytes are not trusted: every size is checked against the data before memory is allocated.
Expected<OnnxModel> read_onnx(std::span<const std::byte> bytes, const std::string& file);

// A TensorProto alone, as ONNX's test data are stored.
Expected<runtime::Tensor> read_onnx_tensor(std::span<const std::byte> bytes, const std::string& file);

}  // namespace tenon::compiler
