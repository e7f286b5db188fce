// Elements of less than a byte as ONNX files store them: from the low bits of a byte to its high bits, without gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/dtype.h"

namespace tenon::compiler::onnx {

// The bytes of `count` elements in a file.
int64_t packed_bytes(runtime::DType dtype, int64_t count);

// Spreads packed elements to one a byte.
void unpack(runtime::DType dtype, std::span<const std::byte> packed, std::span<std::byte> elements);

}  // namespace tenon::compiler::onnx
