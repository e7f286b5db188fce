#include "compiler/backends/accel/pooled.h"

#include <algorithm>
#include <bit>

namespace tenon::compiler::accel {
namespace {

using spec::Memory;

Contraction map_of(const spec::Config& config, std::span<const Operands> layers) {
  const Operands& o = layers.front();
  return contraction(config, o.layer, o.input, o.output, o.rows_input);
}

// The map before the pool.
struct Map {
  int64_t h, w;
};
Map map_size(std::span<const Operands> layers) { return {layers.back().input.h, layers.back().input.w}; }

int64_t strip_columns(std::span<const Operands> layers, int64_t cols) {
  const Layer& pool = layers.back().layer;
  return std::min((cols - 1) * pool.stride_x + pool.kernel_w, map_size(layers).w);
}

Range map_rows(std::span<const Operands> layers) {
  const Layer& pool = layers.back().layer;
  return pooled_positions(map_size(layers).h, pool.kernel_h, pool.stride_y, pool.pad_top, {0, layers.back().output.h});
}

}  // namespace

bool can_fuse_pool(const spec::Config& config, std::span<const Operands> layers) {
  if (!config.window_maximum || layers.size() < 2) return false;
  const Operands &map = layers[0], &pool = layers[1];
  return pool.layer.kind == LayerKind::kMaxPool2d && map.layer.kind != LayerKind::kMaxPool2d &&
         pool.layer.input == map.layer.output && !map.layer.parameters.residual && map.input.rank == 4 &&
         map.output.rank == 4;
}

Range pooled_positions(int64_t size, int64_t kernel, int64_t stride, int64_t pad, Range windows) {
  return {std::max<int64_t>(windows.begin * stride - pad, 0),
          std::min((windows.end - 1) * stride - pad + kernel, size)};
}

std::vector<WindowRun> window_runs(int64_t size, int64_t kernel, int64_t stride, int64_t pad, Range windows,
                                   bool carries) {
  std::vector<WindowRun> runs;
  for (int64_t i = windows.begin; i < windows.end; ++i) {
    const Range at = pooled_positions(size, kernel, stride, pad, {i, i + 1});
    if (!runs.empty()) {
      WindowRun& run = runs.back();
      const int64_t next = run.begin + stride * run.windows.size();
      // The first window of a run with carry has no column of the padding, which is as good as one that it carries.
      const bool shares = carries && kernel == stride + 1 && run.extent == stride && at.size() == kernel &&
                          at.begin == next - 1 && (run.carry || run.windows.size() == 1);
      if (shares || (!run.carry && at.begin == next && at.size() == run.extent)) {
        run.carry |= shares;
        run.windows.end = i + 1;
        continue;
      }
    }
    runs.push_back({{i, i + 1}, at.begin, at.size(), false});
  }
  return runs;
}

PooledPlan pooled_plan(const spec::Config& config, std::span<const Operands> layers, const Tiling& t) {
  const Layer& pool = layers.back().layer;
  const Contraction c = map_of(config, layers);
  const auto depth = [&](Memory memory) { return config.depth(memory); };
  PooledPlan plan;
  const int64_t columns = strip_columns(layers, t.cols);
  plan.pitch = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(t.out_blocks * columns)));
  plan.slots = depth(Memory::kAcc) / plan.pitch;
  Tiling map = t;
  map.cols = columns;
  // Besides the rows of a tile, those that later windows share with them.
  plan.fits = t.rows + pool.kernel_h - 1 <= plan.slots && plan.slots % t.rows == 0 && plan.pitch <= kMaxFactor &&
              pool.stride_y * plan.pitch <= kMaxFactor && t.rows <= kMaxExtent && columns <= kMaxExtent &&
              t.cols <= std::max<int64_t>(depth(Memory::kOut) / 2, 1) && t.out_blocks <= depth(Memory::kPar) &&
              t.cols * c.lane_block <= kMaxRowBytes && chunk_fits(config, c, map);
  return plan;
}

namespace {

class PooledSearch {
 public:
  PooledSearch(const spec::Config& config, std::span<const Operands> layers, const spec::MemoryTiming& memory)
      : config_(config), layers_(layers), memory_(memory), c_(map_of(config, layers)), rows_(map_rows(layers)) {}

  std::vector<Tiling> run(size_t count) {
    for (const int64_t kh : candidate_sizes(c_.kernel_h)) {
      for (const int64_t kw : kh == 1 ? candidate_sizes(c_.kernel_w) : std::vector<int64_t>{c_.kernel_w}) {
        for (const int64_t steps : candidate_sizes(c_.steps)) try_chunk(kh, kw, steps);
      }
    }
    std::ranges::stable_sort(tilings_, {}, &Tiling::cycles);
    tilings_.resize(std::min(tilings_.size(), count));
    return std::move(tilings_);
  }

