#include "compiler/schedules/sliding_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/tree.h"
#include "compiler/loop/verify.h"
#include "compiler/schedules/product_steps.h"
#include "compiler/schedules/register_tile.h"
#include "support/try.h"

namespace tenon::compiler::schedules {
namespace {

constexpr int64_t kMostRows = 7;            // of a tile, which hide the latency of a sum
constexpr int64_t kShortRow = 16;           // elements of a row that is copied in few registers
constexpr int64_t kSmallWindow = 9;         // kernel taps
constexpr int64_t kMostChannels = 16;       // whose elements are computed together
constexpr int64_t kMostUnrolledColumn = 7;  // of a window's column
constexpr int64_t kMostUnrolledEdge = 16;   // columns of a window at the boundary, whose masks are constants then

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

class WindowTemplate {
 public:
  WindowTemplate(TypeContext& context, loop::Schedule& schedule, const WindowStages& windows, const Machine& machine,
                 const ChooseOption& choose)
      : context_(context),
        schedule_(schedule),
        steps_(context, schedule),
        windows_(windows),
        machine_(machine),
        choose_(choose) {}

  Status run() {
    TENON_TRY(read_sizes());
    choose_tile();
    TENON_TRY(group_channels());
    TENON_TRY(make_parallel());
    if (lanes_ > columns_) TENON_TRY(step("pad({}, {}, {})", windows_.sums, column_axis_, lanes_));
    TENON_TRY(make_blocks());
    std::vector<Symbol> tiles;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      TENON_TRY_ASSIGN(sums, compute_in_registers(blocks_[i], i + 1 == blocks_.size()));
      tiles.push_back(*sums);
    }
    TENON_TRY(compute_elements());
    return cut_at_boundaries(tiles);
  }

 private:
  template <class... Args>
  Status step(std::string_view format, const Args&... args) {
    return steps_.step(format, args...);
  }
  std::vector<Symbol> loops_of(Symbol stage) { return steps_.loops_of(stage); }

  Status read_sizes() {
    TENON_TRY_ASSIGN(axes, steps_.axes_of(windows_.sums));
    const auto rows = axes->rows.extent.constant(), columns = axes->columns.extent.constant();
    if (!rows || !columns || axes->terms.empty() || axes->terms.size() > 2)
      return error("the rows and columns of sliding windows must be constant, and the terms their kernel taps");
    rows_ = *rows, columns_ = *columns, num_terms_ = axes->terms.size(), buffer_ = axes->buffer;
    for (const loop::Axis& axis : axes->terms) {
      const int64_t size = axis.extent.constant().value_or(1 << 10);
      window_size_ *= size, window_rows_ = size;
    }
    if (num_terms_ == 1) window_rows_ = 1;
    batch_ = axes->batch, num_outer_ = batch_.size(), column_axis_ = axes->columns.var;
    return find_elements();
  }

  // Finds the stage that computes the elements which windows read, if there is one. Windows with a stride read a copy
  // of their channel instead of x in place: it has the columns of each remainder by the stride side by side, so that
  // adjacent windows read adjacent elements.
  Status find_elements() {
    loop::Function& function = steps_.function();
    const auto path = loop::find_stage(context_, function, windows_.sums);
    std::optional<loop::BufferId> read;
    loop::for_each_access(path->stage(), [&](const loop::Access& access) {
      if (access.writes || access.buffer == buffer_ || !loop::mentions(access.indices, column_axis_)) return;
      read = access.buffer;
      const auto index = context_.linear_in(column_axis_, access.indices.back());
      stride_ = index ? index->first.constant().value_or(1) : 1;
    });
    if (!read) return {};
    if (!steps_.private_producer(*read) && (stride_ == 1 || selects_columns())) return {};
    TENON_TRY_ASSIGN(stage, steps_.producer_or_copy(windows_.sums, *read));
    elements_ = {*stage, steps_.assignment_of(*stage).buffer};
    const loop::Function& now = schedule_.function();
    // Words of bytes are shuffled out of adjacent ones, whatever the stride.
    const bool has_words =
        runtime::bytes(now.buffer(elements_->second).dtype) == 1 && now.buffer(buffer_).dtype == runtime::DType::kI32;
    if (has_words) stride_ = 1;
    return {};
  }

