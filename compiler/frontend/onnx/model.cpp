// Reads ONNX files: the only file that includes protobuf.
#include "compiler/frontend/onnx/model.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "compiler/frontend/onnx/external.h"
#include "compiler/frontend/onnx/onnx.pb.h"
#include "compiler/frontend/onnx/packed.h"
#include "support/memory.h"
#include "support/number.h"
#include "support/printable.h"
#include "support/try.h"

namespace tenon::compiler::onnx {
namespace {

// Of the standard domain. Models of opsets before 7 are accepted where their operators have not changed (onnx.cpp).
constexpr int64_t kOldestOpset = 1, kNewestOpset = 27;

constexpr int64_t kMostSparse = int64_t{1} << 26;  // elements of a sparse tensor, which its file does not bound

constexpr runtime::DTypes kNarrow = runtime::kNarrowFloats | runtime::kNarrowIntegers;

// A name of the file, which later stands in messages, tables, reports and other files: without characters that control
// a terminal. Equal names remain equal, and so do different ones, but for a name that spells another one's escapes.
std::string name_of(const std::string& text) { return printable(text, SIZE_MAX); }

std::vector<std::string> names_of(const auto& texts) {
  std::vector<std::string> names;
  for (const std::string& text : texts) names.push_back(name_of(text));
  return names;
}

class Reader {
 public:
  Reader(const std::string& file, const std::optional<std::filesystem::path>& folder) : file_(file), folder_(folder) {}

  Expected<Model> run(std::span<const std::byte> bytes) {
    ::onnx::ModelProto model;
    if (bytes.size() > INT32_MAX) return corrupt();
    google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
    if (!parse(stream, model)) return corrupt();
    return this->model(std::move(model));
  }

  Expected<Model> run(const std::filesystem::path& path) {
    TENON_TRY_ASSIGN(model, parsed(path));
    return this->model(std::move(*model));
  }

  Expected<::onnx::ModelProto> parsed(const std::filesystem::path& path) {
    const auto failed = [&](std::string_view action) {
      return error(fmt::format("cannot {} the file: {}", action, std::strerror(errno)), path.string());
    };
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    if (!in) return failed("open");
    ::onnx::ModelProto model;
    {
      google::protobuf::io::IstreamInputStream stream(&in);
      if (!parse(stream, model)) return in.bad() ? failed("read") : corrupt();
    }
    return model;
  }

  Expected<std::map<std::string, std::string>> metadata(const std::filesystem::path& path) {
    TENON_TRY_ASSIGN(model, parsed(path));
    std::map<std::string, std::string> entries;
    for (const auto& entry : model->metadata_props()) entries.insert_or_assign(entry.key(), entry.value());
    return entries;
  }

  Expected<runtime::Tensor> run_tensor(std::span<const std::byte> bytes) {
    ::onnx::TensorProto proto;
    if (bytes.size() > INT32_MAX || !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return error("this is not a tensor of ONNX, or it is corrupt or truncated", file_);
    }
    return tensor(proto, "the tensor");
  }

 private:
  // A graph inside a graph is three messages deep. The library's limit of 100 would call a deep model corrupt.
  static bool parse(google::protobuf::io::ZeroCopyInputStream& stream, ::onnx::ModelProto& model) {
    constexpr int kDeepest = 2000;
    google::protobuf::io::CodedInputStream coded(&stream);
    coded.SetRecursionLimit(kDeepest);
    return model.ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage();
  }

