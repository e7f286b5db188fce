#include "compiler/backends/accel/tile_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "compiler/backends/accel/constants.h"
#include "runtime/accelerator_program.h"

namespace tenon::compiler::accel {
namespace {

using spec::Memory;
namespace native = spec::native;
constexpr int64_t kMaxRowBytes = 65535;

// Calls f for consecutive ranges of at most `step` that cover [0, extent).
template <class F>
void for_ranges(int64_t extent, int64_t step, const F& f) {
  for (int64_t begin = 0; begin < extent; begin += step) f(Range{begin, std::min(begin + step, extent)});
}

struct OutputTile {
  int64_t image;
  Range blocks, rows, cols;
};
}  // namespace

TileProgram::TileProgram(const spec::Config& config, bool sketch)
    : config_(config),
      sketch_(sketch),
      inp_(config.depth(Memory::kInp)),
      wgt_(config.depth(Memory::kWgt)),
      acc_(config.depth(Memory::kAcc)),
      out_(config.depth(Memory::kOut)),
      par_(config.depth(Memory::kPar)),
      res_(config.depth(Memory::kRes)) {}

class TileProgram::LayerEmitter {
 public:
  LayerEmitter(TileProgram& program, uint32_t index, const Operands& operands, const Tiling& tiling)
      : p_(program),
        index_(index),
        operands_(operands),
        c_(contraction(program.config_, operands.layer, operands.input, operands.output, operands.rows_input)),
        t_(tiling) {}

