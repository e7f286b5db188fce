// What the loops of windows that slide over one channel are written with; and sums of whole maps; internal to
// slide.cpp, slide_plane.cpp and map_sum.cpp.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/kernels/emitter.h"
#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {

// `count` vectors or tiles of `size` places, from `begin` on.
struct SlidePart {
  int64_t begin = 0, count = 1, size = 1;
  bool open = false;     // a tap may lie outside of x
  bool guarded = false;  // the last places lie behind the end
};

// The sizes of one dim.
struct SlideDim {
  int64_t out = 1, in = 1, kernel = 1, stride = 1, dilation = 1, before = 0;

  // From the first tap's place to the last one's.
  int64_t reach() const { return (kernel - 1) * dilation; }
  int64_t phases() const { return remainders(kernel, stride, dilation); }
  bool open(int64_t begin, int64_t size) const {
    const int64_t first = begin * stride - before, last = (begin + size - 1) * stride - before + reach();
    return first < 0 || last >= in;
  }

  // Vectors of `most` places, behind them of `least`, and what remains in powers of two. Those that are alike follow
  // each other in a part; a few at the border have one each, so that there all is known.
  std::vector<SlidePart> vectors(int64_t most, int64_t least) const {
    std::vector<SlidePart> parts;
    int64_t begin = 0;
    for (const int64_t size : {most, least}) {
      while (out - begin >= size) {
        const bool is_open = open(begin, size);
        int64_t count = 1;
        while (out - begin >= (count + 1) * size && open(begin + count * size, size) == is_open) ++count;
        if (is_open && count <= 2) count = 1;
        parts.push_back({begin, count, size, is_open, false});
        begin += count * size;
      }
    }
    if (const int64_t rest = out - begin; rest > 0) {
      const auto wide = std::max<int64_t>(4, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rest))));
      parts.push_back({begin, 1, wide, open(begin, wide), wide > rest});
    }
    return parts;
  }
};

struct SlideLoops {
  Emitter& emit;
  Context& context;
  std::string name;
  std::vector<Axis> outer = {};  // image, channel, and the rows of a band
  Dims at = {};                  // image and channel

  Dim plus(Dim a, int64_t b) const { return context.add(a, context.dim(b)); }
  Dim times(Dim a, int64_t b) const { return context.multiply(a, context.dim(b)); }

  // A name that no dim of the function has.
  Symbol symbol(std::string wanted) const {
    const auto& dims = emit.builder().function().dims;
    while (std::ranges::find(dims, context.symbol(wanted)) != dims.end()) wanted += '_';
    return context.symbol(wanted);
  }
  For loop_of(Symbol var, int64_t extent, Mark mark, loop::Body body = {}) const {
    return {.var = var, .extent = context.dim(extent), .mark = mark, .body = std::move(body)};
  }
  void axis(std::vector<Axis>& to, const For& loop, AxisKind kind = AxisKind::kSpatial) const {
    to.push_back({.var = loop.var, .extent = loop.extent, .kind = kind, .value = context.dim(loop.var)});
  }
  // A loop, unless it were of one iteration; then its variable is 0.
  Dim around(std::vector<For>& loops, std::vector<Axis>& axes, For loop) const {
    if (loop.extent.constant() == 1) return context.dim(0);
    axis(axes, loop);
    loops.push_back(std::move(loop));
    return context.dim(loops.back().var);
  }
  // Loops over images and groups of channels, of maps of so many terms each: threads share one where that is worth it.
  std::vector<For> over_maps(Dim images, Dim channels, int64_t group, double terms) {
    for (const Dim size : {images, channels}) terms *= static_cast<double>(size.constant().value_or(1 << 10));
    const bool parallel = terms >= kParallelTerms, many = images.constant() != 1;
    const auto mark = [&](bool here) { return parallel && here ? Mark::kParallel : Mark::kSerial; };
    std::vector<For> loops{{.var = symbol("c0"), .extent = images, .mark = mark(many), .body = {}},
                           {.var = symbol("c1"),
                            .extent = context.floor_divide(channels, context.dim(group)),
                            .mark = mark(!many),
                            .body = {}}};
    for (const For& one : loops) axis(outer, one);
    return loops;
  }
  Stmt stage(std::string_view stage_name, std::vector<Axis> axes, std::vector<loop::Guard> where, loop::BufferId to,
             const Dims& place, Expr value) const {
    loop::Stage stage{.name = emit.builder().stage_name(stage_name),
                      .axes = std::move(axes),
                      .where = std::move(where),
                      .init = {},
                      .body = {}};
    stage.body.push_back({loop::Store{to, place, std::move(value)}});
    return Stmt{std::move(stage)};
  }
  loop::BufferId buffer(std::string_view buffer_name, const Dims& dims, DType dtype) const {
    return emit.builder().local(context.name(emit.builder().stage_name(buffer_name)), dims, dtype);
  }
};

}  // namespace tenon::compiler::kernels
