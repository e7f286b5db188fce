// Reads ONNX files: the only file that includes protobuf.
#include "compiler/frontend/onnx_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compiler/frontend/onnx.pb.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr int64_t kOldestOpset = 7, kNewestOpset = 23;

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  Expected<OnnxModel> run(std::span<const std::byte> bytes) {
    onnx::ModelProto model;
    if (bytes.size() > INT32_MAX || !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return error("this is not an ONNX model, or it is corrupt or truncated", file_,
                   "compare its size with the original's");
    }
    if (!model.has_graph() || model.graph().node_size() == 0) {
      return error("the model has no graph", file_, "check that this is an ONNX model");
    }
    OnnxModel result;
    for (const auto& opset : model.opset_import()) {
      if (opset.domain().empty() || opset.domain() == "ai.onnx") result.opset = opset.version();
    }
    if (result.opset < kOldestOpset || result.opset > kNewestOpset) {
      return error(fmt::format("opset {} is not supported, {} .. {} are", result.opset, kOldestOpset, kNewestOpset),
                   file_, "convert the model with onnx.version_converter");
    }
    const onnx::GraphProto& graph = model.graph();
    if (graph.sparse_initializer_size() > 0) return error("sparse initializers are not supported", file_);
    for (const auto& initializer : graph.initializer()) {
      TENON_TRY_ASSIGN(tensor, this->tensor(initializer, "initializer '" + initializer.name() + "'"));
      if (!result.initializers.emplace(initializer.name(), std::move(*tensor)).second) {
        return error(fmt::format("initializer '{}' is defined twice", initializer.name()), file_);
      }
    }
    for (const auto& input : graph.input()) {
      if (result.initializers.contains(input.name())) continue;
      TENON_TRY_ASSIGN(value, this->value(input));
      result.inputs.push_back(std::move(*value));
    }
    for (const auto& output : graph.output()) result.outputs.push_back(output.name());
    for (const auto& node : graph.node()) {
      TENON_TRY_ASSIGN(read, this->node(node));
      result.nodes.push_back(std::move(*read));
    }
    return result;
  }

  Expected<runtime::Tensor> run_tensor(std::span<const std::byte> bytes) {
    onnx::TensorProto proto;
    if (bytes.size() > INT32_MAX || !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return error("this is not a tensor of ONNX, or it is corrupt or truncated", file_);
    }
    return tensor(proto, "the tensor");
  }

 private:
  Expected<runtime::DType> dtype(int type, const std::string& what) {
    using runtime::DType;
    switch (type) {
      case onnx::TensorProto::FLOAT: return DType::kF32;
      case onnx::TensorProto::UINT8: return DType::kU8;
      case onnx::TensorProto::INT8: return DType::kI8;
      case onnx::TensorProto::UINT16: return DType::kU16;
      case onnx::TensorProto::INT16: return DType::kI16;
      case onnx::TensorProto::INT32: return DType::kI32;
      case onnx::TensorProto::INT64: return DType::kI64;
      case onnx::TensorProto::BOOL: return DType::kBool;
      case onnx::TensorProto::DOUBLE: return DType::kF64;
      default: break;
    }
    const std::string& name = onnx::TensorProto::DataType_IsValid(type)
                                  ? onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(type))
                                  : std::to_string(type);
    return error(fmt::format("{} has the data type {}, which is not supported", what, name), file_,
                 "export the model in float32");
  }

  // Copies typed values, whose count must match the tensor's shape.
  template <class T, class Field>
  static bool copy_field(runtime::Tensor& tensor, const Field& field) {
    auto out = tensor.data<T>();
    std::transform(field.begin(), field.end(), out.begin(), [](auto value) { return static_cast<T>(value); });
    return true;
  }

  Expected<runtime::Tensor> tensor(const onnx::TensorProto& proto, const std::string& what) {
    using runtime::DType;
    TENON_TRY_ASSIGN(type, dtype(proto.data_type(), what));
    if (proto.data_location() == onnx::TensorProto::EXTERNAL || proto.external_data_size() > 0) {
      return error(what + " is stored in an external file, which is not supported", file_,
                   "save the model as one file");
    }
    int64_t count = 1;
    runtime::Shape shape;
    for (int64_t size : proto.dims()) {
      if (size < 0 || (size > 0 && count > (int64_t{1} << 40) / size)) {
        return error(fmt::format("{} has an impossible size {}", what, size), file_);
      }
      count *= size;
      shape.push_back(size);
    }
    const bool raw = proto.has_raw_data();
    int64_t found = 0;
    switch (*type) {
      case DType::kF32: found = proto.float_data_size(); break;
      case DType::kF64: found = proto.double_data_size(); break;
      case DType::kI64: found = proto.int64_data_size(); break;
      case DType::kBool:
      case DType::kI8:
      case DType::kU8:
      case DType::kI16:
      case DType::kU16:
      case DType::kI32: found = proto.int32_data_size(); break;
    }
    if (raw) {
      const int width = runtime::bytes(*type);
      if (static_cast<int64_t>(proto.raw_data().size()) != count * width) {
        return error(fmt::format("{} has {} bytes of data, its shape {} needs {}", what, proto.raw_data().size(),
                                 runtime::to_string(shape), count * width),
                     file_);
      }
    } else if (found != count) {
      return error(
          fmt::format("{} has {} values, its shape {} needs {}", what, found, runtime::to_string(shape), count), file_);
    }
    runtime::Tensor tensor(*type, std::move(shape));
    if (raw && *type == DType::kBool) {  // any byte but 0 is true
      std::ranges::transform(proto.raw_data(), tensor.data<bool>().begin(), [](char byte) { return byte != 0; });
    } else if (raw) {
      if (count > 0) std::memcpy(tensor.bytes().data(), proto.raw_data().data(), proto.raw_data().size());
    } else {
      switch (*type) {
        case DType::kF32: copy_field<float>(tensor, proto.float_data()); break;
        case DType::kF64: copy_field<double>(tensor, proto.double_data()); break;
        case DType::kI64: copy_field<int64_t>(tensor, proto.int64_data()); break;
        case DType::kBool: copy_field<bool>(tensor, proto.int32_data()); break;
        case DType::kI8: copy_field<int8_t>(tensor, proto.int32_data()); break;
        case DType::kU8: copy_field<uint8_t>(tensor, proto.int32_data()); break;
        case DType::kI16: copy_field<int16_t>(tensor, proto.int32_data()); break;
        case DType::kU16: copy_field<uint16_t>(tensor, proto.int32_data()); break;
        case DType::kI32: copy_field<int32_t>(tensor, proto.int32_data()); break;
      }
    }
    return tensor;
  }

  Expected<OnnxValue> value(const onnx::ValueInfoProto& proto) {
    const std::string what = "input '" + proto.name() + "'";
    if (!proto.type().has_tensor_type() || !proto.type().tensor_type().has_shape()) {
      return error(what + " is not a tensor with a shape", file_, "run onnx.shape_inference, or export with shapes");
    }
    OnnxValue value{proto.name(), {}, {}};
    TENON_TRY_ASSIGN(type, dtype(proto.type().tensor_type().elem_type(), what));
    value.dtype = *type;
    for (const auto& dim : proto.type().tensor_type().shape().dim()) {
      if (dim.has_dim_value() && dim.dim_value() < 0) {
        return error(fmt::format("{} has a negative size {}", what, dim.dim_value()), file_);
      }
      value.dims.push_back(dim.has_dim_value() ? OnnxDim{dim.dim_value(), ""} : OnnxDim{-1, dim.dim_param()});
    }
    return value;
  }

  Expected<OnnxNode> node(const onnx::NodeProto& proto) {
    OnnxNode node{proto.op_type(), proto.domain(), proto.name(), {}, {}, {}};
    node.inputs.assign(proto.input().begin(), proto.input().end());
    node.outputs.assign(proto.output().begin(), proto.output().end());
    if (node.name.empty() && !node.outputs.empty()) node.name = node.outputs[0];
    for (const auto& attr : proto.attribute()) {
      const std::string what = fmt::format("{} '{}': attribute '{}'", node.op, node.name, attr.name());
      OnnxAttr value;
      switch (attr.type()) {
        case onnx::AttributeProto::INT: value = attr.i(); break;
        case onnx::AttributeProto::FLOAT: value = static_cast<double>(attr.f()); break;
        case onnx::AttributeProto::STRING: value = attr.s(); break;
        case onnx::AttributeProto::INTS: value = std::vector<int64_t>(attr.ints().begin(), attr.ints().end()); break;
        case onnx::AttributeProto::FLOATS:
          value = std::vector<double>(attr.floats().begin(), attr.floats().end());
          break;
        case onnx::AttributeProto::STRINGS:
          value = std::vector<std::string>(attr.strings().begin(), attr.strings().end());
          break;
        case onnx::AttributeProto::TENSOR: {
          TENON_TRY_ASSIGN(tensor, this->tensor(attr.t(), what));
          value = std::move(*tensor);
          break;
        }
        default: return error(what + " has a type that is not supported", file_, "control flow is not supported yet");
      }
      node.attrs.insert_or_assign(attr.name(), std::move(value));
    }
    return node;
  }

  const std::string& file_;
};

}  // namespace

Expected<OnnxModel> read_onnx(std::span<const std::byte> bytes, const std::string& file) {
  return Reader(file).run(bytes);
}

Expected<runtime::Tensor> read_onnx_tensor(std::span<const std::byte> bytes, const std::string& file) {
  return Reader(file).run_tensor(bytes);
}

}  // namespace tenon::compiler
