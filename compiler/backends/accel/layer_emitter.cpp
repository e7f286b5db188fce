#include "compiler/backends/accel/layer_emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "compiler/backends/accel/constants.h"

namespace tenon::compiler::accel {

using spec::Memory;
namespace native = spec::native;

LayerEmitter::LayerEmitter(TileProgram& program, uint32_t index, const Operands& operands, const Tiling& tiling)
    : p_(program),
      index_(index),
      operands_(operands),
      c_(accel::contraction(program.config_, operands.layer, operands.input, operands.output, operands.rows_input)),
      t_(tiling) {}

void LayerEmitter::run() {
  if (!c_.computed_weights) return run_images({0, c_.n});
  for (int64_t image = 0; image < c_.n; ++image) run_images({image, image + 1});  // each has its own weights
}

void LayerEmitter::run_images(Range images) {
  const auto positions = [&](const auto& f) {
    for (int64_t image = images.begin; image < images.end; ++image) {
      for_ranges(c_.out_h, t_.rows,
                 [&](Range rows) { for_ranges(c_.out_w, t_.cols, [&](Range cols) { f(image, rows, cols); }); });
    }
  };
  if (t_.weights_outer) {
    for_ranges(c_.out_blocks, t_.out_blocks, [&](Range blocks) {
      positions([&](int64_t image, Range rows, Range cols) { emit_tile({image, blocks, rows, cols}); });
    });
  } else {
    positions([&](int64_t image, Range rows, Range cols) {
      for_ranges(c_.out_blocks, t_.out_blocks, [&](Range blocks) { emit_tile({image, blocks, rows, cols}); });
    });
  }
}

void LayerEmitter::emit_tile(const OutputTile& tile) {
  const int64_t size = tile.rows.size() * tile.cols.size(), acc = p_.acc_.take(tile.blocks.size() * size);
  emit_products(tile, {.base = acc, .row = tile.cols.size(), .block = size});
  const int64_t par = load_parameters(tile.blocks);
  for (int64_t block = tile.blocks.begin; block < tile.blocks.end; ++block) {
    for_ranges(tile.rows.size(), t_.subtile_rows, [&](Range rows) {
      for_ranges(tile.cols.size(), t_.subtile_cols,
                 [&](Range cols) { emit_subtile(tile, block, rows, cols, acc, par + block - tile.blocks.begin); });
    });
  }
}

void LayerEmitter::emit_products(const OutputTile& tile, const AccTile& acc) {
  bool first = true;
  for_ranges(c_.steps, t_.steps, [&](Range steps) {
    for_ranges(c_.kernel_h, t_.kernel_h, [&](Range kernel_h) {
      for_ranges(c_.kernel_w, t_.kernel_w, [&](Range kernel_w) {
        emit_chunk(tile, {steps, kernel_h, kernel_w}, acc, first);
        first = false;
      });
    });
  });
}

void LayerEmitter::emit_chunk(const OutputTile& tile, const Chunk& chunk, const AccTile& acc, bool first) {
  const Window w = window(c_, tile.rows.size(), tile.cols.size(), chunk.kernel_h.size(), chunk.kernel_w.size());
  const Range blocks = input_blocks(tile, chunk);
  const int64_t inp = load_input(tile, chunk, w, blocks);
  const int64_t wgt = c_.computed_weights ? load_computed_weights(tile, chunk) : load_weights(tile.blocks, chunk);
  const int64_t kernel = c_.computed_weights ? tile.blocks.size() : chunk.kernel_h.size() * chunk.kernel_w.size();
  if (c_.own) return emit_own(tile, chunk, w, acc, inp, wgt, first);
  for (int64_t block = tile.blocks.begin; block < tile.blocks.end; ++block) {
    const int64_t nth = block - tile.blocks.begin;
    native::Gemm g;
    g.first = first ? 1 : 0;
    g.r0 = chunk.steps.size();
    g.r1 = chunk.kernel_h.size();
    g.r2 = chunk.kernel_w.size();
    g.y = tile.rows.size();
    g.x = tile.cols.size();
    g.dst_base = acc.base + nth * acc.block;
    g.src_base = inp + (first_input_block(block, chunk) - blocks.begin) * w.rows * w.cols;
    g.wgt_base = wgt + weight_index(tile.blocks, block, chunk);
    g.dst_y = loop_factor(g.y, acc.row);
    g.dst_x = loop_factor(g.x, 1);
    g.src_r0 = loop_factor(g.r0, w.rows * w.cols);
    g.src_r1 = loop_factor(g.r1, c_.dilation_y * w.cols);
    g.src_r2 = loop_factor(g.r2, c_.dilation_x);
    g.src_y = loop_factor(g.y, (g.r1 > 1 ? c_.stride_y : 1) * w.cols);
    g.src_x = loop_factor(g.x, g.r2 > 1 ? c_.stride_x : 1);
    g.wgt_r0 = loop_factor(g.r0, c_.shared ? 1 : kernel);
    g.wgt_r1 = loop_factor(g.r1, c_.shared ? 0 : chunk.kernel_w.size());
    g.wgt_r2 = loop_factor(g.r2, c_.shared ? 0 : 1);
    push(g, [&] { return fmt::format("gemm out {} {}", block, text(tile, chunk)); });
  }
}

void LayerEmitter::emit_window(const OutputTile& tile, const Chunk& chunk, const Window& w, const OwnWindow& window,
                               Range rows, const Bases& bases, bool first, int64_t block) {
  const bool dense_y = chunk.kernel_h.size() > 1, dense_x = chunk.kernel_w.size() > 1;
  const int64_t row = (dense_y ? c_.dilation_y : 1) * w.cols, col = dense_x ? c_.dilation_x : 1;
  const int64_t next_row = (dense_y ? c_.stride_y : 1) * w.cols, next_col = dense_x ? c_.stride_x : 1;
  const int64_t phases = own_phases(c_, window, tile.cols.size(), chunk.kernel_w.size());
  for (int64_t phase = 0; phase < phases; ++phase) {
    native::Gemm g;
    g.own = 1;
    g.first = first ? 1 : 0;
    g.r0 = 1;
    g.r1 = window.rows;
    g.r2 = window.cols;
    g.y = rows.size();
    g.x = ceil_div(tile.cols.size() - phase, phases);
    g.dst_base = bases.dst + rows.begin * bases.dst_row + phase;
    g.src_base = bases.src + rows.begin * next_row + window.row * row + window.col * col + phase * next_col;
    g.wgt_base = bases.wgt;
    g.dst_y = loop_factor(g.y, bases.dst_row);
    g.dst_x = loop_factor(g.x, phases);
    g.src_r1 = loop_factor(g.r1, row);
    g.src_r2 = loop_factor(g.r2, col);
    g.src_y = loop_factor(g.y, next_row);
    g.src_x = loop_factor(g.x, phases * next_col);
    push(g, [&] {
      return fmt::format("gemm out {} own {}x{} from {},{} {}", block, window.rows, window.cols, window.row, window.col,
                         text(tile, chunk));
    });
  }
}

void LayerEmitter::emit_own(const OutputTile& tile, const Chunk& chunk, const Window& w, const AccTile& acc,
                            int64_t inp, int64_t wgt, bool first) {
  const std::vector<OwnWindow> windows = own_windows(c_, chunk.kernel_h.size(), chunk.kernel_w.size());
  const auto count = static_cast<int64_t>(windows.size());
  for (int64_t block = tile.blocks.begin; block < tile.blocks.end; ++block) {
    const int64_t step = own_command_rows(c_, t_, chunk.kernel_h.size(), chunk.kernel_w.size());
    for_ranges(tile.rows.size(), step, [&](Range rows) {
      for (size_t i = 0; i < windows.size(); ++i) {
        emit_window(tile, chunk, w, windows[i], rows,
                    {.dst = acc.base + (block - tile.blocks.begin) * acc.block,
                     .dst_row = acc.row,
                     .src = inp + (block - tile.blocks.begin) * w.rows * w.cols,
                     .wgt = wgt + (block - tile.blocks.begin) * count + static_cast<int64_t>(i)},
                    first && i == 0, block);
      }
    });
  }
}

Range LayerEmitter::input_blocks(const OutputTile& tile, const Chunk& chunk) const {
  if (!c_.diagonal) return chunk.steps;
  const int64_t last = tile.blocks.end - 1;
  return {first_input_block(tile.blocks.begin, chunk), first_input_block(last, chunk) + chunk.steps.size()};
}

int64_t LayerEmitter::first_input_block(int64_t out_block, const Chunk& chunk) const {
  if (!c_.diagonal) return chunk.steps.begin;
  return out_block / c_.group_out * c_.group_in + chunk.steps.begin;
}

int64_t LayerEmitter::load_input(const OutputTile& tile, const Chunk& chunk, const Window& w, Range blocks) {
  const auto [base, resident] = p_.inp_.find_or_take({index_, tile.image, tile.rows.begin, tile.cols.begin,
                                                      blocks.begin, chunk.kernel_h.begin, chunk.kernel_w.begin, w.rows},
                                                     blocks.size() * w.rows * w.cols);
  if (resident) return base;
  for (const InputMove& part : input_moves(c_, operands_.input_at, tile, chunk, w, blocks, base)) {
    push(part.move, [&] { return fmt::format("load inp {} {}", part.blocks.str(), text(tile, chunk)); });
  }
  return base;
}

int64_t LayerEmitter::weight_index(Range blocks, int64_t block, const Chunk& chunk) const {
  if (c_.computed_weights) return block - blocks.begin;
  if (!c_.shared) return (block - blocks.begin) * chunk.steps.size() * chunk.kernel_h.size() * chunk.kernel_w.size();
  return c_.block_in > c_.block_out && blocks.size() > 1 ? block % c_.group_out : 0;
}

int64_t LayerEmitter::load_weights(Range blocks, const Chunk& chunk) {
  const int64_t key_block = c_.shared ? 0 : blocks.begin;
  auto& cached = packed_[{key_block, blocks.size(), chunk.steps.begin, chunk.kernel_h.begin, chunk.kernel_w.begin,
                          c_.shared ? blocks.begin % c_.group_out : 0}];
  if (cached.second == 0) {
    const int64_t size =
        chunk_weights(c_, blocks.size(), chunk.steps.size(), chunk.kernel_h.size(), chunk.kernel_w.size()) *
        c_.block_in * c_.block_out;
    cached = {constant(size, [&] { return pack_weights(c_, operands_, blocks, chunk); }), size};
  }
  const auto [offset, size] = cached;
  const int64_t element = c_.block_in * c_.block_out, count = size / element;
  const auto [base, resident] = p_.wgt_.find_or_take({offset}, count);
  if (resident) return base;
  push(dense_move(native::MoveFunction::kWgt, base, offset, count, element, c_.block_in), [&] {
    return fmt::format("load wgt out {} in {} kernel {}x{}", blocks.str(), chunk.steps.str(), chunk.kernel_h.str(),
                       chunk.kernel_w.str());
  });
  return base;
}

int64_t LayerEmitter::load_computed_weights(const OutputTile& tile, const Chunk& chunk) {
  // The key of constants is an offset and zeros.
  const auto [base, resident] = p_.wgt_.find_or_take({tile.image, index_ + 1, tile.blocks.begin, chunk.steps.begin},
                                                     tile.blocks.size() * chunk.steps.size());
  if (resident) return base;
  for (const native::Move& move : weight_moves(c_, operands_.weights_at, tile, chunk.steps, base)) {
    push(move, [&] {
      return fmt::format("load wgt rows of out {} in {} image {}", tile.blocks.str(), chunk.steps.str(), tile.image);
    });
  }
  return base;
}

template <class F>
int64_t LayerEmitter::constant(int64_t size, const F& pack) {
  if (p_.sketch_) return p_.constants_.reserve(size);
  const std::vector<std::byte> bytes = pack();
  assert(static_cast<int64_t>(bytes.size()) == size);
  return p_.constants_.add(bytes);
}

int64_t LayerEmitter::load_parameters(Range blocks) {
  const int64_t element = c_.block_out * spec::kChannelParameterBytes;
  auto& cached = parameters_[{blocks.begin, blocks.size()}];
  if (cached.second == 0) {
    cached.second = blocks.size() * element;
    cached.first = constant(cached.second, [&] { return pack_parameters(c_, operands_, blocks); });
  }
  const int64_t offset = cached.first;
  const auto [base, resident] = p_.par_.find_or_take({offset}, blocks.size());
  if (resident) return base;
  push(dense_move(native::MoveFunction::kPar, base, offset, blocks.size(), element, c_.block_out),
       [&] { return fmt::format("load par out {}", blocks.str()); });
  return base;
}

void LayerEmitter::emit_subtile(const OutputTile& tile, int64_t block, Range rows, Range cols, int64_t acc,
                                int64_t par) {
  const auto extent_text = [&] {
    return fmt::format("out {} rows {} cols {}", block, shifted(rows, tile.rows), shifted(cols, tile.cols));
  };
  const spec::LayerParameters& parameters = operands_.layer.parameters;
  const int64_t size = rows.size() * cols.size();
  native::Requantize rq = requantize();
  if (c_.residual) {
    native::Move load = subtile_move(c_, native::MoveFunction::kRes, operands_.residual_at, tile, block, rows, cols);
    load.sram_base = rq.res_base = p_.res_.take(size);
    push(load, [&] { return "load res " + extent_text(); });
    rq.residual = 1;
    rq.res_pitch = rows.size() > 1 ? cols.size() : 0;
    rq.r_zero = parameters.r_zero;
    rq.r_multiplier = parameters.r_multiplier;
    rq.r_shift = parameters.r_shift;
  }
  rq.rows = rows.size();
  rq.cols = cols.size();
  rq.acc_base = acc + ((block - tile.blocks.begin) * tile.rows.size() + rows.begin) * tile.cols.size() + cols.begin;
  rq.acc_pitch = rows.size() > 1 ? tile.cols.size() : 0;
  rq.acc_step = 1;
  rq.out_base = p_.out_.take(size);
  rq.out_pitch = rows.size() > 1 ? cols.size() : 0;
  rq.par_base = par;
  push(rq, [&] { return "requantize " + extent_text(); });
  native::Move store = subtile_move(c_, native::MoveFunction::kOut, operands_.output_at, tile, block, rows, cols);
  store.sram_base = rq.out_base;
  push(store, [&] { return "store " + extent_text(); });
}

native::Requantize LayerEmitter::requantize() const {
  const spec::LayerParameters& parameters = operands_.layer.parameters;
  native::Requantize rq;
  rq.v_lo = parameters.v_lo;
  rq.v_hi = parameters.v_hi;
  rq.zero = parameters.zero;
  rq.lo = parameters.lo;
  rq.hi = parameters.hi;
  return rq;
}

std::string LayerEmitter::shifted(Range range, Range tile) {
  return Range{range.begin + tile.begin, range.end + tile.begin}.str();
}

std::string LayerEmitter::text(const OutputTile& tile, const Chunk& chunk) const {
  return fmt::format("rows {} cols {} in {} kernel {}x{}{}", tile.rows.str(), tile.cols.str(), chunk.steps.str(),
                     chunk.kernel_h.str(), chunk.kernel_w.str(), c_.n > 1 ? fmt::format(" image {}", tile.image) : "");
}

}  // namespace tenon::compiler::accel
