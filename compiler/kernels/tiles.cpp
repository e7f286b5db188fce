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

constexpr int64_t kTasks = 16;  // that keep many threads busy
// Cycles: of 16 channels of a tile that are turned round; of a line from the second cache, beyond what passes
// meanwhile.
constexpr double kTurned = 80, kFar = 0.25;

// A part of an axis: `count` blocks of `size`, from `begin` on.
struct Part {
  Dim begin, count;
  int64_t size = 1;
  Dim block, inner;      // of the first element, among whole tiles: weights are packed so
  bool guarded = false;  // the last elements of a block lie behind the end
  bool rest = false;     // at most one block, whatever the extent
};

class Nest {
 public:
  Nest(Context& context, loop::Builder& builder, const std::string& name, const Tiles& tiles, DType dtype,
       const std::vector<TileResult>& results)
      : context_(context), builder_(builder), name_(name), tiles_(tiles), dtype_(dtype), results_(results) {}

  // Inside the loops over the blocks.
  Stmt make(const std::vector<Part>& parts) {
    std::vector<For> inner;
    std::vector<Axis> blocks = builder_.step_axes(), inners, terms;
    std::vector<TileIndex> at;
    Dims whole, local;
    std::vector<loop::Guard> guards;
    const auto zero = context_.dim(0);
    std::optional<For> lanes;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
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
        For own{.var = var,
                .extent = context_.dim(part.size),
                .mark = is_lanes ? Mark::kVector : Mark::kUnroll,
                .body = {}};
        if (is_lanes) lanes = own;
        else inner.push_back(own);
        inners.push_back({.var = var, .extent = own.extent, .kind = AxisKind::kSpatial, .value = context_.dim(var)});
        index.inner = context_.dim(var);
        // Lanes lie side by side: theirs is the last index.
        local.insert(is_lanes ? local.end() : local.begin(), index.inner);
        shape_.insert(is_lanes ? shape_.end() : shape_.begin(), own.extent);
      }
      index.index =
          context_.add(part.begin, context_.add(context_.multiply(index.block, context_.dim(part.size)), index.inner));
      index.block = context_.add(index.block, part.block), index.inner = context_.add(index.inner, part.inner);
      whole.push_back(index.index);
      at.push_back(index);
      if (part.guarded) guards.push_back({index.index, tiles_.axes[i].extent});
    }
    if (lanes) inner.push_back(*lanes);
    Dims k;
    std::vector<For> sum;
    const Dims over = tiles_.over_of ? tiles_.over_of(at) : tiles_.over;
    for (size_t i = 0; i < over.size(); ++i) {
      const Symbol var = symbol(fmt::format("k{}", i));
      sum.push_back({.var = var, .extent = over[i], .mark = Mark::kSerial, .body = {}});
      terms.push_back({.var = var, .extent = over[i], .kind = AxisKind::kReduce, .value = context_.dim(var)});
      k.push_back(context_.dim(var));
    }
    const loop::BufferId acc = builder_.local(context_.name(builder_.stage_name(name_ + "_acc")), shape_, dtype_);
    const Expr held = builder_.load(acc, local);

    loop::Body body;
    std::vector<Axis> first = builder_.step_axes();
    first.insert(first.end(), inners.begin(), inners.end());
    body.push_back(nest(inner, stage(name_ + "_init", first, {}, {}, acc, local, loop::literal(dtype_, 0))));
    std::vector<Axis> all = blocks;
    all.insert(all.end(), inners.begin(), inners.end());
    all.insert(all.end(), terms.begin(), terms.end());
    std::vector<For> loops = sum;
    loops.insert(loops.end(), inner.begin(), inner.end());
    body.push_back(nest(loops, stage(name_, all, {}, {}, acc, local, held + tiles_.term(at, k))));
    all.resize(blocks.size() + inners.size());
    const Dims place = tiles_.place(whole);
    if (tiles_.turned && inner.size() == 2) return turned(inner, all, std::move(guards), place, acc, std::move(body));
    for (const TileResult& result : results_) {
      body.push_back(nest(inner, stage(context_.name(builder_.function().buffer(result.buffer).name), all, guards, {},
                                       result.buffer, place, result.value(place, held))));
    }
    return Stmt{loop::Alloc{.buffer = acc, .scope = loop::Scope::kRegisters, .body = std::move(body)}};
  }

  // The sums that `body` makes, and the results of a copy of them that has their rows as lanes.
  Stmt turned(std::vector<For> loops, const std::vector<Axis>& axes, std::vector<loop::Guard> guards, const Dims& place,
              loop::BufferId acc, loop::Body body) {
    const Dims at{context_.dim(loops[1].var), context_.dim(loops[0].var)};
    const int64_t rows = *loops[0].extent.constant();
    const Dim lanes =
        context_.dim(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(rows, 4)))));
    const loop::BufferId tile =
        builder_.local(context_.name(builder_.stage_name(name_ + "_tile")), {loops[1].extent, lanes}, dtype_);
    std::vector<Axis> own;
    for (const For& loop : loops) own.push_back(*std::ranges::find(axes, loop.var, &Axis::var));
    body.push_back(
        nest(loops, stage(name_ + "_turned", own, {}, {}, tile, at, builder_.load(acc, Dims{at[1], at[0]}))));
    loop::Body all;
    all.push_back({loop::Alloc{.buffer = acc, .scope = loop::Scope::kRegisters, .body = std::move(body)}});
    std::swap(loops[0], loops[1]);
    loops[0].mark = Mark::kSerial, loops[1].mark = Mark::kVector;
    // Whole registers, of which the last lanes are not stored.
    if (loops[1].extent != lanes) guards.push_back({at[1], loops[1].extent});
    loops[1].extent = lanes;
    for (const TileResult& result : results_) {
      all.push_back(nest(loops, stage(context_.name(builder_.function().buffer(result.buffer).name), axes, guards, {},
                                      result.buffer, place, result.value(place, builder_.load(tile, at)))));
    }
    return Stmt{loop::Alloc{.buffer = tile, .scope = loop::Scope::kStack, .body = std::move(all)}};
  }

  // The variable of the loop over the blocks of an axis.
  Symbol block(size_t axis) const { return symbol(fmt::format("b{}", axis)); }

 private:
  static Stmt nest(std::vector<For> loops, Stmt inner) { return loop::nest(std::move(loops), std::move(inner)); }

  // A name that no dim of the function has.
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

