#include "compiler/backends/llvm/fit_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::native {
namespace {

using loop::Alloc;
using loop::Axis;
using loop::Body;
using loop::For;
using loop::LoopKind;
using loop::Stage;
using loop::Stmt;

// acc[rows, lanes], with one loop for each axis in every nest of the Alloc; the row axis is optional.
struct Tile {
  std::optional<Symbol> row;
  Symbol lane{};
  int64_t rows = 1, lanes = 1;
  int64_t unrolled = 1;     // terms of a sum in unrolled loops: of a window, whose neighbours share elements
  bool dots = false;        // sums of products of bytes
  bool saturating = false;  // these saturate to 16 bits
  bool pairs = false;       // sums of products of i16
};

// The rows and vectors of a smaller tile.
struct Shape {
  int64_t rows = 1, vectors = 1;
};

class Fitter {
 public:
  Fitter(TypeContext& context, loop::Function function, const Machine& machine)
      : context_(context), function_(std::move(function)), machine_(machine) {}

  loop::Function run() {
    for_each_statement(function_.body, [&](const Stmt& stmt) {
      if (const auto* stage = std::get_if<Stage>(&stmt.form)) stages_.insert(stage->name);
    });
    fit(function_.body);
    return std::move(function_);
  }

 private:
  void fit(Body& body) {
    Body fitted;
    for (Stmt& stmt : body) {
      auto* alloc = std::get_if<Alloc>(&stmt.form);
      if (auto tiles = alloc ? split(*alloc) : std::nullopt) {
        std::ranges::move(*tiles, std::back_inserter(fitted));
      } else {
        for_each_body(stmt, [&](Body& inner) { fit(inner); });
        fitted.push_back(std::move(stmt));
      }
    }
    body = std::move(fitted);
  }

  // The tile, if its stages share only the accumulators, each of which has its own element.
  std::optional<Tile> tile_of(Alloc& alloc) const {
    const loop::Buffer& buffer = function_.buffer(alloc.buffer);
    if (alloc.scope != loop::Scope::kRegisters || buffer.rank() < 1 || buffer.rank() > 2) return std::nullopt;
    Tile tile;
    std::map<Symbol, const For*> loops;
    std::set<loop::BufferId> read, written;
    bool valid = true;
    for (const Stmt& stmt : alloc.body)
      read.merge(loop::buffers_read(stmt)), written.merge(loop::buffers_written(stmt));
    for_each_statement(alloc.body, [&](Stmt& stmt) {
      if (const auto* loop = std::get_if<For>(&stmt.form)) {
        const auto [found, is_new] = loops.emplace(loop->var, loop);
        valid &= is_new || (found->second->extent == loop->extent && found->second->kind == loop->kind);
      }
      valid &= !std::holds_alternative<loop::Intrinsic>(stmt.form) && !std::holds_alternative<loop::Let>(stmt.form) &&
               !std::holds_alternative<Alloc>(stmt.form) && !std::holds_alternative<loop::CallLibrary>(stmt.form);
    });
    for (const loop::BufferId id : written) valid &= id == alloc.buffer || !read.contains(id);
    if (!valid) return std::nullopt;
    for_each_statement(alloc.body, [&](Stmt& stmt) {
      auto* stage = std::get_if<Stage>(&stmt.form);
      if (!stage || !valid) return;
      bool uses_tile = false;
      loop::for_each_access(*stage, [&](const loop::Access& access) {
        if (access.buffer != alloc.buffer) return;
        uses_tile = true;
        const Dims indices = loop::over_loops(context_, *stage, access.indices);
        const auto lane = indices.back().variable(), row = indices.front().variable();
        valid &= lane && row && loops.contains(*lane) && loops.contains(*row) &&
                 (tile.lane == Symbol{} || (tile.lane == *lane && (indices.size() == 1 || tile.row == row)));
        if (!valid) return;
        tile.lane = *lane;
        if (indices.size() == 2) tile.row = row;
      });
      valid &= uses_tile;
      loop::for_each_expr(*stage, [&](loop::Expr& expr) {
        loop::for_each_node(expr, [&](const loop::ExprNode& node) {
          const auto* binary = std::get_if<loop::Binary>(&node.form);
          if (!binary) return;
          tile.saturating |= binary->op == loop::BinaryOp::kByteDotSaturating;
          tile.pairs |= binary->op == loop::BinaryOp::kInt16Dot;
          tile.dots |= tile.saturating || binary->op == loop::BinaryOp::kByteDot;
        });
      });
    });
    if (!valid || tile.lane == Symbol{} || tile.row == tile.lane) return std::nullopt;
    const auto size = [&](Symbol var, LoopKind kind, size_t axis) -> int64_t {
      const For& loop = *loops.at(var);
      return loop.kind == kind && loop.extent == buffer.axes[axis].extent ? loop.extent.constant().value_or(0) : 0;
    };
    tile.lanes = size(tile.lane, LoopKind::kVectorized, buffer.rank() - 1);
    if (tile.row) tile.rows = size(*tile.row, LoopKind::kUnrolled, 0);
    if (tile.lanes == 0 || tile.rows == 0) return std::nullopt;
    for (const auto& [var, loop] : loops)
      if (loop->kind == LoopKind::kUnrolled && tile.row != var) tile.unrolled *= loop->extent.constant().value_or(1);
    for_each_statement(alloc.body, [&](Stmt& stmt) {
      if (const auto* loop = std::get_if<For>(&stmt.form)) valid &= !mentions_tile({&loop->extent, 1}, tile);
      const auto* stage = std::get_if<Stage>(&stmt.form);
      if (!stage) return;
      for (const Axis& axis : stage->axes)
        valid &= axis.kind == loop::AxisKind::kSpatial || !mentions_tile({&axis.value, 1}, tile);
    });
    return valid ? std::optional(tile) : std::nullopt;
  }
  static bool mentions_tile(std::span<const Dim> dims, const Tile& tile) {
    return loop::mentions(dims, tile.lane) || (tile.row && loop::mentions(dims, *tile.row));
  }

