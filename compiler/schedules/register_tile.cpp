#include "compiler/schedules/register_tile.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::compiler::schedules {
namespace {

// Cycles to transpose 16 channels of a tile: in one register, or for each of several; and to load a cache line from L2
// beyond the cycles that computation hides.
constexpr double kTransposeCycles = 80, kPartTransposeCycles = 100, kL2Cycles = 0.25;

}  // namespace

std::vector<TileShape> tile_shapes(const Machine& machine, int64_t rows, int64_t lanes, int64_t vector, Terms terms) {
  constexpr double kLoaded = 0.25;                                // cycles to load a cache line, which may come from L2
  const int64_t registers = kVectorBytes / machine.vector_bytes;  // of a vector
  const bool saturating = terms.factors == Factors::kSaturatingBytes, pairs = terms.factors == Factors::kInt16s;
  const bool split_bytes =
      terms.factors == Factors::kBytes && !machine.dot;  // even and odd bytes are multiplied in turn
  // One instruction multiplies a term and adds it.
  const bool fused = terms.factors == Factors::kElements ? machine.fma : !pairs;
  // `misses`: the part of the blocks of rows that read strided lanes from beyond L1.
  const auto cycles = [&](int64_t r, int64_t width, double misses) {
    const auto row_count = static_cast<double>(r), loaded = static_cast<double>(width),
               vectors = loaded / static_cast<double>(registers), sums = row_count * loaded;
    const double operations = split_bytes  ? 4 * sums + 2 * row_count + 3 * loaded
                              : saturating ? 3 * sums
                              : fused      ? sums
                                           : 2 * sums;
    return std::max({operations / machine.multiply_adds, (row_count + loaded) / machine.loads, machine.latency}) +
           kLoaded * vectors + (terms.strided_rows ? 0.125 * row_count : 0) +
           (terms.strided_lanes ? std::max(4 / vectors - 1, 0.0) * misses : 0);
  };
  // Beside the accumulators, registers hold the vectors, and one broadcast element that multiplies them, a product
  // that is not added yet where these are two instructions, or parts of bytes, or ones.
  const int64_t accumulators = machine.registers - 4;
  const auto max_rows = [&](int64_t v) {
    const int64_t others = split_bytes  ? 2 * v * registers + 3
                           : saturating ? v * registers + 3
                                        : v * registers + (fused ? 1 : 2);
    const int64_t rows_that_fit = std::min(accumulators, machine.registers - others) / (v * registers);
    // A single row multiplies each vector once, as an operand in memory, which takes no register.
    const bool one_row_fits = machine.fma && terms.factors == Factors::kElements && v * registers <= accumulators;
    return std::max<int64_t>(rows_that_fit, v == 1 || one_row_fits ? 1 : 0);
  };
  const int64_t vectors = (lanes + vector - 1) / vector, shortest = shortest_vector(machine, vector),
                unit = registers * shortest / vector, lane_units = (lanes + shortest - 1) / shortest,
                most_rows = rows > 0 ? rows : accumulators;
  std::vector<TileShape> shapes;
  for (int64_t v = 1; v <= std::min<int64_t>(vectors, 4); v *= 2) {
    for (int64_t r = 1; r <= std::min(most_rows, max_rows(v)); ++r) {
      TileShape shape{r, v};
      const bool fits_l1 = terms.count > 0 && 2 * terms.count * v * kVectorBytes <= machine.l1_bytes;
      const double misses = fits_l1 ? 1 / static_cast<double>((most_rows + r - 1) / r) : 1;
      // Blocks of rows and vectors, and their tails: one block of rows, and of vectors one for each power of two.
      const int64_t widest = v * vector / shortest;
      for (const auto& [rows_of, blocks] : {std::pair(r, most_rows / r), std::pair(most_rows % r, int64_t{1})}) {
        for (int64_t width = widest; width > 0 && rows_of > 0; width /= 2) {
          const int64_t times = width == widest ? lane_units / widest : lane_units / width % 2;
          if (times == 0) continue;
          shape.cycles += static_cast<double>(blocks * times) * cycles(rows_of, width * unit, misses);
          shape.code += rows_of * (width * unit + 1);
        }
      }
      shapes.push_back(shape);
    }
  }
  return shapes;
}

TileShape choose_tile(const ChooseOption& choose, const std::vector<TileShape>& shapes) {
  std::vector<Option> options;
  for (const TileShape& shape : shapes)
    options.push_back({fmt::format("{}x{}", shape.rows, shape.vectors), shape.cost()});
  return shapes[choose("tile", options)];
}

TileShape choose_transposed_tile(const Machine& machine, int64_t pixels, int64_t channels, int64_t terms,
                                 Factors factors, const std::function<bool(int64_t rows)>& allowed) {
  const int64_t vectors = (channels + kTransposeSide - 1) / kTransposeSide,
                registers = kVectorBytes / machine.vector_bytes;
  const double transpose_cycles =
      registers == 1 ? kTransposeCycles : kPartTransposeCycles * static_cast<double>(registers);
  TileShape best;
  for (TileShape shape : tile_shapes(machine, pixels, channels, kTransposeSide, {.factors = factors})) {
    if (shape.rows > kTransposeSide || (allowed && !allowed(shape.rows))) continue;
    // Each vector of channels of a tile is transposed, and reads its weights, from L2 where they exceed L1.
    const int64_t tiles = (pixels + shape.rows - 1) / shape.rows;
    const auto lines = static_cast<double>(tiles * vectors);
    const bool weights_in_l2 = terms * shape.vectors * kTransposeSide > elements_in(machine.l1_bytes);
    shape.cycles = (shape.cycles + (weights_in_l2 ? lines * kL2Cycles : 0)) * static_cast<double>(terms) +
                   lines * transpose_cycles;
    if (best.cycles == 0 || shape.cost() < best.cost()) best = shape;
  }
  return best;
}

Factors factors_of(loop::BinaryOp op) {
  if (op == loop::BinaryOp::kByteDot) return Factors::kBytes;
  if (op == loop::BinaryOp::kByteDotSaturating) return Factors::kSaturatingBytes;
  return op == loop::BinaryOp::kInt16Dot ? Factors::kInt16s : Factors::kElements;
}

TileShape choose_tile(const Machine& machine, int64_t rows, int64_t lanes, int64_t vector, Terms terms) {
  const std::vector<TileShape> shapes = tile_shapes(machine, rows, lanes, vector, terms);
  return *std::ranges::min_element(shapes, {}, &TileShape::cost);
}

}  // namespace tenon::compiler::schedules
