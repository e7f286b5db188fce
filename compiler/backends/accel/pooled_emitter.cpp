#include "compiler/backends/accel/pooled_emitter.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::compiler::accel {

using spec::Memory;
namespace native = spec::native;

namespace {

Tiling map_tiling(const spec::Config& config, const Operands& map, Tiling t, int64_t cols) {
  const Contraction c = contraction(config, map.layer, map.input, map.output, map.rows_input);
  t.cols = cols;
  set_subtiles(config, c, t);
  return t;
}

}  // namespace

PooledEmitter::PooledEmitter(TileProgram& program, uint32_t index, std::span<const Operands> layers,
                             const Tiling& tiling)
    : p_(program),
      tiling_(tiling),
      plan_(pooled_plan(program.config_, layers, tiling)),
      pool_(layers.back()),
      map_(program, index, layers.front(),
           map_tiling(program.config_, layers.front(), tiling,
                      std::min(pool_.input.w, (tiling.cols - 1) * pool_.layer.stride_x + pool_.layer.kernel_w))),
      pooled_(program, index + static_cast<uint32_t>(layers.size()) - 1, layers.back(), tiling) {}

void PooledEmitter::run() {
  const Contraction& c = map_.contraction();
  const RegionTensor& output = pool_.output;
  const Range map_rows =
      pooled_positions(pool_.input.h, pool_.layer.kernel_h, pool_.layer.stride_y, pool_.layer.pad_top, {0, output.h});
  const auto strips = [&](const auto& f) {
    for (int64_t image = 0; image < c.n; ++image) {
      for_ranges(output.w, tiling_.cols, [&](Range cols) {
        const Range map_cols =
            pooled_positions(pool_.input.w, pool_.layer.kernel_w, pool_.layer.stride_x, pool_.layer.pad_left, cols);
        f(Strip{.image = image, .cols = cols, .map_rows = map_rows, .map_cols = map_cols});
      });
    }
  };
  const auto with_blocks = [&](Strip strip, Range blocks) {
    strip.blocks = blocks;
    emit_strip(strip);
  };
  if (tiling_.weights_outer) {
    for_ranges(c.out_blocks, tiling_.out_blocks,
               [&](Range blocks) { strips([&](const Strip& strip) { with_blocks(strip, blocks); }); });
  } else {
    strips([&](const Strip& strip) {
      for_ranges(c.out_blocks, tiling_.out_blocks, [&](Range blocks) { with_blocks(strip, blocks); });
    });
  }
  // The rows had all of acc.
  p_.acc_ = ScratchpadRing(p_.config_.depth(Memory::kAcc));
}

void PooledEmitter::emit_strip(Strip strip) {
  const Layer& pool = pool_.layer;
  strip.slot = next_slot_;
  int64_t done = 0;  // rows of outputs
  for_ranges(strip.map_rows.size(), tiling_.rows, [&](Range offsets) {
    const Range rows{strip.map_rows.begin + offsets.begin, strip.map_rows.begin + offsets.end};
    const AccTile acc{
        .base = acc_of_row(strip.slot + offsets.begin), .row = plan_.pitch, .block = strip.map_cols.size()};
    map_.emit_products({strip.image, strip.blocks, rows, strip.map_cols}, acc);
    int64_t ready = done;
    while (ready < pool_.output.h &&
           pooled_positions(pool_.input.h, pool.kernel_h, pool.stride_y, pool.pad_top, {ready, ready + 1}).end <=
               rows.end) {
      ++ready;
    }
    if (ready == done) return;
    const int64_t par = map_.load_parameters(strip.blocks);
    for (int64_t block = strip.blocks.begin; block < strip.blocks.end; ++block) {
      const int64_t most = std::max<int64_t>(p_.config_.depth(Memory::kOut) / 2 / strip.cols.size(), 1);
      for_ranges(ready - done, most, [&](Range part) {
        emit_outputs(strip, block, {done + part.begin, done + part.end}, par + block - strip.blocks.begin);
      });
    }
    done = ready;
  });
  next_slot_ += ceil_div(strip.map_rows.size(), tiling_.rows) * tiling_.rows;
}

void PooledEmitter::emit_outputs(const Strip& strip, int64_t block, Range rows, int64_t par) {
  const Layer& pool = pool_.layer;
  const int64_t cols = strip.cols.size(), out = p_.out_.take(rows.size() * cols);
  const auto text = [&](Range of_rows, Range of_cols) {
    return fmt::format("out {} rows {} cols {}", block, of_rows.str(), of_cols.str());
  };
  const auto runs_y = window_runs(pool_.input.h, pool.kernel_h, pool.stride_y, pool.pad_top, rows, false);
  const auto runs_x = window_runs(pool_.input.w, pool.kernel_w, pool.stride_x, pool.pad_left, strip.cols, true);
  for (const WindowRun& y : runs_y) {
    for (const WindowRun& x : runs_x) {
      native::Requantize rq = map_.requantize();
      rq.rows = y.windows.size();
      rq.cols = x.windows.size();
      rq.acc_base = acc_of_row(strip.slot + y.begin - strip.map_rows.begin) +
                    (block - strip.blocks.begin) * strip.map_cols.size() + x.begin - strip.map_cols.begin;
      rq.acc_pitch = loop_factor(rq.rows, pool.stride_y * plan_.pitch);
      rq.acc_step = loop_factor(rq.cols, pool.stride_x);
      rq.win_rows = y.extent;
      rq.win_cols = x.extent;
      rq.win_pitch = loop_factor(y.extent, plan_.pitch);
      rq.win_carry = x.carry ? 1 : 0;
      rq.out_base = out + (y.windows.begin - rows.begin) * cols + x.windows.begin - strip.cols.begin;
      rq.out_pitch = loop_factor(rq.rows, cols);
      rq.par_base = par;
      pooled_.push(rq, [&] {
        return fmt::format("requantize windows {}x{} {}", pool.kernel_h, pool.kernel_w, text(y.windows, x.windows));
      });
    }
  }
  Contraction stored = pooled_.contraction();
  stored.out_h = pool_.output.h;
  stored.out_w = pool_.output.w;
  const OutputTile whole{strip.image, strip.blocks, {0, stored.out_h}, {0, stored.out_w}};
  native::Move store =
      subtile_move(stored, native::MoveFunction::kOut, pool_.output_at, whole, block, rows, strip.cols);
  store.sram_base = out;
  pooled_.push(store, [&] { return "store " + text(rows, strip.cols); });
}

}  // namespace tenon::compiler::accel
