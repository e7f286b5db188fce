#include "compiler/kernels/slide.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "compiler/loop/schedule/tree.h"

namespace tenon::compiler::kernels {
namespace {

constexpr int64_t kMostUnrolled = 49;  // taps
constexpr int64_t kTerms = 100;        // of the tile, each some instructions; half as many again with a stride

// `count` tiles of `size` places, from `begin` on.
struct Part {
  int64_t begin = 0, count = 1, size = 1;
  bool open = false;     // a tap may lie outside of x
  bool guarded = false;  // the last places lie behind the end
};

// The sizes of one dim.
struct Along {
  int64_t out = 1, in = 1, kernel = 1, stride = 1, dilation = 1, before = 0;

  bool open(int64_t begin, int64_t size) const {
    const int64_t first = begin * stride - before,
                  last = (begin + size - 1) * stride - before + (kernel - 1) * dilation;
    return first < 0 || last >= in;
  }
  // Vectors: those that are alike follow each other in a part; a few at the border have one each, so that there all is
  // known.
  std::vector<Part> vectors(int64_t size) const {
    std::vector<Part> parts;
    const int64_t whole = out / size, rest = out % size;
    for (int64_t block = 0; block < whole;) {
      const bool is_open = open(block * size, size);
      int64_t end = block + 1;
      while (end < whole && open(end * size, size) == is_open) ++end;
      const bool single = is_open && end - block <= 2;
      for (int64_t i = block; i < (single ? end : block + 1); ++i)
        parts.push_back({i * size, single ? 1 : end - block, size, is_open, false});
      block = end;
    }
    if (rest > 0) {
      const auto wide = std::max<int64_t>(4, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rest))));
      parts.push_back({whole * size, 1, wide, open(whole * size, wide), wide > rest});
    }
    return parts;
  }
};

// Rows: a tile for those at the top that reach over the border, tiles of rows inside, one for those at the bottom.
std::vector<Part> row_parts(const Along& rows, int64_t taps) {
  const int64_t each = rows.stride > 1 ? taps + taps / 2 : taps, most = std::clamp<int64_t>(kTerms / each, 1, 7);
  if (rows.out <= most) return {{0, 1, rows.out, rows.open(0, rows.out), false}};
  int64_t inner = 0, end = rows.out;
  while (inner < end && rows.open(inner, 1)) ++inner;
  while (end > inner && rows.open(end - 1, 1)) --end;
  std::vector<Part> parts;
  const auto border = [&](int64_t begin, int64_t count) {
    if (count > most) parts.push_back({begin, count, 1, true, false});
    else if (count > 0) parts.push_back({begin, 1, count, true, false});
  };
  border(0, inner);
  if (end > inner) {
    // Neighbours share what they read, as long as registers hold it; every row of code costs its compilation.
    const int64_t inside = end - inner;
    int64_t size = 1;
    double best = HUGE_VAL;
    for (int64_t one = 1; one <= std::min(most, inside); ++one) {
      const double cost = static_cast<double>(one + inside % one) +
                          12 * static_cast<double>((one - 1) * rows.stride + rows.kernel) / static_cast<double>(one);
      if (cost <= best) best = cost, size = one;
    }
    parts.push_back({inner, inside / size, size, false, false});
    if (inside % size > 0) parts.push_back({end - inside % size, 1, inside % size, false, false});
  }
  border(end, rows.out - end);
  return parts;
}

class Slider {
 public:
  Slider(const Operation& op, std::string name, Sliding sliding, Value x)
      : emit_(op.emit),
        context_(op.context()),
        name_(std::move(name)),
        sliding_(std::move(sliding)),
        x_(std::move(x)),
        dims_(op.dims()),
        dtype_(sliding_.init->dtype) {
    const Windows& windows = sliding_.windows;
    for (size_t d = 0; d < windows.rank(); ++d) {
      along_[2 - windows.rank() + d] = {*windows.out[d].constant(),    *windows.in[d].constant(),
                                        *windows.kernel[d].constant(), windows.strides[d],
                                        windows.dilation[d],           windows.before[d]};
    }
  }

