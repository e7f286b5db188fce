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
using loop::Mark;
using loop::Stage;
using loop::Stmt;

// acc[rows, lanes], each an own loop in every nest of the Alloc; rows may be missing.
struct Tile {
  std::optional<Symbol> row;
  Symbol lane{};
  int64_t rows = 1, lanes = 1;
  int64_t unrolled = 1;  // terms: of a window, whose neighbours read the same elements
  bool dots = false;     // sums of products of bytes
};

// Rows and vectors of a smaller tile.
struct Shape {
  int64_t rows = 1, vectors = 1;
};

class Fitter {
 public:
  Fitter(TypeContext& context, loop::Function function, const Registers& registers)
      : context_(context), function_(std::move(function)), registers_(registers) {}

  loop::Function run() {
    for_each_statement(function_.body, [&](const Stmt& stmt) {
      if (const auto* stage = std::get_if<Stage>(&stmt.form)) stages_.insert(stage->name);
    });
    fit(function_.body);
    return std::move(function_);
  }

 private:
  void fit(Body& body) {
    Body all;
    for (Stmt& stmt : body) {
      auto* alloc = std::get_if<Alloc>(&stmt.form);
      if (auto smaller = alloc ? cut(*alloc) : std::nullopt) {
        std::ranges::move(*smaller, std::back_inserter(all));
      } else {
        for_each_body(stmt, [&](Body& inner) { fit(inner); });
        all.push_back(std::move(stmt));
      }
    }
    body = std::move(all);
  }

  // The tile, where its accumulators are all that its stages share, each at its own place.
  std::optional<Tile> tile_of(Alloc& alloc) const {
    const loop::Buffer& buffer = function_.buffer(alloc.buffer);
    if (alloc.scope != loop::Scope::kRegisters || buffer.rank() < 1 || buffer.rank() > 2) return std::nullopt;
    Tile tile;
    std::map<Symbol, const For*> loops;
    std::set<loop::BufferId> read, written;
    bool good = true;
    for (const Stmt& stmt : alloc.body)
      read.merge(loop::buffers_read(stmt)), written.merge(loop::buffers_written(stmt));
    for_each_statement(alloc.body, [&](Stmt& stmt) {
      if (const auto* one = std::get_if<For>(&stmt.form)) {
        const auto [place, is_new] = loops.emplace(one->var, one);
        good &= is_new || (place->second->extent == one->extent && place->second->mark == one->mark);
      }
      good &= !std::holds_alternative<loop::Intrinsic>(stmt.form) && !std::holds_alternative<loop::Let>(stmt.form) &&
              !std::holds_alternative<Alloc>(stmt.form) && !std::holds_alternative<loop::CallLibrary>(stmt.form);
    });
    for (const loop::BufferId id : written) good &= id == alloc.buffer || !read.contains(id);
    if (!good) return std::nullopt;
    for_each_statement(alloc.body, [&](Stmt& stmt) {
      auto* stage = std::get_if<Stage>(&stmt.form);
      if (!stage || !good) return;
      bool reached = false;
      loop::for_each_access(*stage, [&](const loop::Access& access) {
        if (access.buffer != alloc.buffer) return;
        reached = true;
        const Dims at = loop::over_loops(context_, *stage, access.indices);
        const auto lane = at.back().variable(), row = at.front().variable();
        good &= lane && row && loops.contains(*lane) && loops.contains(*row) &&
                (tile.lane == Symbol{} || (tile.lane == *lane && (at.size() == 1 || tile.row == row)));
        if (!good) return;
        tile.lane = *lane;
        if (at.size() == 2) tile.row = row;
      });
      good &= reached;
      loop::for_each_expr(*stage, [&](loop::Expr& expr) {
        loop::for_each_node(expr, [&](const loop::ExprNode& node) {
          const auto* binary = std::get_if<loop::Binary>(&node.form);
          tile.dots |= binary && binary->op == loop::BinaryOp::kByteDot;
        });
      });
    });
    if (!good || tile.lane == Symbol{} || tile.row == tile.lane) return std::nullopt;
    const auto size = [&](Symbol var, Mark mark, size_t axis) -> int64_t {
      const For& one = *loops.at(var);
      return one.mark == mark && one.extent == buffer.axes[axis].extent ? one.extent.constant().value_or(0) : 0;
    };
    tile.lanes = size(tile.lane, Mark::kVector, buffer.rank() - 1);
    if (tile.row) tile.rows = size(*tile.row, Mark::kUnroll, 0);
    if (tile.lanes == 0 || tile.rows == 0) return std::nullopt;
    for (const auto& [var, one] : loops)
      if (one->mark == Mark::kUnroll && tile.row != var) tile.unrolled *= one->extent.constant().value_or(1);
    for_each_statement(alloc.body, [&](Stmt& stmt) {
      if (const auto* one = std::get_if<For>(&stmt.form)) good &= !moves({&one->extent, 1}, tile);
      const auto* stage = std::get_if<Stage>(&stmt.form);
      if (!stage) return;
      for (const Axis& axis : stage->axes)
        good &= axis.kind == loop::AxisKind::kSpatial || !moves({&axis.value, 1}, tile);
    });
    return good ? std::optional(tile) : std::nullopt;
  }
  static bool moves(std::span<const Dim> dims, const Tile& tile) {
    return loop::mentions(dims, tile.lane) || (tile.row && loop::mentions(dims, *tile.row));
  }