  // The bytes of tensors in external files, which may be sparse, and which many tensors may have in common.
  static uint64_t saturated_sum(uint64_t a, uint64_t b) { return a + std::min(b, UINT64_MAX - a); }
  static uint64_t external_bytes(const ::onnx::TensorProto& tensor) {
    if (tensor.data_location() != ::onnx::TensorProto::EXTERNAL) return 0;
    constexpr uint64_t kLargestElement = 8;
    const auto of_entry = std::ranges::find(tensor.external_data(), "length", &::onnx::StringStringEntryProto::key);
    if (of_entry != tensor.external_data().end()) {
      if (const auto length = parse_number<uint64_t>(of_entry->value())) return *length;
    }
    uint64_t bytes = kLargestElement;
    for (const int64_t size : tensor.dims()) {
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(std::max<int64_t>(size, 0)), &bytes)) return UINT64_MAX;
    }
    return bytes;
  }
  static uint64_t external_bytes(const google::protobuf::RepeatedPtrField<::onnx::NodeProto>& nodes) {
    uint64_t sum = 0;
    for (const auto& node : nodes) {
      for (const auto& attr : node.attribute()) {
        if (attr.has_t()) sum = saturated_sum(sum, external_bytes(attr.t()));
        if (attr.has_g()) sum = saturated_sum(sum, external_bytes(attr.g()));
        for (const auto& tensor : attr.tensors()) sum = saturated_sum(sum, external_bytes(tensor));
      }
    }
    return sum;
  }
  static uint64_t external_bytes(const ::onnx::GraphProto& graph) {
    uint64_t sum = external_bytes(graph.node());
    for (const auto& tensor : graph.initializer()) sum = saturated_sum(sum, external_bytes(tensor));
    return sum;
  }

  std::unexpected<Diagnostic> corrupt() const {
    return error("this is not an ONNX model, or it is corrupt, truncated, or nested too deeply", file_,
                 "compare its size with the original's");
  }

  // The tensors of the message are freed one by one, as each is converted: a large model is not in memory twice.
  Expected<Model> model(::onnx::ModelProto model) {
    if (!model.has_graph() || (model.graph().node_size() == 0 && model.graph().output_size() == 0)) {
      return error("the model has no graph", file_, "check that this is an ONNX model");
    }
    uint64_t external = external_bytes(model.graph());
    for (const auto& function : model.functions()) external = saturated_sum(external, external_bytes(function.node()));
    TENON_TRY(check_memory(external, "what the model has in external files", file_));
    Model result;
    TENON_TRY_ASSIGN(opsets, this->opsets(model.opset_import()));
    result.opsets = std::move(*opsets);
    if (result.opsets.empty()) {
      return error("the model does not state its opset", file_, "export it again, or set its opset_import");
    }
    for (auto& function : *model.mutable_functions()) {
      TENON_TRY_ASSIGN(read, this->function(function));
      result.functions.push_back(std::move(*read));
    }
    TENON_TRY_ASSIGN(graph, this->graph(*model.mutable_graph(), true));
    result.graph = std::move(*graph);
    const auto add = [&](const auto& values) {
      for (const auto& value : values) {
        const std::string name = name_of(value.name());
        if (auto type = this->type(value.type(), name)) result.types.emplace(name, std::move(*type));
      }
    };
    add(model.graph().value_info());
    add(model.graph().output());
    return result;
  }

  Expected<Opsets> opsets(const auto& imports) {
    Opsets opsets;
    for (const auto& import : imports) {
      const std::string domain = canonical_domain(name_of(import.domain()));
      if (domain.empty() && (import.version() < kOldestOpset || import.version() > kNewestOpset)) {
        return error(
            fmt::format("opset {} is not supported, {} .. {} are", import.version(), kOldestOpset, kNewestOpset), file_,
            "convert the model with onnx.version_converter");
      }
      opsets.insert_or_assign(domain, import.version());
    }
    return opsets;
  }

  // The types of inputs matter in the main graph alone: those of an inner graph follow from its use.
  Expected<Graph> graph(::onnx::GraphProto& graph, bool main) {
    Graph result;
    for (auto& message : *graph.mutable_initializer()) {
      const auto initializer = taken(message);
      const std::string name = name_of(initializer.name());
      TENON_TRY_ASSIGN(tensor, this->tensor(initializer, "initializer '" + name + "'"));
      if (!result.initializers.emplace(name, std::move(*tensor)).second)
        return error(fmt::format("initializer '{}' is defined twice", name), file_);
    }
    for (const auto& sparse : graph.sparse_initializer()) {
      const std::string name = name_of(sparse.values().name());
      TENON_TRY_ASSIGN(tensor, sparse_tensor(sparse, "initializer '" + name + "'"));
      if (!result.initializers.emplace(name, std::move(*tensor)).second)
        return error(fmt::format("initializer '{}' is defined twice", name), file_);
    }
    for (const auto& input : graph.input()) {
      const std::string name = name_of(input.name());
      if (result.initializers.contains(name)) continue;
      result.inputs.push_back({name, {}});
      if (!main) continue;
      TENON_TRY_ASSIGN(type, this->type(input.type(), "input '" + name + "'"));
      result.inputs.back().type = std::move(*type);
    }
    for (const auto& output : graph.output()) result.outputs.push_back(name_of(output.name()));
    TENON_TRY_ASSIGN(nodes, this->nodes(*graph.mutable_node()));
    result.nodes = std::move(*nodes);
    return result;
  }

