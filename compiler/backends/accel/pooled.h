// Max pooling by the requantizer (windows of `rq`), alone or fused with the layer that computes its map, as one walk
// over strips of the map.
//
// Semantics of the order: a strip is the columns of the map that some columns of outputs read, for a group of output
// blocks. Its rows are computed from the top, `Tiling::rows` of them in a tile, each once; the outputs whose windows a
// tile completes are requantized and stored after it. Rows of accumulators are a ring that is all of acc: their
// distance is a power of two, so that windows cross the end of acc. Columns between strips are computed for each.
//
// Positions outside of the map do not count, so that windows at the edges are smaller, and have commands of their own.
// Where windows share one column with the ones before, an accumulator is read once in a row (`win_carry`).
//
// In a Tiling of such layers, `rows` are rows of the map, a power of two, and `cols` columns of outputs; sub-tiles are
// those of the layer that computes the map.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/backends/accel/constants.h"

namespace tenon::compiler::accel {

// Whether the second of these layers is a pool of the first one's results that can be fused with it. The caller knows
// that no other layer and no caller reads the values between them.
bool can_fuse_pool(const spec::Config& config, std::span<const Operands> layers);

// The positions of a map that a range of windows reads in one dimension.
Range pooled_positions(int64_t size, int64_t kernel, int64_t stride, int64_t pad, Range windows);

// Windows of one dimension that follow each other and that one command computes. A window begins `stride` positions
// after the one before. With `carry` each has `extent` positions beside the last one of the window before.
struct WindowRun {
  Range windows;
  int64_t begin = 0, extent = 1;  // positions of the first window
  bool carry = false;
};
std::vector<WindowRun> window_runs(int64_t size, int64_t kernel, int64_t stride, int64_t pad, Range windows,
                                   bool carries);

// The accumulators of a strip.
struct PooledPlan {
  bool fits = false;
  int64_t pitch = 1, slots = 1;  // the distance of rows, and the rows that acc holds
};
// `layers`: a pool, or the layer that computes its map and the pool.
PooledPlan pooled_plan(const spec::Config& config, std::span<const Operands> layers, const Tiling& tiling);

// At most `count` tilings that fit, the cheapest by an estimate first. A pool alone has at least one.
std::vector<Tiling> pooled_tilings(const spec::Config& config, std::span<const Operands> layers, size_t count,
                                   const spec::MemoryTiming& memory = {});

}  // namespace tenon::compiler::accel
