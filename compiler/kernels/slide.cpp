#include "compiler/kernels/slide.h"

#include "compiler/kernels/slide_plane.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::kernels {
namespace {

constexpr int64_t kMostUnrolled = 7;         // taps of a column
constexpr int64_t kFewTaps = 9, kSmall = 8;  // and rows and columns of a map: all of which is written out
// Elements of a plane of a whole channel, and of those of several.
constexpr int64_t kWhole = 1152, kPlanes = 1 << 12;
constexpr int64_t kMostPlanes = 16;
constexpr int64_t kFewRows = 5, kMostRows = 8;  // of a tile: they hide the latency of a sum

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// In tiles of one size, where there is such, or of nearly one.
std::vector<SlidePart> rows_of(int64_t count) {
  int64_t size = std::min(count, kMostRows);
  while (size >= kFewRows && count % size > 0) --size;
  if (count % size > 0) size = divide_up(count, divide_up(count, kMostRows));
  std::vector<SlidePart> parts{{0, count / size, size}};
  if (count % size > 0) parts.push_back({count / size * size, 1, count % size});
  return parts;
}

class Slider {
 public:
  Slider(const Operation& op, std::string name, Sliding sliding, Value x)
      : loops_{op.emit, op.context(), std::move(name)},
        context_(op.context()),
        sliding_(std::move(sliding)),
        x_(std::move(x)),
        dims_(op.dims()),
        dtype_(sliding_.init->dtype) {
    const Windows& windows = sliding_.windows;
    real_ = 2 - windows.rank();
    for (size_t d = 0; d < windows.rank(); ++d) {
      SlideDim& dim = d + real_ == 0 ? rows_ : columns_;
      dim = {*windows.out[d].constant(), *windows.in[d].constant(), *windows.kernel[d].constant(),
             windows.strides[d],         windows.dilation[d],       windows.before[d]};
    }
    // Of few taps, and where no copy is needed, or where it would cost more than masks, which are constants then.
    const bool open = rows_.open(0, rows_.out) || columns_.open(0, columns_.out), line = is_line();
    const bool small = columns_.stride == 1 && rows_.out <= kSmall && columns_.out <= kSmall;
    direct_ =
        rows_.kernel * columns_.kernel <= kFewTaps && (line || small || (!open && columns_.kernel <= columns_.stride));
    // A row that is alone has several vectors in the place of rows.
    const int64_t lanes = lanes_of(dtype_);
    vectors_ = columns_.vectors(line && (columns_.stride == 1 || !direct_) ? 4 * lanes : lanes, lanes);
    band_ = rows_.out;
    if (direct_) return;
    const Expr pad = sliding_.element(sliding_.pad);
    const SlidePart& last = vectors_.back();
    const auto plane = [&](int64_t rows) {
      return SlidePlane(rows_, columns_, rows, last.begin + last.count * last.size, pad);
    };
    plane_ = plane(rows_.out);
    if (plane_->size() <= kWhole) return;
    // So many rows that few are copied twice; in bands of one size where there are such.
    const int64_t wanted = std::max(kMostRows, 4 * (rows_.reach() + 1 - rows_.stride));
    int64_t bands = divide_up(rows_.out, wanted);
    for (int64_t i = 0, few = bands; 3 * i <= few && rows_.out % bands != 0; ++i)
      bands = rows_.out % (few - i) == 0 ? few - i : rows_.out % (few + i) == 0 ? few + i : few;
    band_ = divide_up(rows_.out, bands);
    plane_ = plane(band_);
  }

  loop::Body run(const std::vector<TileResult>& results) {
    const int64_t channels = dims_[1].constant().value_or(1), bands = divide_up(rows_.out, band_);
    int64_t group = 1;
    if (plane_ && bands == 1) {
      group = std::clamp<int64_t>(kPlanes / plane_->size(), 1, kMostPlanes);
      while (channels % group > 0) --group;
    }
    const int64_t taps = rows_.kernel * columns_.kernel;
    std::vector<For> around = loops_.over_maps(dims_[0], dims_[1], group,
                                               static_cast<double>(taps * rows_.out * columns_.out)),
                     members;
    const Dim image = context_.dim(around[0].var), block = context_.dim(around[1].var);
    first_ = loops_.times(
        loops_.around(around, loops_.outer, loops_.loop_of(loops_.symbol("b2"), bands, Mark::kSerial)), band_);
    // Planes of several channels are filled before they are read: what was just written is not there at once.
    member_ = loops_.around(members, loops_.outer, loops_.loop_of(loops_.symbol("g"), group, Mark::kSerial));
    loops_.at = {image, context_.add(loops_.times(block, group), member_)};
    loop::Body body;
    const auto of_members = [&](loop::Body inner) {
      if (!members.empty()) {
        For loop = members[0];
        loop.body = std::move(inner);
        inner.clear();
        inner.push_back({std::move(loop)});
      }
      std::ranges::move(inner, std::back_inserter(body));
    };
    if (plane_) {
      plane_->make(loops_, group);
      of_members(plane_->copy(loops_, member_,
                              {.x = [&](Dim row, Dim column) { return x_.at(place_in(row, column)); },
                               .element = sliding_.element,
                               .pad = sliding_.pad,
                               .first = first_,
                               .whole = bands == 1}));
    }
    loop::Body tiles;
    for (const SlidePart& row : rows_of(band_))
      for (const SlidePart& column : vectors_) tiles.push_back(tile(row, column, results));
    of_members(std::move(tiles));
    if (plane_) {
      loop::Alloc alloc = plane_->alloc(std::move(body));
      body.clear();
      body.push_back({std::move(alloc)});
    }
    for (size_t i = around.size(); i-- > 0;) {
      around[i].body = std::move(body);
      body.clear();
      body.push_back({std::move(around[i])});
    }
    return body;
  }