  Expected<LocalFunction> function(::onnx::FunctionProto& proto) {
    LocalFunction function;
    function.domain = canonical_domain(name_of(proto.domain()));
    function.name = name_of(proto.name()), function.overload = name_of(proto.overload());
    TENON_TRY_ASSIGN(opsets, this->opsets(proto.opset_import()));
    function.opsets = std::move(*opsets);
    function.inputs = names_of(proto.input());
    function.outputs = names_of(proto.output());
    function.attributes = names_of(proto.attribute());
    TENON_TRY_ASSIGN(defaults,
                     attributes(*proto.mutable_attribute_proto(), fmt::format("function '{}'", function.name)));
    function.defaults = std::move(*defaults);
    TENON_TRY_ASSIGN(nodes, this->nodes(*proto.mutable_node()));
    function.nodes = std::move(*nodes);
    return function;
  }

  // The message, which leaves an empty one: its memory is freed at the end of the scope.
  template <class Message>
  static Message taken(Message& message) {
    Message result;
    result.Swap(&message);
    return result;
  }

  Expected<std::vector<Node>> nodes(auto& protos) {
    std::vector<Node> nodes;
    nodes.reserve(static_cast<size_t>(protos.size()));
    for (auto& message : protos) {
      auto proto = taken(message);
      TENON_TRY_ASSIGN(node, this->node(proto));
      nodes.push_back(std::move(*node));
    }
    return nodes;
  }