  void run() {
    const auto positions = [&](const auto& f) {
      for (int64_t image = 0; image < c_.n; ++image) {
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

 private:
  void emit_tile(const OutputTile& tile) {
    const int64_t acc = p_.acc_.take(tile.blocks.size() * tile.rows.size() * tile.cols.size());
    bool first = true;
    for_ranges(c_.steps, t_.steps, [&](Range steps) {
      for_ranges(c_.kernel_h, t_.kernel_h, [&](Range kernel_h) {
        for_ranges(c_.kernel_w, t_.kernel_w, [&](Range kernel_w) {
          emit_chunk(tile, {steps, kernel_h, kernel_w}, acc, first);
          first = false;
        });
      });
    });
    const int64_t par = load_parameters(tile.blocks);
    for (int64_t block = tile.blocks.begin; block < tile.blocks.end; ++block) {
      for_ranges(tile.rows.size(), t_.piece_rows, [&](Range rows) {
        for_ranges(tile.cols.size(), t_.piece_cols,
                   [&](Range cols) { emit_piece(tile, block, rows, cols, acc, par + block - tile.blocks.begin); });
      });
    }
  }

  void emit_chunk(const OutputTile& tile, const Chunk& chunk, int64_t acc, bool first) {
    const Window w = window(c_, tile.rows.size(), tile.cols.size(), chunk.kernel_h.size(), chunk.kernel_w.size());
    const Range blocks = input_blocks(tile, chunk);
    const int64_t inp = load_input(tile, chunk, w, blocks);
    const int64_t wgt = load_weights(tile.blocks, chunk);
    const int64_t kernel = chunk.kernel_h.size() * chunk.kernel_w.size();
    for (int64_t block = tile.blocks.begin; block < tile.blocks.end; ++block) {
      const int64_t nth = block - tile.blocks.begin;
      native::Gemm g;
      g.first = first ? 1 : 0;
      g.r0 = chunk.steps.size();
      g.r1 = chunk.kernel_h.size();
      g.r2 = chunk.kernel_w.size();
      g.y = tile.rows.size();
      g.x = tile.cols.size();
      g.dst_base = acc + nth * g.y * g.x;
      g.src_base = inp + (first_input_block(block, chunk) - blocks.begin) * w.rows * w.cols;
      g.wgt_base = wgt + weight_index(tile.blocks, block, chunk);
      // The factor of a loop with one trip is left 0: it may not fit its field.
      const auto factor = [](int64_t extent, int64_t value) { return extent > 1 ? value : 0; };
      g.dst_y = factor(g.y, g.x);
      g.dst_x = factor(g.x, 1);
      g.src_r0 = factor(g.r0, w.rows * w.cols);
      g.src_r1 = factor(g.r1, c_.dilation_y * w.cols);
      g.src_r2 = factor(g.r2, c_.dilation_x);
      g.src_y = factor(g.y, (g.r1 > 1 ? c_.stride_y : 1) * w.cols);
      g.src_x = factor(g.x, g.r2 > 1 ? c_.stride_x : 1);
      g.wgt_r0 = factor(g.r0, c_.shared ? 1 : kernel);
      g.wgt_r1 = factor(g.r1, c_.shared ? 0 : chunk.kernel_w.size());
      g.wgt_r2 = factor(g.r2, c_.shared ? 0 : 1);
      push(g, [&] { return fmt::format("gemm out {} {}", block, text(tile, chunk)); });
    }
  }

  // The input blocks that a chunk of a tile reads.
  Range input_blocks(const OutputTile& tile, const Chunk& chunk) const {
    if (!c_.diagonal) return chunk.steps;
    const int64_t last = tile.blocks.end - 1;
    return {first_input_block(tile.blocks.begin, chunk), first_input_block(last, chunk) + chunk.steps.size()};
  }
  int64_t first_input_block(int64_t out_block, const Chunk& chunk) const {
    if (!c_.diagonal) return chunk.steps.begin;
    return out_block / c_.out_per_in() * c_.in_per_out() + chunk.steps.begin;
  }

  int64_t load_input(const OutputTile& tile, const Chunk& chunk, const Window& w, Range blocks) {
    const auto [base, held] = p_.inp_.find_or_take({index_, tile.image, tile.rows.begin, tile.cols.begin, blocks.begin,
                                                    chunk.kernel_h.begin, chunk.kernel_w.begin, 0},
                                                   blocks.size() * w.rows * w.cols);
    if (held) return base;

    native::Move move;
    move.function = static_cast<int>(native::MoveFunction::kInp);
    move.base = operands_.input_at.base;
    move.pad_value = c_.pad_value;
    move.rows = w.rows;
    move.vectors = w.cols;
    move.x_step = w.col_step * c_.pixel_bytes;
    const int64_t pitch = c_.width * c_.pixel_bytes;
    move.y_step = w.row_step * pitch;

    // Rows above the map are `top`; the first row that is inside gives the offset.
    const int64_t row = tile.rows.begin * c_.stride_y - c_.pad_top + chunk.kernel_h.begin * c_.dilation_y;
    move.top = std::min(row < 0 ? ceil_div(-row, w.row_step) : 0, w.rows);
    const int64_t first_row = row + move.top * w.row_step;
    const int64_t rows_below = first_row < c_.height ? ceil_div(c_.height - first_row, w.row_step) : 0;
    move.source_rows = std::min(w.rows - move.top, rows_below);
    int64_t offset = operands_.input_at.offset + tile.image * c_.image_bytes;
    if (move.source_rows > 0) offset += first_row * pitch;
    if (move.source_rows == 0) move.top = 0;
    const int64_t col = tile.cols.begin * c_.stride_x - c_.pad_left + chunk.kernel_w.begin * c_.dilation_x;

    const bool whole_rows = !c_.unfolded && w.col_step == 1 && w.row_step == 1 && col == 0 && w.cols == c_.width &&
                            move.source_rows == w.rows && w.rows * pitch <= kMaxRowBytes &&
                            w.rows * w.cols <= kMaxRowBytes;
    if (whole_rows) {  // one run of memory
      move.vectors = w.rows * w.cols;
      move.rows = move.source_rows = 1;
    }
    const auto place = [&](int64_t block) {
      const int64_t k = col * c_.pixel_bytes + c_.block_shift(block);
      const int64_t needed = (move.vectors - 1) * move.x_step + c_.block_in;  // bytes from the first vector's first on
      const int64_t row_bytes = (whole_rows ? w.rows : 1) * pitch;
      const int64_t inside = std::min(row_bytes - std::max<int64_t>(k, 0), needed + std::min<int64_t>(k, 0));
      move.row_bytes = std::max<int64_t>(0, inside);
      move.left = move.row_bytes > 0 ? std::max<int64_t>(-k, 0) : 0;
      move.offset = offset + c_.block_offset(block) + (move.row_bytes > 0 ? std::max<int64_t>(k, 0) : 0);
      move.valid = c_.block_valid(block);
    };

    const int64_t per_block = w.rows * w.cols;
    const int64_t next = blocks.size() > 1 ? c_.block_offset(blocks.begin + 1) - c_.block_offset(blocks.begin) : 0;
    const bool even = c_.lane_block == c_.block_in || c_.plane_bytes == c_.lane_block;
    if (blocks.size() > 1 && move.rows == 1 && move.source_rows == 1 && !c_.unfolded && even) {
      // One row a block: blocks take the place of rows.
      place(blocks.begin);
      move.rows = move.source_rows = blocks.size();
      move.y_step = next;
      move.sram_base = base;
      push(move, [&] { return fmt::format("load inp {}..{} {}", blocks.begin, blocks.end - 1, text(tile, chunk)); });
      return base;
    }
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      place(block);
      move.sram_base = base + (block - blocks.begin) * per_block;
      push(move, [&] { return fmt::format("load inp {} {}", block, text(tile, chunk)); });
    }
    return base;
  }

  // The place of a block's weights among those of the tile.
  int64_t weight_index(Range blocks, int64_t block, const Chunk& chunk) const {
    if (!c_.shared) return (block - blocks.begin) * chunk.steps.size() * chunk.kernel_h.size() * chunk.kernel_w.size();
    return c_.block_in > c_.block_out && blocks.size() > 1 ? block % c_.out_per_in() : 0;
  }

  int64_t load_weights(Range blocks, const Chunk& chunk) {
    const int64_t key_block = c_.shared ? 0 : blocks.begin;
    auto& cached = packed_[{key_block, blocks.size(), chunk.steps.begin, chunk.kernel_h.begin, chunk.kernel_w.begin,
                            c_.shared ? blocks.begin % c_.out_per_in() : 0}];
    if (cached.second == 0) {
      const int64_t size =
          chunk_weights(c_, blocks.size(), chunk.steps.size(), chunk.kernel_h.size(), chunk.kernel_w.size()) *
          c_.block_in * c_.block_out;
      cached = {constant(size, [&] { return pack_weights(c_, operands_, blocks, chunk); }), size};
    }
    const auto [offset, size] = cached;
    const int64_t element = c_.block_in * c_.block_out, count = size / element;
    const auto [base, held] = p_.wgt_.find_or_take({offset}, count);
    if (held) return base;
    native::Move move;
    move.function = static_cast<int>(native::MoveFunction::kWgt);
    move.sram_base = base;
    fill_dense(move, offset, count, element, c_.block_in);
    push(move, [&] {
      return fmt::format("load wgt out {} in {} kernel {}x{}", blocks.str(), chunk.steps.str(), chunk.kernel_h.str(),
                         chunk.kernel_w.str());
    });
    return base;
  }

  // The place of constants that `pack` makes; a sketch has but their room.
  template <class F>
  int64_t constant(int64_t size, const F& pack) {
    if (p_.sketch_) return p_.constants_.reserve(size);
    const std::vector<std::byte> bytes = pack();
    assert(static_cast<int64_t>(bytes.size()) == size);
    return p_.constants_.add(bytes);
  }

  // `count` elements without gaps: as few rows as row_bytes and the count allow.
  void fill_dense(native::Move& move, int64_t offset, int64_t count, int64_t element, int64_t unit) const {
    int64_t per_row = std::min(count, kMaxRowBytes / element);
    while (count % per_row != 0) --per_row;
    move.base = runtime::kBaseConstants;
    move.offset = offset;
    move.rows = move.source_rows = count / per_row;
    move.row_bytes = move.y_step = per_row * element;
    move.vectors = move.row_bytes / unit;
    move.x_step = unit;
  }

  int64_t load_parameters(Range blocks) {
    const int64_t element = c_.block_out * spec::kChannelParameterBytes;
    auto& cached = parameters_[{blocks.begin, blocks.size()}];
    if (cached.second == 0) {
      cached.second = blocks.size() * element;
      cached.first = constant(cached.second, [&] { return pack_parameters(c_, operands_, blocks); });
    }
    const int64_t offset = cached.first;
    const auto [base, held] = p_.par_.find_or_take({offset}, blocks.size());
    if (held) return base;
    native::Move move;
    move.function = static_cast<int>(native::MoveFunction::kPar);
    move.sram_base = base;
    fill_dense(move, offset, blocks.size(), element, c_.block_out);
    push(move, [&] { return fmt::format("load par out {}", blocks.str()); });
    return base;
  }

  // The move between a piece of a block's outputs and a blocked tensor of the output's shape.
  native::Move piece_move(native::MoveFunction function, const Location& at, const OutputTile& tile, int64_t block,
                          Range rows, Range cols) const {
    const int64_t pitch = c_.out_w * c_.lane_block, plane = c_.out_h * pitch;
    const int64_t parts = c_.lane_block / c_.block_out, planes = ceil_div(c_.out_blocks, parts);
    native::Move move;
    move.function = static_cast<int>(function);
    move.base = at.base;
    move.offset = at.offset + (tile.image * planes + block / parts) * plane + block % parts * c_.block_out +
                  (tile.rows.begin + rows.begin) * pitch + (tile.cols.begin + cols.begin) * c_.lane_block;
    move.rows = move.source_rows = rows.size();
    move.vectors = cols.size();
    move.x_step = c_.lane_block;
    move.y_step = pitch;
    if (cols.size() == c_.out_w && rows.size() * pitch <= kMaxRowBytes) {  // one run of memory
      move.vectors *= rows.size();
      move.rows = move.source_rows = 1;
    }
    move.row_bytes = (move.vectors - 1) * c_.lane_block + c_.block_out;
    return move;
  }

  void emit_piece(const OutputTile& tile, int64_t block, Range rows, Range cols, int64_t acc, int64_t par) {
    const auto where = [&] {
      return fmt::format("out {} rows {} cols {}", block, shifted(rows, tile.rows), shifted(cols, tile.cols));
    };
    const spec::LayerParameters& parameters = operands_.layer.parameters;
    const int64_t size = rows.size() * cols.size();
    native::Requantize rq;
    if (c_.residual) {
      native::Move load = piece_move(native::MoveFunction::kRes, operands_.residual_at, tile, block, rows, cols);
      load.sram_base = rq.res_base = p_.res_.take(size);
      push(load, [&] { return "load res " + where(); });
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
    rq.v_lo = parameters.v_lo;
    rq.v_hi = parameters.v_hi;
    rq.zero = parameters.zero;
    rq.lo = parameters.lo;
    rq.hi = parameters.hi;
    push(rq, [&] { return "requantize " + where(); });
    native::Move store = piece_move(native::MoveFunction::kOut, operands_.output_at, tile, block, rows, cols);
    store.sram_base = rq.out_base;
    push(store, [&] { return "store " + where(); });
  }

  static std::string shifted(Range range, Range tile) {
    return Range{range.begin + tile.begin, range.end + tile.begin}.str();
  }
  std::string text(const OutputTile& tile, const Chunk& chunk) const {
    return fmt::format("rows {} cols {} in {} kernel {}x{}{}", tile.rows.str(), tile.cols.str(), chunk.steps.str(),
                       chunk.kernel_h.str(), chunk.kernel_w.str(),
                       c_.n > 1 ? fmt::format(" image {}", tile.image) : "");
  }
  // `text` makes the text, which a sketch has not.
  template <class F>
  void push(spec::Instruction instruction, const F& text) {
    p_.ops_.push_back({std::move(instruction), index_, p_.sketch_ ? std::string() : text()});
  }

  TileProgram& p_;
  const uint32_t index_;
  const Operands& operands_;
  const Contraction c_;
  const Tiling t_;
  std::map<std::array<int64_t, 6>, std::pair<int64_t, int64_t>> packed_;      // chunk -> constant's offset and size
  std::map<std::array<int64_t, 2>, std::pair<int64_t, int64_t>> parameters_;  // blocks -> the same
};

void TileProgram::emit(uint32_t layer_index, const Operands& operands, const Tiling& tiling) {
  LayerEmitter(*this, layer_index, operands, tiling).run();
}

}  // namespace tenon::compiler::accel
