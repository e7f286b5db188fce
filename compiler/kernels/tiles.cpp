#include "compiler/kernels/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "compiler/base/dim_prover.h"
#include "compiler/kernels/emitter.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::kernels {
namespace {

// Cycles to transpose 16 channels of a tile: in one register, or for each of several; and to load a cache line from L2
// beyond the cycles that computation hides.
constexpr double kTransposeCycles = 80, kPartTransposeCycles = 100, kL2Cycles = 0.25;

// A part of an axis: `count` blocks of `size` elements, from `begin` on.
struct AxisPart {
  Dim begin, count;
  int64_t size = 1;
  Dim block, inner;      // position of the first element in full tiles, which index packed panels
  bool guarded = false;  // the last elements of a block are past the end
  bool tail = false;     // at most one block, whatever the extent
};

class Nest {
 public:
  Nest(Context& context, loop::Builder& builder, const std::string& name, const Tiles& tiles, DType dtype,
       const std::vector<TileResult>& results)
      : context_(context), builder_(builder), name_(name), tiles_(tiles), dtype_(dtype), results_(results) {}

  // The nest inside the loops over the blocks.
  Stmt make(const std::vector<AxisPart>& parts) {
    std::vector<For> inner;
    std::vector<Axis> blocks = builder_.step_axes(), inners, terms;
    std::vector<TileIndex> at;
    Dims indices, local;
    std::vector<loop::Guard> guards;
    const auto zero = context_.dim(0);
    std::optional<For> lanes;
    for (size_t i = 0; i < parts.size(); ++i) {
      const AxisPart& part = parts[i];
      TileIndex index{zero, zero, zero, part.guarded};
      if (part.count.constant() != 1) {
        const Symbol var = block(i);
        blocks.push_back({.var = var, .extent = part.count, .kind = AxisKind::kSpatial, .value = context_.dim(var)});
        index.block = context_.dim(var);
      }
      const TileAxis::Role role = tiles_.axes[i].role;
      if (role == TileAxis::Role::kLanes || (role == TileAxis::Role::kRows && part.size > 1)) {
        const Symbol var = symbol(fmt::format("t{}", i));
        const bool is_lanes = role == TileAxis::Role::kLanes;
        For tile_loop{.var = var,
                      .extent = context_.dim(part.size),
                      .kind = is_lanes ? LoopKind::kVectorized : LoopKind::kUnrolled,
                      .body = {}};
        if (is_lanes) lanes = tile_loop;
        else inner.push_back(tile_loop);
        inners.push_back(
            {.var = var, .extent = tile_loop.extent, .kind = AxisKind::kSpatial, .value = context_.dim(var)});
        index.inner = context_.dim(var);
        // Lanes are contiguous: their index is the last one.
        local.insert(is_lanes ? local.end() : local.begin(), index.inner);
        shape_.insert(is_lanes ? shape_.end() : shape_.begin(), tile_loop.extent);
      }
      index.index =
          context_.add(part.begin, context_.add(context_.multiply(index.block, context_.dim(part.size)), index.inner));
      if (role == TileAxis::Role::kLanes) set_panel(index, part, tiles_.axes[i].panel);
      else index.block = context_.add(index.block, part.block), index.inner = context_.add(index.inner, part.inner);
      indices.push_back(index.index);
      at.push_back(index);
      if (part.guarded) guards.push_back({index.index, tiles_.axes[i].extent});
    }
    if (lanes) inner.push_back(*lanes);
    Dims k;
    std::vector<For> sum;
    const Dims over = tiles_.over_of ? tiles_.over_of(at) : tiles_.over;
    for (size_t i = 0; i < over.size(); ++i) {
      const Symbol var = symbol(fmt::format("k{}", i));
      terms.push_back(
          {.var = var, .extent = over[i], .kind = AxisKind::kReduce, .value = add_term_loops(sum, var, over, i)});
      k.push_back(context_.dim(var));
    }
    const loop::BufferId acc = builder_.local(context_.name(builder_.stage_name(name_ + "_acc")), shape_, dtype_);
    const Expr held = builder_.load(acc, local);

    loop::Body body;
    std::vector<Axis> first = builder_.step_axes();
    first.insert(first.end(), inners.begin(), inners.end());
    body.push_back(nest(inner, stage(name_ + "_init", first, {}, {}, acc, local, loop::literal(dtype_, 0))));
    std::vector<Axis> axes = blocks;
    axes.insert(axes.end(), inners.begin(), inners.end());
    axes.insert(axes.end(), terms.begin(), terms.end());
    std::vector<For> loops = sum;
    loops.insert(loops.end(), inner.begin(), inner.end());
    body.push_back(nest(loops, stage(name_, axes, {}, {}, acc, local, held + tiles_.term(at, k))));
    axes.resize(blocks.size() + inners.size());
    const Dims result_index = tiles_.result_index(indices);
    if (tiles_.transposed && inner.size() == 2)
      return transposed(inner, axes, std::move(guards), result_index, acc, std::move(body));
    for (const TileResult& result : results_) {
      body.push_back(nest(inner, stage(context_.name(builder_.function().buffer(result.buffer).name), axes, guards, {},
                                       result.buffer, result_index, result.value(result_index, held))));
    }
    return Stmt{loop::Alloc{.buffer = acc, .scope = loop::Scope::kRegisters, .body = std::move(body)}};
  }