  loop::Body run(const std::vector<TileResult>& results) {
    const Along &rows = along_[0], &columns = along_[1];
    const int64_t taps = rows.kernel * columns.kernel;
    Symbol vars[2];
    for (const size_t i : {0, 1}) vars[i] = symbol(fmt::format("c{}", i));
    outer_ = {context_.dim(vars[0]), context_.dim(vars[1])};
    loop::Body tiles;
    for (const Part& row : row_parts(rows, taps)) {
      for (const Part& column : columns.vectors(lanes_of(dtype_)))
        tiles.push_back(tile(vars, row, column, taps <= kMostUnrolled ? Mark::kUnroll : Mark::kSerial, results));
    }
    double terms = static_cast<double>(taps * rows.out * columns.out);
    for (const size_t d : {0, 1}) terms *= static_cast<double>(dims_[d].constant().value_or(1 << 10));
    const bool parallel = terms >= kParallelTerms, images = dims_[0].constant() != 1;
    For channels{.var = vars[1],
                 .extent = dims_[1],
                 .mark = parallel && !images ? Mark::kParallel : Mark::kSerial,
                 .body = std::move(tiles)};
    For batch{
        .var = vars[0], .extent = dims_[0], .mark = parallel && images ? Mark::kParallel : Mark::kSerial, .body = {}};
    batch.body.push_back({std::move(channels)});
    loop::Body body;
    body.push_back({std::move(batch)});
    return body;
  }

 private:
  // A name that no dim of the function has.
  Symbol symbol(std::string name) const {
    const auto& dims = emit_.builder().function().dims;
    while (std::ranges::find(dims, context_.symbol(name)) != dims.end()) name += '_';
    return context_.symbol(name);
  }
  static For loop_of(Symbol var, Dim extent, Mark mark) {
    return {.var = var, .extent = extent, .mark = mark, .body = {}};
  }

  Stmt tile(const Symbol (&vars)[2], const Part& row, const Part& column, Mark mark,
            const std::vector<TileResult>& results) {
    const Part* parts[2] = {&row, &column};
    std::vector<Axis> blocks, inner, taps;
    std::vector<For> outer, places, sums;
    const auto axis = [&](std::vector<Axis>& to, Symbol var, Dim extent, AxisKind kind) {
      to.push_back({.var = var, .extent = extent, .kind = kind, .value = context_.dim(var)});
    };
    for (const size_t d : {0, 1}) axis(blocks, vars[d], dims_[d], AxisKind::kSpatial);
    Dims place, local, shape, tap;
    for (const size_t d : {0, 1}) {
      const Part& part = *parts[d];
      Dim block = context_.dim(0);
      if (part.count > 1) {
        const Symbol var = symbol(fmt::format("b{}", d));
        outer.push_back(loop_of(var, context_.dim(part.count), Mark::kSerial));
        axis(blocks, var, outer.back().extent, AxisKind::kSpatial);
        block = context_.dim(var);
      }
      local.push_back(context_.dim(0)), shape.push_back(context_.dim(part.size));
      if (part.size > 1) {
        const Symbol var = symbol(fmt::format("t{}", d));
        places.push_back(loop_of(var, shape.back(), d == 1 ? Mark::kVector : Mark::kUnroll));
        axis(inner, var, shape.back(), AxisKind::kSpatial);
        local.back() = context_.dim(var);
      }
      place.push_back(context_.add(
          context_.add(context_.dim(part.begin), context_.multiply(block, context_.dim(part.size))), local.back()));
    }
    for (const size_t d : {0, 1}) {
      const Symbol var = symbol(fmt::format("k{}", d));
      sums.push_back(loop_of(var, context_.dim(along_[d].kernel), mark));
      axis(taps, var, sums.back().extent, AxisKind::kReduce);
      tap.push_back(context_.dim(var));
    }
    const loop::BufferId acc =
        emit_.builder().local(context_.name(emit_.builder().stage_name(name_ + "_acc")), shape, dtype_);
    const Expr held = emit_.builder().load(acc, local);

    loop::Body body;
    body.push_back(loop::nest(places, stage(name_ + "_init", inner, {}, acc, local, sliding_.init)));
    std::vector<Axis> all = blocks;
    all.insert(all.end(), inner.begin(), inner.end());
    const std::vector<Axis> points = all;
    all.insert(all.end(), taps.begin(), taps.end());
    sums.insert(sums.end(), places.begin(), places.end());
    const size_t real = 2 - sliding_.windows.rank();
    body.push_back(loop::nest(sums, stage(name_, all, {}, acc, local,
                                          sliding_.step(held, element(place, tap, parts), outer_,
                                                        Dims(tap.begin() + static_cast<ptrdiff_t>(real), tap.end())))));
    std::vector<loop::Guard> guards;
    if (column.guarded) guards.push_back({place[1], context_.dim(along_[1].out)});
    Dims to = outer_;
    to.insert(to.end(), place.begin() + static_cast<ptrdiff_t>(real), place.end());
    for (const TileResult& result : results) {
      const std::string_view name = context_.name(emit_.builder().function().buffer(result.buffer).name);
      body.push_back(loop::nest(places, stage(name, points, guards, result.buffer, to, result.value(to, held))));
    }
    return loop::nest(outer,
                      Stmt{loop::Alloc{.buffer = acc, .scope = loop::Scope::kRegisters, .body = std::move(body)}});
  }

