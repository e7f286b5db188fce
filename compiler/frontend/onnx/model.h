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

namespace tenon::compiler::onnx {

struct Dimension {
  int64_t value = -1;  // -1: unknown
  std::string name;    // of an unknown size; may be empty
};

struct ValueType {
  enum class Kind : uint8_t { kTensor, kSequence, kOptional };
  Kind kind = Kind::kTensor;
  runtime::DType dtype = runtime::DType::kF32;  // kTensor
  std::optional<std::vector<Dimension>> dims;   // kTensor; none: the rank is not stated
  std::vector<ValueType> element;               // one, of kSequence and kOptional
};

struct Graph;
// In the body of a function: the attribute of this name of the node that calls the function.
struct AttributeReference {
  std::string attr;
};
// A graph is one element, since its type is not complete yet.
using Attribute =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>,
                 runtime::Tensor, std::vector<runtime::Tensor>, ValueType, AttributeReference, std::vector<Graph>>;
using Attributes = std::map<std::string, Attribute>;

struct Node {
  std::string op, domain, name;
  std::vector<std::string> inputs, outputs;  // an empty name: omitted
  Attributes attrs;
  std::string overload = {};  // of several functions of the model with one name
};

struct ValueInfo {
  std::string name;
  ValueType type;
};

struct Graph {
  std::vector<Node> nodes;
  std::map<std::string, runtime::Tensor> initializers;
  std::vector<ValueInfo> inputs;  // without those that are initializers
  std::vector<std::string> outputs;
};

// The versions of operator sets by domain; the standard domain is "".
using Opsets = std::map<std::string, int64_t>;

struct LocalFunction {
  std::string domain, name, overload;
  Opsets opsets;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  // without default values
  Attributes defaults;
  std::vector<Node> nodes;
};

struct Model {
  Opsets opsets;
  Graph graph;
  std::vector<LocalFunction> functions;
  // Of intermediate values and outputs of the main graph, as far as they are stated and supported.
  std::map<std::string, ValueType> types;
};

// The bytes are not trusted: every size is checked against the data before memory is allocated. `folder`: where tensors
// in external files are, which must lie below it; none: such tensors are refused.
Expected<Model> read_model(std::span<const std::byte> bytes, const std::string& file,
                           const std::optional<std::filesystem::path>& folder = {});
// The same of a file, which is never in memory as a whole beside its tensors; its external files are in its folder.
Expected<Model> read_model(const std::filesystem::path& path);

// What exporters add to a model by name, as labels.
Expected<std::map<std::string, std::string>> read_metadata(const std::filesystem::path& path);

// A TensorProto alone, as ONNX's test data are stored.
Expected<runtime::Tensor> read_tensor(std::span<const std::byte> bytes, const std::string& file);

// The standard domain has two names.
inline std::string canonical_domain(const std::string& name) { return name == "ai.onnx" ? "" : name; }

}  // namespace tenon::compiler::onnx
