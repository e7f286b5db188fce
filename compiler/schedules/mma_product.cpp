#include "compiler/schedules/mma_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/region.h"
#include "compiler/loop/tree.h"
#include "compiler/schedules/product_blocks.h"
#include "support/try.h"

namespace tenon::compiler::schedules {
namespace {

using runtime::DType;

constexpr int64_t kPairs = 8, kColumnPairs = 4;  // of rows and of columns of a tile: threads of a warp
constexpr int64_t kTileRows = 2 * kPairs, kTileColumns = 2 * kColumnPairs;
constexpr int64_t kBlockWarps = 4;     // of a block
constexpr int64_t kTileWords = 2;      // of 16 bytes: the terms of a tile
constexpr int64_t kMostSums = 128;     // of a thread, in registers
constexpr int64_t kWarpLanes = 8;      // of a panel, that a warp copies at a time: a thread along y for each
constexpr double kTileCycles = 2;      // of a multiprocessor's tensor cores
constexpr double kBytesOfCycle = 128;  // of shared memory
constexpr int64_t kHalfBytes = 16, kBankBytes = 128;  // of a word; of a word of each bank
constexpr double kWordBytes = kHalfBytes;
constexpr double kTileWaits = 200;  // cycles that a block waits for copies and barriers, for the terms of a tile
constexpr int64_t kBlockThreads = kBlockWarps * kPairs * kColumnPairs;
constexpr int64_t kRegistersBesideTile = 64;  // of a thread, besides its sums

class MatrixProductTemplate : ProductBlocks {
 public:
  MatrixProductTemplate(ProductBlocks blocks, const MatrixProduct& instruction)
      : ProductBlocks(std::move(blocks)), instruction_(instruction) {}

  Status run() {
    select_tile();
    depth_ = terms() > tile_terms() ? 2 * tile_terms() : tile_terms();
    const int64_t block_rows = kBlockWarps * warp_rows(), block_columns = kTileColumns * column_tiles_;
    TENON_TRY(make_panels(block_rows, block_columns, depth_, Innermost::kTerm));
    TENON_TRY(make_blocks(block_rows, block_columns));
    TENON_TRY(
        put_sums_into_registers(rows_of_tile() + " " + row_in_tile(), columns_of_tile() + " " + column_in_tile()));
    TENON_TRY(bind_results());
    TENON_TRY(bind_sums());
    for (const Panel& panel : panels()) TENON_TRY(copy_by_threads(panel));
    if (terms() > depth_) TENON_TRY(copy_ahead(terms_loop_));
    TENON_TRY(bind_blocks());
    return step("tensorize({}, {}, {}{})", product_.sums, tile_loop_, std::string(instruction_.instruction),
                std::string(instruction_.inexact ? ", inexact" : ""));
  }

 private:
  int64_t warp_rows() const { return kTileRows * row_tiles_; }
  int64_t tile_terms() const { return kTileWords * instruction_.word; }

  void select_tile() {
    std::vector<std::pair<int64_t, int64_t>> tiles;
    std::vector<Option> options;
    for (const int64_t r : {1, 2, 4}) {
      for (const int64_t c : {2, 4, 8, 16}) {
        if (4 * r * c > kMostSums) continue;
        const int64_t block_rows = kBlockWarps * kTileRows * r, block_columns = kTileColumns * c;
        const double words = kTileWords * kWordBytes / kBytesOfCycle;  // cycles of the terms of a row or column
        const double loads = kBlockWarps * static_cast<double>(kTileRows * r + block_columns) * words,
                     copies = static_cast<double>(block_rows + block_columns) * words,
                     products = static_cast<double>(kBlockWarps * r * c) * kTileCycles;
        const double computes = std::max(products, loads) + copies / machine_.loads;
        tiles.emplace_back(r, c);
        options.push_back({fmt::format("{}x{}", block_rows, block_columns),
                           cycles_of(block_rows, block_columns, computes, kTileWaits,
                                     blocks_at_a_time(kBlockThreads, 4 * r * c + kRegistersBesideTile))});
      }
    }
    std::tie(row_tiles_, column_tiles_) = tiles[choose_("tile", std::move(options))];
  }

  // The digits of a row: warp, tile, row of the pair, pair; of a column: tile, pair, column of the pair.
  std::string rows_of_tile() const {
    return fmt::format("#/{}{}", warp_rows(), row_tiles_ > 1 ? fmt::format(" #/{}%{}", kTileRows, row_tiles_) : "");
  }
  static std::string row_in_tile() { return fmt::format("#%2 #/2%{}", kPairs); }
  static std::string columns_of_tile() { return fmt::format("#/{}", kTileColumns); }
  static std::string column_in_tile() { return fmt::format("#/2%{} #%2", kColumnPairs); }

