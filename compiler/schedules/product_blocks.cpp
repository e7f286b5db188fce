#include "compiler/schedules/product_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/access.h"
#include "compiler/loop/schedule/region.h"
#include "compiler/loop/tree.h"
#include "support/try.h"

namespace tenon::compiler::schedules {
namespace {

constexpr int64_t kMany = 1024;             // assumed where a number is not constant
constexpr int64_t kSharedBytes = 48 << 10;  // that a block has without asking for more

std::string with_axis(std::string layout, const std::string& axis) {
  for (size_t at = layout.find('#'); at != std::string::npos; at = layout.find('#', at + axis.size()))
    layout.replace(at, 1, axis);
  return layout;
}

}  // namespace

int64_t ProductBlocks::rows() const { return axes_.rows.extent.constant().value_or(kMany); }
int64_t ProductBlocks::columns() const { return axes_.columns.extent.constant().value_or(kMany); }
int64_t ProductBlocks::terms() const { return axes_.terms.back().extent.constant().value_or(kMany); }
int64_t ProductBlocks::batch() const {
  int64_t result = 1;
  for (const loop::Axis& axis : axes_.batch) result *= axis.extent.constant().value_or(1);
  return result;
}
int64_t ProductBlocks::blocks_of(int64_t block_rows, int64_t block_columns) const {
  return batch() * ceil_divide(rows(), block_rows) * ceil_divide(columns(), block_columns);
}
double ProductBlocks::cycles_of(int64_t block_rows, int64_t block_columns, double computes, double waits,
                                int64_t at_a_time) const {
  const int64_t blocks = ceil_divide(blocks_of(block_rows, block_columns), machine_.multiprocessors);
  return std::max(static_cast<double>(blocks) * computes,
                  static_cast<double>(ceil_divide(blocks, at_a_time)) * (computes + waits));
}
int64_t ProductBlocks::blocks_at_a_time(int64_t threads, int64_t registers) {
  constexpr int64_t kRegisters = 65536;  // of a multiprocessor
  return kRegisters / (threads * registers);
}

Status ProductBlocks::pad(Symbol stage, Symbol axis, Dim size, int64_t multiple) {
  if (DimProver(context_).divides(context_.dim(multiple), size) == Answer::kYes) return {};
  return step("pad({}, {}, {})", stage, axis, multiple);
}

// --- Panels ---

// The buffers that the sums index by rows, or by columns.
std::vector<Symbol> ProductBlocks::operands() {
  std::vector<Symbol> names;
  loop::Function& function = steps_.function();
  const auto path = loop::find_stage(context_, function, product_.sums);
  if (!path) return names;
  loop::for_each_access(path->stage(), [&](const loop::Access& access) {
    if (access.writes || access.buffer == axes_.buffer) return;
    const bool in_rows = loop::mentions(access.indices, axes_.rows.var),
               in_columns = loop::mentions(access.indices, axes_.columns.var);
    const Symbol name = function.buffer(access.buffer).name;
    if (in_rows != in_columns && std::ranges::find(names, name) == names.end()) names.push_back(name);
  });
  return names;
}

loop::BufferId ProductBlocks::buffer_of(Symbol operand) const {
  const auto& buffers = schedule_.function().buffers;
  return static_cast<loop::BufferId>(std::ranges::find(buffers, operand, &loop::Buffer::name) - buffers.begin());
}

Status ProductBlocks::transpose_constants() {
  for (const Symbol operand : operands()) {
    const auto panel = panel_of(operand);
    const bool is_constant = schedule_.constants().contains(buffer_of(operand));
    if (!panel || panel->of_rows || !is_constant || panel->lanes + 1 == panel->rank) continue;
    Panel copied = *panel;
    TENON_TRY_ASSIGN(stage, steps_.stage_of_step("cache_read({}, {})", product_.sums, operand));
    copied.stage = *stage;
    TENON_TRY(lay_out(copied, "#", Innermost::kLanes));
    TENON_TRY(step("at_load({})", copied.stage));
  }
  return {};
}

Status ProductBlocks::make_panels(int64_t block_rows, int64_t block_columns, int64_t depth, Innermost innermost) {
  for (const Symbol operand : operands()) TENON_TRY(copy(operand, block_rows, block_columns, depth));
  TENON_TRY(pad(product_.sums, axes_.rows.var, axes_.rows.extent, block_rows));
  TENON_TRY(pad(product_.sums, axes_.columns.var, axes_.columns.extent, block_columns));
  TENON_TRY(pad(product_.sums, axes_.terms.back().var, axes_.terms.back().extent, depth));
  return load_constants(innermost);
}

Expected<ProductBlocks::Panel> ProductBlocks::panel_of(Symbol operand) {
  loop::Function& function = steps_.function();
  TENON_TRY_ASSIGN(path, loop::find_stage(context_, function, product_.sums));
  std::optional<size_t> rows, columns, term;
  Panel panel;
  loop::for_each_access(path->stage(), [&](const loop::Access& access) {
    if (access.writes || function.buffer(access.buffer).name != operand) return;
    panel.rank = access.indices.size();
    for (size_t i = 0; i < access.indices.size(); ++i) {
      const auto var = access.indices[i].variable();
      if (var == axes_.rows.var) rows = i;
      if (var == axes_.columns.var) columns = i;
      // A part of the terms is read at its first one plus the term.
      const Dim first = context_.subtract(access.indices[i], context_.dim(axes_.terms.back().var));
      if (!loop::mentions({&first, 1}, axes_.terms.back().var)) term = i;
    }
  });
  if (!term || rows.has_value() == columns.has_value())
    return error(fmt::format("%{} is not indexed by a row or column and a term", context_.name(operand)));
  panel.of_rows = rows.has_value(), panel.lanes = rows ? *rows : *columns, panel.term = *term;
  return panel;
}

// The axis of the stage at which it writes this axis of its buffer.
std::optional<loop::Axis> ProductBlocks::axis_at(Symbol stage, size_t position) {
  const auto path = loop::find_stage(context_, steps_.function(), stage);
  const auto* store = path ? std::get_if<loop::Store>(&path->stage().body[0].form) : nullptr;
  if (!store) return std::nullopt;
  const auto axis = std::ranges::find(path->stage().axes, store->indices[position].variable(), &loop::Axis::var);
  return axis == path->stage().axes.end() ? std::nullopt : std::optional(*axis);
}

bool ProductBlocks::reads_adjacent_terms(const Panel& panel) {
  const auto term = axis_at(panel.stage, panel.term);
  const auto path = loop::find_stage(context_, steps_.function(), panel.stage);
  const auto copied = loop::copied_element(std::get<loop::Store>(path->stage().body[0].form).value);
  return copied && term && !copied->element->indices.empty() && copied->element->indices.back().variable() == term->var;
}

Status ProductBlocks::copy(Symbol operand, int64_t block_rows, int64_t block_columns, int64_t depth) {
  TENON_TRY_ASSIGN(panel, panel_of(operand));
  const loop::BufferId from = buffer_of(operand);
  panel->is_constant = schedule_.constants().contains(from);
  auto producer = steps_.private_producer(from);
  if (producer && (!axis_at(*producer, panel->lanes) || !axis_at(*producer, panel->term))) producer.reset();
  if (!producer) {
    TENON_TRY_ASSIGN(copied, steps_.stage_of_step("cache_read({}, {})", product_.sums, operand));
    producer = *copied;
  }
  panel->stage = *producer;
  panel->has_adjacent_terms = !panel->is_constant && reads_adjacent_terms(*panel);
  const loop::Axis lanes = *axis_at(panel->stage, panel->lanes);
  TENON_TRY(pad(panel->stage, lanes.var, lanes.extent, panel->of_rows ? block_rows : block_columns));
  const loop::Axis term = *axis_at(panel->stage, panel->term);  // last, so that its points are seen to be zero
  TENON_TRY(pad(panel->stage, term.var, term.extent, depth));
  panels_.push_back(*panel);
  return {};
}

Status ProductBlocks::load_constants(Innermost innermost) {
  for (Panel& panel : panels_) {
    if (!panel.is_constant) continue;
    TENON_TRY(lay_out(panel, "#", innermost));
    TENON_TRY(step("at_load({})", panel.stage));
    TENON_TRY_ASSIGN(shared, steps_.stage_of_step("cache_read({}, {})", product_.sums, panel.stage));
    panel = laid_out(panel, innermost);
    panel.stage = *shared;
  }
  return {};
}

ProductBlocks::Panel ProductBlocks::laid_out(Panel panel, Innermost innermost) {
  const bool lanes_inside = innermost == Innermost::kLanes;
  panel.lanes = panel.rank - (lanes_inside ? 1 : 2), panel.term = panel.rank - (lanes_inside ? 2 : 1);
  return panel;
}

Status ProductBlocks::lay_out(const Panel& panel, const std::string& lanes_layout, Innermost innermost,
                              const std::string& term_layout) {
  const std::string lanes = with_axis(lanes_layout, ProductSteps::axis(panel.lanes)),
                    term = with_axis(term_layout, ProductSteps::axis(panel.term));
  std::string order;
  for (size_t i = 0; i < panel.rank; ++i)
    if (i != panel.lanes && i != panel.term) order += ProductSteps::axis(i) + " ";
  order += innermost == Innermost::kLanes ? term + " " + lanes : lanes + " " + term;
  if (order == ProductSteps::axes(panel.rank)) return {};
  return step("layout({}, {} -> {})", panel.stage, ProductSteps::axes(panel.rank), order);
}

Expected<std::pair<Symbol, Symbol>> ProductBlocks::share(const Panel& panel, Symbol terms_loop) {
  if (Status status = step("compute_at({}, {}, {})", panel.stage, product_.sums, terms_loop); !status)
    return std::unexpected(std::move(status.error()));
  if (Status status = step("store_at({}, {}, {}, shared)", product_.sums, panel.stage, terms_loop); !status)
    return std::unexpected(std::move(status.error()));
  const std::vector<Symbol> loops = steps_.loops_of(panel.stage);
  const size_t first = loops.size() - panel.rank;
  return std::pair(loops[first + panel.lanes], loops[first + panel.term]);
}

// --- Blocks, sums and threads ---

Status ProductBlocks::make_blocks(int64_t block_rows, int64_t block_columns) {
  std::vector<Symbol> loops = steps_.loops_of(product_.results);
  const size_t first = loops.size() - 2;  // after the batch
  TENON_TRY(step("split({}, {}, {})", product_.results, loops[first], block_rows));
  TENON_TRY(step("split({}, {}, {})", product_.results, loops[first + 1], block_columns));
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

Status ProductBlocks::put_sums_into_registers(const std::string& rows_layout, const std::string& columns_layout) {
  TENON_TRY(step("compute_at({}, {}, {})", product_.sums, product_.results, blocks_.back()));
  const loop::Buffer& sums = steps_.function().buffer(axes_.buffer);
  const Symbol name = sums.name;
  const size_t rank = sums.rank();
  TENON_TRY(step("store_at({}, {}, {}, registers)", product_.results, name, blocks_.back()));
  std::string order;
  for (size_t i = 0; i + 2 < rank; ++i) order += ProductSteps::axis(i) + " ";
  order += with_axis(rows_layout, ProductSteps::axis(rank - 2)) + " " +
           with_axis(columns_layout, ProductSteps::axis(rank - 1));
  return step("layout({}, {} -> {})", name, ProductSteps::axes(rank), order);
}

Expected<std::vector<Symbol>> ProductBlocks::split(Symbol stage, Symbol loop, const std::vector<int64_t>& factors) {
  std::vector<Symbol> result;
  for (const int64_t factor : factors) {
    const std::vector<Symbol> before = steps_.loops_of(stage);
    if (Status status = step("split({}, {}, {})", stage, loop, factor); !status)
      return std::unexpected(std::move(status.error()));
    const auto at = static_cast<size_t>(std::ranges::find(before, loop) - before.begin());
    const std::vector<Symbol> after = steps_.loops_of(stage);
    result.push_back(after[at]);
    loop = after[at + 1];
  }
  result.push_back(loop);
  return result;
}

Status ProductBlocks::copy_ahead(Symbol terms_loop) {
  const loop::Function& function = steps_.function();
  std::vector<Symbol> in_order;
  bool are_copies = true;
  int64_t bytes = 0;
  for_each_statement(function.body, [&](const loop::Stmt& stmt) {
    const auto* stage = std::get_if<loop::Stage>(&stmt.form);
    if (!stage || std::ranges::find(panels(), stage->name, &Panel::stage) == panels().end()) return;
    in_order.push_back(stage->name);
    const auto& store = std::get<loop::Store>(stage->body.front().form);
    are_copies &= loop::copied_element(store.value).has_value();
    const loop::Buffer& panel = function.buffer(store.buffer);
    bytes += loop::constant_elements(panel).value_or(kSharedBytes) * static_cast<int64_t>(runtime::bytes(panel.dtype));
  });
  if (!are_copies) return {};
  const int64_t buffers = 3 * bytes <= kSharedBytes ? 3 : 2;
  for (const Symbol stage : in_order)
    if (!step("pipeline({}, {}, {}, async)", stage, terms_loop, buffers)) break;  // it and later ones wait for copies
  return {};
}

Status ProductBlocks::bind_threads(Symbol stage, const std::vector<Symbol>& loops,
                                   const std::vector<Symbol>& unrolled) {
  constexpr std::string_view kAxes[] = {"thread_x", "thread_y", "thread_z"};
  for (size_t i = 0; i < loops.size(); ++i)
    TENON_TRY(step("mark({}, {}, {})", stage, loops[i], std::string(kAxes[loops.size() - 1 - i])));
  for (const Symbol loop : unrolled) TENON_TRY(step("mark({}, {}, unroll)", stage, loop));
  return {};
}

Status ProductBlocks::bind_blocks() {
  constexpr std::string_view kAxes[] = {"block_x", "block_y", "block_z"};
  for (size_t i = 0; i < blocks_.size(); ++i)
    TENON_TRY(step("mark({}, {}, {})", product_.results, blocks_[i], std::string(kAxes[blocks_.size() - 1 - i])));
  return {};
}

}  // namespace tenon::compiler::schedules