  Expected<runtime::DType> dtype(int type, const std::string& what) {
    using runtime::DType;
    switch (type) {
      case ::onnx::TensorProto::FLOAT: return DType::kF32;
      case ::onnx::TensorProto::UINT8: return DType::kU8;
      case ::onnx::TensorProto::INT8: return DType::kI8;
      case ::onnx::TensorProto::UINT16: return DType::kU16;
      case ::onnx::TensorProto::INT16: return DType::kI16;
      case ::onnx::TensorProto::INT32: return DType::kI32;
      case ::onnx::TensorProto::INT64: return DType::kI64;
      case ::onnx::TensorProto::BOOL: return DType::kBool;
      case ::onnx::TensorProto::DOUBLE: return DType::kF64;
      case ::onnx::TensorProto::UINT32: return DType::kU32;
      case ::onnx::TensorProto::UINT64: return DType::kU64;
      case ::onnx::TensorProto::FLOAT16: return DType::kF16;
      case ::onnx::TensorProto::BFLOAT16: return DType::kBF16;
      case ::onnx::TensorProto::FLOAT8E4M3FN: return DType::kF8E4M3FN;
      case ::onnx::TensorProto::FLOAT8E4M3FNUZ: return DType::kF8E4M3FNUZ;
      case ::onnx::TensorProto::FLOAT8E5M2: return DType::kF8E5M2;
      case ::onnx::TensorProto::FLOAT8E5M2FNUZ: return DType::kF8E5M2FNUZ;
      case ::onnx::TensorProto::FLOAT8E8M0: return DType::kF8E8M0;
      case ::onnx::TensorProto::FLOAT4E2M1: return DType::kF4E2M1;
      case ::onnx::TensorProto::INT4: return DType::kI4;
      case ::onnx::TensorProto::UINT4: return DType::kU4;
      case ::onnx::TensorProto::INT2: return DType::kI2;
      case ::onnx::TensorProto::UINT2: return DType::kU2;
      default: break;
    }
    const std::string& name = ::onnx::TensorProto::DataType_IsValid(type)
                                  ? ::onnx::TensorProto::DataType_Name(static_cast<::onnx::TensorProto::DataType>(type))
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

  Expected<runtime::Tensor> external_tensor(const ::onnx::TensorProto& proto, runtime::DType type, runtime::Shape shape,
                                            const std::string& what) {
    ExternalData data{.what = what, .model = file_};
    for (const auto& entry : proto.external_data()) {
      if (entry.key() == "location") data.location = entry.value();
      else if (entry.key() == "offset") data.offset = entry.value();
      else if (entry.key() == "length") data.length = entry.value();
    }
    if (!folder_) {
      return error(what + " is stored in an external file, and the model's folder is not known", file_,
                   "save the model as one file");
    }
    return read_external(data, *folder_, type, std::move(shape));
  }

  // Copies the bits of short floats, which are stored as integers.
  template <class T, class Field>
  static void copy_bits(runtime::Tensor& tensor, const Field& field) {
    std::transform(field.begin(), field.end(), tensor.data<T>().begin(),
                   [](int32_t bits) { return T::of_bits(static_cast<uint16_t>(bits)); });
  }

  // Elements of a byte or less: raw, or each byte of packed elements as an integer.
  Expected<runtime::Tensor> narrow_tensor(const ::onnx::TensorProto& proto, runtime::DType type, runtime::Shape shape,
                                          const std::string& what) {
    const int64_t count = runtime::element_count(shape), needed = packed_bytes(type, count);
    std::string packed(proto.raw_data());
    if (!proto.has_raw_data()) packed.assign(proto.int32_data().begin(), proto.int32_data().end());
    if (static_cast<int64_t>(packed.size()) != needed) {
      return error(fmt::format("{} has {} bytes of data, its shape {} needs {}", what, packed.size(),
                               runtime::to_string(shape), needed),
                   file_);
    }
    runtime::Tensor tensor(type, std::move(shape));
    unpack(type, std::as_bytes(std::span(packed)), tensor.bytes());
    return tensor;
  }

  Expected<runtime::Tensor> tensor(const ::onnx::TensorProto& proto, const std::string& what) {
    using runtime::DType;
    TENON_TRY_ASSIGN(type, dtype(proto.data_type(), what));
    const bool external = proto.data_location() == ::onnx::TensorProto::EXTERNAL;
    if (proto.dims_size() > static_cast<int>(runtime::kMaxRank)) {
      return error(fmt::format("{} has {} axes, at most {} are supported", what, proto.dims_size(), runtime::kMaxRank),
                   file_);
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
    if (external) return external_tensor(proto, *type, std::move(shape), what);
    if (kNarrow.contains(*type)) return narrow_tensor(proto, *type, std::move(shape), what);
    const bool raw = proto.has_raw_data();
    int64_t found = 0;
    switch (*type) {
      default: break;
      case DType::kF32: found = proto.float_data_size(); break;
      case DType::kF64: found = proto.double_data_size(); break;
      case DType::kI64: found = proto.int64_data_size(); break;
      case DType::kU32:
      case DType::kU64: found = proto.uint64_data_size(); break;
      case DType::kF16:
      case DType::kBF16:
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
        default: break;
        case DType::kF32: copy_field<float>(tensor, proto.float_data()); break;
        case DType::kF64: copy_field<double>(tensor, proto.double_data()); break;
        case DType::kI64: copy_field<int64_t>(tensor, proto.int64_data()); break;
        case DType::kBool: copy_field<bool>(tensor, proto.int32_data()); break;
        case DType::kI8: copy_field<int8_t>(tensor, proto.int32_data()); break;
        case DType::kU8: copy_field<uint8_t>(tensor, proto.int32_data()); break;
        case DType::kI16: copy_field<int16_t>(tensor, proto.int32_data()); break;
        case DType::kU16: copy_field<uint16_t>(tensor, proto.int32_data()); break;
        case DType::kI32: copy_field<int32_t>(tensor, proto.int32_data()); break;
        case DType::kU32: copy_field<uint32_t>(tensor, proto.uint64_data()); break;
        case DType::kU64: copy_field<uint64_t>(tensor, proto.uint64_data()); break;
        case DType::kF16: copy_bits<runtime::Half>(tensor, proto.int32_data()); break;
        case DType::kBF16: copy_bits<runtime::BFloat16>(tensor, proto.int32_data()); break;
      }
    }
    return tensor;
  }

  // The dense tensor, whose other elements are zero.
  Expected<runtime::Tensor> sparse_tensor(const ::onnx::SparseTensorProto& proto, const std::string& what) {
    TENON_TRY_ASSIGN(values, tensor(proto.values(), what));
    TENON_TRY_ASSIGN(indices, tensor(proto.indices(), what));
    runtime::Shape shape(proto.dims().begin(), proto.dims().end());
    if (!runtime::checked_bytes(values->dtype(), shape) || runtime::element_count(shape) > kMostSparse) {
      return error(fmt::format("{} is a sparse tensor {}, of which {} elements are supported", what,
                               runtime::to_string(shape), kMostSparse),
                   file_);
    }
    const int64_t count = runtime::element_count(values->shape()), rank = static_cast<int64_t>(shape.size());
    const bool linear = indices->shape() == runtime::Shape{count};
    if (indices->dtype() != runtime::DType::kI64 || !(linear || indices->shape() == runtime::Shape{count, rank})) {
      return error(
          fmt::format("{} has {} values at indices {} {}, must be i64 {} or {}", what, count,
                      runtime::name(indices->dtype()), runtime::to_string(indices->shape()),
                      runtime::to_string(runtime::Shape{count}), runtime::to_string(runtime::Shape{count, rank})),
          file_);
    }
    runtime::Tensor dense(values->dtype(), shape);
    const auto width = static_cast<size_t>(runtime::bytes(values->dtype()));
    const auto index = std::as_const(*indices).data<int64_t>();
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = linear ? index[static_cast<size_t>(i)] : 0;
      bool inside = !linear || (at >= 0 && at < runtime::element_count(shape));
      for (int64_t axis = 0; axis < rank && !linear; ++axis) {
        const int64_t along = index[static_cast<size_t>(i * rank + axis)], size = shape[static_cast<size_t>(axis)];
        inside = inside && along >= 0 && along < size;
        at = inside ? at * size + along : 0;
      }
      if (!inside)
        return error(fmt::format("{} has the value {} outside of {}", what, i, runtime::to_string(shape)), file_);
      std::ranges::copy(std::as_const(*values).bytes().subspan(static_cast<size_t>(i) * width, width),
                        dense.bytes().begin() + at * static_cast<std::ptrdiff_t>(width));
    }
    return dense;
  }