 private:
  void try_chunk(int64_t kernel_h, int64_t kernel_w, int64_t steps) {
    for (const int64_t blocks : candidate_sizes(c_.out_blocks)) {
      if (c_.diagonal && steps < c_.steps && blocks > 1) continue;  // a part of each block's inputs is not an interval
      for (int64_t rows = 1; rows < 2 * rows_.size(); rows *= 2) {
        for (const int64_t cols : candidate_sizes(layers_.back().output.w)) {
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

  void consider(Tiling t) {
    const PooledPlan plan = pooled_plan(config_, layers_, t);
    if (!plan.fits) return;
    t.cycles = cost(t, plan);
    tilings_.push_back(t);
  }

  double cost(Tiling& t, const PooledPlan& plan) const {
    const Layer& pool = layers_.back().layer;
    const RegionTensor& output = layers_.back().output;
    const double bus = config_.axi_bytes();
    const int64_t columns = strip_columns(layers_, t.cols);
    const auto strips = static_cast<double>(c_.n * ceil_div(output.w, t.cols));
    const auto groups = static_cast<double>(ceil_div(c_.out_blocks, t.out_blocks));
    const auto tiles = strips * static_cast<double>(ceil_div(rows_.size(), t.rows));
    const auto chunks = static_cast<double>(ceil_div(c_.steps, t.steps) * ceil_div(c_.kernel_h, t.kernel_h) *
                                            ceil_div(c_.kernel_w, t.kernel_w));
    const auto blocks = static_cast<double>(c_.out_blocks);
    const auto positions = strips * static_cast<double>(rows_.size() * columns) * blocks;
    Tiling map = t;
    map.cols = columns;
    const double commands = c_.own ? static_cast<double>(own_commands(c_, map, t.kernel_h, t.kernel_w)) : 1;
    const double products =
        c_.own ? strips * blocks * static_cast<double>(own_steps(c_, rows_.size(), columns, c_.kernel_h, c_.kernel_w))
               : positions * static_cast<double>(c_.steps * c_.kernel_h * c_.kernel_w);
    const double gemm = products + kInstructionCycles * tiles * blocks * chunks * commands;

    const bool carries = pool.kernel_w == pool.stride_x + 1 && pool.pad_left == 1 && t.cols == output.w;
    const auto reads =
        static_cast<double>(c_.n * output.h * output.w * pool.kernel_h * (carries ? pool.stride_x : pool.kernel_w)) *
        blocks * config_.requantizer_passes;
    // GEMM reads no accumulators where it begins sums; the other reads of the requantizer take its cycles.
    const double refused = std::max(0.0, reads - positions);
    const double commands_rq = tiles * blocks * (carries ? 1 : 2);
    const double requantize = reads + kRequantizeCycles * commands_rq;

    const Window w = window(c_, t.rows, columns, t.kernel_h, t.kernel_w);
    const int64_t in_blocks = chunk_input_blocks(c_, t.out_blocks, t.steps);
    const auto inputs = static_cast<double>(in_blocks * w.rows * w.cols);
    const auto weights = static_cast<double>(chunk_weights(c_, t.out_blocks, t.steps, t.kernel_h, t.kernel_w));
    const auto fits = [&](double amount, Memory memory) {
      return amount <= static_cast<double>(config_.depth(memory));
    };
    const bool keeps_input = !t.weights_outer && fits(inputs * chunks, Memory::kInp);
    const bool keeps_weights = fits(weights * chunks * (t.weights_outer ? 1 : groups), Memory::kWgt);
    const double input_loads = chunks * tiles * (keeps_input && !c_.diagonal ? 1 : groups);
    const double weight_loads = c_.shared ? 1 : chunks * groups * (keeps_weights ? 1 : tiles);
    // Unfolded vectors are written one a cycle, of fewer bytes.
    const double input_load =
        inputs * (c_.unfolded ? 1 : std::max(1.0, c_.block_in / bus)) +
        static_cast<double>(in_blocks) * (kInstructionCycles + kRowCycles * static_cast<double>(w.rows));
    const double weight_load = weights * static_cast<double>(c_.block_in * c_.block_out) / bus;
    t.instructions = tiles * blocks * chunks * commands + static_cast<double>(in_blocks) * input_loads + weight_loads +
                     commands_rq + tiles * blocks;
    const double load = input_load * input_loads;
    const double bytes = load + weight_load * weight_loads + t.instructions * kInstructionBytes / bus;
    double total = std::max({gemm + refused, requantize, bytes});
    if (!fits(2 * inputs, Memory::kInp) && tiles * chunks > 1) total += std::min(gemm, load);
    if (2 * t.rows + pool.kernel_h - 1 > plan.slots) total += std::min(gemm, requantize);
    return total + 0.02 * bytes + memory_.read_latency + input_load + weight_load + requantize / tiles;
  }

  const spec::Config& config_;
  const std::span<const Operands> layers_;
  const spec::MemoryTiming& memory_;
  const Contraction c_;
  const Range rows_;  // of the map that windows read
  std::vector<Tiling> tilings_;
};

}  // namespace

std::vector<Tiling> pooled_tilings(const spec::Config& config, std::span<const Operands> layers, size_t count,
                                   const spec::MemoryTiming& memory) {
  return PooledSearch(config, layers, memory).run(count);
}

}  // namespace tenon::compiler::accel
