// Convolutions over one or two spatial dims of constant sizes, in tiles of registers.
#include "compiler/kernels/direct.h"

#include <algorithm>

#include "compiler/kernels/pack.h"
#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {
namespace {

constexpr int64_t kPageWords = 1 << 10;
constexpr double kMoved = 0.5;  // cycles of a sum that is written and read once more

// Vectors are neighbouring places of the result, unrolled over its channels, or channels, unrolled over neighbouring
// places of a row: then an element of x is the same in all lanes, wherever its neighbours lie, so a stride costs
// nothing, and maps that are no whole vectors nothing either; but tiles are turned round before they are stored.
//
// Of vectors of places: they are taken along a row, or through all rows as they lie behind each other in a plane that
// is wider than the result; what lies between the rows is computed and left out. A stride is taken out of the way: the
// plane is a copy, cut into one for each remainder of the place, in which the taps of neighbouring results are
// neighbours.
class Direct {
 public:
  Direct(const Operation& op, const Windows& windows, Dim groups, Times times)
      : op_(op), context_(op.context()), windows_(windows), groups_(groups), times_(std::move(times)) {}

  // Whether all that matters is known.
  bool fits() const {
    const auto known = [](Dim dim) { return dim.constant().value_or(0) > 0; };
    return windows_.rank() <= 2 && windows_.few_phases() && std::ranges::all_of(windows_.in, known) &&
           std::ranges::all_of(windows_.out, known) && std::ranges::all_of(op_.arg(1).dims, known) &&
           known(op_.arg(0).dims[1]) && groups_.constant();
  }