  // `what` has the type, for messages. A size of -1 is what some exporters write for an unknown one.
  Expected<ValueType> type(const ::onnx::TypeProto& proto, const std::string& what) {
    ValueType type;
    if (proto.has_sequence_type() || proto.has_optional_type()) {
      const bool sequence = proto.has_sequence_type();
      type.kind = sequence ? ValueType::Kind::kSequence : ValueType::Kind::kOptional;
      TENON_TRY_ASSIGN(
          element, this->type(sequence ? proto.sequence_type().elem_type() : proto.optional_type().elem_type(), what));
      type.element.push_back(std::move(*element));
      return type;
    }
    if (!proto.has_tensor_type()) {
      return error(what + " has no type, or one that is not supported: a map or a sparse tensor", file_,
                   "run onnx.shape_inference, or export with shapes");
    }
    TENON_TRY_ASSIGN(dtype, this->dtype(proto.tensor_type().elem_type(), what));
    type.dtype = *dtype;
    if (!proto.tensor_type().has_shape()) return type;
    type.dims.emplace();
    for (const auto& dim : proto.tensor_type().shape().dim()) {
      if (dim.has_dim_value() && dim.dim_value() < -1) {
        return error(fmt::format("{} has a negative size {}", what, dim.dim_value()), file_);
      }
      type.dims->push_back(dim.has_dim_value() ? Dimension{dim.dim_value(), ""}
                                               : Dimension{-1, name_of(dim.dim_param())});
    }
    return type;
  }

