#include "compiler/schedules/product.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <set>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/region.h"
#include "compiler/loop/tree.h"
#include "compiler/schedules/mma_product.h"
#include "compiler/schedules/partial_sums.h"
#include "compiler/schedules/product_steps.h"
#include "compiler/schedules/thread_product.h"
#include "support/try.h"

namespace tenon::compiler::schedules {
namespace {

using loop::AxisKind;
using loop::BufferId;

constexpr int64_t kMostCopies = 9;       // of a tile's code, where every remainder of the rows has one
constexpr int64_t kShortestTileRow = 4;  // of a tile that is transposed
constexpr double kCacheMisses = 1.5;     // estimated slowdown where the inner operand exceeds L2

class ProductTemplate {
 public:
  ProductTemplate(TypeContext& context, loop::Schedule& schedule, const ProductStages& product, const Machine& machine,
                  const ChooseOption& choose)
      : context_(context),
        schedule_(schedule),
        steps_(context, schedule),
        product_(product),
        machine_(machine),
        choose_(choose) {}

  Status run() {
    TENON_TRY(read_sizes());
    if (product_.panels) TENON_TRY(pack(*product_.panels, column_axis_, vector_));
    if (product_.row_panels && shape_.rows > 1) TENON_TRY(pack(*product_.row_panels, row_axis_, shape_.rows));
    TENON_TRY(pad_columns());
    TENON_TRY(make_blocks());
    for (size_t i = 0; i < blocks_.size(); ++i) TENON_TRY(compute_in_registers(blocks_[i], i + 1 == blocks_.size()));
    return {};
  }

 private:
  template <class... Args>
  Status step(std::string_view format, const Args&... args) {
    return steps_.step(format, args...);
  }
  std::vector<Symbol> loops_of(Symbol stage) { return steps_.loops_of(stage); }
  Dim extent_of(Symbol stage, Symbol loop) { return steps_.extent_of(stage, loop); }
  std::string joined(const std::vector<Symbol>& names) const { return steps_.joined(names); }

  Status read_sizes() {
    TENON_TRY_ASSIGN(axes, steps_.axes_of(product_.sums, product_.matrix));
    row_axis_ = axes->rows.var, column_axis_ = axes->columns.var;
    rows_ = axes->rows.extent, columns_ = axes->columns.extent;
    for (const loop::Axis& axis : axes->terms) terms_ = context_.multiply(terms_, axis.extent);
    num_terms_ = axes->terms.size();
    buffer_ = axes->buffer;
    is_step_ = axes->is_step;
    vector_ = lanes_of(schedule_.function().buffer(buffer_).dtype);
    shape_ = product_.order ? product_.order->tile : select_tile(axes->factors);
    return order_axes(axes->row_position, axes->column_position);
  }

  // Rows and columns are the last axes of the sums' buffer.
  Status order_axes(size_t row, size_t column) {
    const loop::Buffer& sums = schedule_.function().buffer(buffer_);
    const size_t rank = sums.rank();
    if (row + 2 == rank && column + 1 == rank) return {};
    std::string batch;
    for (size_t i = 0; i < rank; ++i)
      if (i != row && i != column) batch += ProductSteps::axis(i) + " ";
    return step("layout({}, {} -> {}{} {})", sums.name, ProductSteps::axes(rank), batch, ProductSteps::axis(row),
                ProductSteps::axis(column));
  }

  TileShape select_tile(Factors factors) {
    const std::vector<TileShape> shapes = tile_shapes(machine_, rows_.constant().value_or(0),
                                                      std::max<int64_t>(columns_.constant().value_or(2 * vector_), 1),
                                                      vector_, {.strided_rows = true, .factors = factors});
    return choose_tile(choose_, shapes);
  }

  // --- Panels ---

