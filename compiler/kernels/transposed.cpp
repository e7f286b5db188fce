#include "compiler/kernels/transposed.h"

#include <algorithm>
#include <numeric>

#include "compiler/kernels/pack.h"
#include "compiler/kernels/product.h"
#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {
namespace {

constexpr int64_t kUnknown = 32;  // places along a dim, at a guess

class Transposed {
 public:
  Transposed(const Operation& op, const Windows& windows)
      : op_(op), context_(op.context()), windows_(windows), rank_(windows.rank()), groups_(op.integer("groups")) {}

  // Whether all that matters is known.
  bool fits() const {
    const auto known = [](Dim dim) { return dim.constant().value_or(0) > 0; };
    // More phases than places are work for nothing.
    const bool few = std::ranges::all_of(windows_.strides, [](int64_t stride) { return stride <= 512; });
    return few && !is_empty(windows_.in) && !is_empty(windows_.out) && std::ranges::all_of(op_.arg(1).dims, known) &&
           known(op_.arg(0).dims[1]);
  }

  Value run() {
    const Value &x = op_.arg(0), &w = op_.arg(1);
    channels_ = *x.dims[1].constant() / groups_, outputs_ = *w.dims[1].constant();
    int64_t terms = channels_, all_terms = channels_;  // of a phase that has most; of all
    bool even = true, whole = true, known = true;
    double places = 1;
    for (size_t d = 0; d < rank_; ++d) {
      sides_.push_back(side(d));
      const Side& one = sides_.back();
      terms *= one.most_taps, all_terms *= one.kernel, even &= one.even, known &= one.count.constant().has_value();
      whole &= context_.multiply(one.count, dim(one.stride)) == one.out;
      places *= static_cast<double>(one.count.constant().value_or(kUnknown));
    }
    const int64_t vector = lanes_of(op_.dtype()), line = sides_.back().count.constant().value_or(0);
    TileShape turned;
    if (known && vector == kSide && (groups_ == 1 || outputs_ % kSide == 0)) {
      turned = choose_turned_tile(line, outputs_, terms);
      const double row = choose_tile(outputs_, line, vector, {}).cycles * static_cast<double>(terms);
      channels_as_lanes_ = op_.emit.decide("vectors", {{"places", row}, {"channels", turned.cycles}}) == 1;
    }
    const TileShape shape = channels_as_lanes_ ? turned
                            : line > 0         ? choose_tile(op_.emit, outputs_, line, vector, {})
                                               : tile_of(op_, dim(outputs_), sides_.back().count);
    const TileAxis of_places{role(!channels_as_lanes_), sides_.back().count,
                             channels_as_lanes_ ? shape.rows : shape.vectors * vector},
        of_outputs{role(channels_as_lanes_), dim(outputs_), channels_as_lanes_ ? shape.vectors * vector : shape.rows};
    // By what the inner loop reads again for each block of the outer one.
    const auto weights = static_cast<double>(outputs_ * all_terms), elements = static_cast<double>(channels_) * places;
    const bool weights_first = op_.emit.decide("outer", {{"places", weights}, {"weights", elements}}) == 1;

    Tiles tiles;
    tiles.turned = channels_as_lanes_;
    tiles.axes = {{TileAxis::Role::kOuter, x.dims[0], 1}, {TileAxis::Role::kOuter, dim(groups_), 1}};
    if (weights_first) output_ = tiles.axes.size(), tiles.axes.push_back(of_outputs);
    for (size_t d = 0; d < rank_; ++d) {
      // Phases of a row side by side: they write the same lines.
      sides_[d].phase = tiles.axes.size(), tiles.axes.push_back({TileAxis::Role::kOuter, dim(sides_[d].stride), 1});
      sides_[d].place = tiles.axes.size();
      tiles.axes.push_back(d + 1 < rank_ ? TileAxis{TileAxis::Role::kOuter, sides_[d].count, 1} : of_places);
    }
    if (!weights_first) output_ = tiles.axes.size(), tiles.axes.push_back(of_outputs);
    tiles.over = {dim(channels_)};
    for (const Side& one : sides_) tiles.over.push_back(dim(one.most_taps));
    if (!even) {
      tiles.over_of = [self = *this](const std::vector<TileIndex>& at) {
        Dims over{self.dim(self.channels_)};
        for (const Side& one : self.sides_) over.push_back(self.taps(one, at[one.phase].index));
        return over;
      };
    }
    const Value plane = surrounded(x);
    const Value packed = pack(op_.emit, w, 1, of_outputs.size);
    tiles.term = [=, self = *this](const std::vector<TileIndex>& at, const Dims& k) {
      return self.term(plane, packed, at, k);
    };
    Dims dims{x.dims[0], op_.dims()[1]};
    for (const Side& one : sides_) dims.push_back(context_.multiply(one.count, dim(one.stride)));
    tiles.place = [self = *this](const Dims& at) {
      Context& context = self.context_;
      Dims to{at[0], context.add(context.multiply(at[1], self.dim(self.outputs_)), at[self.output_])};
      for (const Side& one : self.sides_)
        to.push_back(context.add(context.multiply(at[one.place], self.dim(one.stride)), at[one.phase]));
      return to;
    };
    const Value all = op_.emit.contract("conv", dims, op_.dtype(), std::move(tiles));
    // Of the last places not all phases are results.
    return whole ? all : op_.emit.expression(op_.dims(), op_.dtype(), all.at);
  }