  Value run(const Expr& pad) {
    const Value w = op_.arg(1);
    Value x = op_.arg(0);
    for (size_t d = 0; d < 2; ++d) {
      // One dim is a row; a window of one element above it.
      const bool real = d + windows_.rank() >= 2;
      const size_t from = real ? d + windows_.rank() - 2 : 0;
      out_[d] = real ? *windows_.out[from].constant() : 1;
      kernel_[d] = real ? *windows_.kernel[from].constant() : 1;
      stride_[d] = real ? windows_.strides[from] : 1;
      dilation_[d] = real ? windows_.dilation[from] : 1;
      before_[d] = real ? windows_.before[from] : 0;
      in_[d] = real ? *windows_.in[from].constant() : 1;
      // Remainders that occur: of the places of the taps.
      phases_[d] = remainders(kernel_[d], stride_[d], dilation_[d]);
      reach_[d] = (kernel_[d] - 1) * dilation_[d] / stride_[d];
    }
    channels_ = *w.dims[1].constant();
    outputs_ = *w.dims[0].constant() / *groups_.constant();
    const int64_t vector = lanes_of(op_.dtype()), terms = channels_ * kernel_[0] * kernel_[1];
    // A product of matrices: of x as it is, or of those of its places that a stride leaves over.
    bool plain = kernel_[0] * kernel_[1] == 1;
    for (const size_t d : {0, 1}) plain &= before_[d] == 0 && (out_[d] - 1) * stride_[d] < in_[d];
    if (plain && (out_[0] != in_[0] || out_[1] != in_[1])) x = every(x);

    TileShape row = choose_tile(outputs_, out_[1], vector, {});
    const double each = static_cast<double>(terms), sums = static_cast<double>(outputs_ * out_[0] * out_[1]);
    row.cycles *= static_cast<double>(out_[0]);
    width_ = plain ? out_[1] : out_[1] + reach_[1];
    const int64_t run = (out_[0] - 1) * width_ + out_[1];
    const Apart apart{.lanes = plain && run >= kPageWords};
    const TileShape flat = choose_tile(outputs_, run, vector, apart);
    // Rows that are taken apart afterwards are written and read once more.
    const double moved = plain ? 0 : sums * kMoved;
    // Channels only where a cache keeps a tile's weights, which are read again for each tile of places: the second one
    // is fast enough for that. And where no vector reaches into another group.
    through_ = plain || (windows_.rank() == 2 && out_[1] <= kSide / 2);
    const TileShape shape = channel_tile();
    if (vector == kSide && terms * shape.vectors * kSide <= kCacheWords &&
        (groups_.constant() == 1 || outputs_ % kSide == 0)) {
      const double cut = phases_[0] * phases_[1] > 1 ? static_cast<double>(channels_ * in_[0] * in_[1]) : 0;
      const double places = std::min(row.cycles * each, flat.cycles * each + moved) + cut;
      if (op_.emit.decide("vectors", {{"places", places}, {"channels", shape.cycles}}) == 1)
        return by_channels(x, pad, plain, shape);
    }
    flat_ = plain || op_.emit.decide("places", {{"row", row.cycles * each}, {"run", flat.cycles * each + moved}}) == 1;
    row = choose_tile(op_.emit, outputs_, flat_ ? run : out_[1], vector, apart);
    const int64_t tile = row.vectors * vector;
    Tiles tiles;
    const Dim n = x.dims[0], rows_dim = context_.dim(outputs_);
    const auto round_up = [](int64_t value, int64_t step) { return (value + step - 1) / step * step; };
    if (!flat_) width_ = round_up(out_[1], vector) + reach_[1];
    const int64_t places = flat_ ? (out_[0] - 1) * width_ + out_[1] : out_[1];
    const Value plane =
        plain ? x : copied(x, pad, flat_ ? round_up(places, vector) + reach_[0] * width_ + reach_[1] : 0);

    // Axes: batch, group, row unless flat, then places and rows of the tile in the order that reads less again.
    using Role = TileAxis::Role;
    tiles.axes = {{Role::kOuter, n, 1}, {Role::kOuter, groups_, 1}};
    const TileAxis lanes{Role::kLanes, context_.dim(places), tile}, unrolled{Role::kRows, rows_dim, row.rows};
    size_t y = 0, lane = 0, unroll = 0;
    const bool weights_first = weights_outside(1, 1, apart.lanes);
    if (weights_first) unroll = tiles.axes.size(), tiles.axes.push_back(unrolled);
    if (!flat_) y = tiles.axes.size(), tiles.axes.push_back({Role::kOuter, context_.dim(out_[0]), 1});
    lane = tiles.axes.size(), tiles.axes.push_back(lanes);
    if (!weights_first) unroll = tiles.axes.size(), tiles.axes.push_back(unrolled);
    for (const int64_t size : {channels_, kernel_[0], kernel_[1]}) tiles.over.push_back(context_.dim(size));
    if (windows_.rank() == 1) tiles.over.erase(tiles.over.begin() + 1);
    const Value weights = pack(op_.emit, grouped(w), 1, row.rows);
    tiles.term = [=, self = *this](const std::vector<TileIndex>& at, const Dims& k) {
      return self.term(plane, weights, plain, at, k, y, lane, unroll);
    };
    tiles.place = [=, self = *this](const Dims& at) { return self.place(at, y, lane, unroll); };
    if (flat_ && !plain) {
      // Rows as they lie in the plane; what follows takes them apart.
      tiles.place = [=, self = *this](const Dims& at) {
        return Dims{at[0],
                    self.context_.add(self.context_.multiply(at[1], self.context_.dim(self.outputs_)), at[unroll]),
                    at[lane]};
      };
      const Value sums =
          op_.emit.contract("conv", {n, op_.dims()[1], context_.dim(places)}, op_.dtype(), std::move(tiles));
      return op_.emit.expression(op_.dims(), op_.dtype(), [=, self = *this](const Dims& at) {
        Dim place = at.back();
        if (self.windows_.rank() == 2)
          place = self.context_.add(self.context_.multiply(at[2], self.context_.dim(self.width_)), place);
        return sums.at({at[0], at[1], place});
      });
    }
    return op_.emit.contract("conv", op_.dims(), op_.dtype(), std::move(tiles));
  }

