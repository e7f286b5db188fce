// The constants of a region as stored in DRAM: weights and parameters in the order in which tiles load them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/backends/accel/contraction.h"

namespace tenon::compiler::accel {

// A half-open range of a loop.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  std::string str() const {
    return size() == 1 ? std::to_string(begin) : std::to_string(begin) + ".." + std::to_string(end - 1);
  }
};

// A part of a reduction.
struct Chunk {
  Range steps, kernel_h, kernel_w;
};

// The address of a tensor: `offset` bytes after a base register.
struct Location {
  int base = 0;
  int64_t offset = 0;
};

// A layer and the locations of its tensors.
struct Operands {
  const Layer& layer;
  const RegionTensor& input;
  const RegionTensor& output;
  bool rows_input = false;
  Location input_at, residual_at, output_at;
  Location weights_at = {};  // of a matmul
};

// Weights and parameters in the order in which they are loaded, without duplicates.
class ConstantPool {
 public:
  int64_t add(const std::vector<std::byte>& bytes);  // returns the offset
  int64_t reserve(int64_t size);                     // without contents
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  int64_t size_ = 0;
  std::vector<std::byte> bytes_;
  std::multimap<uint64_t, std::pair<int64_t, int64_t>> entries_;  // hash -> offset, size
};

// The weights of these output blocks for this chunk, in the order in which a GEMM's factors expect them.
std::vector<std::byte> pack_weights(const Contraction& c, const Operands& operands, Range blocks, const Chunk& chunk);
// The parameters of these output blocks; lanes beyond the channels have multiplier 0.
std::vector<std::byte> pack_parameters(const Contraction& c, const Operands& operands, Range blocks);

}  // namespace tenon::compiler::accel
