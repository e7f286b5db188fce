// The converter of com.microsoft.MatMulNBits: a product with weights of 2, 4 or 8 bits in blocks with a scale each.
#include <fmt/format.h>

#include "compiler/frontend/onnx/expression.h"

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;

struct Blocks {
  int64_t rows = 0, columns = 0, bits = 4, size = 32;  // rows are outputs, columns the elements of a sum
  int64_t count() const { return (columns + size - 1) / size; }
};

Expected<Blocks> read_blocks(NodeImport& node) {
  Blocks blocks;
  TENON_TRY_ASSIGN(columns, node.integer("K"));
  TENON_TRY_ASSIGN(rows, node.integer("N"));
  TENON_TRY_ASSIGN(bits, node.integer("bits", 4));
  TENON_TRY_ASSIGN(size, node.integer("block_size"));
  TENON_TRY_ASSIGN(accuracy, node.integer("accuracy_level", 0));  // a lower bound, which f32 meets
  TENON_TRY_ASSIGN(prepacked, node.integer("weight_prepacked", 0));
  if (*prepacked != 0) return node.fail(fmt::format("weight_prepacked {} is not supported", *prepacked));
  if (*bits != 2 && *bits != 4 && *bits != 8) return node.fail(fmt::format("bits is {}, must be 2, 4 or 8", *bits));
  constexpr int64_t kMax = int64_t{1} << 30;
  if (*rows < 1 || *columns < 1 || *rows > kMax || *columns > kMax || *size < 16 || (*size & (*size - 1)) != 0 ||
      *size > kMax)
    return node.fail(
        fmt::format("N is {}, K {} and block_size {}: sizes must be positive, and blocks a power of two "
                    "from 16 on",
                    *rows, *columns, *size));
  return Blocks{*rows, *columns, *bits, *size};
}

// Numbers of less than a byte, from the low bits of a byte on, as [rows, count]; each row begins with a byte.
Expected<runtime::Tensor> unpacked(NodeImport& node, const runtime::Tensor& packed, const Blocks& blocks, int64_t count,
                                   std::string_view what) {
  const int64_t per_byte = 8 / blocks.bits, stride = (count + per_byte - 1) / per_byte;
  if (packed.dtype() != DType::kU8 || packed.size() != blocks.rows * stride) {
    return node.fail(fmt::format("{} must be {} bytes, found {} of {}", what, blocks.rows * stride, packed.size(),
                                 runtime::name(packed.dtype())));
  }
  runtime::Tensor bytes(DType::kU8, {blocks.rows, count});
  const auto from = packed.data<uint8_t>();
  const auto to = bytes.data<uint8_t>();
  const auto mask = static_cast<uint8_t>((1 << blocks.bits) - 1);
  for (int64_t row = 0; row < blocks.rows; ++row) {
    for (int64_t i = 0; i < count; ++i)
      to[row * count + i] = from[row * stride + i / per_byte] >> (i % per_byte * blocks.bits) & mask;
  }
  return bytes;
}

// The zero points as they broadcast with the weights [N, blocks, elements]: by default the middle of the range.
Term zero_points(NodeFormula& f, const Blocks& blocks) {
  NodeImport& node = f.node();
  const Ints shape{blocks.rows, blocks.count(), 1};
  if (!node.has_input(3)) return f.scalar(static_cast<double>(1 << (blocks.bits - 1)), DType::kF32);
  if (const Term given = f.input(3); f.ok() && runtime::kReals.contains(given.dtype()))
    return given.cast(DType::kF32).reshape(shape);
  const auto packed = node.constant(3, "the zero points");
  if (!packed) return f.term(std::unexpected(packed.error()));
  auto bytes = unpacked(node, *packed, blocks, blocks.count(), "the zero points");
  if (!bytes) return f.term(std::unexpected(bytes.error()));
  return f.constant(std::move(*bytes)).cast(DType::kF32).reshape(shape);
}

Status matmul_nbits(NodeImport& node) {
  TENON_TRY_ASSIGN(blocks, read_blocks(node));
  if (node.has_input(4)) return node.fail("group indices (g_idx) are not supported", "quantize without act_order");
  TENON_TRY_ASSIGN(packed, node.constant(1, "the weights"));
  const int64_t padded = blocks->count() * blocks->size;
  TENON_TRY_ASSIGN(bytes, unpacked(node, *packed, *blocks, padded, "the weights"));
  NodeFormula f(node);
  const Term a = f.input(0), scale = f.input(2).cast(DType::kF32).reshape({blocks->rows, blocks->count(), 1});
  const Term steps = f.constant(std::move(*bytes)).reshape({blocks->rows, blocks->count(), blocks->size});
  Term weights = ((steps.cast(DType::kF32) - zero_points(f, *blocks)) * scale).reshape({blocks->rows, padded});
  if (padded != blocks->columns) weights = weights.slice(1, 0, blocks->columns);
  Term result = matmul(a.cast(DType::kF32), weights.transpose({1, 0}));
  if (node.has_input(5)) result = result + f.input(5).cast(DType::kF32);
  return f.result(result.cast(a.dtype()));
}

}  // namespace

std::span<const Converter> matmul_nbits_converters() {
  static constexpr Converter kTable[] = {
      {"com.microsoft.MatMulNBits", 3, 6, matmul_nbits},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