  // What lies outside in rows is decided for all lanes at once, in columns for each.
  Expr element(const Dims& place, const Dims& tap, const Part* const (&parts)[2]) {
    Dims from = outer_;
    std::vector<Expr> inside;
    for (size_t d = 2 - sliding_.windows.rank(); d < 2; ++d) {
      const Along& along = along_[d];
      from.push_back(context_.add(context_.add(context_.multiply(place[d], context_.dim(along.stride)),
                                               context_.multiply(tap[d], context_.dim(along.dilation))),
                                  context_.dim(-along.before)));
      if (parts[d]->open) inside.push_back(emit_.inside(from.back(), context_.dim(0), context_.dim(along.in)));
    }
    Expr value = x_.at(from);
    for (size_t i = inside.size(); i-- > 0;) value = choose(inside[i], value, sliding_.pad);
    return value;
  }

  Stmt stage(std::string_view name, std::vector<Axis> axes, std::vector<loop::Guard> where, loop::BufferId to,
             const Dims& at, Expr value) {
    loop::Stage stage{.name = emit_.builder().stage_name(name),
                      .axes = std::move(axes),
                      .where = std::move(where),
                      .init = {},
                      .body = {}};
    stage.body.push_back({loop::Store{to, at, std::move(value)}});
    return Stmt{std::move(stage)};
  }

  Emitter& emit_;
  Context& context_;
  const std::string name_;
  const Sliding sliding_;
  const Value x_;
  const Dims dims_;
  const DType dtype_;
  Along along_[2];  // rows, of which one dim has one, and columns
  Dims outer_;      // image, channel
};

}  // namespace

bool slides(const Windows& windows) {
  const auto known = [](Dim dim) { return dim.constant().value_or(0) > 0; };
  return windows.rank() <= 2 && std::ranges::all_of(windows.in, known) && std::ranges::all_of(windows.out, known) &&
         std::ranges::all_of(windows.kernel, known);
}

Value slide(const Operation& op, std::string_view name, const Sliding& sliding) {
  const Value x = op.emit.stored("x", op.arg(0));
  const auto slider = std::make_shared<Slider>(op, std::string(name), sliding, x);
  return op.emit.contract(name, op.dims(), sliding.init->dtype,
                          [slider](const std::vector<TileResult>& results) { return slider->run(results); });
}

}  // namespace tenon::compiler::kernels