 private:
  // By what the inner loop reads again for each block of the outer one, of so many blocks of places and of weights.
  // Results whose rows are `apart` and that no cache holds, while it holds the places, are written row by row: all rows
  // of few places, each in a page of its own, take longer than reading the places again.
  bool weights_outside(int64_t of_places = 1, int64_t of_weights = 1, bool apart = false) const {
    const int64_t weights = outputs_ * channels_ * kernel_[0] * kernel_[1], places = channels_ * in_[0] * in_[1],
                  results = outputs_ * out_[0] * out_[1];
    const int64_t written = apart && results > kCacheWords && places <= kCacheWords ? results : 0;
    return op_.emit.decide("outer", {{"places", static_cast<double>(weights * of_places + written)},
                                     {"weights", static_cast<double>(places * of_weights)}}) == 1;
  }

  // The tile of rows of places and vectors of channels, with all cycles. Through all rows only where windows are
  // elements, or where a tile is whole rows: then what its places are apart is known.
  TileShape channel_tile() const {
    const bool rows = through_ && kernel_[0] * kernel_[1] > 1;
    TileShape best =
        choose_turned_tile(through_ ? out_[0] * out_[1] : out_[1], outputs_, channels_ * kernel_[0] * kernel_[1],
                           [&](int64_t count) { return !rows || count % out_[1] == 0; });
    if (!through_) best.cycles *= static_cast<double>(out_[0]);
    return best;
  }

  Value by_channels(const Value& x, const Expr& pad, bool plain, const TileShape& shape) const {
    using Role = TileAxis::Role;
    Context& context = context_;
    Tiles tiles;
    tiles.turned = true;
    tiles.axes = {{Role::kOuter, x.dims[0], 1}, {Role::kOuter, groups_, 1}};
    const TileAxis outputs{Role::kLanes, context.dim(outputs_), shape.vectors * kSide},
        places{Role::kRows, context.dim(through_ ? out_[0] * out_[1] : out_[1]), shape.rows};
    // What the first cache does not hold is read again for each tile.
    const bool far = outputs_ * channels_ * kernel_[0] * kernel_[1] > kNearWords;
    const bool weights_first =
        far ? weights_outside(out_[0] * out_[1] / shape.rows, (outputs_ + outputs.size - 1) / outputs.size)
            : weights_outside();
    const size_t place = (weights_first ? 3U : 2U) + (through_ ? 0U : 1U), lane = weights_first ? 2 : place + 1;
    if (weights_first) tiles.axes.push_back(outputs);
    const size_t line = tiles.axes.size();  // of the result, unless it is one
    if (!through_) tiles.axes.push_back({Role::kOuter, context.dim(out_[0]), 1});
    tiles.axes.push_back(places);
    if (!weights_first) tiles.axes.push_back(outputs);
    for (const int64_t size : {channels_, kernel_[0], kernel_[1]}) tiles.over.push_back(context.dim(size));
    if (windows_.rank() == 1) tiles.over.erase(tiles.over.begin() + 1);
    const Value weights = pack(op_.emit, grouped(op_.arg(1)), 1, outputs.size), plane = plain ? x : surrounded(x, pad);
    // Row and column of the result.
    const auto where = [&context, rank = windows_.rank(), through = through_, width = context.dim(out_[1])](Dim along,
                                                                                                            Dim row) {
      if (rank == 1) return Dims{along};
      if (!through) return Dims{row, along};
      return Dims{context.floor_divide(along, width), context.modulo(along, width)};
    };
    tiles.term = [=, &context, self = *this](const std::vector<TileIndex>& at, const Dims& k) {
      Dims from{at[0].index, context.add(context.multiply(at[1].index, context.dim(self.channels_)), k[0])};
      const Dims to = where(at[place].index, at[line].index);
      for (size_t d = 0; d < to.size(); ++d) {
        const size_t axis = 2 - to.size() + d;
        from.push_back(context.add(context.multiply(to[d], context.dim(self.stride_[axis])),
                                   context.multiply(k[1 + d], context.dim(self.dilation_[axis]))));
      }
      Dims weight{at[lane].block, at[1].index};
      weight.insert(weight.end(), k.begin(), k.end());
      weight.push_back(at[lane].inner);
      return self.times_(weights.at(weight), plane.at(from));
    };
    tiles.place = [=, &context, outputs = context.dim(outputs_)](const Dims& at) {
      Dims to{at[0], context.add(context.multiply(at[1], outputs), at[lane])};
      for (const Dim one : where(at[place], at[line])) to.push_back(one);
      return to;
    };
    return op_.emit.contract("conv", op_.dims(), op_.dtype(), std::move(tiles));
  }