  // Panels of the axis of a buffer that the sums read at that axis, the terms inside. Those of columns have 16
  // elements: all levels of an executable share one copy of constants.
  Status pack(Symbol operand, Symbol along, int64_t size) {
    function_ = schedule_.function();
    std::optional<BufferId> from;
    size_t position = 0;
    TENON_TRY_ASSIGN(path, loop::find_stage(context_, function_, product_.sums));
    loop::for_each_access(path->stage(), [&](const loop::Access& access) {
      if (access.writes || function_.buffer(access.buffer).name != operand) return;
      const auto at = std::ranges::find(access.indices, context_.dim(along));
      if (at == access.indices.end()) return;
      from = access.buffer, position = static_cast<size_t>(at - access.indices.begin());
    });
    if (!from) return error(fmt::format("%{} is not read at '{}'", context_.name(operand), context_.name(along)));
    const bool is_constant = schedule_.constants().contains(*from);
    TENON_TRY_ASSIGN(stage, steps_.producer_or_copy(product_.sums, *from));
    const loop::Store& store = steps_.assignment_of(*stage);
    const loop::Buffer& packed = schedule_.function().buffer(store.buffer);
    const Symbol buffer = packed.name, axis = *store.indices[position].variable();
    const Dim extent = packed.axes[position].extent;
    if (DimProver(context_).divides(context_.dim(size), extent) != Answer::kYes)
      TENON_TRY(step("pad({}, {}, {})", *stage, axis, size));
    const std::vector<Symbol> loops = loops_of(*stage);
    TENON_TRY(step("split({}, {}, {})", *stage, loops[position], size));
    std::vector<Symbol> order = loops_of(*stage);
    std::rotate(order.begin() + static_cast<ptrdiff_t>(position) + 1,
                order.begin() + static_cast<ptrdiff_t>(position) + 2, order.end());
    std::rotate(order.begin(), order.begin() + static_cast<ptrdiff_t>(position),
                order.begin() + static_cast<ptrdiff_t>(position) + 1);
    TENON_TRY(step("reorder({}, {})", *stage, joined(order)));
    std::string panels = fmt::format("a{}/{}", position, size);
    for (size_t i = 0; i < loops.size(); ++i)
      if (i != position) panels += " " + ProductSteps::axis(i);
    TENON_TRY(step("layout({}, {} -> {} a{}%{})", buffer, ProductSteps::axes(loops.size()), panels, position, size));
    return is_constant ? step("at_load({})", *stage) : Status();
  }

  // Lanes past the end are computed too: vectors are whole registers. They read the zeros of panels, or what follows in
  // memory where that is sure to exist.
  Status pad_columns() {
    if (!product_.panels && !product_.order) return {};
    const int64_t unit = product_.panels || !columns_.constant() ? vector_ : shortest_vector(machine_, vector_);
    if (DimProver(context_).divides(context_.dim(unit), columns_) == Answer::kYes) return {};
    return step("pad({}, {}, {})", product_.sums, column_axis_, unit);
  }

  // --- Blocks ---

  // The sizes of blocks: whole tiles, and for the tail of lanes powers of two of registers. Where the number of rows is
  // not constant, there is a block for each remainder: two blocks of few rows take twice as long as one, which waits
  // for its own sums. Where these were too many copies of the code, powers of two serve all tails.
  std::vector<int64_t> row_blocks() const {
    std::vector<int64_t> sizes{shape_.rows};
    if (const auto rows = rows_.constant()) {
      if (*rows > shape_.rows && *rows % shape_.rows > 0) sizes.push_back(*rows % shape_.rows);
      return sizes;
    }
    const bool all = shape_.rows * static_cast<int64_t>(column_blocks().size()) <= kMostCopies;
    for (int64_t size = shape_.rows - 1; size > 0; --size)
      if (all || std::has_single_bit(static_cast<uint64_t>(size))) sizes.push_back(size);
    return sizes;
  }
  std::vector<int64_t> column_blocks() const {
    const int64_t tile = shape_.vectors * vector_;
    std::vector<int64_t> sizes{tile};
    if (const auto columns = columns_.constant()) {
      const int64_t shortest = shortest_vector(machine_, vector_);
      for (int64_t left = *columns % tile; left > 0;) {
        const auto units = static_cast<uint64_t>((left + shortest - 1) / shortest);
        sizes.push_back(static_cast<int64_t>(std::bit_floor(units)) * shortest);
        left -= sizes.back();
      }
      return sizes;
    }
    // The last columns, rounded up to half a vector: few vectors in one tile hide the latency of a sum, and a register
    // of half the bytes computes the last lanes of short rows in the same time without as many past the end.
    for (int64_t size = tile; size >= vector_ / 2; size /= 2) sizes.push_back(size);
    return sizes;
  }

  // Blocks of the loop, in copies of the stage, which are returned.
  Expected<std::vector<Symbol>> split(Symbol stage, Symbol loop, const std::vector<int64_t>& sizes, bool rounded) {
    return steps_.split(stage, loop, fmt::format("{}{}", fmt::join(sizes, ", "), rounded ? ", round" : ""));
  }

