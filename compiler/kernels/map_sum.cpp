#include "compiler/kernels/map_sum.h"

#include "compiler/kernels/slide_loops.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::kernels {
namespace {

constexpr int64_t kMostChannels = 4;  // at a time: one alone would wait for its own sums

class MapSummer {
 public:
  MapSummer(const Operation& op, std::string_view name, const MapSum& sum)
      : loops_{op.emit, op.context(), std::string(name)},
        context_(op.context()),
        sum_(sum),
        x_(op.arg(0)),
        init_(sum.term(sum.pad)),
        lanes_(lanes_of(init_->dtype)) {
    for (size_t d = 2; d < x_.rank(); ++d) size_ *= *x_.dims[d].constant();
    const int64_t channels = x_.dims[1].constant().value_or(1);
    channels_ = kMostChannels;
    while (channels % channels_ > 0) --channels_;
  }

  loop::Body run(const std::vector<TileResult>& results) {
    const std::vector<For> outer = loops_.over_maps(x_.dims[0], x_.dims[1], channels_, static_cast<double>(size_));
    row_ = loops_.loop_of(loops_.symbol("t0"), channels_, Mark::kUnroll);
    loops_.at = {context_.dim(outer[0].var), context_.add(loops_.times(context_.dim(outer[1].var), channels_), row())};

    const loop::BufferId acc = buffer(lanes_);
    const auto held = [&](loop::BufferId id, Dim lane) { return loops_.emit.builder().load(id, {row(), lane}); };
    const auto [inner, lane] = rows_of(lanes_);
    loop::Body body;
    body.push_back(
        loop::nest(inner, loops_.stage(loops_.name + "_init", points(inner), {}, acc, {row(), lane}, init_)));
    if (const int64_t whole = size_ / lanes_; whole > 0) {
      const For blocks = loops_.loop_of(loops_.symbol("k0"), whole, Mark::kSerial);
      std::vector<Axis> axes = points(inner);
      loops_.axis(axes, blocks, AxisKind::kReduce);
      std::vector<For> around{blocks};
      around.insert(around.end(), inner.begin(), inner.end());
      const Dim place = context_.add(loops_.times(context_.dim(blocks.var), lanes_), lane);
      body.push_back(loop::nest(around, loops_.stage(loops_.name, axes, {}, acc, {row(), lane},
                                                     sum_.step(held(acc, lane), sum_.term(element(place))))));
    }
    if (size_ % lanes_ > 0) {
      const Dim place = loops_.plus(lane, size_ / lanes_ * lanes_);
      const Expr x = choose(loops_.emit.inside(place, context_.dim(0), context_.dim(size_)), element(place), sum_.pad);
      body.push_back(loop::nest(inner, loops_.stage(loops_.name + "_rest", points(inner), {}, acc, {row(), lane},
                                                    sum_.step(held(acc, lane), sum_.term(x)))));
    }
    halve(acc, lanes_, results, body);
    return nest_of(outer, {loop::Alloc{.buffer = acc, .scope = loop::Scope::kRegisters, .body = std::move(body)}});
  }

 private:
  Dim row() const { return channels_ == 1 ? context_.dim(0) : context_.dim(row_.var); }
  loop::BufferId buffer(int64_t lanes) const {
    return loops_.buffer(loops_.name + "_acc", {context_.dim(channels_), context_.dim(lanes)}, init_->dtype);
  }
  // Loops over the channels and so many lanes, and the lane.
  std::pair<std::vector<For>, Dim> rows_of(int64_t lanes) const {
    std::vector<For> loops;
    if (channels_ > 1) loops.push_back(row_);
    if (lanes == 1) return {loops, context_.dim(0)};
    loops.push_back(loops_.loop_of(loops_.symbol("t1"), lanes, Mark::kVector));
    return {loops, context_.dim(loops.back().var)};
  }
  std::vector<Axis> points(const std::vector<For>& inner) const {
    std::vector<Axis> axes = loops_.outer;
    for (const For& one : inner) loops_.axis(axes, one);
    return axes;
  }
  static loop::Body nest_of(const std::vector<For>& loops, Stmt inner) {
    loop::Body body;
    body.push_back(loop::nest(loops, std::move(inner)));
    return body;
  }

  // As many sums as lanes become half as many; those of two are the result.
  void halve(loop::BufferId from, int64_t lanes, const std::vector<TileResult>& results, loop::Body& to) {
    const int64_t half = lanes / 2;
    const auto [inner, lane] = rows_of(half);
    const auto held = [&, at = lane](int64_t behind) {
      return loops_.emit.builder().load(from, {row(), loops_.plus(at, behind)});
    };
    const Expr sum = sum_.step(held(0), held(half));
    if (half > 1) {
      const loop::BufferId next = buffer(half);
      loop::Body body;
      body.push_back(
          loop::nest(inner, loops_.stage(loops_.name + "_half", points(inner), {}, next, {row(), lane}, sum)));
      halve(next, half, results, body);
      to.push_back({loop::Alloc{.buffer = next, .scope = loop::Scope::kRegisters, .body = std::move(body)}});
      return;
    }
    Dims place = loops_.at;
    place.resize(x_.rank(), context_.dim(0));
    for (const TileResult& result : results) {
      const std::string_view name = context_.name(loops_.emit.builder().function().buffer(result.buffer).name);
      to.push_back(
          loop::nest(inner, loops_.stage(name, points(inner), {}, result.buffer, place, result.value(place, sum))));
    }
  }

  // The element of that number in a map.
  Expr element(Dim place) const {
    Dims at(x_.rank() - 2);
    for (size_t d = at.size(); d-- > 0;) {
      at[d] = d == 0 ? place : context_.modulo(place, x_.dims[2 + d]);
      if (d > 0) place = context_.floor_divide(place, x_.dims[2 + d]);
    }
    at.insert(at.begin(), loops_.at.begin(), loops_.at.end());
    return x_.at(at);
  }

  SlideLoops loops_;
  Context& context_;
  const MapSum sum_;
  const Value x_;
  const Expr init_;
  const int64_t lanes_;
  int64_t size_ = 1, channels_ = 1;  // of a map, and how many maps at a time
  For row_;
};

}  // namespace

bool sums_maps(const Value& x, DType dtype) {
  int64_t size = 1;
  for (size_t d = 2; d < x.rank(); ++d) {
    const int64_t one = x.dims[d].constant().value_or(0);
    if (one <= 0 || __builtin_mul_overflow(size, one, &size)) return false;
  }
  return size >= lanes_of(dtype) && !is_empty(x.dims);
}

Value sum_maps(const Operation& op, std::string_view name, const MapSum& sum) {
  const auto summer = std::make_shared<MapSummer>(op, name, sum);
  return op.emit.contract(name, op.dims(), sum.term(sum.pad)->dtype,
                          [summer](const std::vector<TileResult>& results) { return summer->run(results); });
}

}  // namespace tenon::compiler::kernels
