#include "compiler/schedules/thread_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/access.h"
#include "compiler/loop/schedule/region.h"
#include "compiler/loop/tree.h"
#include "compiler/schedules/product_steps.h"
#include "support/try.h"

namespace tenon::compiler::schedules {
namespace {

constexpr int64_t kSide = kBlockSide;
constexpr int64_t kWarp = 32, kWarps = kSide * kSide / kWarp;
constexpr int64_t kWords = 4;        // that one instruction loads from shared memory
constexpr double kCopyCycles = 8;    // of a warp that copies an element of a panel: each lane reads another cache line
constexpr int64_t kManyRows = 1024;  // assumed where the number is not constant

// An operand in the order in which the sums read it.
struct Panel {
  Symbol stage{};                                  // that makes the copy in shared memory
  std::optional<size_t> rows, columns, innermost;  // positions of the axes; innermost: of the innermost term
  size_t rank = 0;
  bool is_constant = false;
};

class ThreadProductTemplate {
 public:
  ThreadProductTemplate(TypeContext& context, loop::Schedule& schedule, const ProductStages& product,
                        const Machine& machine, const ChooseOption& choose)
      : context_(context),
        schedule_(schedule),
        steps_(context, schedule),
        product_(product),
        machine_(machine),
        choose_(choose) {}

  Status run() {
    TENON_TRY_ASSIGN(axes, steps_.axes_of(product_.sums));
    axes_ = std::move(*axes);
    if (rows() < kSide || columns() < kSide) return {};  // fewer than a block has threads along them
    select_tile();
    TENON_TRY(copy_operands());
    for (const auto& [axis, size] : {std::pair(&axes_.rows, block_rows()), std::pair(&axes_.columns, block_columns()),
                                     std::pair(&axes_.terms.back(), depth_)})
      TENON_TRY(pad(product_.sums, axis->var, axis->extent, size));
    TENON_TRY(load_constants());
    TENON_TRY(make_blocks());
    TENON_TRY(sum_in_registers());
    for (const Panel& panel : panels_) TENON_TRY(share(panel));
    return bind();
  }

 private:
  template <class... Args>
  Status step(std::string_view format, const Args&... args) {
    return steps_.step(format, args...);
  }
  int64_t block_rows() const { return kSide * tile_rows_; }
  int64_t block_columns() const { return kSide * tile_columns_; }

  Status pad(Symbol stage, Symbol axis, Dim size, int64_t multiple) {
    if (DimProver(context_).divides(context_.dim(multiple), size) == Answer::kYes) return {};
    return step("pad({}, {}, {})", stage, axis, multiple);
  }

  // --- The tile of a thread ---

  int64_t rows() const { return axes_.rows.extent.constant().value_or(kManyRows); }
  int64_t columns() const { return axes_.columns.extent.constant().value_or(kManyRows); }