  // The panel of lanes, and the position in it. A part of several panels begins with one; a shorter one is inside one.
  void set_panel(TileIndex& index, const AxisPart& part, int64_t panel) const {
    if (panel == 0) panel = lanes_of(dtype_);
    const Dim lane = index.inner, size = context_.dim(panel),
              begin = context_.add(part.begin, context_.multiply(index.block, context_.dim(part.size)));
    index.block = context_.floor_divide(begin, size);
    index.inner = context_.add(context_.modulo(begin, size), lane);
    if (part.size <= panel) return;
    index.block = context_.add(index.block, context_.floor_divide(lane, size));
    index.inner = context_.modulo(lane, size);
  }

  // Appends the loops over the terms along axis `i` and returns the index. The innermost axis is unrolled, whole where
  // it is short and inside of others.
  Dim add_term_loops(std::vector<For>& loops, Symbol var, const Dims& over, size_t i) const {
    const int64_t extent = over[i].constant().value_or(0), unrolled = schedules::unrolled_terms(extent);
    const bool is_innermost = std::all_of(over.begin() + static_cast<ptrdiff_t>(i) + 1, over.end(),
                                          [](Dim dim) { return dim.constant() == 1; });
    const auto append = [&](Symbol loop, Dim size, LoopKind kind) {
      loops.push_back({.var = loop, .extent = size, .kind = kind, .body = {}});
    };
    const bool unrolls = tiles_.unrolls_terms && is_innermost;
    if (!unrolls || unrolled == 1) {
      const bool whole = unrolls && i > 0 && extent > 1 && extent <= schedules::kFewTerms;
      append(var, over[i], whole ? LoopKind::kUnrolled : LoopKind::kSerial);
      return context_.dim(var);
    }
    const Symbol outer = symbol(fmt::format("{}o", context_.name(var))),
                 inner = symbol(fmt::format("{}i", context_.name(var)));
    append(outer, context_.dim(extent / unrolled), LoopKind::kSerial);
    append(inner, context_.dim(unrolled), LoopKind::kUnrolled);
    return context_.add(context_.multiply(context_.dim(outer), context_.dim(unrolled)), context_.dim(inner));
  }