  struct Tile {
    std::vector<Symbol> threads;  // z, y, x
    std::vector<Symbol> tiles;    // of rows, where there are several, and of columns
    Symbol row{}, column{};       // of a pair
  };
  Expected<Tile> split_tile(Symbol stage, Symbol row, Symbol column) {
    std::vector<int64_t> factors{warp_rows()};
    if (row_tiles_ > 1) factors.push_back(kTileRows);
    factors.push_back(2);
    TENON_TRY_ASSIGN(rows, split(stage, row, factors));
    TENON_TRY_ASSIGN(columns, split(stage, column, {kTileColumns, 2}));
    Tile tile{.threads = {rows->front(), *(rows->end() - 2), (*columns)[1]},
              .tiles = {rows->begin() + 1, rows->end() - 2},
              .row = rows->back(),
              .column = columns->back()};
    tile.tiles.push_back(columns->front());
    return tile;
  }

  Status bind_results() {
    const std::vector<Symbol> loops = steps_.loops_of(product_.results);
    TENON_TRY_ASSIGN(tile, split_tile(product_.results, loops[loops.size() - 2], loops.back()));
    std::vector<Symbol> order = tile->threads, unrolled = tile->tiles;
    unrolled.insert(unrolled.end() - 1, tile->row);
    unrolled.push_back(tile->column);
    order.insert(order.end(), unrolled.begin(), unrolled.end());
    TENON_TRY(step("reorder({}, {})", product_.results, steps_.joined(order)));
    return bind_threads(product_.results, tile->threads, unrolled);
  }

  Status bind_sums() {
    const Symbol sums = product_.sums;
    const std::vector<Symbol> loops = steps_.loops_of(sums);
    const size_t first = loops.size() - axes_.terms.size() - 2;
    std::vector<int64_t> depths{depth_};
    if (depth_ > tile_terms()) depths.push_back(tile_terms());
    depths.push_back(instruction_.word);
    TENON_TRY_ASSIGN(terms, split(sums, loops.back(), depths));
    TENON_TRY_ASSIGN(tile, split_tile(sums, loops[first], loops[first + 1]));
    std::vector<Symbol> order(loops.begin() + static_cast<ptrdiff_t>(first) + 2, loops.end() - 1);
    order.push_back(terms->front());
    order.insert(order.end(), tile->threads.begin(), tile->threads.end());
    const std::vector<Symbol> tiles_of_panel(terms->begin() + 1, terms->end() - 2);
    order.insert(order.end(), tiles_of_panel.begin(), tiles_of_panel.end());
    order.insert(order.end(), tile->tiles.begin(), tile->tiles.end());
    order.push_back(tile->row), order.push_back(tile->column);
    order.insert(order.end(), terms->end() - 2, terms->end());
    TENON_TRY(step("reorder({}, {})", sums, steps_.joined(order)));
    TENON_TRY_ASSIGN(init, steps_.stage_of_step("split_init({}, {})", sums, order.front()));
    terms_loop_ = terms->front(), tile_loop_ = tile->row;
    std::vector<Symbol> unrolled = tiles_of_panel;
    unrolled.insert(unrolled.end(), tile->tiles.begin(), tile->tiles.end());
    TENON_TRY(bind_threads(sums, tile->threads, unrolled));
    unrolled = tile->tiles;
    unrolled.push_back(tile->row), unrolled.push_back(tile->column);
    return bind_threads(*init, tile->threads, unrolled);
  }

  // A word of 16 bytes a thread and step: the threads along x copy the words of a row or column, which are contiguous
  // in memory, those along y neighbouring columns, or every other row.
  Status copy_by_threads(const Panel& panel) {
    TENON_TRY_ASSIGN(loops, share(panel, terms_loop_));
    const auto [lane, term] = *loops;
    TENON_TRY(lay_out(
        panel, panel.of_rows ? rows_of_tile() + " " + row_in_tile() : columns_of_tile() + " " + column_in_tile(),
        Innermost::kTerm,
        fmt::format("#/{} #/{}%{} #%{}", tile_terms(), instruction_.word, kTileWords, instruction_.word)));
    TENON_TRY(separate_banks(panel));
    const int64_t step_of_y = panel.of_rows ? 2 : 1, lanes_of_x = kColumnPairs * instruction_.word / depth_;
    TENON_TRY_ASSIGN(terms, split(panel.stage, term, {instruction_.word}));
    const int64_t in_x = lanes_of_x * step_of_y;
    std::vector<int64_t> factors{kBlockWarps * kWarpLanes * in_x, kWarpLanes * in_x};
    if (in_x > 1) factors.push_back(in_x);
    if (lanes_of_x > 1 && step_of_y > 1) factors.push_back(step_of_y);
    TENON_TRY_ASSIGN(lanes, split(panel.stage, lane, factors));
    std::vector<Symbol> own{lanes->front()}, order{(*lanes)[1], (*lanes)[2]};
    if (step_of_y > 1) own.push_back(lanes->back());
    own.push_back(terms->back());
    if (lanes_of_x > 1) order.push_back((*lanes)[3]);
    order.push_back(terms->front());
    order.insert(order.end(), own.begin(), own.end());
    TENON_TRY(step("reorder({}, {})", panel.stage, steps_.joined(order)));
    Symbol x = terms->front();
    if (lanes_of_x > 1) {
      TENON_TRY(step("fuse({}, {}, {})", panel.stage, (*lanes)[3], x));
      const std::vector<Symbol> fused = steps_.loops_of(panel.stage);
      x = fused[fused.size() - own.size() - 1];
    }
    return bind_threads(panel.stage, {(*lanes)[1], (*lanes)[2], x}, own);
  }