  // x in what pads it, as far as windows reach.
  Value surrounded(const Value& x, const Expr& pad) const {
    Dims dims{x.dims[0], x.dims[1]}, part = dims;
    bool inside = true, any = true;
    for (size_t d = 2 - windows_.rank(); d < 2; ++d) {
      const int64_t size = (out_[d] - 1) * stride_[d] + (kernel_[d] - 1) * dilation_[d] + 1;
      inside &= before_[d] == 0 && size <= in_[d];
      any &= size > before_[d];
      dims.push_back(context_.dim(size)), part.push_back(context_.dim(std::min(in_[d], size - before_[d])));
    }
    if (inside) return op_.emit.stored("x", x);
    const Value plane = op_.emit.overwritten("plane", dims, pad);
    if (any) {
      op_.emit.overwrite("copy", plane, part, [x, before = windows_.before, &context = context_](const Dims& at) {
        Dims to = at;
        for (size_t d = 0; d < before.size(); ++d) to[2 + d] = context.add(to[2 + d], context.dim(before[d]));
        return std::pair(to, x.at(at));
      });
    }
    return plane;
  }

  // x at the places where windows of one element stand.
  Value every(const Value& x) {
    Dims dims{x.dims[0], x.dims[1]};
    dims.insert(dims.end(), windows_.out.begin(), windows_.out.end());
    const Value result =
        op_.emit.stored("x", op_.emit.expression(dims, x.dtype, [x, windows = windows_, &context = context_](Dims at) {
          for (size_t d = 0; d < windows.rank(); ++d)
            at[2 + d] = context.multiply(at[2 + d], context.dim(windows.strides[d]));
          return x.at(at);
        }));
    std::ranges::copy(out_, in_);
    std::ranges::fill(stride_, 1);
    return result;
  }

  // [groups, outputs of one, ...]
  Value grouped(const Value& w) const {
    Dims dims{groups_, context_.dim(outputs_)};
    dims.insert(dims.end(), w.dims.begin() + 1, w.dims.end());
    if (w.constant) {
      runtime::Shape shape;
      for (const Dim dim : dims) shape.push_back(*dim.constant());
      return op_.emit.constant(w.constant->reshaped(shape));
    }
    return op_.emit.expression(dims, w.dtype, [=, outputs = outputs_, &context = context_](const Dims& at) {
      Dims from(at.begin() + 1, at.end());
      from[0] = context.add(context.multiply(at[0], context.dim(outputs)), at[1]);
      return w.at(from);
    });
  }

  // [N, C, remainders of rows, of columns, rows, columns]: as far as tiles read. First all of it is padding, then comes
  // what lies inside, for each remainder: so no element asks where it is.
  Value copied(const Value& x, const Expr& pad, int64_t places) const {
    Emitter& emit = op_.emit;
    Context& context = context_;
    const int64_t rows = places > 0 ? (places + width_ - 1) / width_ : out_[0] + reach_[0];
    const Dims dims{x.dims[0],         x.dims[1],          context.dim(phases_[0]), context.dim(phases_[1]),
                    context.dim(rows), context.dim(width_)};
    const Value plane = emit.overwritten("plane", dims, pad);
    for (int64_t row = 0; row < phases_[0]; ++row) {
      for (int64_t column = 0; column < phases_[1]; ++column) {
        // Of each remainder the elements first .. last, that lie in x.
        const int64_t remainder[2] = {row, column}, most[2] = {rows, width_};
        int64_t first[2], last[2];
        for (size_t d = 0; d < 2; ++d) {
          const int64_t missing = before_[d] - remainder[d];
          first[d] = missing > 0 ? (missing + stride_[d] - 1) / stride_[d] : 0;
          last[d] = std::min(in_[d] - 1 + missing < 0 ? -1 : (in_[d] - 1 + missing) / stride_[d], most[d] - 1);
        }
        if (first[0] > last[0] || first[1] > last[1]) continue;
        const Dims part{x.dims[0], x.dims[1], context.dim(last[0] - first[0] + 1), context.dim(last[1] - first[1] + 1)};
        emit.overwrite("copy", plane, part, [=, self = *this, &context](const Dims& at) {
          Dims to{at[0], at[1], context.dim(row), context.dim(column)}, from{at[0], at[1]};
          for (size_t d = 0; d < 2; ++d) {
            to.push_back(context.add(at[2 + d], context.dim(first[d])));
            if (d == 0 && self.windows_.rank() == 1) continue;
            from.push_back(context.add(context.multiply(to.back(), context.dim(self.stride_[d])),
                                       context.dim(remainder[d] - self.before_[d])));
          }
          return std::pair(to, x.at(from));
        });
      }
    }
    return plane;
  }