  // Whether windows with a stride select the elements of a row by shuffles, in place: one shuffle for a register of 64
  // bytes, and more for others, which few kernel taps of short rows repay.
  bool selects_columns() const { return machine_.wide() || (window_size_ <= kSmallWindow && columns_ <= kShortRow); }

  // --- Tiles ---

  // A vector is a register, of which rows that are shorter, but longer than its half, use a part. Masked loads and
  // stores of any part are cheap with 64 bytes, where masks are an operand of every instruction.
  void choose_tile() {
    const auto bytes = static_cast<int64_t>(runtime::bytes(schedule_.function().buffer(buffer_).dtype));
    lanes_ = std::max<int64_t>(machine_.vector_bytes / bytes, 1);
    if (columns_ < lanes_) {
      const auto size = static_cast<uint64_t>(columns_);
      lanes_ =
          static_cast<int64_t>(machine_.wide() || 2 * columns_ > lanes_ ? std::bit_ceil(size) : std::bit_floor(size));
    }
    // Beside the sums, registers hold the weights of a column of kernel taps, and the elements that they multiply;
    // those of the whole window where there are many registers, since small maps have no loop of columns.
    const int64_t weights = machine_.wide() && window_size_ + 6 < machine_.registers ? window_size_ : window_rows_;
    const int64_t most = std::clamp<int64_t>(machine_.registers - weights - 3, 1, kMostRows);
    if (rows_ == 1) {
      // The tile of a single row consists of several vectors instead.
      vectors_ = std::clamp<int64_t>(columns_ / lanes_, 1, most);
      const int64_t tiles = divide_up(columns_, vectors_ * lanes_);
      vectors_ = std::min(vectors_, divide_up(divide_up(columns_, tiles), lanes_));
      return;
    }
    std::vector<Option> options;
    for (int64_t rows = 1; rows <= std::min(most, rows_); ++rows) {
      // For one kernel tap: a tile loads its rows and those of the halo. Sums of consecutive tiles overlap in time, so
      // that half of the latency is hidden. A tail is code of its own.
      const int64_t tail = rows_ % rows;
      const auto cycles = [&](int64_t size) {
        return std::max(static_cast<double>(size) / machine_.multiply_adds, machine_.latency / 2) +
               static_cast<double>(size + window_rows_ - 1) / machine_.loads / static_cast<double>(window_rows_);
      };
      options.push_back({fmt::format("{}", rows),
                         static_cast<double>(rows_ / rows) * cycles(rows) + (tail > 0 ? cycles(tail) + 1 : 0)});
    }
    tile_rows_ = static_cast<int64_t>(choose_("rows", options)) + 1;
  }

  // --- Blocks ---

  static double count(Dim dim) { return static_cast<double>(dim.constant().value_or(1 << 10)); }

  // Where a stage computes elements, those of several small channels are computed before the first of them is read:
  // loads need not wait for recent stores.
  Status group_channels() {
    if (!elements_ || batch_.empty()) return {};
    const int64_t channels = batch_.back().extent.constant().value_or(1);
    int64_t group = std::clamp<int64_t>(elements_in(machine_.l1_bytes) / 2 / size_of_elements(), 1, kMostChannels);
    while (channels % group > 0) --group;
    if (group == 1) return {};
    ++num_outer_;
    return step("split({}, {}, {})", windows_.results, loops_of(windows_.results)[batch_.size() - 1], group);
  }
  // The elements of a channel.
  int64_t size_of_elements() const {
    const loop::Function& function = schedule_.function();
    const loop::Buffer& elements = function.buffer(elements_->second);
    int64_t size = 1;
    for (size_t axis = batch_.size(); axis < elements.rank(); ++axis)
      size *= elements.axes[axis].extent.constant().value_or(loop::kMaxStack + 1);
    return size;
  }

