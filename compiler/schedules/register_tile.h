// Tiles of sums in registers: rows times vectors of lanes, ranked by a model of cycles on a machine.
//
// The cost of a tile is modeled, not measured: fused multiply-adds and loads of vectors, and the latency of a sum.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/loop/loop.h"
#include "compiler/machine/machine.h"
#include "compiler/schedules/option.h"
#include "runtime/dtype.h"

namespace tenon::compiler::schedules {

using runtime::DType;

// Elements of 4 bytes that fit into a cache.
constexpr int64_t elements_in(int64_t cache_bytes) { return cache_bytes / 4; }
constexpr int64_t kTasks = 16;  // tasks that keep many threads busy
// Multiply-adds below which threads cost more than they save.
constexpr double kParallelTerms = 1 << 18;

// Elements of a vector of 64 bytes: of one register or, where these are shorter, of several. Tiles and packed panels
// consist of whole vectors on all machines, so that one packed copy of constants serves all of them.
constexpr int64_t kVectorBytes = 64;
// The elements of the last vector of constant lanes: half a vector where that is a register or more, so that fewer
// lanes are computed past the end.
constexpr int64_t shortest_vector(const Machine& machine, int64_t vector) {
  return machine.vector_bytes < kVectorBytes ? vector / 2 : vector;
}
constexpr int64_t lanes_of(DType dtype) { return dtype == DType::kF64 || dtype == DType::kI64 ? 8 : 16; }

constexpr int64_t kFewTerms = 8;  // of a sum, whose loop is not split
// The factor by which the loop over `count` terms of a sum (0: not known) is unrolled; it divides the count.
constexpr int64_t unrolled_terms(int64_t count) {
  if (count <= kFewTerms) return 1;
  return count % 4 == 0 ? 4 : count % 3 == 0 ? 3 : count % 2 == 0 ? 2 : 1;
}

// Whether a term is the product of two elements, or a dot product of four bytes or of two i16;
// BinaryOp::kByteDotSaturating takes fewer instructions than an exact one where the machine has no instruction for
// that.
enum class Factors : uint8_t { kElements, kBytes, kSaturatingBytes, kInt16s };
Factors factors_of(loop::BinaryOp op);
// What the terms of a tile's sums are. Strided: whether the elements that a tile reads for one term are strided: each
// row, or each vector, is in another page, as in a matrix that is read in place. Packed panels are contiguous. Lanes of
// `count` terms (0: not known) that fit into L1 are read from there by all blocks of rows but the first.
struct Terms {
  bool strided_rows = false, strided_lanes = false;
  int64_t count = 0;
  Factors factors = Factors::kElements;
};

// A register tile of rows times vectors.
struct TileShape {
  int64_t rows = 1, vectors = 1;
  double cycles = 0;  // for one term of the sum, over all tiles
  int64_t code = 0;   // instructions of all compiled copies of the tile

  // A hundred instructions, which compile in 2 ms, weigh as much as 5 % of the cycles.
  double cost() const { return cycles * (1 + 0.0005 * static_cast<double>(code)); }
};
// All tiles that fit into the machine's registers, for `rows` (0: not constant, assumed to be many) and `lanes` in
// total; at least one.
std::vector<TileShape> tile_shapes(const Machine& machine, int64_t rows, int64_t lanes, int64_t vector, Terms terms);
// The one that the knob "tile" selects.
TileShape choose_tile(const ChooseOption& choose, const std::vector<TileShape>& shapes);
// The cheapest of these tiles.
TileShape choose_tile(const Machine& machine, int64_t rows, int64_t lanes, int64_t vector, Terms terms);

// Rows and lanes of a tile that is transposed in registers.
constexpr int64_t kTransposeSide = 16;
// The cheapest transposed tile, whose lanes are output channels and whose rows are output pixels; its cycles are those
// of all `terms`. `allowed` filters the number of rows; 0 cycles where it allows none.
TileShape choose_transposed_tile(const Machine& machine, int64_t pixels, int64_t channels, int64_t terms,
                                 Factors factors, const std::function<bool(int64_t rows)>& allowed = nullptr);

}  // namespace tenon::compiler::schedules