  Expected<Node> node(::onnx::NodeProto& proto) {
    Node node{name_of(proto.op_type()), canonical_domain(name_of(proto.domain())),
              name_of(proto.name()),    names_of(proto.input()),
              names_of(proto.output()), {},
              name_of(proto.overload())};
    if (node.name.empty() && !node.outputs.empty()) node.name = node.outputs[0];
    TENON_TRY_ASSIGN(attrs, attributes(*proto.mutable_attribute(), fmt::format("{} '{}'", node.op, node.name)));
    node.attrs = std::move(*attrs);
    return node;
  }

  Expected<Attributes> attributes(auto& protos, const std::string& of) {
    Attributes attrs;
    for (auto& proto : protos) {
      const std::string name = name_of(proto.name());
      TENON_TRY_ASSIGN(value, attribute(proto, fmt::format("{}: attribute '{}'", of, name)));
      attrs.insert_or_assign(name, std::move(*value));
    }
    return attrs;
  }

  Expected<Attribute> attribute(::onnx::AttributeProto& attr, const std::string& what) {
    if (!attr.ref_attr_name().empty()) return AttributeReference{name_of(attr.ref_attr_name())};
    switch (attr.type()) {
      case ::onnx::AttributeProto::INT: return attr.i();
      case ::onnx::AttributeProto::FLOAT: return static_cast<double>(attr.f());
      case ::onnx::AttributeProto::STRING: return attr.s();
      case ::onnx::AttributeProto::INTS: return std::vector<int64_t>(attr.ints().begin(), attr.ints().end());
      case ::onnx::AttributeProto::FLOATS: return std::vector<double>(attr.floats().begin(), attr.floats().end());
      case ::onnx::AttributeProto::STRINGS:
        return std::vector<std::string>(attr.strings().begin(), attr.strings().end());
      case ::onnx::AttributeProto::TENSOR: {
        TENON_TRY_ASSIGN(tensor, this->tensor(attr.t(), what));
        return std::move(*tensor);
      }
      case ::onnx::AttributeProto::SPARSE_TENSOR: {
        TENON_TRY_ASSIGN(tensor, sparse_tensor(attr.sparse_tensor(), what));
        return std::move(*tensor);
      }
      case ::onnx::AttributeProto::TENSORS: {
        std::vector<runtime::Tensor> tensors;
        for (const auto& proto : attr.tensors()) {
          TENON_TRY_ASSIGN(tensor, this->tensor(proto, what));
          tensors.push_back(std::move(*tensor));
        }
        return tensors;
      }
      case ::onnx::AttributeProto::TYPE_PROTO: {
        TENON_TRY_ASSIGN(type, this->type(attr.tp(), what));
        return std::move(*type);
      }
      case ::onnx::AttributeProto::GRAPH: {
        std::vector<Graph> graphs;
        TENON_TRY_ASSIGN(graph, this->graph(*attr.mutable_g(), false));
        graphs.push_back(std::move(*graph));
        return graphs;
      }
      default: break;
    }
    const std::string name = ::onnx::AttributeProto::AttributeType_IsValid(attr.type())
                                 ? ::onnx::AttributeProto::AttributeType_Name(attr.type())
                                 : std::to_string(attr.type());
    return error(fmt::format("{} has the type {}, which is not supported", what, name), file_);
  }

  const std::string& file_;
  const std::optional<std::filesystem::path>& folder_;
};

}  // namespace

Expected<Model> read_model(std::span<const std::byte> bytes, const std::string& file,
                           const std::optional<std::filesystem::path>& folder) {
  return Reader(file, folder).run(bytes);
}

Expected<Model> read_model(const std::filesystem::path& path) {
  const std::string file = path.filename().string();
  const std::optional<std::filesystem::path> folder = path.parent_path();
  return Reader(file, folder).run(path);
}

Expected<std::map<std::string, std::string>> read_metadata(const std::filesystem::path& path) {
  return Reader(path.filename().string(), {}).metadata(path);
}

Expected<runtime::Tensor> read_tensor(std::span<const std::byte> bytes, const std::string& file) {
  return Reader(file, {}).run_tensor(bytes);
}

}  // namespace tenon::compiler::onnx
