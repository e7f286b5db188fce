#include "compiler/kernels/map_sum.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/kernels/emitter.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::kernels {
namespace {

struct MapLoops {
  Emitter& emit;
  Context& context;
  std::string name;
  std::vector<Axis> outer = {};  // axes of the image and the channel
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

constexpr int64_t kMaxChannels = 4;  // at a time: a single one would wait for the latency of its own sums

class MapSummer {
 public:
  MapSummer(const OperatorCall& op, std::string_view name, const MapSum& sum)
      : loops_{op.emit, op.context(), std::string(name)},
        context_(op.context()),
        sum_(sum),
        x_(op.arg(0)),
        init_(sum.term(sum.pad)),
        lanes_(lanes_of(init_->dtype)) {
    for (size_t d = 2; d < x_.rank(); ++d) size_ *= *x_.dims[d].constant();
    const int64_t channels = x_.dims[1].constant().value_or(1);
    channels_ = kMaxChannels;
    while (channels % channels_ > 0) --channels_;
  }

  loop::Body run(const std::vector<TileResult>& results) {
    const std::vector<For> outer = loops_.over_maps(x_.dims[0], x_.dims[1], channels_, static_cast<double>(size_));
    row_ = loops_.loop_of(loops_.symbol("t0"), channels_, LoopKind::kUnrolled);
    loops_.at = {context_.dim(outer[0].var), context_.add(loops_.times(context_.dim(outer[1].var), channels_), row())};

    const loop::BufferId acc = buffer(lanes_);
    const auto accumulated = [&](loop::BufferId id, Dim lane) { return loops_.emit.builder().load(id, {row(), lane}); };
    const auto [inner, lane] = loops_over(lanes_);
    loop::Body body;
    body.push_back(
        loop::nest(inner, loops_.stage(loops_.name + "_init", points(inner), {}, acc, {row(), lane}, init_)));
    if (const int64_t vectors = size_ / lanes_; vectors > 0) {
      const For blocks = loops_.loop_of(loops_.symbol("k0"), vectors, LoopKind::kSerial);
      std::vector<Axis> axes = points(inner);
      loops_.axis(axes, blocks, AxisKind::kReduce);
      std::vector<For> reduction_loops{blocks};
      reduction_loops.insert(reduction_loops.end(), inner.begin(), inner.end());
      const Dim index = context_.add(loops_.times(context_.dim(blocks.var), lanes_), lane);
      body.push_back(
          loop::nest(reduction_loops, loops_.stage(loops_.name, axes, {}, acc, {row(), lane},
                                                   sum_.step(accumulated(acc, lane), sum_.term(element(index))))));
    }
    if (size_ % lanes_ > 0) {
      const Dim index = loops_.plus(lane, size_ / lanes_ * lanes_);
      const Expr x = select(loops_.emit.inside(index, context_.dim(0), context_.dim(size_)), element(index), sum_.pad);
      body.push_back(loop::nest(inner, loops_.stage(loops_.name + "_tail", points(inner), {}, acc, {row(), lane},
                                                    sum_.step(accumulated(acc, lane), sum_.term(x)))));
    }
    halve(acc, lanes_, results, body);
    return nest_of(outer, {loop::Alloc{.buffer = acc, .scope = loop::Scope::kRegisters, .body = std::move(body)}});
  }

 private:
  Dim row() const { return channels_ == 1 ? context_.dim(0) : context_.dim(row_.var); }
  loop::BufferId buffer(int64_t lanes) const {
    return loops_.buffer(loops_.name + "_acc", {context_.dim(channels_), context_.dim(lanes)}, init_->dtype);
  }
  // Loops over the channels and the lanes, and the index of the lane.
  std::pair<std::vector<For>, Dim> loops_over(int64_t lanes) const {
    std::vector<For> loops;
    if (channels_ > 1) loops.push_back(row_);
    if (lanes == 1) return {loops, context_.dim(0)};
    loops.push_back(loops_.loop_of(loops_.symbol("t1"), lanes, LoopKind::kVectorized));
    return {loops, context_.dim(loops.back().var)};
  }
  std::vector<Axis> points(const std::vector<For>& inner) const {
    std::vector<Axis> axes = loops_.outer;
    for (const For& loop : inner) loops_.axis(axes, loop);
    return axes;
  }
  static loop::Body nest_of(const std::vector<For>& loops, Stmt inner) {
    loop::Body body;
    body.push_back(loop::nest(loops, std::move(inner)));
    return body;
  }

  // Adds the upper half of the lanes to the lower one, repeatedly; stores the results from the last two lanes.
  void halve(loop::BufferId from, int64_t lanes, const std::vector<TileResult>& results, loop::Body& to) {
    const int64_t half = lanes / 2;
    const auto [inner, lane] = loops_over(half);
    const auto accumulated = [&, at = lane](int64_t offset) {
      return loops_.emit.builder().load(from, {row(), loops_.plus(at, offset)});
    };
    const Expr sum = sum_.step(accumulated(0), accumulated(half));
    if (half > 1) {
      const loop::BufferId next = buffer(half);
      loop::Body body;
      body.push_back(
          loop::nest(inner, loops_.stage(loops_.name + "_half", points(inner), {}, next, {row(), lane}, sum)));
      halve(next, half, results, body);
      to.push_back({loop::Alloc{.buffer = next, .scope = loop::Scope::kRegisters, .body = std::move(body)}});
      return;
    }
    Dims index = loops_.at;
    index.resize(x_.rank(), context_.dim(0));
    for (const TileResult& result : results) {
      const std::string_view name = context_.name(loops_.emit.builder().function().buffer(result.buffer).name);
      to.push_back(
          loop::nest(inner, loops_.stage(name, points(inner), {}, result.buffer, index, result.value(index, sum))));
    }
  }

  // The element at a row-major offset in a map.
  Expr element(Dim offset) const {
    Dims at(x_.rank() - 2);
    for (size_t d = at.size(); d-- > 0;) {
      at[d] = d == 0 ? offset : context_.modulo(offset, x_.dims[2 + d]);
      if (d > 0) offset = context_.floor_divide(offset, x_.dims[2 + d]);
    }
    at.insert(at.begin(), loops_.at.begin(), loops_.at.end());
    return x_.at(at);
  }

  MapLoops loops_;
  Context& context_;
  const MapSum sum_;
  const LazyTensor x_;
  const Expr init_;
  const int64_t lanes_;
  int64_t size_ = 1, channels_ = 1;  // elements of a map, and maps at a time
  For row_;
};

}  // namespace

bool has_map_sum(const LazyTensor& x, DType dtype) {
  int64_t size = 1;
  for (size_t d = 2; d < x.rank(); ++d) {
    const int64_t extent = x.dims[d].constant().value_or(0);
    if (extent <= 0 || __builtin_mul_overflow(size, extent, &size)) return false;
  }
  return size >= lanes_of(dtype) && !is_empty(x.dims);
}

LazyTensor map_sum(const OperatorCall& op, std::string_view name, const MapSum& sum) {
  const auto summer = std::make_shared<MapSummer>(op, name, sum);
  return op.emit.contract(name, op.dims(), sum.term(sum.pad)->dtype,
                          [summer](const std::vector<TileResult>& results) { return summer->run(results); });
}

}  // namespace tenon::compiler::kernels
