#include "compiler/backends/accel/fused_emitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/accelerator_program.h"

namespace tenon::compiler::accel {

using spec::Memory;
namespace native = spec::native;

FusedEmitter::FusedEmitter(TileProgram& program, uint32_t index, std::span<const Operands> layers,
                           const FusedTiling& tiling)
    : p_(program),
      tiling_(tiling),
      plan_(fused_plan(program.config_, layers, tiling)),
      results_(tiling.rows * tiling.cols) {
  const auto make = [&](size_t layer, std::optional<LayerEmitter>& emitter) {
    const Contraction c =
        contraction(p_.config_, layers[layer].layer, layers[layer].input, layers[layer].output, false);
    Tiling t{.out_blocks = c.out_blocks,
             .rows = tiling.rows,
             .cols = tiling.cols,
             .steps = c.steps,
             .kernel_h = c.kernel_h,
             .kernel_w = c.kernel_w};
    set_subtiles(p_.config_, c, t);
    emitter.emplace(p_, index + static_cast<uint32_t>(layer), layers[layer], t);
  };
  if (layers.size() == 3) make(0, first_);
  make(layers.size() - 2, middle_);
  make(layers.size() - 1, last_);
  for (std::vector<bool>& padded : padded_) padded.resize(static_cast<size_t>(plan_.hidden));
}

void FusedEmitter::run() {
  // The block has its own ranges of inp and acc; what they held is not resident any more.
  p_.inp_ = ScratchpadRing(plan_.input_begin, p_.config_.depth(Memory::kInp));
  const std::vector<Item> all = items();
  for (size_t i = 0; i < all.size() + 2; ++i) {
    if (first_ && i < all.size()) expand(all[i]);
    // With one buffer of results, those of the next group follow the products of this one.
    const bool projects = i >= 2 && all[i - 2].block + 1 == group(all[i - 2].block).end;
    if (projects && tiling_.buffers == 1) project(all[i - 2]);
    if (i >= 1 && i - 1 < all.size()) depthwise(all[i - 1]);
    if (projects && tiling_.buffers > 1) project(all[i - 2]);
  }
  p_.inp_ = ScratchpadRing(p_.config_.depth(Memory::kInp));
  p_.acc_ = ScratchpadRing(p_.config_.depth(Memory::kAcc));
}

std::vector<FusedEmitter::Item> FusedEmitter::items() const {
  const Contraction &middle = middle_->contraction(), &last = last_->contraction();
  std::vector<Item> items;
  int64_t tiles = 0, groups = 0;
  for (int64_t image = 0; image < last.n; ++image) {
    for_ranges(last.out_h, tiling_.rows, [&](Range rows) {
      for_ranges(last.out_w, tiling_.cols, [&](Range cols) {
        Item item{.tile = {image, {0, last.out_blocks}, rows, cols}};
        item.nth_tile = tiles++;
        item.window = window(middle, rows.size(), cols.size(), middle.kernel_h, middle.kernel_w);
        const auto inside = [](int64_t begin, int64_t extent, int64_t size, int64_t& before) {
          const Range range{std::clamp<int64_t>(begin, 0, size), std::clamp<int64_t>(begin + extent, 0, size)};
          before = range.begin - begin;
          return range;
        };
        item.columns = middle.kernel_w > 1
                           ? (cols.size() - 1) * middle.stride_x + (middle.kernel_w - 1) * middle.dilation_x + 1
                           : cols.size();
        item.rows = inside(rows.begin * middle.stride_y - middle.pad_top, item.window.rows, middle.height, item.top);
        item.cols = inside(cols.begin * middle.stride_x - middle.pad_left, item.columns, middle.width, item.left);
        for (item.block = 0; item.block < middle.out_blocks; ++item.block) {
          item.buffer = static_cast<int64_t>(items.size() % 2);
          item.nth_group = groups;
          items.push_back(item);
          if (item.block + 1 == group(item.block).end) ++groups;
        }
      });
    });
  }
  return items;
}

Range FusedEmitter::group(int64_t block) const {
  const int64_t begin = block / tiling_.group * tiling_.group;
  return {begin, std::min(begin + tiling_.group, middle_->contraction().out_blocks)};
}

Range FusedEmitter::weight_group(int64_t block) const {
  const Range all = group(block);
  const int64_t begin = all.begin + (block - all.begin) / plan_.weight_group * plan_.weight_group;
  return {begin, std::min(begin + plan_.weight_group, all.end)};
}

void FusedEmitter::pad(const Item& item) {
  const int64_t pitch = item.window.cols, read = item.left + item.cols.size();
  const Contraction& middle = middle_->contraction();
  std::vector<bool>& padded = padded_[static_cast<size_t>(item.buffer)];
  std::vector<Range> runs;  // of vectors without the pad value that need it; they may contain others that have it
  bool open = false;
  for (int64_t y = 0; y < item.window.rows; ++y) {
    const bool row_inside = y >= item.top && y < item.top + item.rows.size();
    for (int64_t x = 0; x < pitch; ++x) {
      const int64_t at = y * pitch + x;
      if (row_inside && x >= item.left && x < read) open = false;  // RQ writes it
      else if (x < item.columns && !padded[static_cast<size_t>(at)]) {
        if (!open) runs.push_back({at, at});
        open = true;
        runs.back().end = at + 1;
      }
    }
  }
  constexpr size_t kMostRuns = 2;  // a MOVE each; else one for the whole window
  if (runs.size() > kMostRuns) runs = {{0, item.window.rows * pitch}};
  for (const Range& run : runs) {
    native::Move move;
    move.function = static_cast<int>(native::MoveFunction::kInp);
    move.base = runtime::kBaseConstants;
    move.sram_base = hidden_at(item) + run.begin;
    move.rows = 1;
    move.vectors = run.size();
    move.pad_value = middle.pad_value;
    middle_->push(
        move, [&] { return fmt::format("pad inp {} rows {} cols {}", item.block, item.rows.str(), item.cols.str()); });
    std::fill(padded.begin() + run.begin, padded.begin() + run.end, true);
  }
  for (int64_t y = item.top; item.cols.size() > 0 && y < item.top + item.rows.size(); ++y) {
    std::fill_n(padded.begin() + y * pitch + item.left, item.cols.size(), false);
  }
}

void FusedEmitter::expand(const Item& item) {
  const Contraction& c = first_->contraction();
  pad(item);
  const int64_t size = item.rows.size() * item.cols.size();
  if (size == 0) return;
  const OutputTile tile{item.tile.image, {item.block, item.block + 1}, item.rows, item.cols};
  const Chunk chunk{{0, c.steps}, {0, 1}, {0, 1}};
  const int64_t inp =
      first_->load_input(tile, chunk, accel::window(c, item.rows.size(), item.cols.size(), 1, 1), chunk.steps);
  const Range loaded = weight_group(item.block);
  const int64_t wgt = first_->load_weights(loaded, chunk);
  native::Gemm g;
  g.first = 1;
  g.r0 = c.steps;
  g.r1 = g.r2 = 1;
  g.y = item.rows.size();
  g.x = item.cols.size();
  g.dst_base = acc_of_hidden(item);
  g.src_base = inp;
  g.wgt_base = wgt + (item.block - loaded.begin) * c.steps;
  g.dst_y = g.src_y = loop_factor(g.y, g.x);
  g.dst_x = g.src_x = loop_factor(g.x, 1);
  g.src_r0 = loop_factor(g.r0, size);
  g.wgt_r0 = loop_factor(g.r0, 1);
  first_->push(g, [&] { return fmt::format("gemm out {} {}", item.block, first_->text(tile, chunk)); });

  native::Requantize rq = first_->requantize();
  rq.to_inp = 1;
  rq.rows = g.y;
  rq.cols = g.x;
  rq.acc_base = g.dst_base;
  rq.acc_pitch = loop_factor(g.y, g.x);
  rq.acc_step = 1;
  rq.out_base = hidden_at(item) + item.top * item.window.cols + item.left;
  rq.out_pitch = loop_factor(g.y, item.window.cols);
  rq.par_base = first_->load_parameters(loaded) + item.block - loaded.begin;
  first_->push(rq, [&] { return fmt::format("requantize to inp out {} {}", item.block, first_->text(tile, chunk)); });
}

void FusedEmitter::depthwise(const Item& item) {
  const Contraction& c = middle_->contraction();
  const OutputTile tile{item.tile.image, {item.block, item.block + 1}, item.tile.rows, item.tile.cols};
  const Chunk chunk{{0, 1}, {0, c.kernel_h}, {0, c.kernel_w}};
  const int64_t inp = first_ ? hidden_at(item) : middle_->load_input(tile, chunk, item.window, tile.blocks);
  const Range loaded = weight_group(item.block);
  const auto windows = static_cast<int64_t>(own_windows(c, c.kernel_h, c.kernel_w).size());
  const int64_t wgt = middle_->load_weights(loaded, chunk) + (item.block - loaded.begin) * windows;
  middle_->emit_own(tile, chunk, item.window, {.base = acc_of_result(item), .row = tile.cols.size(), .block = results_},
                    inp, wgt, true);

  native::Requantize rq = middle_->requantize();
  rq.to_inp = 1;
  rq.rows = tile.rows.size();
  rq.cols = tile.cols.size();
  rq.acc_base = acc_of_result(item);
  rq.acc_pitch = rq.out_pitch = rq.rows > 1 ? rq.cols : 0;
  rq.acc_step = 1;
  rq.out_base = group_at(item) + (item.block - group(item.block).begin) * results_;
  rq.par_base = middle_->load_parameters(loaded) + item.block - loaded.begin;
  middle_->push(rq, [&] { return fmt::format("requantize to inp out {} {}", item.block, middle_->text(tile, chunk)); });
}

void FusedEmitter::project(const Item& item) {
  const Range group = this->group(item.block);
  const bool ends = group.end == middle_->contraction().out_blocks;
  const Chunk chunk{group, {0, 1}, {0, 1}};
  const int64_t par = ends ? last_->load_parameters(item.tile.blocks) : 0;
  for_ranges(item.tile.blocks.size(), plan_.output_group, [&](Range blocks) {
    const int64_t wgt = last_->load_weights(blocks, chunk);
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      const OutputTile tile{item.tile.image, {block, block + 1}, item.tile.rows, item.tile.cols};
      native::Gemm g;
      g.first = group.begin == 0 ? 1 : 0;
      g.r0 = group.size();
      g.r1 = g.r2 = 1;
      g.y = tile.rows.size();
      g.x = tile.cols.size();
      g.dst_base = acc_of_output(item, block);
      g.src_base = group_at(item);
      g.wgt_base = wgt + (block - blocks.begin) * group.size();
      g.dst_y = g.src_y = loop_factor(g.y, g.x);
      g.dst_x = g.src_x = loop_factor(g.x, 1);
      g.src_r0 = loop_factor(g.r0, results_);
      g.wgt_r0 = loop_factor(g.r0, 1);
      last_->push(g, [&] { return fmt::format("gemm out {} {}", block, last_->text(tile, chunk)); });
      if (!ends) continue;
      for_ranges(tile.rows.size(), last_->tiling().subtile_rows, [&](Range rows) {
        for_ranges(tile.cols.size(), last_->tiling().subtile_cols,
                   [&](Range cols) { last_->emit_subtile(tile, block, rows, cols, g.dst_base, par + block); });
      });
    }
  });
}

}  // namespace tenon::compiler::accel