  // Registers beside the accumulators, and steps of one term of the sums.
  bool fits(const Tile& tile, const Shape& shape) const {
    const int64_t sums = shape.rows * shape.vectors;
    // Even and odd bytes of a vector and of a row; a product before it is added.
    if (tile.dots && !registers_.dot) return sums + 2 * shape.vectors + 3 <= registers_.count;
    return sums + shape.vectors + (registers_.fma || tile.dots ? 1 : 2) <= registers_.count;
  }
  double steps(const Tile& tile, const Shape& shape) const {
    const auto sums = static_cast<double>(shape.rows * shape.vectors), rows = static_cast<double>(shape.rows),
               vectors = static_cast<double>(shape.vectors);
    if (tile.dots && !registers_.dot) return 4 * sums + 2 * rows + 3 * vectors;
    const auto terms = static_cast<double>(tile.unrolled);
    const double loads = terms > 1 ? 1 + (rows + terms - 1) * vectors / terms : rows + vectors;
    return std::max(sums, loads) + 0.1 * loads;
  }

  // In as few pieces as there can be, of nearly one size.
  static std::vector<int64_t> pieces(int64_t rows, int64_t most) {
    const int64_t count = (rows + most - 1) / most;
    std::vector<int64_t> all;
    for (int64_t i = 0; i < count; ++i) all.push_back(rows / count + (i < rows % count ? 1 : 0));
    return all;
  }

  std::optional<Body> cut(Alloc& alloc) {
    const auto tile = tile_of(alloc);
    if (!tile) return std::nullopt;
    const auto bytes = static_cast<int64_t>(runtime::bytes(function_.buffer(alloc.buffer).dtype));
    const int64_t width = std::max<int64_t>(registers_.bytes / bytes, 1), vectors = (tile->lanes + width - 1) / width;
    if (fits(*tile, {tile->rows, vectors}) || tile->lanes % width != 0) return std::nullopt;
    std::optional<Shape> best;
    double least = 0;
    for (int64_t v = 1; v <= vectors; v *= 2) {
      if (vectors % v != 0) break;
      for (int64_t r = 1; r <= tile->rows; ++r) {
        if (!fits(*tile, {r, v})) break;
        double total = 0;
        for (const int64_t rows : pieces(tile->rows, r)) total += steps(*tile, {rows, v});
        const int64_t chunks = vectors / v;
        total *= static_cast<double>(chunks);
        if (!best || total < least) best = Shape{r, v}, least = total;
      }
    }
    if (!best) return std::nullopt;
    return smaller(alloc, *tile, *best, width);
  }

