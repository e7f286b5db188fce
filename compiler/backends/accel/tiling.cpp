// The search for a contraction's tile sizes, ranked by an estimate of cycles and traffic.
#include <algorithm>
#include <array>
#include <cassert>
#include <set>

#include "compiler/backends/accel/contraction.h"

namespace tenon::compiler::accel {
namespace {

using spec::Memory;

constexpr double kTrafficWeight = 0.02;  // of a cycle of the bus, where cycles are equal

class Search {
 public:
  Search(const spec::Config& config, const Contraction& c, const spec::MemoryTiming& memory)
      : config_(config), c_(c), memory_(memory) {}

  std::vector<Tiling> run(size_t count) {
    search();
    const auto cheaper = [](const Tiling& a, const Tiling& b) { return a.cycles < b.cycles; };
    std::stable_sort(tilings_.begin(), tilings_.end(), cheaper);
    // Alternately the best tiling of each split of reduction and outputs, and the best of each tile shape: the overall
    // best tilings are nearly identical.
    std::vector<Tiling> chosen{tilings_.front()};
    std::set<std::array<int64_t, 3>> loops{loop_kind(tilings_.front())}, shapes{shape_kind(tilings_.front())};
    auto loop = tilings_.begin(), shape = tilings_.begin();
    while (chosen.size() < count && (loop != tilings_.end() || shape != tilings_.end())) {
      while (loop != tilings_.end() && !loops.insert(loop_kind(*loop)).second) ++loop;
      if (loop != tilings_.end()) chosen.push_back(*loop);
      while (shape != tilings_.end() && !shapes.insert(shape_kind(*shape)).second) ++shape;
      if (shape != tilings_.end() && chosen.size() < count) chosen.push_back(*shape);
    }
    return chosen;
  }

 private:
  static std::array<int64_t, 3> loop_kind(const Tiling& t) { return {t.out_blocks, t.steps, t.weights_outer ? 1 : 0}; }
  static std::array<int64_t, 3> shape_kind(const Tiling& t) { return {t.rows, t.cols, t.weights_outer ? 1 : 0}; }

  void search() {
    // The whole kernel in one chunk, if that fits at all; else some of its rows, else some columns of one row.
    for (const int64_t kh : candidate_sizes(c_.kernel_h)) {
      if (try_kernel(kh, std::min(c_.kernel_w, kMaxExtent)); !tilings_.empty()) return;
    }
    for (const int64_t kw : candidate_sizes(c_.kernel_w)) {
      if (try_kernel(1, kw); !tilings_.empty()) return;
    }
    assert(false && "tiles of one vector fit every configuration");
  }

  void try_kernel(int64_t kernel_h, int64_t kernel_w) {
    for (const int64_t steps : candidate_sizes(c_.steps)) {
      for (const int64_t blocks : candidate_sizes(c_.out_blocks)) {
        if (c_.diagonal && steps < c_.steps && blocks > 1)
          continue;  // a part of each block's inputs is not an interval
        if (blocks > depth(Memory::kPar)) continue;
        if (chunk_weights(c_, blocks, steps, kernel_h, kernel_w) > depth(Memory::kWgt)) continue;
        for (const int64_t rows : candidate_sizes(c_.out_h)) {
          for (const int64_t cols : candidate_sizes(c_.out_w)) {
            if (blocks * rows * cols > depth(Memory::kAcc)) continue;
            for (const bool outer : {true, false}) {
              consider({.out_blocks = blocks,
                        .rows = rows,
                        .cols = cols,
                        .steps = steps,
                        .kernel_h = kernel_h,
                        .kernel_w = kernel_w,
                        .weights_outer = outer});
            }
          }
        }
      }
    }
  }

  void consider(Tiling t) {
    if (t.cols * c_.lane_block > kMaxRowBytes || !chunk_fits(config_, c_, t)) return;
    const Window w = window(c_, t.rows, t.cols, t.kernel_h, t.kernel_w);
    const int64_t in_blocks = chunk_input_blocks(c_, t.out_blocks, t.steps);
    const int64_t in_vectors = in_blocks * w.rows * w.cols;
    set_subtiles(config_, c_, t);
    t.cycles = cost(t, w, in_blocks, in_vectors);
    tilings_.push_back(t);
  }