  static double count(Dim dim) { return static_cast<double>(dim.constant().value_or(1 << 10)); }

  Status make_blocks() {
    std::vector<Symbol> loops = loops_of(product_.results);
    const size_t first = loops.size() - 2;  // the batch is before it
    // The loops over lines of the batch are inside of the outer blocks.
    const size_t lines = product_.order ? product_.order->lines : 0, outermost = first - lines;
    double sums = count(terms_);
    for (const Symbol loop : loops) sums *= count(extent_of(product_.results, loop));
    // The steps of a scan are too short for threads, which would mostly wait for each other.
    bool parallel = sums >= kParallelTerms && !is_step_;
    for (size_t i = 0; i < outermost && parallel; ++i) {
      const Dim images = extent_of(product_.results, loops[i]);
      // An unknown batch is one image more often than not: rows of which there may be many keep the threads busy.
      const bool has_rows = i + 1 < first || rows_in_blocks().constant().value_or(kTasks) >= kTasks;
      if ((i == 0 && !images.constant() && has_rows) || !has_enough(images, {rows_in_blocks(), columns_in_blocks()}))
        continue;
      TENON_TRY(step("mark({}, {}, parallel)", product_.results, loops[i]));
      parallel = false;
    }
    const bool rows_first = selects_rows_outer();
    std::vector<Symbol> order(loops.begin() + static_cast<ptrdiff_t>(outermost), loops.end());
    if (!rows_first) std::swap(order[lines], order[lines + 1]);
    std::rotate(order.begin(), order.begin() + static_cast<ptrdiff_t>(lines), order.end() - 1);
    if (lines > 0 || !rows_first) TENON_TRY(step("reorder({}, {})", product_.results, joined(order)));
    loops = loops_of(product_.results);
    TENON_TRY_ASSIGN(outer, split(product_.results, loops[outermost], rows_first ? row_blocks() : column_blocks(),
                                  !rows_first && !columns_.constant()));
    for (size_t i = 0; i < outer->size(); ++i) {
      const Symbol stage = (*outer)[i];
      std::vector<Symbol> inside = loops_of(stage);
      bool inner_parallel = parallel;
      const Dim blocks = extent_of(stage, inside[outermost]),
                inner_blocks = rows_first ? columns_in_blocks() : rows_in_blocks();
      std::vector<Dim> of_lines;
      for (size_t line = 0; line < lines; ++line) of_lines.push_back(extent_of(stage, inside[outermost + 2 + line]));
      std::vector<Dim> within = of_lines;
      within.push_back(inner_blocks);
      if (parallel && (i == 0 || blocks.constant()) && has_enough(blocks, within)) {
        TENON_TRY(step("mark({}, {}, parallel)", stage, inside[outermost]));
        inner_parallel = false;
      }
      for (size_t line = 0; line < lines && inner_parallel; ++line) {
        within.erase(within.begin());
        if (!has_enough(of_lines[line], within)) continue;
        TENON_TRY(step("mark({}, {}, parallel)", stage, inside[outermost + 2 + line]));
        inner_parallel = false;
      }
      order.assign(inside.begin() + static_cast<ptrdiff_t>(outermost), inside.end());
      std::rotate(order.begin() + 1, order.begin() + 2, order.end());
      TENON_TRY(step("reorder({}, {})", stage, joined(order)));
      const size_t at = first + 1;  // of the inner blocks
      TENON_TRY_ASSIGN(inner, split(stage, loops_of(stage)[at], rows_first ? column_blocks() : row_blocks(),
                                    rows_first && !columns_.constant()));
      for (size_t k = 0; k < inner->size(); ++k) {
        const std::vector<Symbol> tile = loops_of((*inner)[k]);
        const Dim count_of_blocks = extent_of((*inner)[k], tile[at]);
        if (inner_parallel && (k == 0 || count_of_blocks.constant()) && has_enough(count_of_blocks, {}))
          TENON_TRY(step("mark({}, {}, parallel)", (*inner)[k], tile[at]));
        if (rows_first) TENON_TRY(step("reorder({}, {}, {})", (*inner)[k], tile[at + 2], tile[at + 1]));
        blocks_.push_back((*inner)[k]);
      }
    }
    return {};
  }
  bool selects_rows_outer() {
    if (product_.order) return product_.order->rows_outer;
    const int64_t l2_elements = elements_in(machine_.l2_bytes);
    const auto elements = [&](Dim size) {
      return size.constant().value_or(l2_elements) * terms_.constant().value_or(1);
    };
    // Each iteration of the outer loop reads the inner operand again: the columns are inner only where L2 holds them.
    const bool tall = elements(columns_) <= l2_elements && elements(rows_) > l2_elements;
    return choose_("outer", {{"columns", tall ? kCacheMisses : 1}, {"rows", tall ? 1 : kCacheMisses}}) == 1;
  }
  Dim rows_in_blocks() const { return context_.ceil_divide(rows_, shape_.rows); }
  Dim columns_in_blocks() const { return context_.ceil_divide(columns_, shape_.vectors * vector_); }
  // Whether the iterations of a loop keep many threads busy, or are more than those of the loops inside.
  static bool has_enough(Dim count, const std::vector<Dim>& inner) {
    const int64_t iterations = count.constant().value_or(kTasks);
    return iterations > 1 && (iterations >= kTasks || std::ranges::all_of(inner, [&](Dim other) {
                                return other.constant().value_or(kTasks) <= iterations;
                              }));
  }