  // Images are parallel if there are several, else channels.
  Status make_parallel() {
    double terms = static_cast<double>(window_size_ * rows_ * columns_);
    for (const loop::Axis& axis : batch_) terms *= count(axis.extent);
    if (terms < kParallelTerms || batch_.empty()) return {};
    const size_t loop = batch_.size() > 1 && batch_[0].extent.constant() == 1 ? 1 : 0;
    return step("mark({}, {}, parallel)", windows_.results, loops_of(windows_.results)[loop]);
  }

  // The loop in blocks of a size, of which the last one overlaps where the size does not divide the extent.
  Expected<std::vector<Symbol>> split_overlapping(Symbol stage, Symbol loop, int64_t size, int64_t extent) {
    const bool overlaps = size <= extent && extent % size != 0;
    return steps_.split(stage, loop, fmt::format("{}{}", size, overlaps ? ", overlap" : ""));
  }

  // The loops of each copy end with: blocks of rows, blocks of columns, rows, columns.
  Status make_blocks() {
    const size_t first = num_outer_;
    if (vectors_ > 1) {
      const Symbol columns = loops_of(windows_.results)[first + 1];
      TENON_TRY_ASSIGN(copies, split_overlapping(windows_.results, columns, vectors_ * lanes_, columns_));
      for (const Symbol copy : *copies) TENON_TRY(step("split({}, {}, {})", copy, loops_of(copy).back(), lanes_));
      blocks_ = *copies;
      return {};
    }
    const int64_t tail = rows_ % tile_rows_;
    const Symbol rows = loops_of(windows_.results)[first];
    TENON_TRY_ASSIGN(bands,
                     steps_.split(windows_.results, rows,
                                  tail == 0 ? fmt::format("{}", tile_rows_) : fmt::format("{}, {}", tile_rows_, tail)));
    for (const Symbol band : *bands) {
      std::vector<Symbol> loops = loops_of(band);
      TENON_TRY(step("reorder({}, {}, {})", band, loops[first + 2], loops[first + 1]));
      TENON_TRY_ASSIGN(copies, split_overlapping(band, loops[first + 2], lanes_, columns_));
      for (const Symbol copy : *copies) {
        loops = loops_of(copy);
        TENON_TRY(step("reorder({}, {}, {})", copy, loops[first + 3], loops[first + 2]));
        blocks_.push_back(copy);
      }
    }
    return {};
  }

  // The sums of each block in registers; returns their stage.
  Expected<Symbol> compute_in_registers(Symbol block, bool last) {
    const std::vector<Symbol> loops = loops_of(block);
    const Symbol rows = loops[loops.size() - 2], columns = loops.back(), around = loops[loops.size() - 3];
    Symbol sums = windows_.sums;
    if (!last) {
      TENON_TRY_ASSIGN(copy, steps_.stage_of_step("clone({}, {})", windows_.sums, block));
      sums = *copy;
    }
    TENON_TRY(step("compute_at({}, {}, {})", sums, block, around));
    const Symbol buffer = last ? schedule_.function().buffer(buffer_).name : sums;
    TENON_TRY(step("store_at({}, {}, {}, registers)", block, buffer, around));
    // The loops of the sums end with rows, columns, and the columns and rows of the window.
    std::vector<Symbol> own = loops_of(sums);
    Symbol tile_row = own[own.size() - num_terms_ - 2], tile_column = own[own.size() - num_terms_ - 1];
    const Symbol window_column = own[own.size() - num_terms_], window_row = own.back();
    if (vectors_ > 1) {
      TENON_TRY(step("split({}, {}, {})", sums, tile_column, lanes_));
      own = loops_of(sums);
      tile_row = own[own.size() - num_terms_ - 2], tile_column = own[own.size() - num_terms_ - 1];
    }
    // A row of the tile is next to the rows of the window, which share elements with those of the next row.
    std::vector<Symbol> order{window_column, tile_row};
    if (num_terms_ > 1) order.push_back(window_row);
    order.push_back(tile_column);
    TENON_TRY(step("reorder({}, {})", sums, steps_.joined(order)));
    TENON_TRY_ASSIGN(init, steps_.stage_of_step("split_init({}, {})", sums, window_column));
    TENON_TRY(step("mark({}, {}, unroll)", *init, tile_row));
    TENON_TRY(step("mark({}, {}, vector)", *init, tile_column));
    TENON_TRY(step("mark({}, {}, unroll)", sums, tile_row));
    if (num_terms_ > 1 && window_rows_ <= kMostUnrolledColumn)
      TENON_TRY(step("mark({}, {}, unroll)", sums, window_row));
    TENON_TRY(step("mark({}, {}, vector)", sums, tile_column));
    TENON_TRY(step("mark({}, {}, unroll)", block, rows));
    TENON_TRY(step("mark({}, {}, vector)", block, columns));
    return sums;
  }