  // ldmatrix reads one word of each of 8 lanes, which must be in different banks. So the lane's number, divided by the
  // number of lanes that fill all banks, selects the order of its words: bit 0 that of the two words of a tile, bit 1
  // that of the tiles. The two words of 32 bytes stay together, as cp.async reads these at once. A lane's number is the
  // pair of a row, and for columns, whose innermost digit is the column of the pair, twice the pair.
  Status separate_banks(const Panel& panel) {
    const size_t digits = panel.rank + (panel.of_rows && row_tiles_ > 1 ? 5 : 4), word = digits - 2, tile = digits - 3,
                 pair = digits - (panel.of_rows ? 4 : 5);
    const int64_t lanes_of_banks = kBankBytes * instruction_.word / (depth_ * kHalfBytes),
                  pairs_of_banks = panel.of_rows ? lanes_of_banks : lanes_of_banks / 2;
    if (depth_ > tile_terms()) TENON_TRY(step("swizzle({}, {}, {}, {})", panel.stage, tile, pair, 2 * pairs_of_banks));
    return step("swizzle({}, {}, {}, {})", panel.stage, word, pair, pairs_of_banks);
  }

  const MatrixProduct instruction_;
  int64_t row_tiles_ = 1, column_tiles_ = 2;  // of a warp
  int64_t depth_ = 0;                         // terms of a panel
  Symbol terms_loop_{}, tile_loop_{};
};

// The type of the factor in memory; nullopt where it is not an element that is at most converted.
std::optional<DType> type_in_memory(const loop::Expr& factor) {
  const auto* converted = std::get_if<loop::Convert>(&factor->form);
  const loop::Expr& loaded = converted ? converted->value : factor;
  return std::holds_alternative<loop::Load>(loaded->form) ? std::optional(loaded->dtype) : std::nullopt;
}

}  // namespace

std::optional<MatrixProduct> matrix_instruction(DType left, DType right, DType sums, const Machine& machine) {
  if (machine.threads == 0) return std::nullopt;
  if (sums == DType::kI32) {
    constexpr std::string_view kOfBytes[2][2] = {{"mma_s8_16x8x32", "mma_s8_u8_16x8x32"},
                                                 {"mma_u8_s8_16x8x32", "mma_u8_16x8x32"}};
    constexpr runtime::DTypes kBytes{DType::kI8, DType::kU8};
    if (!kBytes.contains(left) || !kBytes.contains(right)) return std::nullopt;
    return MatrixProduct{kOfBytes[left == DType::kU8][right == DType::kU8], 16, false};
  }
  if (sums != DType::kF32 || left != right) return std::nullopt;
  if (left == DType::kF16 && machine.inexact.f16) return MatrixProduct{"mma_f16_16x8x16", 8, true};
  if (left == DType::kBF16 && machine.inexact.bf16) return MatrixProduct{"mma_bf16_16x8x16", 8, true};
  if (left == DType::kF32 && machine.inexact.tf32) return MatrixProduct{"mma_tf32_16x8x8", 4, true};
  return std::nullopt;
}

std::optional<MatrixProduct> matrix_product(TypeContext& context, loop::Schedule& schedule,
                                            const ProductStages& product, const Machine& machine) {
  loop::Function function = schedule.function();
  const auto path = loop::find_stage(context, function, product.sums);
  if (!path || path->stage().body.size() != 1) return std::nullopt;
  const auto* store = std::get_if<loop::Store>(&path->stage().body[0].form);
  const auto* sum = store ? std::get_if<loop::Binary>(&store->value->form) : nullptr;
  const auto* term = sum && sum->op == loop::BinaryOp::kAdd ? std::get_if<loop::Binary>(&sum->right->form) : nullptr;
  if (!term || term->op != loop::BinaryOp::kMultiply) return std::nullopt;
  const auto left = type_in_memory(term->left), right = type_in_memory(term->right);
  const auto instruction =
      left && right ? matrix_instruction(*left, *right, store->value->dtype, machine) : std::nullopt;
  if (!instruction) return std::nullopt;
  const auto axes = ProductSteps(context, schedule).axes_of(product.sums);
  const bool fills = axes && axes->rows.extent.constant().value_or(kTileRows) >= kTileRows &&
                     axes->columns.extent.constant().value_or(kTileColumns) >= kTileColumns &&
                     axes->terms.back().extent.constant().value_or(instruction->word) >= instruction->word;
  return fills ? instruction : std::nullopt;
}

Status schedule_matrix_product(TypeContext& context, loop::Schedule& schedule, const ProductStages& product,
                               const MatrixProduct& instruction, const Machine& machine, const ChooseOption& choose) {
  TENON_TRY_ASSIGN(axes, ProductSteps(context, schedule).axes_of(product.sums));
  return MatrixProductTemplate({context, schedule, product, machine, choose, std::move(*axes)}, instruction).run();
}

}  // namespace tenon::compiler::schedules