  // Whether the accumulators and the operands of a term fit the registers.
  bool fits(const Tile& tile, const Shape& shape) const {
    const int64_t sums = shape.rows * shape.vectors;
    // Besides the sums: even and odd bytes of a vector and of a row, or ones, and a product before it is added.
    if (tile.saturating) return sums + shape.vectors + 3 <= machine_.registers;
    if (tile.dots && !machine_.dot) return sums + 2 * shape.vectors + 3 <= machine_.registers;
    return sums + shape.vectors + ((machine_.fma && !tile.pairs) || tile.dots ? 1 : 2) <= machine_.registers;
  }
  // The estimated instructions for one term of the sums.
  double cost(const Tile& tile, const Shape& shape) const {
    const auto sums = static_cast<double>(shape.rows * shape.vectors), rows = static_cast<double>(shape.rows),
               vectors = static_cast<double>(shape.vectors);
    if (tile.saturating) return 3 * sums + rows + vectors;
    if (tile.dots && !machine_.dot) return 4 * sums + 2 * rows + 3 * vectors;
    if (tile.pairs) return 2 * sums + rows + vectors;
    const auto terms = static_cast<double>(tile.unrolled);
    const double loads = terms > 1 ? 1 + (rows + terms - 1) * vectors / terms : rows + vectors;
    return std::max(sums, loads) + 0.1 * loads;
  }

  // The rows split into as few parts as possible, of nearly equal sizes.
  static std::vector<int64_t> row_parts(int64_t rows, int64_t most) {
    const int64_t count = (rows + most - 1) / most;
    std::vector<int64_t> sizes;
    for (int64_t i = 0; i < count; ++i) sizes.push_back(rows / count + (i < rows % count ? 1 : 0));
    return sizes;
  }

  std::optional<Body> split(Alloc& alloc) {
    const auto tile = tile_of(alloc);
    if (!tile) return std::nullopt;
    const auto bytes = static_cast<int64_t>(runtime::bytes(function_.buffer(alloc.buffer).dtype));
    const int64_t width = std::max<int64_t>(machine_.vector_bytes / bytes, 1),
                  vectors = (tile->lanes + width - 1) / width;
    if (fits(*tile, {tile->rows, vectors}) || tile->lanes % width != 0) return std::nullopt;
    std::optional<Shape> best;
    double least = 0;
    for (int64_t v = 1; v <= vectors; v *= 2) {
      if (vectors % v != 0) break;
      for (int64_t r = 1; r <= tile->rows; ++r) {
        if (!fits(*tile, {r, v})) break;
        double total = 0;
        for (const int64_t rows : row_parts(tile->rows, r)) total += cost(*tile, {rows, v});
        const int64_t chunks = vectors / v;
        total *= static_cast<double>(chunks);
        if (!best || total < least) best = Shape{r, v}, least = total;
      }
    }
    if (!best) return std::nullopt;
    return smaller_tiles(alloc, *tile, *best, width);
  }