 private:
  // One row of the result, of windows of one row.
  bool is_line() const { return rows_.out == 1 && rows_.kernel == 1; }
  // Indices of the image and the channel, and these.
  Dims place_in(Dim row, Dim column) const {
    Dims place = loops_.at;
    if (real_ == 0) place.push_back(row);
    place.push_back(column);
    return place;
  }

  Stmt tile(const SlidePart& row, const SlidePart& column, const std::vector<TileResult>& results) {
    std::vector<Axis> points = loops_.outer, inner;
    std::vector<For> outer, places;
    Dims place, local, shape, tap;
    for (const size_t d : {0, 1}) {
      const SlidePart& part = d == 0 ? row : column;
      const Dim block =
          loops_.around(outer, points, loops_.loop_of(loops_.symbol(fmt::format("b{}", d)), part.count, Mark::kSerial));
      shape.push_back(context_.dim(part.size));
      local.push_back(loops_.around(
          places, inner,
          loops_.loop_of(loops_.symbol(fmt::format("t{}", d)), part.size, d == 1 ? Mark::kVector : Mark::kUnroll)));
      place.push_back(context_.add(loops_.plus(loops_.times(block, part.size), part.begin), local.back()));
    }
    points.insert(points.end(), inner.begin(), inner.end());
    std::vector<Axis> all = points;
    std::vector<For> sums;
    for (const size_t d : {0, 1}) {
      const int64_t kernel = d == 0 ? rows_.kernel : columns_.kernel;
      const bool unrolled = direct_ || (d == 0 && kernel <= kMostUnrolled);
      sums.push_back(
          loops_.loop_of(loops_.symbol(fmt::format("k{}", d)), kernel, unrolled ? Mark::kUnroll : Mark::kSerial));
      loops_.axis(all, sums.back(), AxisKind::kReduce);
      tap.push_back(context_.dim(sums.back().var));
    }
    // The taps of a column inside: a row that is read serves all rows of the tile that take it.
    if (!direct_) std::swap(sums[0], sums[1]);
    sums.insert(sums.end(), places.begin(), places.end());
    const loop::BufferId acc = loops_.buffer(loops_.name + "_acc", shape, dtype_);
    const Expr held = loops_.emit.builder().load(acc, local);
    const Expr element = direct_ ? element_of(place, tap, column.open) : plane_->load(loops_, member_, place, tap);

    loop::Body body;
    body.push_back(loop::nest(places, loops_.stage(loops_.name + "_init", inner, {}, acc, local, sliding_.init)));
    body.push_back(
        loop::nest(sums, loops_.stage(loops_.name, all, {}, acc, local,
                                      sliding_.step(held, element, loops_.at,
                                                    Dims(tap.begin() + static_cast<ptrdiff_t>(real_), tap.end())))));
    place[0] = context_.add(first_, place[0]);
    std::vector<loop::Guard> guards;
    if (column.guarded) guards.push_back({place[1], context_.dim(columns_.out)});
    if (rows_.out % band_ != 0) guards.push_back({place[0], context_.dim(rows_.out)});
    const Dims to = place_in(place[0], place[1]);
    for (const TileResult& result : results) {
      const std::string_view name = context_.name(loops_.emit.builder().function().buffer(result.buffer).name);
      body.push_back(loop::nest(places, loops_.stage(name, points, guards, result.buffer, to, result.value(to, held))));
    }
    return loop::nest(outer,
                      Stmt{loop::Alloc{.buffer = acc, .scope = loop::Scope::kRegisters, .body = std::move(body)}});
  }

  // Of x itself. What lies outside in rows is decided for all lanes at once, in columns for each.
  Expr element_of(const Dims& place, const Dims& tap, bool open) const {
    const auto at = [&](const SlideDim& dim, size_t d) {
      return loops_.plus(context_.add(loops_.times(place[d], dim.stride), loops_.times(tap[d], dim.dilation)),
                         -dim.before);
    };
    const Dim row = at(rows_, 0), column = at(columns_, 1), zero = context_.dim(0);
    Expr value = x_.at(place_in(row, column));
    if (open) value = choose(loops_.emit.inside(column, zero, context_.dim(columns_.in)), value, sliding_.pad);
    if (rows_.open(0, rows_.out))
      value = choose(loops_.emit.inside(row, zero, context_.dim(rows_.in)), value, sliding_.pad);
    return sliding_.element(value);
  }

  SlideLoops loops_;
  Context& context_;
  const Sliding sliding_;
  const Value x_;
  const Dims dims_;
  const DType dtype_;
  size_t real_ = 0;  // the first of the two dims that x has
  SlideDim rows_, columns_;
  std::vector<SlidePart> vectors_;
  bool direct_ = false;  // x is read where it lies
  int64_t band_ = 1;     // rows of the result that a plane is for
  std::optional<SlidePlane> plane_;
  Dim first_, member_;  // of the band the first row, and of the group the channel
};

}  // namespace

bool slides(const Windows& windows) {
  const auto known = [](Dim dim) { return dim.constant().value_or(0) > 0; };
  return windows.rank() <= 2 && windows.few_phases() && std::ranges::all_of(windows.in, known) &&
         std::ranges::all_of(windows.out, known) && std::ranges::all_of(windows.kernel, known);
}

Value slide(const Operation& op, std::string_view name, const Sliding& sliding) {
  const Value x = op.emit.stored("x", op.arg(0));
  const auto slider = std::make_shared<Slider>(op, std::string(name), sliding, x);
  return op.emit.contract(name, op.dims(), sliding.init->dtype,
                          [slider](const std::vector<TileResult>& results) { return slider->run(results); });
}

}  // namespace tenon::compiler::kernels
