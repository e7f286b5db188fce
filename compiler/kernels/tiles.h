// Contractions in register tiles: the loops of a matrix product or a convolution around its micro-kernel.
//
//   for the blocks of each axis               an extent that is not a multiple of its tile has a tail after the blocks
//     acc[tile] in registers = 0
//     for the reduction axes
//       acc[tile] += term                     the tile's axes unrolled, one of them a vector
//     result[indices of the tile] = epilogue of acc[tile]
//
// The cost of a tile is modeled, not measured: fused multiply-adds and loads of vectors, and the latency of a sum.
#pragma once

#include <functional>
#include <vector>

#include "compiler/ir/context.h"
#include "compiler/kernels/arithmetic.h"
#include "compiler/loop/builder.h"
#include "compiler/schedules/register_tile.h"

namespace tenon::compiler::kernels {

using loop::Axis;
using loop::AxisKind;
using loop::For;
using loop::LoopKind;
using loop::Stmt;
using schedules::choose_tile;
using schedules::elements_in;
using schedules::Factors;
using schedules::kParallelTerms;
using schedules::kTasks;
using schedules::lanes_of;
using schedules::shortest_vector;
using schedules::Terms;
using schedules::tile_shapes;
using schedules::TileShape;

// Rows and lanes of a tile that is transposed in registers.
constexpr int64_t kTransposeSide = 16;
// An index along an axis. Block and inner are those of the panels that the axis' operand is packed into: of lanes, of
// TileAxis::panel elements; of rows, tiles.
struct TileIndex {
  Dim block, inner, index;
  bool guarded = false;  // it may be past the end
};

class Emitter;

struct TileAxis {
  enum class Role : uint8_t { kOuter, kRows, kLanes };  // a loop; unrolled; a vector
  Role role = Role::kOuter;
  Dim extent;
  int64_t size = 1;   // of a tile
  int64_t panel = 0;  // of lanes: elements of a panel, a multiple or a divisor of the size; 0: of a vector
};

struct Tiles {
  std::vector<TileAxis> axes;  // in the order of their loops, outermost first; exactly one has lanes
  Dims over;                   // extents of the reduction axes
  // The extents where they depend on the indices along outer axes; `over` is their maximum then.
  std::function<Dims(const std::vector<TileIndex>& at)> over_of = nullptr;
  // A term of the sum. Lanes of the last vector past the extent are computed too: vectors are whole registers.
  std::function<Expr(const std::vector<TileIndex>& at, const Dims& k)> term;
  // The indices in the result, from the indices along the axes.
  std::function<Dims(const Dims& at)> result_index;
  // The rows of a tile, at most 16, are the contiguous axis of the result: the tile is transposed before it is stored.
  bool transposed = false;
  // The innermost reduction loop is unrolled: a term has few instructions beside those of the loop. Its terms must not
  // share broadcast elements, which would be kept in registers for all of them.
  bool unrolls_terms = false;
  int64_t shortest_vector = 0;  // of constant lanes; 0: a whole vector
};

// A stored result: its element as a function of its indices and of the sum.
struct TileResult {
  loop::BufferId buffer{};
  std::function<Expr(const Dims& at, const Expr& sum)> value;
};

// The loops of the contraction, named by `name`, that store `results`.
loop::Body emit_tiles(Context& context, loop::Builder& builder, const std::string& name, const Tiles& tiles,
                      DType dtype, const std::vector<TileResult>& results);

// The cheapest transposed tile, whose lanes are output channels and whose rows are output pixels; its cycles are those
// of all `terms`. `allowed` filters the number of rows; 0 cycles where it allows none.
TileShape choose_transposed_tile(const Machine& machine, int64_t pixels, int64_t channels, int64_t terms,
                                 Factors factors, const std::function<bool(int64_t rows)>& allowed = nullptr);
// The tile selected by the knob "tile", whose options are tile_shapes().
TileShape choose_tile(Emitter& emit, int64_t rows, int64_t lanes, int64_t vector, Terms terms);

}  // namespace tenon::compiler::kernels
