// An ONNX model as plain values, without protobuf: the input of the importer.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/tensor.h"
#include "support/diagnostic.h"

namespace tenon::compiler {

struct OnnxDim {
  int64_t value = -1;  // -1: unknown
  std::string name;    // of an unknown size; may be empty
};

struct OnnxType {
  enum class Kind : uint8_t { kTensor, kSequence, kOptional };
  Kind kind = Kind::kTensor;
  runtime::DType dtype = runtime::DType::kF32;  // kTensor
  std::optional<std::vector<OnnxDim>> dims;     // kTensor; none: the rank is not stated
  std::vector<OnnxType> element;                // one, of kSequence and kOptional
};

struct OnnxGraph;
// In the body of a function: the attribute of this name of the node that calls the function.
struct OnnxReference {
  std::string attr;
};
// A graph is one element, since its type is not complete yet.
using OnnxAttr =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>,
                 runtime::Tensor, std::vector<runtime::Tensor>, OnnxType, OnnxReference, std::vector<OnnxGraph>>;
using OnnxAttrs = std::map<std::string, OnnxAttr>;

struct OnnxNode {
  std::string op, domain, name;
  std::vector<std::string> inputs, outputs;  // an empty name: omitted
  OnnxAttrs attrs;
  std::string overload = {};  // of several functions of the model with one name
};

struct OnnxValue {
  std::string name;
  OnnxType type;
};

struct OnnxGraph {
  std::vector<OnnxNode> nodes;
  std::map<std::string, runtime::Tensor> initializers;
  std::vector<OnnxValue> inputs;  // without those that are initializers
  std::vector<std::string> outputs;
};

// The versions of operator sets by domain; the standard domain is "".
using OnnxOpsets = std::map<std::string, int64_t>;

struct OnnxFunction {
  std::string domain, name, overload;
  OnnxOpsets opsets;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  // without default values
  OnnxAttrs defaults;
  std::vector<OnnxNode> nodes;
};

struct OnnxModel {
  OnnxOpsets opsets;
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
  // Of intermediate values and outputs of the main graph, as far as they are stated and supported.
  std::map<std::string, OnnxType> types;
};

// The bytes are not trusted: every size is checked against the data before memory is allocated. `folder`: where tensors
// in external files are, which must lie below it; none: such tensors are refused.
Expected<OnnxModel> read_onnx(std::span<const std::byte> bytes, const std::string& file,
                              const std::optional<std::filesystem::path>& folder = {});
// The same of a file, which is never in memory as a whole beside its tensors; its external files are in its folder.
Expected<OnnxModel> read_onnx(const std::filesystem::path& path);

// What exporters add to a model by name, as labels.
Expected<std::map<std::string, std::string>> read_onnx_metadata(const std::filesystem::path& path);

// A TensorProto alone, as ONNX's test data are stored.
Expected<runtime::Tensor> read_onnx_tensor(std::span<const std::byte> bytes, const std::string& file);

// The standard domain has two names.
inline std::string onnx_domain(const std::string& name) { return name == "ai.onnx" ? "" : name; }

}  // namespace tenon::compiler
