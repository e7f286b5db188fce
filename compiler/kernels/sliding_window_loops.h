// Building blocks for the loops of sliding windows and of sums of whole maps; internal to sliding_window.cpp,
// padded_input.cpp and map_sum.cpp.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/kernels/emitter.h"
#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {

// `count` vectors or tiles of `size` pixels, from `begin` on.
struct SlidingWindowPart {
  int64_t begin = 0, count = 1, size = 1;
  bool needs_padding = false;  // a kernel tap may be outside of x
  bool guarded = false;        // the last pixels are past the end
};

// The sizes of one spatial dim.
struct SlidingWindowDim {
  int64_t out = 1, in = 1, kernel = 1, stride = 1, dilation = 1, before = 0;

  // The distance from the first kernel tap to the last one.
  int64_t halo() const { return (kernel - 1) * dilation; }
  int64_t phases() const { return num_phases(kernel, stride, dilation); }
  bool needs_padding(int64_t begin, int64_t size) const {
    const int64_t first = begin * stride - before, last = (begin + size - 1) * stride - before + halo();
    return first < 0 || last >= in;
  }

  // Vectors of `largest` pixels, then of `smallest`, and a tail in powers of two. Equal vectors form one part; up to
  // two vectors at the boundary are separate parts, whose masks are constants then.
  std::vector<SlidingWindowPart> vectors(int64_t largest, int64_t smallest) const {
    std::vector<SlidingWindowPart> parts;
    int64_t begin = 0;
    for (const int64_t size : {largest, smallest}) {
      while (out - begin >= size) {
        const bool is_padded = needs_padding(begin, size);
        int64_t count = 1;
        while (out - begin >= (count + 1) * size && needs_padding(begin + count * size, size) == is_padded) ++count;
        if (is_padded && count <= 2) count = 1;
        parts.push_back({begin, count, size, is_padded, false});
        begin += count * size;
      }
    }
    if (const int64_t tail = out - begin; tail > 0) {
      const auto lanes = std::max<int64_t>(4, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(tail))));
      parts.push_back({begin, 1, lanes, needs_padding(begin, lanes), lanes > tail});
    }
    return parts;
  }
};

struct SlidingWindowLoops {
  Emitter& emit;
  Context& context;
  std::string name;
  std::vector<Axis> outer = {};  // axes of the image, the channel, and the band of rows
  Dims at = {};                  // indices of the image and the channel

  Dim plus(Dim a, int64_t b) const { return context.add(a, context.dim(b)); }
  Dim times(Dim a, int64_t b) const { return context.multiply(a, context.dim(b)); }

  // A symbol that differs from the dims of the function.
  Symbol symbol(std::string candidate) const {
    const auto& dims = emit.builder().function().dims;
    while (std::ranges::find(dims, context.symbol(candidate)) != dims.end()) candidate += '_';
    return context.symbol(candidate);
  }
  For loop_of(Symbol var, int64_t extent, LoopKind kind, loop::Body body = {}) const {
    return {.var = var, .extent = context.dim(extent), .kind = kind, .body = std::move(body)};
  }
  void axis(std::vector<Axis>& to, const For& loop, AxisKind kind = AxisKind::kSpatial) const {
    to.push_back({.var = loop.var, .extent = loop.extent, .kind = kind, .value = context.dim(loop.var)});
  }
  // Adds a loop and its axis, and returns its variable; 0 instead of a loop of one iteration.
  Dim add_loop(std::vector<For>& loops, std::vector<Axis>& axes, For loop) const {
    if (loop.extent.constant() == 1) return context.dim(0);
    axis(axes, loop);
    loops.push_back(std::move(loop));
    return context.dim(loops.back().var);
  }
  // Loops over images and groups of channels, of maps of `terms` terms each. One of them is parallel where there is
  // enough work for threads.
  std::vector<For> over_maps(Dim images, Dim channels, int64_t group, double terms) {
    for (const Dim size : {images, channels}) terms *= static_cast<double>(size.constant().value_or(1 << 10));
    const bool parallel = terms >= kParallelTerms, many_images = images.constant() != 1;
    const auto kind_if = [&](bool is_shared) {
      return parallel && is_shared ? LoopKind::kParallel : LoopKind::kSerial;
    };
    std::vector<For> loops{{.var = symbol("c0"), .extent = images, .kind = kind_if(many_images), .body = {}},
                           {.var = symbol("c1"),
                            .extent = context.floor_divide(channels, context.dim(group)),
                            .kind = kind_if(!many_images),
                            .body = {}}};
    for (const For& loop : loops) axis(outer, loop);
    return loops;
  }
  Stmt stage(std::string_view stage_name, std::vector<Axis> axes, std::vector<loop::Guard> where, loop::BufferId to,
             const Dims& index, Expr value) const {
    loop::Stage stage{.name = emit.builder().stage_name(stage_name),
                      .axes = std::move(axes),
                      .where = std::move(where),
                      .init = {},
                      .body = {}};
    stage.body.push_back({loop::Store{to, index, std::move(value)}});
    return Stmt{std::move(stage)};
  }
  loop::BufferId buffer(std::string_view buffer_name, const Dims& dims, DType dtype) const {
    return emit.builder().local(context.name(emit.builder().stage_name(buffer_name)), dims, dtype);
  }
};

}  // namespace tenon::compiler::kernels