  Expr term(const Value& plane, const Value& weights, bool plain, const std::vector<TileIndex>& at, const Dims& k,
            size_t y, size_t lane, size_t unroll) const {
    Context& context = context_;
    const Dim zero = context.dim(0);
    const Dim channel = context.add(context.multiply(at[1].index, context.dim(channels_)), k[0]);
    const Dim taps[2] = {windows_.rank() == 2 ? k[1] : zero, k.back()};
    Dim places[2], phases[2];
    for (size_t d = 0; d < 2; ++d) {
      const Dim tap = context.multiply(taps[d], context.dim(dilation_[d])), stride = context.dim(stride_[d]);
      places[d] = context.floor_divide(tap, stride);
      phases[d] = phases_[d] == 1 ? zero : context.modulo(tap, stride);
    }
    if (flat_) {
      const Dim width = context.dim(width_);
      const Dim place = context.add(at[lane].index, context.add(context.multiply(places[0], width), places[1]));
      places[0] = context.floor_divide(place, width), places[1] = context.modulo(place, width);
    } else {
      places[0] = context.add(places[0], at[y].index), places[1] = context.add(places[1], at[lane].index);
    }
    Dims from{at[0].index, channel};
    if (!plain) from.insert(from.end(), phases, phases + 2);
    if (!plain || windows_.rank() == 2) from.push_back(places[0]);
    from.push_back(plain && windows_.rank() == 1 ? at[lane].index : places[1]);
    // Packed: [blocks of outputs, groups, channels, taps, outputs of a block].
    Dims weight{at[unroll].block, at[1].index};
    weight.insert(weight.end(), k.begin(), k.end());
    weight.push_back(at[unroll].inner);
    Expr element = plane.at(from);
    if (plain && at[lane].guarded) {
      const Dim end = context.dim(out_[0] * out_[1]);
      element = choose(less(loop::index_value(at[lane].index), loop::index_value(end)), element, like(element, 0));
    }
    return times_(weights.at(weight), element);
  }

  Dims place(const Dims& at, size_t y, size_t lane, size_t unroll) const {
    Context& context = context_;
    Dims place{at[0], context.add(context.multiply(at[1], context.dim(outputs_)), at[unroll])};
    const Dim width = context.dim(width_);
    if (windows_.rank() == 2) place.push_back(flat_ ? context.floor_divide(at[lane], width) : at[y]);
    place.push_back(flat_ && windows_.rank() == 2 ? context.modulo(at[lane], width) : at[lane]);
    return place;
  }

  Operation op_;
  Context& context_;
  Windows windows_;
  Dim groups_;
  Times times_;
  int64_t channels_ = 0, outputs_ = 0;  // of a group
  int64_t out_[2]{}, in_[2]{}, kernel_[2]{}, stride_[2]{}, dilation_[2]{}, before_[2]{};
  int64_t phases_[2]{}, reach_[2]{};
  int64_t width_ = 0;
  bool flat_ = false;
  bool through_ = false;  // tiles of channels take places through all rows
};

}  // namespace

std::optional<Value> direct_convolution(const Operation& op, const Expr& pad, const Times& times) {
  const Dims& w = op.arg(1).dims;
  Direct direct(op, read_windows(op, Dims(w.begin() + 2, w.end())), op.context().dim(op.integer("groups")), times);
  return direct.fits() ? std::optional(direct.run(pad)) : std::nullopt;
}

}  // namespace tenon::compiler::kernels