  double cost(Tiling& t, const Window& w, int64_t in_blocks, int64_t in_vectors) const {
    const double bus = config_.axi_bytes();
    const auto tiles_o = static_cast<double>(ceil_div(c_.out_blocks, t.out_blocks));
    const auto tiles_s = static_cast<double>(c_.n * ceil_div(c_.out_h, t.rows) * ceil_div(c_.out_w, t.cols));
    const auto chunks = static_cast<double>(ceil_div(c_.steps, t.steps) * ceil_div(c_.kernel_h, t.kernel_h) *
                                            ceil_div(c_.kernel_w, t.kernel_w));
    const double tiles = tiles_o * tiles_s;
    const auto commands = c_.own ? static_cast<double>(own_commands(c_, t, t.kernel_h, t.kernel_w)) : 1;
    const double gemm =
        (c_.own ? tiles_s * static_cast<double>(c_.out_blocks * own_steps(c_, t.rows, t.cols, t.kernel_h, t.kernel_w)) *
                      chunks
                : static_cast<double>(c_.gemm_cycles())) +
        kInstructionCycles * tiles_s * static_cast<double>(c_.out_blocks) * chunks * commands;

    const int64_t weights = chunk_weights(c_, t.out_blocks, t.steps, t.kernel_h, t.kernel_w);
    const double input_load =
        static_cast<double>(in_vectors * c_.block_in) / bus +
        static_cast<double>(in_blocks) * (kInstructionCycles + kRowCycles * static_cast<double>(w.rows));
    // Computed weights are a row of memory for each step.
    const double weight_load = static_cast<double>(weights * c_.block_in * c_.block_out) / bus + kInstructionCycles +
                               (c_.computed_weights ? kRowCycles * static_cast<double>(t.steps) : 0);
    const auto fits = [&](double amount, Memory memory) { return amount <= static_cast<double>(depth(memory)); };
    // The count of loads of each chunk: data that is still resident in the ring is not loaded again.
    const auto inputs = static_cast<double>(in_vectors), wgt = static_cast<double>(weights);
    // Images with weights of their own are one after the other.
    const auto images = static_cast<double>(c_.computed_weights ? c_.n : 1);
    const bool keeps_input =
        t.weights_outer ? fits(inputs * chunks * tiles_s / images, Memory::kInp) : fits(inputs * chunks, Memory::kInp);
    const bool keeps_weights =
        t.weights_outer ? fits(wgt * chunks, Memory::kWgt) : fits(wgt * chunks * tiles_o, Memory::kWgt);
    const double input_loads = chunks * tiles_s * (keeps_input && !c_.diagonal ? 1 : tiles_o);
    const double weight_loads = c_.shared ? 1 : chunks * tiles_o * (keeps_weights ? images : tiles_s);
    const auto outputs = static_cast<double>(c_.n * c_.out_h * c_.out_w * c_.out_blocks);
    const double pieces = tiles_s * static_cast<double>(c_.out_blocks * ceil_div(t.rows, t.subtile_rows) *
                                                        ceil_div(t.cols, t.subtile_cols));
    const double store = outputs * static_cast<double>(c_.block_out) / bus + kInstructionCycles * pieces;
    const double requantize = outputs + kInstructionCycles * pieces;
    t.instructions = tiles * chunks * static_cast<double>(t.out_blocks) * commands +
                     static_cast<double>(in_blocks) * input_loads + weight_loads + (c_.residual ? 3 : 2) * pieces;
    const double read = input_load * input_loads + weight_load * weight_loads + (c_.residual ? store : 0);

    double total = std::max({gemm, read, store, requantize});
    // Work that cannot be double buffered is sequential.
    if (!fits(2 * inputs, Memory::kInp) && tiles * chunks > 1) total += std::min(gemm, input_load * input_loads);
    if (!fits(2 * wgt, Memory::kWgt) && !keeps_weights) total += std::min(gemm, weight_load * weight_loads);
    if (!fits(2.0 * static_cast<double>(t.out_blocks * t.rows * t.cols), Memory::kAcc) && tiles > 1)
      total += std::min(gemm, requantize);
    // The cost of filling and draining the pipeline; less traffic breaks ties.
    return total + kTrafficWeight * (read + store) + memory_.read_latency + input_load + weight_load +
           requantize / tiles + store / pieces;
  }

  int64_t depth(Memory memory) const { return config_.depth(memory); }

  const spec::Config& config_;
  const Contraction& c_;
  const spec::MemoryTiming& memory_;
  std::vector<Tiling> tilings_;
};

}  // namespace

std::vector<int64_t> candidate_sizes(int64_t extent) {
  std::vector<int64_t> list;
  for (int64_t parts = 1; parts < 2 * extent; parts = parts < 8 ? parts + 1 : parts + parts / 2) {
    const int64_t size = std::min(ceil_div(extent, parts), kMaxExtent);
    if (list.empty() || list.back() != size) list.push_back(size);
  }
  if (list.empty() || list.back() != 1) list.push_back(1);
  return list;
}

bool chunk_fits(const spec::Config& config, const Contraction& c, const Tiling& t) {
  const Window w = window(c, t.rows, t.cols, t.kernel_h, t.kernel_w);
  const int64_t in_blocks = chunk_input_blocks(c, t.out_blocks, t.steps);
  if (in_blocks * w.rows * w.cols > config.depth(Memory::kInp)) return false;
  if (chunk_weights(c, t.out_blocks, t.steps, t.kernel_h, t.kernel_w) > config.depth(Memory::kWgt)) return false;
  if (w.rows > 65535 || w.cols > 65535 || in_blocks > 65535) return false;
  if ((w.cols - 1) * w.col_step * c.pixel_bytes + c.block_in > kMaxRowBytes) return false;
  if (c.computed_weights && t.out_blocks * c.block_out * c.lane_block > kMaxRowBytes) return false;
  const int64_t row_factor = t.kernel_h > 1 ? c.stride_y : 1, col_factor = t.kernel_w > 1 ? c.stride_x : 1;
  return (t.steps == 1 || w.rows * w.cols <= kMaxFactor) && (t.kernel_h == 1 || c.dilation_y * w.cols <= kMaxFactor) &&
         (t.kernel_w == 1 || c.dilation_x <= kMaxFactor) && (t.rows == 1 || row_factor * w.cols <= kMaxFactor) &&
         (t.cols == 1 || col_factor <= kMaxFactor) && (t.steps == 1 || t.kernel_h * t.kernel_w <= kMaxFactor);
}

void set_subtiles(const spec::Config& config, const Contraction& c, Tiling& tiling) {
  int64_t size = config.depth(Memory::kOut);
  if (c.residual) size = std::min(size, config.depth(Memory::kRes));
  size = std::max<int64_t>(1, size / 2);
  tiling.subtile_cols = std::min(tiling.cols, size);
  tiling.subtile_rows = tiling.subtile_cols < tiling.cols ? 1 : std::min(tiling.rows, size / tiling.cols);
}

std::vector<Tiling> candidate_tilings(const spec::Config& config, const Contraction& c, size_t count,
                                      const spec::MemoryTiming& memory) {
  return Search(config, c, memory).run(count);
}

}  // namespace tenon::compiler::accel