  // Transposes the sums that `body` computes into a copy whose lanes are their rows, and stores the results from it.
  Stmt transposed(std::vector<For> loops, const std::vector<Axis>& axes, std::vector<loop::Guard> guards,
                  const Dims& result_index, loop::BufferId acc, loop::Body body) {
    const Dims at{context_.dim(loops[1].var), context_.dim(loops[0].var)};
    const int64_t rows = *loops[0].extent.constant();
    const Dim lanes =
        context_.dim(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(rows, 4)))));
    const loop::BufferId tile =
        builder_.local(context_.name(builder_.stage_name(name_ + "_tile")), {loops[1].extent, lanes}, dtype_);
    std::vector<Axis> tile_axes;
    for (const For& loop : loops) tile_axes.push_back(*std::ranges::find(axes, loop.var, &Axis::var));
    body.push_back(
        nest(loops, stage(name_ + "_transposed", tile_axes, {}, {}, tile, at, builder_.load(acc, Dims{at[1], at[0]}))));
    loop::Body nests;
    nests.push_back({loop::Alloc{.buffer = acc, .scope = loop::Scope::kRegisters, .body = std::move(body)}});
    std::swap(loops[0], loops[1]);
    loops[0].kind = LoopKind::kSerial, loops[1].kind = LoopKind::kVectorized;
    // Vectors are whole registers; the guard masks the last lanes of the store.
    if (loops[1].extent != lanes) guards.push_back({at[1], loops[1].extent});
    loops[1].extent = lanes;
    for (const TileResult& result : results_) {
      nests.push_back(
          nest(loops, stage(context_.name(builder_.function().buffer(result.buffer).name), axes, guards, {},
                            result.buffer, result_index, result.value(result_index, builder_.load(tile, at)))));
    }
    return Stmt{loop::Alloc{.buffer = tile, .scope = loop::Scope::kStack, .body = std::move(nests)}};
  }

  // The variable of the loop over the blocks of an axis.
  Symbol block(size_t axis) const { return symbol(fmt::format("b{}", axis)); }

 private:
  static Stmt nest(std::vector<For> loops, Stmt inner) { return loop::nest(std::move(loops), std::move(inner)); }

  // A symbol that differs from the dims of the function.
  Symbol symbol(std::string name) const {
    const auto& dims = builder_.function().dims;
    while (std::ranges::find(dims, context_.symbol(name)) != dims.end()) name += '_';
    return context_.symbol(name);
  }

  Stmt stage(std::string_view name, std::vector<Axis> axes, std::vector<loop::Guard> where, loop::Body init,
             loop::BufferId to, const Dims& at, Expr value) {
    loop::Stage stage{.name = builder_.stage_name(name),
                      .axes = std::move(axes),
                      .where = std::move(where),
                      .init = std::move(init),
                      .body = {}};
    stage.body.push_back({loop::Store{to, at, std::move(value)}});
    return Stmt{std::move(stage)};
  }

  Context& context_;
  loop::Builder& builder_;
  const std::string& name_;
  const Tiles& tiles_;
  const DType dtype_;
  const std::vector<TileResult>& results_;
  Dims shape_;
};

// The parts of an axis: full tiles, and a tail of lanes in powers of two of registers. Where the extent is not
// constant, the tail of rows is covered by powers of two as well: one copy of the tile for each power serves all tails.
std::vector<AxisPart> parts_of_axis(Context& context, const TileAxis& axis, int64_t vector, int64_t shortest) {
  const Dim zero = context.dim(0), single = context.dim(1);
  if (axis.role == TileAxis::Role::kOuter) return {{zero, axis.extent, 1, zero, zero}};
  const bool lanes = axis.role == TileAxis::Role::kLanes;
  const Dim size = context.dim(axis.size), blocks = context.floor_divide(axis.extent, size);
  const Dim begin = context.multiply(blocks, size), tail = context.subtract(axis.extent, begin);
  std::vector<AxisPart> parts;
  if (blocks.constant() != 0) parts.push_back({zero, blocks, axis.size, zero, zero});
  if (const auto tail_size = tail.constant()) {
    if (*tail_size > 0 && !lanes) {
      parts.push_back({begin, single, *tail_size, blocks, zero});
      return parts;
    }
    for (int64_t covered = 0; covered < *tail_size;) {
      const int64_t units = (*tail_size - covered + shortest - 1) / shortest;
      const int64_t count = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(units))) * shortest;
      parts.push_back({context.add(begin, context.dim(covered)), single, count, blocks, context.dim(covered),
                       covered + count > *tail_size});
      covered += count;
    }
    return parts;
  }
  const int64_t unit = lanes ? vector : 1, max_units = lanes ? axis.size / unit : axis.size - 1;
  Dim left = context.ceil_divide(tail, unit), covered = zero;
  for (auto units = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(max_units))); units > 0; units /= 2) {
    const Dim count = context.floor_divide(left, context.dim(units));
    parts.push_back({context.add(begin, covered), count, units * unit, blocks, covered, lanes, true});
    covered = context.add(covered, context.multiply(count, context.dim(units * unit)));
    left = context.subtract(left, context.multiply(count, context.dim(units)));
  }
  return parts;
}

double terms_of(const Tiles& tiles) {
  double terms = 1;
  for (const TileAxis& axis : tiles.axes) terms *= static_cast<double>(axis.extent.constant().value_or(1 << 10));
  for (const Dim size : tiles.over) terms *= static_cast<double>(size.constant().value_or(1 << 10));
  return terms;
}

}  // namespace