  Body smaller_tiles(const Alloc& alloc, const Tile& tile, const Shape& shape, int64_t width) {
    const int64_t lanes = shape.vectors * width;
    const Symbol chunk = loop::fresh(context_, function_, "c");
    const auto chunks = [&](int64_t count, LoopKind kind, Body body) {
      return Stmt{For{.var = chunk, .extent = context_.dim(count), .kind = kind, .body = std::move(body)}};
    };
    Body body;
    if (const auto stored = stored_lanes(alloc, tile)) {
      // Whole chunks of stored lanes, then a chunk that is stored in part.
      const int64_t whole = *stored / lanes;
      if (whole > 0) {
        Alloc unguarded = alloc;
        for_each_statement(unguarded.body, [&](Stmt& stmt) {
          if (auto* stage = std::get_if<Stage>(&stmt.form))
            std::erase_if(stage->where, [&](const loop::Guard& guard) { return distance(*stage, guard, tile.lane); });
        });
        body.push_back(
            chunks(whole, LoopKind::kSerial, in_row_parts(unguarded, tile, shape, lanes, context_.dim(chunk), false)));
      }
      if (*stored % lanes > 0)
        std::ranges::move(in_row_parts(alloc, tile, shape, lanes, context_.dim(whole), whole > 0),
                          std::back_inserter(body));
    } else {
      body.push_back(chunks(tile.lanes / lanes,
                            has_constant_conditions(alloc, tile.lane) ? LoopKind::kUnrolled : LoopKind::kSerial,
                            in_row_parts(alloc, tile, shape, lanes, context_.dim(chunk), false)));
    }
    return body;
  }

  // left - right of a guard, over the loops, if it contains the variable.
  std::optional<Dim> distance(const Stage& stage, const loop::Guard& guard, Symbol var) {
    const Dim dim = loop::over_loops(context_, stage, {context_.subtract(guard.left, guard.right)})[0];
    return loop::mentions({&dim, 1}, var) ? std::optional(dim) : std::nullopt;
  }

  // The number of leading lanes that are stored, if only guards depend on the lane, and all in the same way.
  std::optional<int64_t> stored_lanes(const Alloc& alloc, const Tile& tile) {
    if (has_constant_conditions(alloc, tile.lane, false)) return std::nullopt;
    std::optional<int64_t> stored;
    bool valid = true;
    for_each_statement(alloc.body, [&](const Stmt& stmt) {
      const auto* stage = std::get_if<Stage>(&stmt.form);
      if (!stage) return;
      for (const loop::Guard& guard : stage->where) {
        const auto difference = distance(*stage, guard, tile.lane);
        if (!difference) continue;
        const auto linear = context_.linear_in(tile.lane, *difference);
        const auto begin = linear && linear->first == context_.dim(1) ? linear->second.constant() : std::nullopt;
        valid &= begin && *begin < 0 && (!stored || *stored == -*begin);
        if (begin) stored = std::min(-*begin, tile.lanes);
      }
    });
    return valid ? stored : std::nullopt;
  }

  // A chunk of the lanes, as tiles of fewer rows; `again`: another chunk uses the names already.
  Body in_row_parts(const Alloc& alloc, const Tile& tile, const Shape& shape, int64_t lanes, Dim chunk, bool again) {
    const std::vector<int64_t> rows = row_parts(tile.rows, shape.rows);
    const LoopKind row_kind =
        tile.row && has_constant_conditions(alloc, *tile.row) ? LoopKind::kUnrolled : LoopKind::kSerial;
    Body body;
    int64_t begin = 0;
    // Parts of equal size are a loop, so that they are compiled once.
    for (size_t first = 0, next = 0; first < rows.size(); first = next) {
      while (next < rows.size() && rows[next] == rows[first]) ++next;
      const auto times = static_cast<int64_t>(next - first);
      const Symbol part = loop::fresh(context_, function_, "r");
      Alloc smaller = alloc;
      move_to_part(smaller, tile, {part, begin, times, rows[first], again || begin > 0}, chunk, lanes);
      Stmt stmt{std::move(smaller)};
      if (times > 1)
        stmt = {For{.var = part, .extent = context_.dim(times), .kind = row_kind, .body = {std::move(stmt)}}};
      body.push_back(std::move(stmt));
      begin += times * rows[first];
    }
    return body;
  }

  // Whether the tile's stages have conditions on `var` that are constant once their loops are unrolled: copies of the
  // tile then cost less code than computed masks.
  bool has_constant_conditions(const Alloc& alloc, Symbol var, bool by_guards = true) {
    std::set<Symbol> unrolled;
    for_each_statement(alloc.body, [&](const Stmt& stmt) {
      const auto* loop = std::get_if<For>(&stmt.form);
      if (loop && (loop->kind == LoopKind::kUnrolled || loop->kind == LoopKind::kVectorized))
        unrolled.insert(loop->var);
    });
    bool found = false;
    const auto check = [&](const Stage& stage, Dim dim) {
      bool contains_var = false, is_constant = true;
      for_each_variable(loop::over_loops(context_, stage, {dim})[0], [&](Symbol mentioned) {
        contains_var |= mentioned == var;
        is_constant &= unrolled.contains(mentioned);
      });
      found |= contains_var && is_constant;
    };
    for_each_statement(alloc.body, [&](const Stmt& stmt) {
      const auto* stage = std::get_if<Stage>(&stmt.form);
      if (!stage) return;
      for (const loop::Guard& guard : stage->where)
        if (by_guards) check(*stage, context_.subtract(guard.left, guard.right));
      for (const Stmt& inner : stage->body) {
        const auto* store = std::get_if<loop::Store>(&inner.form);
        if (!store) continue;
        loop::for_each_node(store->value, [&](const loop::ExprNode& node) {
          const auto* select = std::get_if<loop::Select>(&node.form);
          if (!select) return;
          loop::for_each_node(select->condition, [&](const loop::ExprNode& part) {
            if (const auto* index = std::get_if<loop::IndexValue>(&part.form)) check(*stage, index->value);
          });
        });
      }
    });
    return found;
  }

