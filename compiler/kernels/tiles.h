// Contractions in tiles of registers: the loops of a matrix product or a convolution as its micro-kernel wants them.
//
//   for the blocks of each axis               axes need not be multiples of their tiles: what remains stands beside
//     acc[tiles] in registers = 0
//     for the terms of the sum
//       acc[tiles] += term                    axes in tiles unrolled, one of them a vector
//     result[place of the tile] = what follows, of acc[tiles]
//
// What a tile costs is counted, not measured: vectors that are multiplied and added, those that are loaded, and how
// long a sum waits for the one before it.
#pragma once

#include <functional>
#include <vector>

#include "compiler/kernels/arithmetic.h"
#include "compiler/loop/builder.h"

namespace tenon::compiler::kernels {

using loop::Axis;
using loop::AxisKind;
using loop::For;
using loop::Mark;
using loop::Stmt;

constexpr int64_t kSide = 16;                                   // of what is turned round in registers
constexpr int64_t kNearWords = 1 << 13, kCacheWords = 1 << 18;  // of the first cache and of a core's second
// Terms of a sum below which threads cost more than they save.
constexpr double kParallelTerms = 1 << 18;

// An index along an axis: block * tile + inner.
struct TileIndex {
  Dim block, inner, index;
  bool guarded = false;  // it may lie behind the end
};

class Emitter;

struct TileAxis {
  enum class Role : uint8_t { kOuter, kRows, kLanes };  // a loop; unrolled; a vector
  Role role = Role::kOuter;
  Dim extent;
  int64_t size = 1;  // of a tile
};

struct Tiles {
  std::vector<TileAxis> axes;  // as their loops stand, outermost first; one has lanes
  Dims over;
  // The same where it depends on the indices along outer axes; `over` is the most then.
  std::function<Dims(const std::vector<TileIndex>& at)> over_of = nullptr;
  // Of the last tile of the vector it is computed beyond the extent too: up to whole registers.
  std::function<Expr(const std::vector<TileIndex>& at, const Dims& k)> term;
  // The result's indices, from those along the axes.
  std::function<Dims(const Dims& at)> place;
  // Neighbours in the result lie along the rows of a tile, at most 16: it is turned round before it is stored.
  bool turned = false;
};

// What is stored: a value made of the sum of its place.
struct TileResult {
  loop::BufferId buffer{};
  std::function<Expr(const Dims& at, const Expr& sum)> value;
};

loop::Body tiled(Context& context, loop::Builder& builder, const std::string& name, const Tiles& tiles, DType dtype,
                 const std::vector<TileResult>& results);

// Elements of a vector register.
constexpr int64_t lanes_of(DType dtype) { return dtype == DType::kF64 || dtype == DType::kI64 ? 8 : 16; }

// What a tile reads for one term of its sum lies together, as packed weights do, or, as in a matrix that is read in
// place, each row, or all lanes, have a page of their own, from which only neighbours come along.
struct Apart {
  bool rows = false, lanes = false;
};

// Rows times vectors of a tile: the one that takes least for so many rows and lanes in all; rows that are not known
// (0) count as many.
struct TileShape {
  int64_t rows = 1, vectors = 1;
  double cycles = 0;  // a term of the sum, over all tiles
  int64_t code = 0;   // instructions of all tiles, each as often as it is compiled

  // A hundred instructions, 2 ms of compilation, are worth 5 % of the time.
  double cost() const { return cycles * (1 + 0.0005 * static_cast<double>(code)); }
};
std::vector<TileShape> tile_shapes(int64_t rows, int64_t lanes, int64_t vector,
                                   Apart apart);  // all that fit into registers
TileShape choose_tile(int64_t rows, int64_t lanes, int64_t vector, Apart apart);
// Of tiles that are turned round: lanes are channels, the rows places. With the cycles of all `terms`. `allowed` says
// which numbers of rows may be.
TileShape choose_turned_tile(int64_t places, int64_t channels, int64_t terms,
                             const std::function<bool(int64_t rows)>& allowed = nullptr);
// The same as choose_tile(), as a decision, "tile".
TileShape choose_tile(Emitter& emit, int64_t rows, int64_t lanes, int64_t vector, Apart apart);

}  // namespace tenon::compiler::kernels
