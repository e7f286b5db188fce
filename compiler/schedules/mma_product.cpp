#include "compiler/schedules/mma_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "compiler/loop/schedule/region.h"
#include "compiler/loop/tree.h"
#include "compiler/schedules/product_blocks.h"
#include "support/try.h"

namespace tenon::compiler::schedules {
namespace {

constexpr int64_t kPairs = 8, kColumnPairs = 4;  // of rows and of columns of a tile: threads of a warp
constexpr int64_t kTileRows = 2 * kPairs, kTileColumns = 2 * kColumnPairs, kTileTerms = 32;
constexpr int64_t kBlockWarps = 4;          // of a block
constexpr int64_t kDepth = 2 * kTileTerms;  // terms of a panel
constexpr double kTileCycles = 2;           // of a multiprocessor's tensor cores
constexpr double kLoadCycles = 2;           // of a word of each lane, from two rows of banks

class ByteProductTemplate : ProductBlocks {
 public:
  using ProductBlocks::ProductBlocks;

  Status run() {
    select_tile();
    depth_ = terms() > kTileTerms ? kDepth : kTileTerms;
    const int64_t block_rows = kBlockWarps * warp_rows(), block_columns = kTileColumns * column_tiles_;
    TENON_TRY(make_panels(block_rows, block_columns, depth_, Innermost::kTerm));
    TENON_TRY(make_blocks(block_rows, block_columns));
    TENON_TRY(put_sums_into_registers(rows_layout(), columns_layout()));
    TENON_TRY(bind_results());
    TENON_TRY(bind_sums());
    for (const Panel& panel : panels()) TENON_TRY(copy_by_threads(panel));
    TENON_TRY(bind_blocks());
    return step("tensorize({}, {}, mma_s8_16x8x32)", product_.sums, tile_loop_);
  }

 private:
  int64_t warp_rows() const { return kTileRows * row_tiles_; }

  void select_tile() {
    std::vector<std::pair<int64_t, int64_t>> tiles;
    std::vector<Option> options;
    for (const int64_t r : {1, 2}) {
      for (const int64_t c : {2, 4, 8}) {
        const int64_t block_rows = kBlockWarps * kTileRows * r, block_columns = kTileColumns * c;
        const auto loads = static_cast<double>(4 * r + 2 * c), products = static_cast<double>(r * c),
                   copies = static_cast<double>(block_rows + block_columns) * kTileTerms / 128;
        const double cycles = static_cast<double>(waves(block_rows, block_columns)) *
                              (std::max(kBlockWarps * products * kTileCycles, kBlockWarps * loads * kLoadCycles) +
                               copies / machine_.loads);
        tiles.emplace_back(r, c);
        options.push_back({fmt::format("{}x{}", block_rows, block_columns), cycles});
      }
    }
    std::tie(row_tiles_, column_tiles_) = tiles[choose_("tile", std::move(options))];
  }

  // Warp, pair, tile, row of the pair; column pair, tile, column of the pair.
  std::string rows_layout() const {
    return fmt::format("#/{} #/{}%{} {}#%2", warp_rows(), 2 * row_tiles_, kPairs, row_tile("#"));
  }
  std::string columns_layout() const { return fmt::format("#/{} {}#%2", 2 * column_tiles_, column_tile("#")); }
  std::string row_tile(std::string_view axis) const {
    return row_tiles_ > 1 ? fmt::format("{}/2%{} ", axis, row_tiles_) : std::string();
  }
  std::string column_tile(std::string_view axis) const { return fmt::format("{}/2%{} ", axis, column_tiles_); }