// The parts of an axis: whole tiles, and what remains, as vectors in powers of two of registers, which are what vectors
// are made of. Where the extent is not known so are rows: a copy of the tile for each power serves all remainders.
std::vector<Part> parts_of(Context& context, const TileAxis& axis, int64_t vector) {
  const Dim zero = context.dim(0), one = context.dim(1);
  if (axis.role == TileAxis::Role::kOuter) return {{zero, axis.extent, 1, zero, zero}};
  const bool lanes = axis.role == TileAxis::Role::kLanes;
  const Dim size = context.dim(axis.size), blocks = context.floor_divide(axis.extent, size);
  const Dim begin = context.multiply(blocks, size), rest = context.subtract(axis.extent, begin);
  std::vector<Part> parts;
  if (blocks.constant() != 0) parts.push_back({zero, blocks, axis.size, zero, zero});
  if (const auto remains = rest.constant()) {
    if (*remains > 0 && !lanes) {
      parts.push_back({begin, one, *remains, blocks, zero});
      return parts;
    }
    for (int64_t done = 0; done < *remains;) {
      const int64_t vectors = (*remains - done + vector - 1) / vector;
      const int64_t some = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(vectors))) * vector;
      parts.push_back(
          {context.add(begin, context.dim(done)), one, some, blocks, context.dim(done), done + some > *remains});
      done += some;
    }
    return parts;
  }
  const int64_t unit = lanes ? vector : 1, most = lanes ? axis.size / unit : axis.size - 1;
  Dim left = context.ceil_divide(rest, unit), done = zero;
  for (auto units = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most))); units > 0; units /= 2) {
    const Dim some = context.floor_divide(left, context.dim(units));
    parts.push_back({context.add(begin, done), some, units * unit, blocks, done, lanes, true});
    done = context.add(done, context.multiply(some, context.dim(units * unit)));
    left = context.subtract(left, context.multiply(some, context.dim(units)));
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

loop::Body tiled(Context& context, loop::Builder& builder, const std::string& name, const Tiles& tiles, DType dtype,
                 const std::vector<TileResult>& results) {
  // The steps of a scan are too short: their threads would wait for each other more than they work.
  const bool parallel = terms_of(tiles) >= kParallelTerms && builder.step_axes().empty();
  // Threads share the outermost loop that has work for many, or the longest.
  const auto enough = [&](size_t axis, const Part& part) {
    const auto blocks = [](const Part& one) { return one.rest ? 1 : one.count.constant().value_or(kTasks); };
    const int64_t own = blocks(part);
    bool most = true;
    for (size_t i = axis + 1; i < tiles.axes.size(); ++i) {
      for (const Part& inner : parts_of(context, tiles.axes[i], lanes_of(dtype))) most &= blocks(inner) <= own;
    }
    return own >= kTasks || most;
  };
  // A nest for each choice of parts. What remains of an inner axis stands in the loops of the outer ones, beside the
  // whole tiles: it finds in the cache what they have read.
  std::vector<Part> parts;
  const std::function<loop::Body(size_t, bool)> nests = [&](size_t axis, bool outermost) {
    loop::Body body;
    if (axis == tiles.axes.size()) {
      body.push_back(Nest(context, builder, name, tiles, dtype, results).make(parts));
      return body;
    }
    for (const Part& part : parts_of(context, tiles.axes[axis], lanes_of(dtype))) {
      const bool loops = part.count.constant() != 1,
                 shared = parallel && outermost && loops && !part.rest && enough(axis, part);
      parts.push_back(part);
      loop::Body inner = nests(axis + 1, outermost && !shared);
      parts.pop_back();
      if (loops) {
        const Symbol var = Nest(context, builder, name, tiles, dtype, results).block(axis);
        body.push_back({For{.var = var,
                            .extent = part.count,
                            .mark = shared ? Mark::kParallel : Mark::kSerial,
                            .body = std::move(inner)}});
      } else {
        std::ranges::move(inner, std::back_inserter(body));
      }
    }
    return body;
  };
  return nests(0, true);
}

std::vector<TileShape> tile_shapes(int64_t rows, int64_t lanes, int64_t vector, Apart apart) {
  constexpr int64_t kRegisters = 32, kAccumulators = 28;
  constexpr double kLatency = 4;    // from one sum to the next
  constexpr double kLoaded = 0.25;  // of a vector, which may come from the second cache
  const auto cycles = [apart](int64_t r, int64_t v) {
    const auto rows = static_cast<double>(r), vectors = static_cast<double>(v);
    return std::max({0.5 * rows * vectors, 0.5 * (rows + vectors), kLatency}) + kLoaded * vectors +
           (apart.rows ? 0.125 * rows : 0) + (apart.lanes ? std::max(4 / vectors - 1, 0.0) : 0);
  };
  const int64_t vectors = (lanes + vector - 1) / vector, most_rows = rows > 0 ? rows : kAccumulators;
  std::vector<TileShape> shapes;
  for (int64_t v = 1; v <= std::min<int64_t>(vectors, 4); v *= 2) {
    // Beside the sums there are the vectors, and an element that all of them are multiplied by.
    const int64_t most = std::min(kAccumulators, kRegisters - v - 1) / v;
    for (int64_t r = 1; r <= std::min(most_rows, most); ++r) {
      TileShape shape{r, v};
      // Blocks of rows and vectors, and what remains of each: of rows a block, of vectors one for each power of two.
      for (const auto& [rows_of, blocks] : {std::pair(r, most_rows / r), std::pair(most_rows % r, int64_t{1})}) {
        for (int64_t one = v; one > 0 && rows_of > 0; one /= 2) {
          const int64_t times = one == v ? vectors / v : vectors / one % 2;
          if (times == 0) continue;
          shape.cycles += static_cast<double>(blocks * times) * cycles(rows_of, one);
          shape.code += rows_of * (one + 1);
        }
      }
      shapes.push_back(shape);
    }
  }
  return shapes;
}

TileShape choose_tile(int64_t rows, int64_t lanes, int64_t vector, Apart apart) {
  const std::vector<TileShape> shapes = tile_shapes(rows, lanes, vector, apart);
  return *std::ranges::min_element(shapes, {}, &TileShape::cost);
}

TileShape choose_turned_tile(int64_t places, int64_t channels, int64_t terms,
                             const std::function<bool(int64_t rows)>& allowed) {
  const int64_t vectors = (channels + kSide - 1) / kSide;
  TileShape best;
  for (TileShape shape : tile_shapes(places, channels, kSide, {})) {
    if (shape.rows > kSide || (allowed && !allowed(shape.rows))) continue;
    // A vector of channels of a tile is turned, and its weights are read, from the second cache if they are many.
    const int64_t tiles = (places + shape.rows - 1) / shape.rows;
    const auto lines = static_cast<double>(tiles * vectors);
    const bool far = terms * shape.vectors * kSide > kNearWords;
    shape.cycles = (shape.cycles + (far ? lines * kFar : 0)) * static_cast<double>(terms) + lines * kTurned;
    if (best.cycles == 0 || shape.cost() < best.cost()) best = shape;
  }
  return best;
}

TileShape choose_tile(Emitter& emit, int64_t rows, int64_t lanes, int64_t vector, Apart apart) {
  const std::vector<TileShape> shapes = tile_shapes(rows, lanes, vector, apart);
  std::vector<Option> options;
  for (const TileShape& shape : shapes)
    options.push_back({fmt::format("{}x{}", shape.rows, shape.vectors), shape.cost()});
  return shapes[emit.decide("tile", std::move(options))];
}

}  // namespace tenon::compiler::kernels