  // `times` consecutive parts of `rows` rows each, from the row `begin` on; several parts are a loop.
  struct RowParts {
    Symbol loop{};
    int64_t begin = 0, times = 1, rows = 1;
    bool again = false;  // buffers and stages need new names
  };
  Dim begin_of(const RowParts& parts, Symbol index) {
    if (parts.times == 1) return context_.dim(parts.begin);
    return context_.add(context_.dim(parts.begin), context_.multiply(context_.dim(index), context_.dim(parts.rows)));
  }

  // Restricts the Alloc to a part of the rows and a chunk of the lanes.
  void move_to_part(Alloc& alloc, const Tile& tile, const RowParts& parts, Dim chunk, int64_t lanes) {
    const int64_t rows = parts.rows;
    const loop::BufferId from = alloc.buffer;
    if (parts.again)
      alloc.buffer = loop::add_buffer(
          function_, loop::fresh(context_, function_, std::string(context_.name(function_.buffer(from).name))), from);
    auto& axes = function_.buffers[index(alloc.buffer)].axes;
    axes.back().extent = context_.dim(lanes);
    if (tile.row) axes.front().extent = context_.dim(rows);
    std::map<Symbol, Dim> moved{
        {tile.lane, context_.add(context_.multiply(chunk, context_.dim(lanes)), context_.dim(tile.lane))}};
    if (tile.row) moved.emplace(*tile.row, context_.add(begin_of(parts, parts.loop), context_.dim(*tile.row)));
    const Symbol given = loop::fresh(context_, function_, "g"), given_part = loop::fresh(context_, function_, "h");
    for_each_statement(alloc.body, [&](Stmt& stmt) {
      if (auto* loop = std::get_if<For>(&stmt.form)) {
        if (loop->var == tile.lane) loop->extent = context_.dim(lanes);
        if (loop->var == tile.row) loop->extent = context_.dim(rows);
      }
      auto* stage = std::get_if<Stage>(&stmt.form);
      if (!stage) return;
      loop::substitute(context_, function_, stmt, moved);
      // The accumulators are indexed relative to the part.
      stage->axes.push_back(
          {.var = given, .extent = context_.dim(tile.lanes / lanes), .kind = loop::AxisKind::kGiven, .value = chunk});
      if (parts.times > 1)
        stage->axes.push_back({.var = given_part,
                               .extent = context_.dim(parts.times),
                               .kind = loop::AxisKind::kGiven,
                               .value = context_.dim(parts.loop)});
      const auto move = [&](loop::BufferId& buffer, Dims& indices) {
        if (buffer != from) return;
        buffer = alloc.buffer;
        indices.back() = context_.subtract(indices.back(), context_.multiply(context_.dim(given), context_.dim(lanes)));
        if (tile.row) indices.front() = context_.subtract(indices.front(), begin_of(parts, given_part));
      };
      loop::for_each_expr(*stage, [&](loop::Expr& expr) {
        expr = loop::rewrite(expr, [&](const loop::ExprNode& node) -> loop::Expr {
          const auto* load = std::get_if<loop::Load>(&node.form);
          if (!load || load->buffer != from) return nullptr;
          loop::Load moved_load = *load;
          move(moved_load.buffer, moved_load.indices);
          return std::make_shared<const loop::ExprNode>(loop::ExprNode{node.dtype, std::move(moved_load)});
        });
      });
      loop::for_each_store(*stage, [&](loop::Store& store) { move(store.buffer, store.indices); });
      if (parts.again) stage->name = unused_name(stage->name);
    });
  }

  // A stage name that is not in use.
  Symbol unused_name(Symbol stage) {
    std::string name(context_.name(stage));
    do name += '_';
    while (!stages_.insert(context_.symbol(name)).second);
    return context_.symbol(name);
  }

  TypeContext& context_;
  loop::Function function_;
  const Machine& machine_;
  std::set<Symbol> stages_;
};

}  // namespace

loop::Function fit_tiles(TypeContext& context, loop::Function function, const Machine& machine) {
  return Fitter(context, std::move(function), machine).run();
}

}  // namespace tenon::compiler::native