  struct Tile {
    std::vector<Symbol> threads;  // z, y, x
    std::vector<Symbol> tiles;    // of rows, where there are several, and of columns
    Symbol row{}, column{};       // of a pair
  };
  Expected<Tile> split_tile(Symbol stage, Symbol row, Symbol column) {
    std::vector<int64_t> factors{warp_rows(), 2 * row_tiles_};
    if (row_tiles_ > 1) factors.push_back(2);
    TENON_TRY_ASSIGN(rows, split(stage, row, factors));
    TENON_TRY_ASSIGN(columns, split(stage, column, {2 * column_tiles_, 2}));
    Tile tile{.threads = {(*rows)[0], (*rows)[1], columns->front()},
              .tiles = {rows->begin() + 2, rows->end() - 1},
              .row = rows->back(),
              .column = columns->back()};
    tile.tiles.push_back((*columns)[1]);
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
    if (depth_ > kTileTerms) depths.push_back(kTileTerms);
    TENON_TRY_ASSIGN(terms, split(sums, loops.back(), depths));
    TENON_TRY_ASSIGN(tile, split_tile(sums, loops[first], loops[first + 1]));
    std::vector<Symbol> order(loops.begin() + static_cast<ptrdiff_t>(first) + 2, loops.end() - 1);
    order.push_back(terms->front());
    order.insert(order.end(), tile->threads.begin(), tile->threads.end());
    order.insert(order.end(), terms->begin() + 1, terms->end() - 1);
    order.insert(order.end(), tile->tiles.begin(), tile->tiles.end());
    order.push_back(tile->row), order.push_back(tile->column), order.push_back(terms->back());
    TENON_TRY(step("reorder({}, {})", sums, steps_.joined(order)));
    TENON_TRY_ASSIGN(init, steps_.stage_of_step("split_init({}, {})", sums, order.front()));
    terms_loop_ = terms->front(), tile_loop_ = tile->row;
    std::vector<Symbol> unrolled = tile->tiles;
    TENON_TRY(bind_threads(sums, tile->threads, unrolled));
    unrolled.push_back(tile->row), unrolled.push_back(tile->column);
    return bind_threads(*init, tile->threads, unrolled);
  }

  // Four adjacent terms a thread, so that they are loaded as one word where they are contiguous.
  Status copy_by_threads(const Panel& panel) {
    TENON_TRY_ASSIGN(loops, share(panel, terms_loop_));
    const auto [lane, term] = *loops;
    // The threads of a warp read the rows of pairs, or columns, of one tile: they are adjacent.
    const std::string lanes =
        panel.of_rows ? fmt::format("#/{} {}#%2 #/{}%{}", warp_rows(), row_tile("#"), 2 * row_tiles_, kPairs)
                      : fmt::format("{}#/{} #%2", column_tile("#"), 2 * column_tiles_);
    TENON_TRY(lay_out(panel, lanes, Innermost::kTerm));
    constexpr int64_t kWord = 4;
    TENON_TRY_ASSIGN(terms, split(panel.stage, term, {kPairs * kWord, kWord}));
    TENON_TRY_ASSIGN(of_lanes, split(panel.stage, lane, {kBlockWarps * kColumnPairs, kColumnPairs}));
    const std::vector<Symbol> threads{(*of_lanes)[1], (*terms)[1], (*of_lanes)[2]},
        own{of_lanes->front(), terms->front(), terms->back()};
    std::vector<Symbol> order = threads;
    order.insert(order.end(), own.begin(), own.end());
    TENON_TRY(step("reorder({}, {})", panel.stage, steps_.joined(order)));
    return bind_threads(panel.stage, threads, own);
  }

  int64_t row_tiles_ = 1, column_tiles_ = 2;  // of a warp
  int64_t depth_ = kDepth;
  Symbol terms_loop_{}, tile_loop_{};
};

bool is_byte(const loop::Function& function, const loop::Expr& factor) {
  const auto* converted = std::get_if<loop::Convert>(&factor->form);
  const auto* load = converted ? std::get_if<loop::Load>(&converted->value->form) : nullptr;
  return load && function.buffer(load->buffer).dtype == DType::kI8 && factor->dtype == DType::kI32;
}

}  // namespace

bool has_byte_terms(TypeContext& context, loop::Schedule& schedule, const ProductStages& product) {
  loop::Function function = schedule.function();
  const auto path = loop::find_stage(context, function, product.sums);
  if (!path || path->stage().body.size() != 1) return false;
  const auto* store = std::get_if<loop::Store>(&path->stage().body[0].form);
  const auto* sum = store ? std::get_if<loop::Binary>(&store->value->form) : nullptr;
  const auto* term = sum && sum->op == loop::BinaryOp::kAdd ? std::get_if<loop::Binary>(&sum->right->form) : nullptr;
  if (!term || term->op != loop::BinaryOp::kMultiply || !is_byte(function, term->left) ||
      !is_byte(function, term->right))
    return false;
  const auto axes = ProductSteps(context, schedule).axes_of(product.sums);
  return axes && axes->rows.extent.constant().value_or(kTileRows) >= kTileRows &&
         axes->columns.extent.constant().value_or(kTileColumns) >= kTileColumns &&
         axes->terms.back().extent.constant().value_or(kTileTerms) >= kTileTerms / 2;
}

Status schedule_byte_product(TypeContext& context, loop::Schedule& schedule, const ProductStages& product,
                             const Machine& machine, const ChooseOption& choose) {
  TENON_TRY_ASSIGN(axes, ProductSteps(context, schedule).axes_of(product.sums));
  return ByteProductTemplate(context, schedule, product, machine, choose, std::move(*axes)).run();
}

}  // namespace tenon::compiler::schedules