  // --- Tiles ---

  Status compute_in_registers(Symbol block, bool last) {
    const std::vector<Symbol> loops = loops_of(block);
    const Symbol rows = loops[loops.size() - 2], columns = loops.back(), around = loops[loops.size() - 3];
    Symbol sums = product_.sums;
    if (!last) {
      TENON_TRY_ASSIGN(copy, steps_.stage_of_step("clone({}, {})", product_.sums, block));
      sums = *copy;
    }
    const Symbol buffer = last ? schedule_.function().buffer(buffer_).name : sums;
    Symbol reader = block;
    if (is_transposed()) {
      TENON_TRY_ASSIGN(copy, steps_.stage_of_step("cache_read({}, {}, {}, stack)", block, buffer, around));
      reader = *copy;
    }
    TENON_TRY(step("compute_at({}, {}, {})", sums, reader, around));
    TENON_TRY(step("store_at({}, {}, {}, registers)", reader, buffer, around));
    const std::vector<Symbol> own = loops_of(sums);
    TENON_TRY_ASSIGN(row_loop, steps_.loop_of(sums, row_axis_));
    TENON_TRY_ASSIGN(column_loop, steps_.loop_of(sums, column_axis_));
    const Symbol row = *row_loop, column = *column_loop;
    std::vector<Symbol> order(own.end() - static_cast<ptrdiff_t>(num_terms_), own.end());
    const Symbol term = order.front();
    order.push_back(row), order.push_back(column);
    TENON_TRY(step("reorder({}, {})", sums, joined(order)));
    TENON_TRY_ASSIGN(init, steps_.stage_of_step("split_init({}, {})", sums, term));
    TENON_TRY(step("mark({}, {}, unroll)", *init, row));
    TENON_TRY(step("mark({}, {}, vector)", *init, column));
    TENON_TRY(step("mark({}, {}, unroll)", sums, row));
    TENON_TRY(step("mark({}, {}, vector)", sums, column));
    TENON_TRY(unroll_terms(sums, {order.begin(), order.begin() + static_cast<ptrdiff_t>(num_terms_)}));
    TENON_TRY(drop_condition(sums, block));
    if (is_transposed()) return transpose(block, reader);
    TENON_TRY(step("mark({}, {}, unroll)", block, rows));
    return step("mark({}, {}, vector)", block, columns);
  }

  // The condition of lanes past the end, if pad() gave the sums one, holds in all blocks without a guard.
  Status drop_condition(Symbol sums, Symbol block) {
    function_ = schedule_.function();
    TENON_TRY_ASSIGN(results, loop::find_stage(context_, function_, block));
    if (!results->stage().where.empty() || product_.panels || !product_.order) return {};
    // The loops end with: blocks of the outer axis, lines, blocks of the inner axis, and the tile.
    const std::vector<Symbol> loops = loops_of(block);
    const Symbol blocks = loops[loops.size() - 3 - (product_.order->rows_outer ? 0 : 1 + product_.order->lines)];
    return steps_.has_condition_on(sums, blocks) ? step("partition({}, {})", sums, blocks) : Status();
  }

  bool is_transposed() const { return product_.order && product_.order->transposed; }

