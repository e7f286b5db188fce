#include "compiler/frontend/onnx/packed.h"

namespace tenon::compiler::onnx {

int64_t packed_bytes(runtime::DType dtype, int64_t count) {
  const int bits = runtime::bits(dtype);
  return bits < 8 ? (count + 8 / bits - 1) / (8 / bits) : count * bits / 8;
}

void unpack(runtime::DType dtype, std::span<const std::byte> packed, std::span<std::byte> elements) {
  const auto bits = static_cast<size_t>(runtime::bits(dtype)), per_byte = 8 / bits;
  const auto mask = static_cast<std::byte>((1u << bits) - 1);
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = packed[i / per_byte] >> (i % per_byte * bits) & mask;
}

}  // namespace tenon::compiler::onnx
