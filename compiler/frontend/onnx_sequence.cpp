// Converters of ONNX's sequences and optional values.
#include <fmt/format.h>

#include <array>

#include "compiler/frontend/onnx_node.h"

namespace tenon::compiler {
namespace {

// Inputs are tensors, which are present, or omitted.
Status optional_has_element(NodeImport& node) {
  return node.result(node.constant(runtime::Tensor::of<bool>({}, std::array{node.has_input(0)})));
}

}  // namespace

std::span<const OnnxConverter> onnx_sequence_converters() {
  static constexpr OnnxConverter kTable[] = {
      {"OptionalGetElement", 1, 1, convert_plain<ops::kIdentity>},
      {"OptionalHasElement", 0, 1, optional_has_element},
  };
  return kTable;
}

Expected<Type> onnx_type(OnnxImport&, const OnnxType&, const std::string& what) {
  return error(what + " is a sequence or an optional value, which is not supported");
}

}  // namespace tenon::compiler