  Body smaller(const Alloc& alloc, const Tile& tile, const Shape& shape, int64_t width) {
    const int64_t lanes = shape.vectors * width;
    const Symbol chunk = loop::fresh(context_, function_, "c");
    const auto chunks = [&](int64_t count, Mark mark, Body body) {
      return Stmt{For{.var = chunk, .extent = context_.dim(count), .mark = mark, .body = std::move(body)}};
    };
    Body body;
    if (const auto wanted = wanted_lanes(alloc, tile)) {
      // Lanes that are stored, and of the last chunk those that are not.
      const int64_t whole = *wanted / lanes;
      if (whole > 0) {
        Alloc all = alloc;
        for_each_statement(all.body, [&](Stmt& stmt) {
          if (auto* stage = std::get_if<Stage>(&stmt.form))
            std::erase_if(stage->where, [&](const loop::Guard& guard) { return distance(*stage, guard, tile.lane); });
        });
        body.push_back(chunks(whole, Mark::kSerial, in_pieces(all, tile, shape, lanes, context_.dim(chunk), false)));
      }
      if (*wanted % lanes > 0)
        std::ranges::move(in_pieces(alloc, tile, shape, lanes, context_.dim(whole), whole > 0),
                          std::back_inserter(body));
    } else {
      body.push_back(chunks(tile.lanes / lanes, decides(alloc, tile.lane) ? Mark::kUnroll : Mark::kSerial,
                            in_pieces(alloc, tile, shape, lanes, context_.dim(chunk), false)));
    }
    return body;
  }

  // left - right of a guard over the loops, if the variable is in it.
  std::optional<Dim> distance(const Stage& stage, const loop::Guard& guard, Symbol var) {
    const Dim dim = loop::over_loops(context_, stage, {context_.subtract(guard.left, guard.right)})[0];
    return loop::mentions({&dim, 1}, var) ? std::optional(dim) : std::nullopt;
  }

  // How many of the first lanes are wanted, where guards alone ask for them, and all the same.
  std::optional<int64_t> wanted_lanes(const Alloc& alloc, const Tile& tile) {
    if (decides(alloc, tile.lane, false)) return std::nullopt;
    std::optional<int64_t> wanted;
    bool good = true;
    for_each_statement(alloc.body, [&](const Stmt& stmt) {
      const auto* stage = std::get_if<Stage>(&stmt.form);
      if (!stage) return;
      for (const loop::Guard& guard : stage->where) {
        const auto apart = distance(*stage, guard, tile.lane);
        if (!apart) continue;
        const auto linear = context_.linear_in(tile.lane, *apart);
        const auto begin = linear && linear->first == context_.dim(1) ? linear->second.constant() : std::nullopt;
        good &= begin && *begin < 0 && (!wanted || *wanted == -*begin);
        if (begin) wanted = std::min(-*begin, tile.lanes);
      }
    });
    return good ? wanted : std::nullopt;
  }

  // A chunk of the lanes, in pieces of the rows; `again`: beside another chunk.
  Body in_pieces(const Alloc& alloc, const Tile& tile, const Shape& shape, int64_t lanes, Dim chunk, bool again) {
    const std::vector<int64_t> rows = pieces(tile.rows, shape.rows);
    const Mark by_rows = tile.row && decides(alloc, *tile.row) ? Mark::kUnroll : Mark::kSerial;
    Body body;
    int64_t begin = 0;
    // As a loop, pieces of one size are compiled once.
    for (size_t first = 0, next = 0; first < rows.size(); first = next) {
      while (next < rows.size() && rows[next] == rows[first]) ++next;
      const auto times = static_cast<int64_t>(next - first);
      const Symbol piece = loop::fresh(context_, function_, "r");
      Alloc one = alloc;
      place(one, tile, {piece, begin, times, rows[first], again || begin > 0}, chunk, lanes);
      Stmt stmt{std::move(one)};
      if (times > 1)
        stmt = {For{.var = piece, .extent = context_.dim(times), .mark = by_rows, .body = {std::move(stmt)}}};
      body.push_back(std::move(stmt));
      begin += times * rows[first];
    }
    return body;
  }

