// Converters of ONNX's sequences and optional values.
#include <fmt/format.h>

#include "compiler/frontend/onnx_node.h"

namespace tenon::compiler {

std::span<const OnnxConverter> onnx_sequence_converters() { return {}; }

Expected<Type> onnx_type(OnnxImport&, const OnnxType&, const std::string& what) {
  return error(what + " is a sequence or an optional value, which is not supported");
}

}  // namespace tenon::compiler