 private:
  // A dim: the result's place q * stride + p of the phase p takes tap(p) + m * step, m < taps(p), of the x at
  // q + from(p) - m * move.
  struct Side {
    Dim in, out;
    int64_t kernel, stride, dilation, before;
    int64_t common, step, move, inverse;  // of stride and dilation: what both share; step / move as both without it
    Dim count;                            // places of a phase
    int64_t most_taps = 0;
    bool even = true;             // all phases have so many taps
    int64_t front = 0;            // of x in what surrounds it: elements before it,
    Dim size;                     // and in all
    size_t phase = 0, place = 0;  // axes
  };

  Dim dim(int64_t value) const { return context_.dim(value); }
  static TileAxis::Role role(bool lanes) { return lanes ? TileAxis::Role::kLanes : TileAxis::Role::kRows; }

  Side side(size_t d) const {
    Side one{.in = windows_.in[d],
             .out = windows_.out[d],
             .kernel = *windows_.kernel[d].constant(),
             .stride = windows_.strides[d],
             .dilation = windows_.dilation[d],
             .before = windows_.before[d],
             .common = std::gcd(windows_.strides[d], windows_.dilation[d]),
             .step = 0,
             .move = 0,
             .inverse = 0,
             .count = context_.ceil_divide(windows_.out[d], windows_.strides[d]),
             .size = dim(0)};
    one.step = one.stride / one.common, one.move = one.dilation / one.common;
    while (one.inverse < one.step && one.inverse * one.move % one.step != 1 % one.step) ++one.inverse;
    int64_t first = 0, behind = 0;
    for (int64_t p = 0; p < one.stride; ++p) {
      const int64_t count = *taps(one, dim(p)).constant(), place = *from(one, dim(p)).constant();
      one.even &= p == 0 || count == one.most_taps;
      one.most_taps = std::max(one.most_taps, count);
      if (count == 0) continue;
      first = std::min(first, place - (count - 1) * one.move), behind = std::max(behind, place);
    }
    one.front = -first;
    one.size = context_.add(context_.maximum({context_.add(one.count, dim(behind)), one.in}), dim(one.front));
    return one;
  }

