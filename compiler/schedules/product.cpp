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

constexpr int64_t kMostCopies = 9;    // of a tile's code, where every remainder of the rows has one
constexpr double kCacheMisses = 1.5;  // estimated slowdown where the inner operand exceeds L2

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
    TENON_TRY(pack_panels());
    const bool whole = DimProver(context_).divides(context_.dim(vector_), columns_) == Answer::kYes;
    if (!whole && product_.panels) TENON_TRY(step("pad({}, {}, {})", product_.sums, column_axis_, vector_));
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
  std::set<Symbol> stage_names() const { return steps_.stage_names(); }
  std::string joined(const std::vector<Symbol>& names) const { return steps_.joined(names); }

  Status read_sizes() {
    TENON_TRY_ASSIGN(axes, steps_.axes_of(product_.sums));
    row_axis_ = axes->rows.var, column_axis_ = axes->columns.var;
    rows_ = axes->rows.extent, columns_ = axes->columns.extent;
    for (const loop::Axis& axis : axes->terms) terms_ = context_.multiply(terms_, axis.extent);
    num_terms_ = axes->terms.size();
    buffer_ = axes->buffer;
    is_step_ = axes->is_step;
    vector_ = lanes_of(schedule_.function().buffer(buffer_).dtype);
    shape_ = select_tile(axes->factors);
    return {};
  }

  TileShape select_tile(Factors factors) {
    const std::vector<TileShape> shapes = tile_shapes(machine_, rows_.constant().value_or(0),
                                                      std::max<int64_t>(columns_.constant().value_or(2 * vector_), 1),
                                                      vector_, {.strided_rows = true, .factors = factors});
    std::vector<Option> options;
    for (const TileShape& shape : shapes)
      options.push_back({fmt::format("{}x{}", shape.rows, shape.vectors), shape.cost()});
    return shapes[choose_("tile", std::move(options))];
  }

  // --- Panels ---

  // Panels of 16 columns, the terms inside: all levels of an executable share one copy of constants.
  Status pack_panels() {
    if (!product_.panels) return {};
    function_ = schedule_.function();
    std::optional<BufferId> from;
    size_t position = 0;
    TENON_TRY_ASSIGN(path, loop::find_stage(context_, function_, product_.sums));
    loop::for_each_access(path->stage(), [&](const loop::Access& access) {
      if (access.writes || function_.buffer(access.buffer).name != *product_.panels) return;
      const auto at = std::ranges::find(access.indices, context_.dim(column_axis_));
      if (at == access.indices.end()) return;
      from = access.buffer, position = static_cast<size_t>(at - access.indices.begin());
    });
    if (!from) return error(fmt::format("%{} is not read at its columns", context_.name(*product_.panels)));
    const bool is_constant = schedule_.constants().contains(*from);
    std::optional<Symbol> stage = steps_.private_producer(*from);
    if (!stage) {
      TENON_TRY_ASSIGN(copy, steps_.stage_of_step("cache_read({}, {})", product_.sums, *product_.panels));
      stage = *copy;
    }
    function_ = schedule_.function();
    TENON_TRY_ASSIGN(writer, loop::find_stage(context_, function_, *stage));
    const auto& store = std::get<loop::Store>(writer->stage().body[0].form);
    const Symbol buffer = function_.buffer(store.buffer).name, axis = *store.indices[position].variable();
    const Dim size = function_.buffer(store.buffer).axes[position].extent;
    if (DimProver(context_).divides(context_.dim(vector_), size) != Answer::kYes)
      TENON_TRY(step("pad({}, {}, {})", *stage, axis, vector_));
    const std::vector<Symbol> loops = loops_of(*stage);
    TENON_TRY(step("split({}, {}, {})", *stage, loops[position], vector_));
    std::vector<Symbol> order = loops_of(*stage);
    std::rotate(order.begin() + static_cast<ptrdiff_t>(position) + 1,
                order.begin() + static_cast<ptrdiff_t>(position) + 2, order.end());
    std::rotate(order.begin(), order.begin() + static_cast<ptrdiff_t>(position),
                order.begin() + static_cast<ptrdiff_t>(position) + 1);
    TENON_TRY(step("reorder({}, {})", *stage, joined(order)));
    std::string panels = fmt::format("a{}/{}", position, vector_);
    for (size_t i = 0; i < loops.size(); ++i)
      if (i != position) panels += " " + ProductSteps::axis(i);
    TENON_TRY(step("layout({}, {} -> {} a{}%{})", buffer, ProductSteps::axes(loops.size()), panels, position, vector_));
    return is_constant ? step("at_load({})", *stage) : Status();
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
    for (int64_t size = tile / 2; size >= vector_; size /= 2) sizes.push_back(size);
    if (DimProver(context_).divides(context_.dim(vector_), columns_) != Answer::kYes) sizes.push_back(vector_);
    return sizes;
  }

  // Blocks of the loop, in copies of the stage, which are returned.
  Expected<std::vector<Symbol>> split(Symbol stage, Symbol loop, const std::vector<int64_t>& sizes) {
    std::set<Symbol> before = stage_names();
    TENON_TRY(step("split({}, {}, {})", stage, loop, fmt::format("{}", fmt::join(sizes, ", "))));
    std::vector<Symbol> stages{stage};
    for_each_statement(schedule_.function().body, [&](const loop::Stmt& stmt) {
      const auto* copy = std::get_if<loop::Stage>(&stmt.form);
      if (copy && before.insert(copy->name).second) stages.push_back(copy->name);
    });
    return stages;
  }

  static double count(Dim dim) { return static_cast<double>(dim.constant().value_or(1 << 10)); }

  Status make_blocks() {
    std::vector<Symbol> loops = loops_of(product_.results);
    const size_t first = loops.size() - 2;  // the batch is before it
    double sums = count(terms_);
    for (const Symbol loop : loops) sums *= count(extent_of(product_.results, loop));
    // The steps of a scan are too short for threads, which would mostly wait for each other.
    bool parallel = sums >= kParallelTerms && !is_step_;
    for (size_t i = 0; i < first && parallel; ++i) {
      const Dim images = extent_of(product_.results, loops[i]);
      // An unknown batch is one image more often than not: rows of which there may be many keep the threads busy.
      const bool has_rows = i + 1 < first || rows_in_blocks().constant().value_or(kTasks) >= kTasks;
      if ((!images.constant() && has_rows) || !has_enough(images, {rows_in_blocks(), columns_in_blocks()})) continue;
      TENON_TRY(step("mark({}, {}, parallel)", product_.results, loops[i]));
      parallel = false;
    }
    const int64_t l2_elements = elements_in(machine_.l2_bytes);
    const auto elements = [&](Dim size) {
      return size.constant().value_or(l2_elements) * terms_.constant().value_or(1);
    };
    // Each iteration of the outer loop reads the inner operand again: the columns are inner only where L2 holds them.
    const bool tall = elements(columns_) <= l2_elements && elements(rows_) > l2_elements;
    const bool rows_first =
        choose_("outer", {{"columns", tall ? kCacheMisses : 1}, {"rows", tall ? 1 : kCacheMisses}}) == 1;
    if (!rows_first) TENON_TRY(step("reorder({}, {}, {})", product_.results, loops[first + 1], loops[first]));
    loops = loops_of(product_.results);
    TENON_TRY_ASSIGN(outer, split(product_.results, loops[first], rows_first ? row_blocks() : column_blocks()));
    for (size_t i = 0; i < outer->size(); ++i) {
      const Symbol stage = (*outer)[i];
      std::vector<Symbol> inside = loops_of(stage);
      bool inner_parallel = parallel;
      const Dim blocks = extent_of(stage, inside[first]);
      if (parallel && (i == 0 || blocks.constant()) &&
          has_enough(blocks, {rows_first ? columns_in_blocks() : rows_in_blocks()})) {
        TENON_TRY(step("mark({}, {}, parallel)", stage, inside[first]));
        inner_parallel = false;
      }
      TENON_TRY(step("reorder({}, {}, {}, {})", stage, inside[first], inside[first + 2], inside[first + 1]));
      TENON_TRY_ASSIGN(inner, split(stage, inside[first + 2], rows_first ? column_blocks() : row_blocks()));
      for (size_t k = 0; k < inner->size(); ++k) {
        const std::vector<Symbol> tile = loops_of((*inner)[k]);
        const Dim inner_blocks = extent_of((*inner)[k], tile[first + 1]);
        if (inner_parallel && (k == 0 || inner_blocks.constant()) && has_enough(inner_blocks, {}))
          TENON_TRY(step("mark({}, {}, parallel)", (*inner)[k], tile[first + 1]));
        if (rows_first) TENON_TRY(step("reorder({}, {}, {})", (*inner)[k], tile[first + 3], tile[first + 2]));
        blocks_.push_back((*inner)[k]);
      }
    }
    return {};
  }
  Dim rows_in_blocks() const { return context_.ceil_divide(rows_, shape_.rows); }
  Dim columns_in_blocks() const { return context_.ceil_divide(columns_, shape_.vectors * vector_); }
  // Whether the iterations of a loop keep many threads busy, or are more than those of the loops inside.
  static bool has_enough(Dim count, std::initializer_list<Dim> inner) {
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
    TENON_TRY(step("compute_at({}, {}, {})", sums, block, around));
    const Symbol buffer = last ? schedule_.function().buffer(buffer_).name : sums;
    TENON_TRY(step("store_at({}, {}, {}, registers)", block, buffer, around));
    std::vector<Symbol> own = loops_of(sums);
    const auto terms = own.end() - static_cast<ptrdiff_t>(num_terms_), tile = terms - 2;
    const Symbol row = tile[0], column = tile[1], term = terms[0];
    std::vector<Symbol> order(terms, own.end());
    order.push_back(row), order.push_back(column);
    TENON_TRY(step("reorder({}, {})", sums, joined(order)));
    TENON_TRY_ASSIGN(init, steps_.stage_of_step("split_init({}, {})", sums, term));
    TENON_TRY(step("mark({}, {}, unroll)", *init, row));
    TENON_TRY(step("mark({}, {}, vector)", *init, column));
    TENON_TRY(step("mark({}, {}, unroll)", sums, row));
    TENON_TRY(step("mark({}, {}, vector)", sums, column));
    TENON_TRY(step("mark({}, {}, unroll)", block, rows));
    TENON_TRY(step("mark({}, {}, vector)", block, columns));
    return unroll_terms(sums, order[num_terms_ - 1]);
  }

  // Unrolls the loop over the terms where their count is known: a term has few instructions beside those of the loop.
  Status unroll_terms(Symbol sums, Symbol loop) {
    const int64_t count = extent_of(sums, loop).constant().value_or(0), unrolled = unrolled_terms(count);
    if (unrolled == 1) return {};
    TENON_TRY(step("split({}, {}, {})", sums, loop, unrolled));
    const std::vector<Symbol> loops = loops_of(sums);
    return step("mark({}, {}, unroll)", sums, loops[loops.size() - 3]);
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
