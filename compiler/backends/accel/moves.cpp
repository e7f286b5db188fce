#include "compiler/backends/accel/moves.h"

#include <algorithm>

#include "runtime/accelerator_program.h"

namespace tenon::compiler::accel {

namespace native = spec::native;

std::vector<InputMove> input_moves(const Contraction& c, const Location& at, const OutputTile& tile, const Chunk& chunk,
                                   const Window& w, Range blocks, int64_t base) {
  native::Move move;
  move.function = static_cast<int>(native::MoveFunction::kInp);
  move.base = at.base;
  move.pad_value = c.pad_value;
  move.rows = w.rows;
  move.vectors = w.cols;
  move.x_step = w.col_step * c.pixel_bytes;
  const int64_t pitch = c.width * c.pixel_bytes;
  move.y_step = w.row_step * pitch;

  // `top` counts the rows above the map; the first row inside determines the offset.
  const int64_t row = tile.rows.begin * c.stride_y - c.pad_top + chunk.kernel_h.begin * c.dilation_y;
  move.top = std::min(row < 0 ? ceil_div(-row, w.row_step) : 0, w.rows);
  const int64_t first_row = row + move.top * w.row_step;
  const int64_t rows_below = first_row < c.height ? ceil_div(c.height - first_row, w.row_step) : 0;
  move.source_rows = std::min(w.rows - move.top, rows_below);
  int64_t offset = at.offset + tile.image * c.image_bytes;
  if (move.source_rows > 0) offset += first_row * pitch;
  if (move.source_rows == 0) move.top = 0;
  const int64_t col = tile.cols.begin * c.stride_x - c.pad_left + chunk.kernel_w.begin * c.dilation_x;

  const bool whole_rows = !c.unfolded && w.col_step == 1 && w.row_step == 1 && col == 0 && w.cols == c.width &&
                          move.source_rows == w.rows && w.rows * pitch <= kMaxRowBytes &&
                          w.rows * w.cols <= kMaxRowBytes;
  if (whole_rows) {  // one run of memory
    move.vectors = w.rows * w.cols;
    move.rows = move.source_rows = 1;
  }
  const auto set_address = [&](int64_t block) {
    const int64_t k = col * c.pixel_bytes + c.block_shift(block);
    const int64_t needed = (move.vectors - 1) * move.x_step + c.block_in;  // bytes from the start of the first vector
    const int64_t row_bytes = (whole_rows ? w.rows : 1) * pitch;
    const int64_t inside = std::min(row_bytes - std::max<int64_t>(k, 0), needed + std::min<int64_t>(k, 0));
    move.row_bytes = std::max<int64_t>(0, inside);
    move.left = move.row_bytes > 0 ? std::max<int64_t>(-k, 0) : 0;
    move.offset = offset + c.block_offset(block) + (move.row_bytes > 0 ? std::max<int64_t>(k, 0) : 0);
    move.valid = c.block_valid(block);
  };

  const int64_t per_block = w.rows * w.cols;
  const int64_t next = blocks.size() > 1 ? c.block_offset(blocks.begin + 1) - c.block_offset(blocks.begin) : 0;
  const bool even = c.lane_block == c.block_in || c.plane_bytes == c.lane_block;
  if (blocks.size() > 1 && c.block_valid(blocks.end - 1) != 0 && !c.unfolded) {  // the last block alone
    std::vector<InputMove> moves = input_moves(c, at, tile, chunk, w, {blocks.begin, blocks.end - 1}, base);
    const int64_t last = blocks.end - 1;
    for (const InputMove& part :
         input_moves(c, at, tile, chunk, w, {last, blocks.end}, base + (last - blocks.begin) * per_block))
      moves.push_back(part);
    return moves;
  }
  if (blocks.size() > 1 && move.rows == 1 && move.source_rows == 1 && !c.unfolded && even) {
    // One row per block: the row loop iterates over the blocks.
    set_address(blocks.begin);
    move.rows = move.source_rows = blocks.size();
    move.y_step = next;
    move.sram_base = base;
    return {{move, blocks}};
  }
  std::vector<InputMove> moves;
  for (int64_t block = blocks.begin; block < blocks.end; ++block) {
    set_address(block);
    move.sram_base = base + (block - blocks.begin) * per_block;
    moves.push_back({move, {block, block + 1}});
  }
  return moves;
}

std::vector<native::Move> weight_moves(const Contraction& c, const Location& at, const OutputTile& tile, Range steps,
                                       int64_t base) {
  native::Move move;
  move.function = static_cast<int>(native::MoveFunction::kWgt);
  move.base = at.base;
  move.vectors = tile.blocks.size() * c.block_out;
  move.x_step = c.lane_block;
  move.y_step = c.weight_plane_bytes;
  const int64_t first = tile.blocks.begin * c.block_out, rows = std::min(move.vectors, c.weight_rows - first);
  move.row_bytes = rows > 0 ? (rows - 1) * c.lane_block + c.block_in : 0;
  const int64_t parts = c.lane_block / c.block_in;
  // With blocks that are parts of those in memory, steps have no common distance.
  const int64_t together = parts == 1 ? steps.size() : 1;
  std::vector<native::Move> moves;
  for (int64_t step = steps.begin; step < steps.end; step += together) {
    move.sram_base = base + (step - steps.begin) * tile.blocks.size();
    move.offset = at.offset + c.weight_offset(tile.image) + step / parts * c.weight_plane_bytes +
                  step % parts * c.block_in + (rows > 0 ? first * c.lane_block : 0);
    move.rows = move.source_rows = together;
    moves.push_back(move);
  }
  return moves;
}

native::Move dense_move(native::MoveFunction function, int64_t base, int64_t offset, int64_t count, int64_t element,
                        int64_t unit) {
  int64_t per_row = std::min(count, kMaxRowBytes / element);
  while (count % per_row != 0) --per_row;
  native::Move move;
  move.function = static_cast<int>(function);
  move.sram_base = base;
  move.base = runtime::kBaseConstants;
  move.offset = offset;
  move.rows = move.source_rows = count / per_row;
  move.row_bytes = move.y_step = per_row * element;
  move.vectors = move.row_bytes / unit;
  move.x_step = unit;
  return move;
}

native::Move subtile_move(const Contraction& c, native::MoveFunction function, const Location& at,
                          const OutputTile& tile, int64_t block, Range rows, Range cols) {
  const int64_t pitch = c.out_w * c.lane_block, parts = c.lane_block / c.block_out;
  native::Move move;
  move.function = static_cast<int>(function);
  move.base = at.base;
  move.offset = at.offset + tile.image * c.out_image_bytes + block / parts * c.out_plane_bytes +
                block % parts * c.block_out + (tile.rows.begin + rows.begin) * pitch +
                (tile.cols.begin + cols.begin) * c.lane_block;
  move.rows = move.source_rows = rows.size();
  move.vectors = cols.size();
  move.x_step = c.lane_block;
  move.y_step = pitch;
  if (cols.size() == c.out_w && rows.size() * pitch <= kMaxRowBytes) {  // one run of memory
    move.vectors *= rows.size();
    move.rows = move.source_rows = 1;
  }
  move.row_bytes = (move.vectors - 1) * c.lane_block + c.block_out;
  return move;
}

}  // namespace tenon::compiler::accel