  // Moves the stage that computes elements to the channels, or to the rows, whose elements are in L1 then.
  Status compute_elements() {
    if (!elements_) return {};
    const auto& [stage, buffer] = *elements_;
    const loop::Buffer elements = schedule_.function().buffer(buffer);
    // All blocks of rows are in one loop if there is no tail: then L1 holds at least the elements of one block.
    const bool by_rows = vectors_ == 1 && rows_ % tile_rows_ == 0 && rows_ > tile_rows_ &&
                         size_of_elements() > elements_in(machine_.l1_bytes) / 2;
    const Symbol around = loops_of(blocks_.front())[by_rows ? num_outer_ : batch_.size() - 1];
    TENON_TRY(step("compute_at({}, {}, {})", stage, blocks_.front(), around));
    TENON_TRY(step("store_at({}, {}, {}, {})", blocks_.front(), elements.name, around,
                   size_of_elements() <= loop::kMaxStack / 2 ? "stack" : "heap"));
    std::vector<Symbol> loops = loops_of(stage);
    if (stride_ == 1) {
      // The rows of a channel follow each other; those of a block are those of them that exist.
      if (num_terms_ > 1 && !by_rows) TENON_TRY(step("fuse({}, {}, {})", stage, loops[loops.size() - 2], loops.back()));
      return step("mark({}, {}, vector)", stage, loops_of(stage).back());
    }
    TENON_TRY(step("split({}, {}, {})", stage, loops.back(), stride_));
    loops = loops_of(stage);
    const Symbol remainder = loops.back(), quotient = loops[loops.size() - 2];
    TENON_TRY(step("reorder({}, {}, {})", stage, remainder, quotient));
    TENON_TRY(step("mark({}, {}, unroll)", stage, remainder));
    // Short rows are whole registers that overlap, as the results' are.
    const int64_t size = steps_.extent_of(stage, quotient).constant().value_or(0);
    if (size >= lanes_ && size < kShortRow && size % lanes_ != 0) {
      TENON_TRY_ASSIGN(copies, split_overlapping(stage, quotient, lanes_, size));
      for (const Symbol copy : *copies) TENON_TRY(step("mark({}, {}, vector)", copy, loops_of(copy).back()));
    } else {
      TENON_TRY(step("mark({}, {}, vector)", stage, quotient));
    }
    const size_t last = elements.rank() - 1;
    return step("layout({}, {} -> {} a{}%{} a{}/{})", elements.name, ProductSteps::axes(last + 1),
                ProductSteps::axes(last), last, stride_, last, stride_);
  }

  // --- Boundaries ---

  // Cuts the loop of blocks that is so many loops outside of the sums' innermost one where windows leave the input.
  Status cut(Symbol sums, size_t loops_inside) {
    if (!steps_.stage_names().contains(sums)) return {};
    const std::vector<Symbol> loops = loops_of(sums);
    const Symbol loop = loops[loops.size() - 1 - loops_inside];
    if (!steps_.has_condition_on(sums, loop)) return {};
    return step("partition({}, {})", sums, loop);
  }
  // The stages that partition made of the sums since there were the stages `before`.
  std::vector<Symbol> ranges_of(Symbol sums, const std::set<Symbol>& before) {
    std::vector<Symbol> ranges;
    const std::string name(context_.name(sums));
    for (const Symbol stage : steps_.stage_names()) {
      const std::string_view other = context_.name(stage);
      if (stage == sums ||
          (!before.contains(stage) && (other.starts_with(name + "_head") || other.starts_with(name + "_tail"))))
        ranges.push_back(stage);
    }
    return ranges;
  }

