#include "compiler/schedules/thread_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "compiler/schedules/product_blocks.h"
#include "support/try.h"

namespace tenon::compiler::schedules {
namespace {

constexpr int64_t kSide = kBlockSide;
constexpr int64_t kWarp = 32, kWarps = kSide * kSide / kWarp;
constexpr int64_t kUnrolledTerms = 4;         // of a panel
constexpr int64_t kRegistersBesideSums = 48;  // of a thread, besides its sums
constexpr int64_t kWords = 4;                 // that one instruction loads from shared memory
constexpr double kTermWaits = 32;             // cycles that a block waits for copies and barriers, for one term
constexpr double kCopyCycles = 8;  // of a warp that copies an element of a panel: each lane reads another cache line

class ThreadProductTemplate : ProductBlocks {
 public:
  using ProductBlocks::ProductBlocks;

  Status run() {
    if (rows() < kSide || columns() < kSide) return transpose_constants();
    select_tile();
    const int64_t block_rows = kSide * tile_rows_, block_columns = kSide * tile_columns_;
    TENON_TRY(make_panels(block_rows, block_columns, depth_, Innermost::kLanes));
    TENON_TRY(make_blocks(block_rows, block_columns));
    TENON_TRY(
        put_sums_into_registers(fmt::format("#/{0} #%{0}", tile_rows_), fmt::format("#/{0} #%{0}", tile_columns_)));
    TENON_TRY(bind_results());
    TENON_TRY(bind_sums());
    for (const Panel& panel : panels()) TENON_TRY(copy_by_threads(panel));
    if (terms() > depth_) TENON_TRY(copy_ahead(terms_loop_));
    return bind_blocks();
  }

 private:
  void select_tile() {
    depth_ = std::min(kSide, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(terms(), 1)))));
    std::vector<std::pair<int64_t, int64_t>> tiles;
    std::vector<Option> options;
    for (int64_t r = 2; r <= 8 && (r == 2 || kSide * r < 2 * rows()); r *= 2) {
      for (int64_t c = 2; c <= 8 && (c == 2 || kSide * c < 2 * columns()); c *= 2) {
        tiles.emplace_back(r, c);
        options.push_back({fmt::format("{}x{}", kSide * r, kSide * c), cycles(r, c)});
      }
    }
    std::tie(tile_rows_, tile_columns_) = tiles[choose_("tile", std::move(options))];
  }

  // Cycles for one term of all sums.
  double cycles(int64_t r, int64_t c) const {
    // A warp has two rows of threads: it loads two broadcast words for each of its rows, and 16 words of columns.
    const auto loads = static_cast<double>(ceil_divide(r, kWords)) + static_cast<double>(ceil_divide(kSide * c, kWarp));
    const double copies = kCopyCycles * static_cast<double>(r + c) / static_cast<double>(kSide),
                 sums = static_cast<double>(r * c);
    const double of_block =
        static_cast<double>(kWarps) * (std::max(sums / machine_.multiply_adds, loads / machine_.loads) + copies);
    return cycles_of(kSide * r, kSide * c, of_block, kTermWaits,
                     blocks_at_a_time(kSide * kSide, r * c + kRegistersBesideSums));
  }

  Status bind_results() {
    const Symbol results = product_.results;
    const std::vector<Symbol> loops = steps_.loops_of(results);
    TENON_TRY_ASSIGN(rows, split(results, loops[loops.size() - 2], {tile_rows_}));
    TENON_TRY_ASSIGN(columns, split(results, loops.back(), {tile_columns_}));
    const Symbol y = rows->front(), x = columns->front();
    TENON_TRY(step("reorder({}, {})", results, steps_.joined({y, x, rows->back(), columns->back()})));
    return bind_threads(results, {y, x}, {rows->back(), columns->back()});
  }

  Status bind_sums() {
    const Symbol sums = product_.sums;
    const std::vector<Symbol> loops = steps_.loops_of(sums);
    const size_t first = loops.size() - axes_.terms.size() - 2;
    std::vector<int64_t> depths{depth_};
    if (depth_ > kUnrolledTerms) depths.push_back(kUnrolledTerms);
    TENON_TRY_ASSIGN(terms, split(sums, loops.back(), depths));
    TENON_TRY_ASSIGN(rows, split(sums, loops[first], {tile_rows_}));
    TENON_TRY_ASSIGN(columns, split(sums, loops[first + 1], {tile_columns_}));
    std::vector<Symbol> order(loops.begin() + static_cast<ptrdiff_t>(first) + 2, loops.end() - 1);
    const std::vector<Symbol> threads{rows->front(), columns->front()};
    std::vector<Symbol> tile{rows->back(), columns->back()};
    order.push_back(terms->front());
    order.insert(order.end(), threads.begin(), threads.end());
    order.insert(order.end(), terms->begin() + 1, terms->end());
    order.insert(order.end(), tile.begin(), tile.end());
    TENON_TRY(step("reorder({}, {})", sums, steps_.joined(order)));
    TENON_TRY_ASSIGN(init, steps_.stage_of_step("split_init({}, {})", sums, order.front()));
    terms_loop_ = terms->front();
    TENON_TRY(bind_threads(*init, threads, tile));
    tile.insert(tile.begin(), terms->back());
    return bind_threads(sums, threads, tile);
  }

  // The panel of one iteration over the terms: a thread for each term, and for each of 16 rows or columns. Neighbouring
  // threads copy neighbouring elements of memory; where those are terms, padding between the terms of shared memory
  // puts them into different banks.
  Status copy_by_threads(const Panel& panel) {
    TENON_TRY_ASSIGN(loops, share(panel, terms_loop_));
    const auto [lane, term] = *loops;
    TENON_TRY(lay_out(panel, "#", Innermost::kLanes));
    if (panel.has_adjacent_terms) {
      const int64_t count = kSide * (panel.of_rows ? tile_rows_ : tile_columns_);
      TENON_TRY(step("align_storage({}, {}, {})", panel.stage, panel.rank - 1, count + kWords));
    }
    TENON_TRY_ASSIGN(lanes, split(panel.stage, lane, {kSide}));
    std::vector<Symbol> threads{term, lanes->back()};
    if (panel.has_adjacent_terms) std::swap(threads[0], threads[1]);
    TENON_TRY(step("reorder({}, {})", panel.stage, steps_.joined({threads[0], threads[1], lanes->front()})));
    return bind_threads(panel.stage, threads, {lanes->front()});
  }

  int64_t tile_rows_ = 2, tile_columns_ = 2, depth_ = kSide;  // depth_: terms of a panel
  Symbol terms_loop_{};                                       // over panels
};

}  // namespace

Status schedule_product_of_threads(TypeContext& context, loop::Schedule& schedule, const ProductStages& product,
                                   const Machine& machine, const ChooseOption& choose) {
  TENON_TRY_ASSIGN(axes, ProductSteps(context, schedule).axes_of(product.sums));
  return ThreadProductTemplate(context, schedule, product, machine, choose, std::move(*axes)).run();
}

}  // namespace tenon::compiler::schedules