  // The tile's copy in memory, transposed, so that results are stored in vectors of adjacent rows.
  Status transpose(Symbol block, Symbol copy) {
    std::vector<Symbol> loops = loops_of(block);
    const Symbol rows = loops[loops.size() - 2], columns = loops.back();
    const int64_t count = extent_of(block, rows).constant().value_or(1);
    const auto lanes = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(count, kShortestTileRow))));
    function_ = schedule_.function();
    TENON_TRY_ASSIGN(writer, loop::find_stage(context_, function_, copy));
    const loop::Buffer& tile = function_.buffer(std::get<loop::Store>(writer->stage().body[0].form).buffer);
    const Symbol name = tile.name;
    const size_t rank = tile.rank();
    const std::string last = ProductSteps::axis(rank - 1), other = ProductSteps::axis(rank - 2),
                      batch = rank > 2 ? ProductSteps::axes(rank - 2) + " " : "";
    TENON_TRY(step("layout({}, {} -> {}{} {})", name, ProductSteps::axes(rank), batch, last, other));
    if (count != lanes) TENON_TRY(step("align_storage({}, {}, {})", name, rank - 1, lanes));
    const std::vector<Symbol> own = loops_of(copy);
    TENON_TRY(step("mark({}, {}, unroll)", copy, own[own.size() - 2]));
    TENON_TRY(step("mark({}, {}, vector)", copy, own.back()));
    // Vectors are whole registers; a guard masks the last lanes of the store.
    if (count != lanes) {
      TENON_TRY(step("split({}, {}, {})", block, rows, lanes));
      loops = loops_of(block);
      TENON_TRY(step("mark({}, {}, unroll)", block, loops[loops.size() - 3]));
    }
    const Symbol row = loops[loops.size() - 2];
    TENON_TRY(step("reorder({}, {}, {})", block, columns, row));
    return step("mark({}, {}, vector)", block, row);
  }

  // Unrolls the innermost loop over the terms where their count is known: a term has few instructions beside those of
  // the loop. Kernel taps whose rows are pixels share broadcast elements, which would be kept in registers for all of
  // them.
  Status unroll_terms(Symbol sums, const std::vector<Symbol>& loops) {
    std::vector<size_t> longer;  // than one term
    for (size_t i = 0; i < loops.size(); ++i)
      if (extent_of(sums, loops[i]).constant() != 1) longer.push_back(i);
    const bool rolled = product_.order && product_.order->rolled;
    if (longer.empty() || rolled || (is_transposed() && longer.size() > 1)) return {};
    const size_t last = longer.back();
    const int64_t count = extent_of(sums, loops[last]).constant().value_or(0), unrolled = unrolled_terms(count);
    if (unrolled == 1) {
      const bool whole = last > 0 && count > 1 && count <= kFewTerms;
      return whole ? step("mark({}, {}, unroll)", sums, loops[last]) : Status();
    }
    TENON_TRY(step("split({}, {}, {})", sums, loops[last], unrolled));
    const std::vector<Symbol> now = loops_of(sums);
    return step("mark({}, {}, unroll)", sums, now[now.size() - 2 - (loops.size() - last)]);
  }

  TypeContext& context_;
  loop::Schedule& schedule_;
  ProductSteps steps_;
  const ProductStages product_;
  const Machine& machine_;
  const ChooseOption& choose_;
  loop::Function function_;  // into which paths point
  Symbol row_axis_{}, column_axis_{};
  Dim rows_, columns_, terms_ = context_.dim(1);
  size_t num_terms_ = 0;
  BufferId buffer_{};
  bool is_step_ = false;  // of a scan
  int64_t vector_ = 1;
  TileShape shape_;
  std::vector<Symbol> blocks_;  // copies of the results' stage, one for each kind of block
};

}  // namespace

Status schedule_product(TypeContext& context, loop::Schedule& schedule, const ProductStages& product,
                        const Machine& machine, const ChooseOption& choose) {
  if (machine.threads > 0) {
    TENON_TRY_ASSIGN(parts, split_terms(context, schedule, product, machine, choose));
    if (const auto instruction = matrix_product(context, schedule, *parts, machine))
      return schedule_matrix_product(context, schedule, *parts, *instruction, machine, choose);
    return schedule_product_of_threads(context, schedule, *parts, machine, choose);
  }
  return ProductTemplate(context, schedule, product, machine, choose).run();
}

}  // namespace tenon::compiler::schedules