  void select_tile() {
    const int64_t terms = axes_.terms.back().extent.constant().value_or(kSide);
    depth_ = std::min(kSide, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(terms, 1)))));
    int64_t batch = 1;
    for (const loop::Axis& axis : axes_.batch) batch *= axis.extent.constant().value_or(1);
    std::vector<std::pair<int64_t, int64_t>> tiles;
    std::vector<Option> options;
    for (int64_t r = 2; r <= 8 && (r == 2 || kSide * r < 2 * rows()); r *= 2) {
      for (int64_t c = 2; c <= 8 && (c == 2 || kSide * c < 2 * columns()); c *= 2) {
        tiles.emplace_back(r, c);
        options.push_back({fmt::format("{}x{}", kSide * r, kSide * c), cycles(r, c, batch)});
      }
    }
    std::tie(tile_rows_, tile_columns_) = tiles[choose_("tile", std::move(options))];
  }

  // Cycles for one term of all sums: of the blocks that a multiprocessor computes one after another.
  double cycles(int64_t r, int64_t c, int64_t batch) const {
    const auto ceil_divide = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
    const int64_t blocks = batch * ceil_divide(rows(), kSide * r) * ceil_divide(columns(), kSide * c);
    const auto sums = static_cast<double>(r * c);
    // A warp has two rows of threads: it loads two broadcast words for each of its rows, and 16 words of columns.
    const auto loads = static_cast<double>(ceil_divide(r, kWords)) + static_cast<double>(ceil_divide(kSide * c, kWarp));
    const double copies = kCopyCycles * static_cast<double>(r + c) / static_cast<double>(kSide);
    const double of_block =
        static_cast<double>(kWarps) * std::max(sums / machine_.multiply_adds, loads / machine_.loads) +
        static_cast<double>(kWarps) * copies;
    return static_cast<double>(ceil_divide(blocks, machine_.multiprocessors)) * std::max(of_block, machine_.latency);
  }

  // --- Operands ---

  // Copies each operand, so that its last panels are whole: zeros follow the operand's elements.
  Status copy_operands() {
    std::vector<Symbol> operands;
    loop::Function& function = steps_.function();
    TENON_TRY_ASSIGN(path, loop::find_stage(context_, function, product_.sums));
    loop::for_each_access(path->stage(), [&](const loop::Access& access) {
      if (access.writes || access.buffer == axes_.buffer) return;
      const bool in_rows = loop::mentions(access.indices, axes_.rows.var),
                 in_columns = loop::mentions(access.indices, axes_.columns.var);
      const Symbol name = function.buffer(access.buffer).name;
      if (in_rows != in_columns && std::ranges::find(operands, name) == operands.end()) operands.push_back(name);
    });
    for (const Symbol operand : operands) TENON_TRY(copy(operand));
    return {};
  }

  Expected<Panel> panel_of(Symbol buffer) {
    loop::Function& function = steps_.function();
    TENON_TRY_ASSIGN(path, loop::find_stage(context_, function, product_.sums));
    Panel panel;
    loop::for_each_access(path->stage(), [&](const loop::Access& access) {
      if (access.writes || function.buffer(access.buffer).name != buffer) return;
      panel.rank = access.indices.size();
      for (size_t i = 0; i < access.indices.size(); ++i) {
        const auto var = access.indices[i].variable();
        if (var == axes_.rows.var) panel.rows = i;
        if (var == axes_.columns.var) panel.columns = i;
        if (var == axes_.terms.back().var) panel.innermost = i;
      }
    });
    if (!panel.innermost || panel.rows.has_value() == panel.columns.has_value())
      return error(fmt::format("%{} is not indexed by a row or column and a term", context_.name(buffer)));
    return panel;
  }

  Status copy(Symbol operand) {
    TENON_TRY_ASSIGN(panel, panel_of(operand));
    loop::BufferId from{};
    for (size_t i = 0; i < steps_.function().buffers.size(); ++i)
      if (schedule_.function().buffers[i].name == operand) from = static_cast<loop::BufferId>(i);
    const bool is_constant = schedule_.constants().contains(from);
    std::optional<Symbol> stage = steps_.private_producer(from);
    if (!stage) {
      TENON_TRY_ASSIGN(copy, steps_.stage_of_step("cache_read({}, {})", product_.sums, operand));
      stage = *copy;
    }
    const size_t across = panel->rows ? *panel->rows : *panel->columns;
    const int64_t size = panel->rows ? block_rows() : block_columns();
    // The innermost term is padded last, so that its points are seen to be zero.
    for (const auto& [position, multiple] : {std::pair(across, size), std::pair(*panel->innermost, depth_)}) {
      TENON_TRY_ASSIGN(path, loop::find_stage(context_, steps_.function(), *stage));
      const auto& store = std::get<loop::Store>(path->stage().body[0].form);
      const auto axis = std::ranges::find(path->stage().axes, store.indices[position].variable(), &loop::Axis::var);
      if (axis == path->stage().axes.end())
        return error(fmt::format("the stage '{}' does not write %{} at its axes", context_.name(*stage),
                                 context_.name(operand)));
      const loop::Axis padded = *axis;
      TENON_TRY(pad(*stage, padded.var, padded.extent, multiple));
    }
    panel->is_constant = is_constant;
    panel->stage = *stage;
    panels_.push_back(*panel);
    return {};
  }

  // Constants are copied once, in the order of the panels.
  Status load_constants() {
    for (Panel& panel : panels_) {
      if (!panel.is_constant) continue;
      TENON_TRY(put_lanes_inside(panel.stage, panel));
      TENON_TRY(step("at_load({})", panel.stage));
      TENON_TRY_ASSIGN(shared, steps_.stage_of_step("cache_read({}, {})", product_.sums, panel.stage));
      panel.stage = *shared;
    }
    return {};
  }

  // The rows or columns of a panel become the innermost axis, the innermost term the one around them.
  Status put_lanes_inside(Symbol buffer, Panel& panel) {
    std::optional<size_t>& lanes = panel.rows ? panel.rows : panel.columns;
    std::string order;
    for (size_t i = 0; i < panel.rank; ++i)
      if (i != *lanes && i != *panel.innermost) order += ProductSteps::axis(i) + " ";
    order += ProductSteps::axis(*panel.innermost) + " " + ProductSteps::axis(*lanes);
    if (order != ProductSteps::axes(panel.rank))
      TENON_TRY(step("layout({}, {} -> {})", buffer, ProductSteps::axes(panel.rank), order));
    panel.innermost = panel.rank - 2, lanes = panel.rank - 1;
    return {};
  }

  // --- Blocks and sums ---

  Status make_blocks() {
    std::vector<Symbol> loops = steps_.loops_of(product_.results);
    const size_t first = loops.size() - 2;  // after the batch
    TENON_TRY(step("split({}, {}, {})", product_.results, loops[first], block_rows()));
    TENON_TRY(step("split({}, {}, {})", product_.results, loops[first + 1], block_columns()));
    loops = steps_.loops_of(product_.results);
    TENON_TRY(step("reorder({}, {}, {}, {}, {})", product_.results, loops[first], loops[first + 2], loops[first + 1],
                   loops[first + 3]));
    for (size_t batch = first; batch > 1; --batch) {
      loops = steps_.loops_of(product_.results);
      TENON_TRY(step("fuse({}, {}, {})", product_.results, loops[0], loops[1]));
    }
    blocks_ = steps_.loops_of(product_.results);
    blocks_.resize(blocks_.size() - 2);
    return {};
  }

  // The innermost two loops of rows and columns become those of threads and of a thread's tile.
  Status split_tile(Symbol stage, Symbol row, Symbol column) {
    TENON_TRY(step("split({}, {}, {})", stage, row, tile_rows_));
    return step("split({}, {}, {})", stage, column, tile_columns_);
  }

  Status sum_in_registers() {
    const Symbol results = product_.results, sums = product_.sums, around = blocks_.back();
    TENON_TRY(step("compute_at({}, {}, {})", sums, results, around));
    const Symbol buffer = steps_.function().buffer(axes_.buffer).name;
    TENON_TRY(step("store_at({}, {}, {}, registers)", results, buffer, around));
    const size_t rank = schedule_.function().buffer(axes_.buffer).rank();
    std::string order;
    for (size_t i = 0; i < rank; ++i) {
      const int64_t tile = i + 2 == rank ? tile_rows_ : tile_columns_;
      order += i + 2 < rank ? ProductSteps::axis(i) + " " : fmt::format("a{}/{} a{}%{} ", i, tile, i, tile);
    }
    TENON_TRY(step("layout({}, {} -> {})", buffer, ProductSteps::axes(rank), order));
    std::vector<Symbol> loops = steps_.loops_of(results);
    TENON_TRY(split_tile(results, loops[loops.size() - 2], loops.back()));
    TENON_TRY(order_tile(results, 0));

    loops = steps_.loops_of(sums);
    const size_t num_terms = axes_.terms.size(), first = loops.size() - num_terms - 2;
    TENON_TRY(step("split({}, {}, {})", sums, loops.back(), depth_));
    TENON_TRY(split_tile(sums, loops[first], loops[first + 1]));
    TENON_TRY(order_tile(sums, num_terms));
    loops = steps_.loops_of(sums);
    TENON_TRY_ASSIGN(init, steps_.stage_of_step("split_init({}, {})", sums, loops[first]));
    init_ = *init;
    return {};
  }

  // Rows, tile rows, columns, tile columns, terms -> terms but the last, rows, columns, the last term, tile rows,
  // tile columns.
  Status order_tile(Symbol stage, size_t num_terms) {
    const std::vector<Symbol> loops = steps_.loops_of(stage);
    const size_t count = num_terms > 0 ? num_terms + 1 : 0, first = loops.size() - 4 - count;
    std::vector<Symbol> order;
    for (size_t i = 0; i + 1 < count; ++i) order.push_back(loops[first + 4 + i]);
    order.push_back(loops[first]), order.push_back(loops[first + 2]);
    if (count > 0) order.push_back(loops.back());
    order.push_back(loops[first + 1]), order.push_back(loops[first + 3]);
    return step("reorder({}, {})", stage, steps_.joined(order));
  }

  // --- Shared memory ---

  // The panel of one iteration over the terms: a thread for each term, and for each of 16 rows or columns.
  Status share(const Panel& panel) {
    const std::vector<Symbol> around = steps_.loops_of(product_.sums);
    const Symbol terms = around[around.size() - 6];
    TENON_TRY(step("compute_at({}, {}, {})", panel.stage, product_.sums, terms));
    TENON_TRY(step("store_at({}, {}, {}, shared)", product_.sums, panel.stage, terms));
    const size_t lanes = panel.rows ? *panel.rows : *panel.columns;
    const std::vector<Symbol> loops = steps_.loops_of(panel.stage);
    const size_t first = loops.size() - panel.rank;
    const Symbol lane = loops[first + lanes], term = loops[first + *panel.innermost];
    Panel moved = panel;
    TENON_TRY(put_lanes_inside(panel.stage, moved));
    TENON_TRY(step("split({}, {}, {})", panel.stage, lane, kSide));
    std::vector<Symbol> order{term};
    const std::vector<Symbol> split = steps_.loops_of(panel.stage);
    const size_t at = first + lanes;  // the blocks of lanes, and then the lanes
    order.push_back(split[at + 1]), order.push_back(split[at]);
    for (size_t i = first; i < split.size(); ++i)
      if (std::ranges::find(order, split[i]) == order.end()) order.push_back(split[i]);
    TENON_TRY(step("reorder({}, {})", panel.stage, steps_.joined(order)));
    TENON_TRY(step("mark({}, {}, thread_y)", panel.stage, order[0]));
    TENON_TRY(step("mark({}, {}, thread_x)", panel.stage, order[1]));
    return step("mark({}, {}, unroll)", panel.stage, order[2]);
  }

  Status bind() {
    for (const Symbol stage : {init_, product_.sums, product_.results}) {
      const std::vector<Symbol> loops = steps_.loops_of(stage);
      const size_t threads = loops.size() - (stage == product_.sums ? 5 : 4);
      TENON_TRY(step("mark({}, {}, thread_y)", stage, loops[threads]));
      TENON_TRY(step("mark({}, {}, thread_x)", stage, loops[threads + 1]));
      for (const Symbol loop : {loops[loops.size() - 2], loops.back()})
        TENON_TRY(step("mark({}, {}, unroll)", stage, loop));
    }
    constexpr std::string_view kAxes[] = {"block_x", "block_y", "block_z"};
    for (size_t i = 0; i < blocks_.size(); ++i)
      TENON_TRY(step("mark({}, {}, {})", product_.results, blocks_[i], std::string(kAxes[blocks_.size() - 1 - i])));
    return {};
  }

  TypeContext& context_;
  loop::Schedule& schedule_;
  ProductSteps steps_;
  const ProductStages product_;
  const Machine& machine_;
  const ChooseOption& choose_;
  ProductAxes axes_;
  int64_t tile_rows_ = 2, tile_columns_ = 2, depth_ = kSide;  // depth_: terms of a panel
  std::vector<Panel> panels_;
  std::vector<Symbol> blocks_;  // loops
  Symbol init_{};               // the stage that sets the sums to zero
};

}  // namespace

Status schedule_product_of_threads(TypeContext& context, loop::Schedule& schedule, const ProductStages& product,
                                   const Machine& machine, const ChooseOption& choose) {
  return ThreadProductTemplate(context, schedule, product, machine, choose).run();
}

}  // namespace tenon::compiler::schedules