loop::Body emit_tiles(Context& context, loop::Builder& builder, const std::string& name, const Tiles& tiles,
                      DType dtype, const std::vector<TileResult>& results) {
  // The steps of a scan are too short for threads, which would mostly wait for each other.
  const bool parallel = terms_of(tiles) >= kParallelTerms && builder.step_axes().empty();
  // The outermost loop with enough blocks for all threads is parallel, or the longest one.
  const int64_t vector = lanes_of(dtype), shortest = tiles.shortest_vector > 0 ? tiles.shortest_vector : vector;
  const auto has_enough_blocks = [&](size_t axis, const AxisPart& part) {
    const auto blocks = [](const AxisPart& p) { return p.tail ? 1 : p.count.constant().value_or(kTasks); };
    const int64_t count = blocks(part);
    bool is_longest = true;
    for (size_t i = axis + 1; i < tiles.axes.size(); ++i) {
      for (const AxisPart& inner : parts_of_axis(context, tiles.axes[i], vector, shortest))
        is_longest &= blocks(inner) <= count;
    }
    return count >= kTasks || is_longest;
  };
  // A nest for each combination of parts. The tail of an inner axis is in the loops of the outer ones, beside the full
  // tiles, so that it hits the cache lines that they have loaded.
  std::vector<AxisPart> parts;
  const std::function<loop::Body(size_t, bool)> nests = [&](size_t axis, bool outermost) {
    loop::Body body;
    if (axis == tiles.axes.size()) {
      body.push_back(Nest(context, builder, name, tiles, dtype, results).make(parts));
      return body;
    }
    for (const AxisPart& part : parts_of_axis(context, tiles.axes[axis], vector, shortest)) {
      const bool loops = part.count.constant() != 1,
                 is_parallel = parallel && outermost && loops && !part.tail && has_enough_blocks(axis, part);
      parts.push_back(part);
      loop::Body inner = nests(axis + 1, outermost && !is_parallel);
      parts.pop_back();
      if (loops) {
        const Symbol var = Nest(context, builder, name, tiles, dtype, results).block(axis);
        body.push_back({For{.var = var,
                            .extent = part.count,
                            .kind = is_parallel ? LoopKind::kParallel : LoopKind::kSerial,
                            .body = std::move(inner)}});
      } else {
        std::ranges::move(inner, std::back_inserter(body));
      }
    }
    return body;
  };
  return nests(0, true);
}

TileShape choose_transposed_tile(const Machine& machine, int64_t pixels, int64_t channels, int64_t terms,
                                 Factors factors, const std::function<bool(int64_t rows)>& allowed) {
  const int64_t vectors = (channels + kTransposeSide - 1) / kTransposeSide,
                registers = schedules::kVectorBytes / machine.vector_bytes;
  const double transpose_cycles =
      registers == 1 ? kTransposeCycles : kPartTransposeCycles * static_cast<double>(registers);
  TileShape best;
  for (TileShape shape : tile_shapes(machine, pixels, channels, kTransposeSide, {.factors = factors})) {
    if (shape.rows > kTransposeSide || (allowed && !allowed(shape.rows))) continue;
    // Each vector of channels of a tile is transposed, and reads its weights, from L2 where they exceed L1.
    const int64_t tiles = (pixels + shape.rows - 1) / shape.rows;
    const auto lines = static_cast<double>(tiles * vectors);
    const bool weights_in_l2 = terms * shape.vectors * kTransposeSide > elements_in(machine.l1_bytes);
    shape.cycles = (shape.cycles + (weights_in_l2 ? lines * kL2Cycles : 0)) * static_cast<double>(terms) +
                   lines * transpose_cycles;
    if (best.cycles == 0 || shape.cost() < best.cost()) best = shape;
  }
  return best;
}

TileShape choose_tile(Emitter& emit, int64_t rows, int64_t lanes, int64_t vector, Terms terms) {
  const std::vector<TileShape> shapes = tile_shapes(emit.machine(), rows, lanes, vector, terms);
  std::vector<Option> options;
  for (const TileShape& shape : shapes)
    options.push_back({fmt::format("{}x{}", shape.rows, shape.vectors), shape.cost()});
  return shapes[emit.choose_option("tile", std::move(options))];
}

}  // namespace tenon::compiler::kernels