  // Whether the windows of adjacent rows read the same elements: the sum of a tile's row and a window's row is their
  // index.
  bool shares_diagonals(Symbol stage, const std::vector<Symbol>& loops) {
    loop::Function& function = steps_.function();
    const auto path = loop::find_stage(context_, function, stage);
    bool shares = false;
    loop::for_each_access(path->stage(), [&](const loop::Access& access) {
      for (const Dim index : loop::over_loops(context_, path->stage(), access.indices)) {
        const auto row = context_.linear_in(loops[loops.size() - 3], index),
                   window = context_.linear_in(loops[loops.size() - 2], index);
        shares |= row && window && row->first == context_.dim(1) && window->first == context_.dim(1);
      }
    });
    return shares;
  }

  Status cut_at_boundaries(const std::vector<Symbol>& tiles) {
    // Inside the blocks of columns: an image and a channel, the terms, and the rows and columns of the tile.
    const size_t inside_columns = batch_.size() + num_terms_ + 2 + (vectors_ > 1 ? 1 : 0);
    // Tiles of one block of rows, the main one and the overlapping one, are cut together.
    const std::set<Symbol> uncut = steps_.stage_names();
    std::vector<Symbol> bands;
    for (const Symbol tile : tiles) {
      if (vectors_ == 1) TENON_TRY(cut(tile, inside_columns + 1));
    }
    for (const Symbol tile : tiles) std::ranges::copy(ranges_of(tile, uncut), std::back_inserter(bands));
    for (const Symbol band : bands) {
      const std::set<Symbol> others = steps_.stage_names();
      TENON_TRY(cut(band, inside_columns));
      for (const Symbol range : ranges_of(band, others)) TENON_TRY(unroll_window(range));
    }
    return {};
  }

  Status unroll_window(Symbol sums) {
    const std::vector<Symbol> loops = loops_of(sums);
    const Symbol window_column = loops[loops.size() - num_terms_ - 2];
    const int64_t columns = steps_.extent_of(sums, window_column).constant().value_or(1 << 10);
    // Masks are computed in each iteration unless the loop is unrolled.
    if (columns <= kMostUnrolledEdge && steps_.has_condition_on(sums, window_column))
      TENON_TRY(step("mark({}, {}, unroll)", sums, window_column));
    // Along diagonals, a row of elements is loaded once, for all rows of the tile whose windows contain it.
    if (window_rows_ == 1 || tile_rows_ == 1 || window_rows_ > kMostUnrolledColumn || !shares_diagonals(sums, loops))
      return {};
    return step("skew({}, {}, {})", sums, loops[loops.size() - 3], loops[loops.size() - 2]);
  }

  TypeContext& context_;
  loop::Schedule& schedule_;
  ProductSteps steps_;
  const WindowStages windows_;
  const Machine& machine_;
  const ChooseOption& choose_;
  std::vector<loop::Axis> batch_;
  Symbol column_axis_{};
  loop::BufferId buffer_{};
  std::optional<std::pair<Symbol, loop::BufferId>> elements_;  // the stage, and the buffer that it writes
  int64_t rows_ = 1, columns_ = 1;                             // of the results
  int64_t window_size_ = 1, window_rows_ = 1;                  // kernel taps of a window, and of one of its columns
  int64_t lanes_ = 1, vectors_ = 1;                            // of a tile's row
  int64_t tile_rows_ = 1;
  int64_t stride_ = 1;  // of columns
  size_t num_terms_ = 0;
  size_t num_outer_ = 0;        // loops of images and channels around the blocks
  std::vector<Symbol> blocks_;  // copies of the results' stage, one for each kind of block
};

}  // namespace

Status schedule_windows(TypeContext& context, loop::Schedule& schedule, const WindowStages& windows,
                        const Machine& machine, const ChooseOption& choose) {
  return WindowTemplate(context, schedule, windows, machine, choose).run();
}

}  // namespace tenon::compiler::schedules