  // Whether conditions that the tile's stages ask are known when code is made, with their loops unrolled, `var`'s among
  // them: a mask that is not costs more code than copies of the tile do.
  bool decides(const Alloc& alloc, Symbol var, bool by_guards = true) {
    std::set<Symbol> unrolled;
    for_each_statement(alloc.body, [&](const Stmt& stmt) {
      const auto* one = std::get_if<For>(&stmt.form);
      if (one && (one->mark == Mark::kUnroll || one->mark == Mark::kVector)) unrolled.insert(one->var);
    });
    bool found = false;
    const auto ask = [&](const Stage& stage, Dim dim) {
      bool own = false, is_known = true;
      for_each_variable(loop::over_loops(context_, stage, {dim})[0], [&](Symbol one) {
        own |= one == var;
        is_known &= unrolled.contains(one);
      });
      found |= own && is_known;
    };
    for_each_statement(alloc.body, [&](const Stmt& stmt) {
      const auto* stage = std::get_if<Stage>(&stmt.form);
      if (!stage) return;
      for (const loop::Guard& guard : stage->where)
        if (by_guards) ask(*stage, context_.subtract(guard.left, guard.right));
      for (const Stmt& inner : stage->body) {
        const auto* store = std::get_if<loop::Store>(&inner.form);
        if (!store) continue;
        loop::for_each_node(store->value, [&](const loop::ExprNode& node) {
          const auto* select = std::get_if<loop::Select>(&node.form);
          if (!select) return;
          loop::for_each_node(select->condition, [&](const loop::ExprNode& part) {
            if (const auto* index = std::get_if<loop::IndexValue>(&part.form)) ask(*stage, index->value);
          });
        });
      }
    });
    return found;
  }

  // Rows from `begin` on, in pieces of `rows`, numbered by a loop where there are several.
  struct Pieces {
    Symbol number{};
    int64_t begin = 0, times = 1, rows = 1;
    bool again = false;  // what it makes needs other names
  };
  Dim begin_of(const Pieces& pieces, Symbol number) {
    if (pieces.times == 1) return context_.dim(pieces.begin);
    return context_.add(context_.dim(pieces.begin), context_.multiply(context_.dim(number), context_.dim(pieces.rows)));
  }

  // The Alloc's part of a piece of the rows and a chunk of lanes.
  void place(Alloc& alloc, const Tile& tile, const Pieces& pieces, Dim chunk, int64_t lanes) {
    const int64_t rows = pieces.rows;
    const loop::BufferId from = alloc.buffer;
    if (pieces.again)
      alloc.buffer = loop::add_buffer(
          function_, loop::fresh(context_, function_, std::string(context_.name(function_.buffer(from).name))), from);
    auto& axes = function_.buffers[index(alloc.buffer)].axes;
    axes.back().extent = context_.dim(lanes);
    if (tile.row) axes.front().extent = context_.dim(rows);
    std::map<Symbol, Dim> moved{
        {tile.lane, context_.add(context_.multiply(chunk, context_.dim(lanes)), context_.dim(tile.lane))}};
    if (tile.row) moved.emplace(*tile.row, context_.add(begin_of(pieces, pieces.number), context_.dim(*tile.row)));
    const Symbol given = loop::fresh(context_, function_, "g"), given_piece = loop::fresh(context_, function_, "h");
    for_each_statement(alloc.body, [&](Stmt& stmt) {
      if (auto* one = std::get_if<For>(&stmt.form)) {
        if (one->var == tile.lane) one->extent = context_.dim(lanes);
        if (one->var == tile.row) one->extent = context_.dim(rows);
      }
      auto* stage = std::get_if<Stage>(&stmt.form);
      if (!stage) return;
      loop::substitute(context_, function_, stmt, moved);
      // The accumulators are those of the part.
      stage->axes.push_back(
          {.var = given, .extent = context_.dim(tile.lanes / lanes), .kind = loop::AxisKind::kGiven, .value = chunk});
      if (pieces.times > 1)
        stage->axes.push_back({.var = given_piece,
                               .extent = context_.dim(pieces.times),
                               .kind = loop::AxisKind::kGiven,
                               .value = context_.dim(pieces.number)});
      const auto move = [&](loop::BufferId& buffer, Dims& at) {
        if (buffer != from) return;
        buffer = alloc.buffer;
        at.back() = context_.subtract(at.back(), context_.multiply(context_.dim(given), context_.dim(lanes)));
        if (tile.row) at.front() = context_.subtract(at.front(), begin_of(pieces, given_piece));
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
      if (pieces.again) stage->name = another(stage->name);
    });
  }

  // A stage's name that no other has.
  Symbol another(Symbol stage) {
    std::string name(context_.name(stage));
    do name += '_';
    while (!stages_.insert(context_.symbol(name)).second);
    return context_.symbol(name);
  }

  TypeContext& context_;
  loop::Function function_;
  const Registers& registers_;
  std::set<Symbol> stages_;
};

}  // namespace

loop::Function fit_tiles(TypeContext& context, loop::Function function, const Registers& registers) {
  return Fitter(context, std::move(function), registers).run();
}

}  // namespace tenon::compiler::native