  Dim remainder(const Side& one, Dim phase) const {
    return context_.modulo(context_.add(phase, dim(one.before)), dim(one.stride));
  }
  // The first tap of a phase: tap * dilation leaves its remainder.
  Dim tap(const Side& one, Dim phase) const {
    const Dim digit = context_.floor_divide(remainder(one, phase), dim(one.common));
    return context_.modulo(context_.multiply(digit, dim(one.inverse)), dim(one.step));
  }
  Dim taps(const Side& one, Dim phase) const {
    const Dim behind = context_.subtract(dim(one.kernel - 1 + one.step), tap(one, phase));
    const Dim count = context_.floor_divide(behind, dim(one.step));
    if (one.common == 1) return count;
    const Dim other = context_.modulo(remainder(one, phase), dim(one.common));  // 0, or no tap reaches the phase
    return context_.multiply(count, context_.subtract(dim(1), context_.minimum({other, dim(1)})));
  }
  // Where in x the first tap of the phase's first place lies.
  Dim from(const Side& one, Dim phase) const {
    const Dim reached = context_.subtract(context_.multiply(tap(one, phase), dim(one.dilation)), remainder(one, phase));
    return context_.subtract(context_.floor_divide(context_.add(phase, dim(one.before)), dim(one.stride)),
                             context_.floor_divide(reached, dim(one.stride)));
  }

  // x in zeros, as far as taps reach.
  Value surrounded(const Value& x) {
    Dims dims{x.dims[0], x.dims[1]};
    Side& last = sides_.back();
    surrounded_ = !last.count.constant();
    for (const Side& one : sides_) surrounded_ |= one.size != one.in;
    if (!surrounded_) return op_.emit.stored("x", x);
    // Vectors of places are read to their end.
    const int64_t vector = lanes_of(op_.dtype());
    if (!channels_as_lanes_) {
      const Dim read = context_.multiply(context_.ceil_divide(last.count, vector), dim(vector));
      last.size = context_.add(last.size, context_.subtract(read, last.count));
    }
    for (const Side& one : sides_) dims.push_back(one.size);
    const Value plane = op_.emit.overwritten("plane", dims, like(loop::literal(x.dtype, 0), 0));
    op_.emit.overwrite("copy", plane, x.dims, [x, self = *this](const Dims& at) {
      Dims to = at;
      for (size_t d = 0; d < self.rank_; ++d) to[2 + d] = self.context_.add(to[2 + d], self.dim(self.sides_[d].front));
      return std::pair(to, x.at(at));
    });
    return plane;
  }

  Expr term(const Value& plane, const Value& weights, const std::vector<TileIndex>& at, const Dims& k) const {
    const Dim channel = context_.add(context_.multiply(at[1].index, dim(channels_)), k[0]);
    Dims place{at[0].index, channel}, weight{at[output_].block, channel};
    for (size_t d = 0; d < rank_; ++d) {
      const Side& one = sides_[d];
      const Dim phase = at[one.phase].index, m = k[1 + d];
      const Dim first = context_.add(context_.add(at[one.place].index, from(one, phase)), dim(one.front));
      place.push_back(context_.subtract(first, context_.multiply(m, dim(one.move))));
      weight.push_back(context_.add(tap(one, phase), context_.multiply(m, dim(one.step))));
    }
    weight.push_back(at[output_].inner);
    Expr element = plane.at(place);
    const TileIndex& last = at[sides_.back().place];
    if (!surrounded_ && !channels_as_lanes_ && last.guarded) {
      const Expr inside = less(loop::index_value(last.index), loop::index_value(sides_.back().count));
      element = choose(inside, element, like(element, 0));
    }
    return weights.at(weight) * element;
  }

  Operation op_;
  Context& context_;
  Windows windows_;
  size_t rank_;
  int64_t groups_, channels_ = 0, outputs_ = 0;  // of a group
  std::vector<Side> sides_;
  size_t output_ = 0;  // axis
  bool channels_as_lanes_ = false, surrounded_ = false;
};

}  // namespace

std::optional<Value> transposed_convolution_in_tiles(const Operation& op) {
  const Dims& w = op.arg(1).dims;
  Transposed transposed(op, read_windows(op, Dims(w.begin() + 2, w.end())));
  return transposed.fits() ? std::optional(transposed.run()) : std::nullopt;
}

}  // namespace tenon::compiler::kernels
