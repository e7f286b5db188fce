#include "compiler/kernels/sliding_window.h"

#include "compiler/kernels/padded_input.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::kernels {
namespace {

constexpr int64_t kMaxUnrolledTaps = 7;  // kernel taps of a column
// Kernel taps, and rows and columns of a map, that are read in place and completely unrolled.
constexpr int64_t kMaxDirectTaps = 9, kMaxDirectSize = 8;
// Elements of the padded input of a whole channel, and of a group of channels.
constexpr int64_t kMaxWholeMap = 1152, kMaxGroupSize = 1 << 12;
constexpr int64_t kMaxGroupChannels = 16;
constexpr int64_t kMinTileRows = 5, kMaxTileRows = 8;  // rows of a tile, which hide the latency of a sum

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Rows split into tiles of equal size if there is a suitable divisor, else of nearly equal size.
std::vector<SlidingWindowPart> split_rows(int64_t count) {
  int64_t size = std::min(count, kMaxTileRows);
  while (size >= kMinTileRows && count % size > 0) --size;
  if (count % size > 0) size = divide_up(count, divide_up(count, kMaxTileRows));
  std::vector<SlidingWindowPart> parts{{0, count / size, size}};
  if (count % size > 0) parts.push_back({count / size * size, 1, count % size});
  return parts;
}

class SlidingWindowNest {
 public:
  SlidingWindowNest(const OperatorCall& op, std::string name, SlidingWindow sliding, LazyTensor x)
      : loops_{op.emit, op.context(), std::move(name)},
        context_(op.context()),
        sliding_(std::move(sliding)),
        x_(std::move(x)),
        dims_(op.dims()),
        dtype_(sliding_.init->dtype) {
    const Windows& windows = sliding_.windows;
    first_dim_ = 2 - windows.rank();
    for (size_t d = 0; d < windows.rank(); ++d) {
      SlidingWindowDim& dim = d + first_dim_ == 0 ? rows_ : columns_;
      dim = {*windows.out[d].constant(), *windows.in[d].constant(), *windows.kernel[d].constant(),
             windows.strides[d],         windows.dilation[d],       windows.before[d]};
    }
    // Windows of few kernel taps read x in place where they need no copy, or where a copy would cost more than masks,
    // which are constants then.
    const bool needs_padding = rows_.needs_padding(0, rows_.out) || columns_.needs_padding(0, columns_.out),
               single_row = is_single_row();
    const bool small = columns_.stride == 1 && rows_.out <= kMaxDirectSize && columns_.out <= kMaxDirectSize;
    direct_ = rows_.kernel * columns_.kernel <= kMaxDirectTaps &&
              (single_row || small || (!needs_padding && columns_.kernel <= columns_.stride));
    // A single row has several vectors in the tile instead of several rows.
    const int64_t lanes = lanes_of(dtype_);
    vectors_ = columns_.vectors(single_row && (columns_.stride == 1 || !direct_) ? 4 * lanes : lanes, lanes);
    band_ = rows_.out;
    if (direct_) return;
    const Expr pad = sliding_.element(sliding_.pad);
    const SlidingWindowPart& last = vectors_.back();
    const auto padded_input = [&](int64_t rows) {
      return PaddedInput(rows_, columns_, rows, last.begin + last.count * last.size, pad);
    };
    padded_ = padded_input(rows_.out);
    if (padded_->size() <= kMaxWholeMap) return;
    // Bands of enough rows that few rows are copied twice; of equal size if there is a suitable divisor.
    const int64_t target_rows = std::max(kMaxTileRows, 4 * (rows_.halo() + 1 - rows_.stride));
    int64_t bands = divide_up(rows_.out, target_rows);
    for (int64_t i = 0, fewest = bands; 3 * i <= fewest && rows_.out % bands != 0; ++i)
      bands = rows_.out % (fewest - i) == 0 ? fewest - i : rows_.out % (fewest + i) == 0 ? fewest + i : fewest;
    band_ = divide_up(rows_.out, bands);
    padded_ = padded_input(band_);
  }

  loop::Body run(const std::vector<TileResult>& results) {
    const int64_t channels = dims_[1].constant().value_or(1), bands = divide_up(rows_.out, band_);
    int64_t group = 1;
    if (padded_ && bands == 1) {
      group = std::clamp<int64_t>(kMaxGroupSize / padded_->size(), 1, kMaxGroupChannels);
      while (channels % group > 0) --group;
    }
    const int64_t num_taps = rows_.kernel * columns_.kernel;
    std::vector<For> outer_loops = loops_.over_maps(dims_[0], dims_[1], group,
                                                    static_cast<double>(num_taps * rows_.out * columns_.out)),
                     member_loops;
    const Dim image = context_.dim(outer_loops[0].var), block = context_.dim(outer_loops[1].var);
    first_ = loops_.times(
        loops_.add_loop(outer_loops, loops_.outer, loops_.loop_of(loops_.symbol("b2"), bands, LoopKind::kSerial)),
        band_);
    // The padded inputs of several channels are filled before the first is read: loads need not wait for recent stores.
    member_ = loops_.add_loop(member_loops, loops_.outer, loops_.loop_of(loops_.symbol("g"), group, LoopKind::kSerial));
    loops_.at = {image, context_.add(loops_.times(block, group), member_)};
    loop::Body body;
    const auto add_over_members = [&](loop::Body inner) {
      if (!member_loops.empty()) {
        For loop = member_loops[0];
        loop.body = std::move(inner);
        inner.clear();
        inner.push_back({std::move(loop)});
      }
      std::ranges::move(inner, std::back_inserter(body));
    };
    if (padded_) {
      padded_->make(loops_, group);
      add_over_members(padded_->copy(loops_, member_,
                                     {.x = [&](Dim row, Dim column) { return x_.at(indices_of(row, column)); },
                                      .element = sliding_.element,
                                      .pad = sliding_.pad,
                                      .first = first_,
                                      .all_rows = bands == 1}));
    }
    loop::Body tiles;
    for (const SlidingWindowPart& row : split_rows(band_))
      for (const SlidingWindowPart& column : vectors_) tiles.push_back(tile(row, column, results));
    add_over_members(std::move(tiles));
    if (padded_) {
      loop::Alloc alloc = padded_->alloc(std::move(body));
      body.clear();
      body.push_back({std::move(alloc)});
    }
    for (size_t i = outer_loops.size(); i-- > 0;) {
      outer_loops[i].body = std::move(body);
      body.clear();
      body.push_back({std::move(outer_loops[i])});
    }
    return body;
  }

 private:
  // Whether the result and the windows have one row.
  bool is_single_row() const { return rows_.out == 1 && rows_.kernel == 1; }
  // The indices of an element: image, channel, row and column.
  Dims indices_of(Dim row, Dim column) const {
    Dims pixel = loops_.at;
    if (first_dim_ == 0) pixel.push_back(row);
    pixel.push_back(column);
    return pixel;
  }

  Stmt tile(const SlidingWindowPart& row, const SlidingWindowPart& column, const std::vector<TileResult>& results) {
    std::vector<Axis> points = loops_.outer, inner;
    std::vector<For> outer, tile_loops;
    Dims pixel, local, shape, kernel_index;
    for (const size_t d : {0, 1}) {
      const SlidingWindowPart& part = d == 0 ? row : column;
      const Dim block = loops_.add_loop(
          outer, points, loops_.loop_of(loops_.symbol(fmt::format("b{}", d)), part.count, LoopKind::kSerial));
      shape.push_back(context_.dim(part.size));
      local.push_back(loops_.add_loop(tile_loops, inner,
                                      loops_.loop_of(loops_.symbol(fmt::format("t{}", d)), part.size,
                                                     d == 1 ? LoopKind::kVectorized : LoopKind::kUnrolled)));
      pixel.push_back(context_.add(loops_.plus(loops_.times(block, part.size), part.begin), local.back()));
    }
    points.insert(points.end(), inner.begin(), inner.end());
    std::vector<Axis> axes = points;
    std::vector<For> reduction_loops;
    for (const size_t d : {0, 1}) {
      const int64_t kernel = d == 0 ? rows_.kernel : columns_.kernel;
      const bool unrolled = direct_ || (d == 0 && kernel <= kMaxUnrolledTaps);
      reduction_loops.push_back(loops_.loop_of(loops_.symbol(fmt::format("k{}", d)), kernel,
                                               unrolled ? LoopKind::kUnrolled : LoopKind::kSerial));
      loops_.axis(axes, reduction_loops.back(), AxisKind::kReduce);
      kernel_index.push_back(context_.dim(reduction_loops.back().var));
    }
    // kh is the inner loop: a loaded row serves all rows of the tile that read it.
    if (!direct_) std::swap(reduction_loops[0], reduction_loops[1]);
    reduction_loops.insert(reduction_loops.end(), tile_loops.begin(), tile_loops.end());
    const loop::BufferId acc = loops_.buffer(loops_.name + "_acc", shape, dtype_);
    const Expr accumulated = loops_.emit.builder().load(acc, local);
    const Expr element = direct_ ? element_of(pixel, kernel_index, column.needs_padding)
                                 : padded_->load(loops_, member_, pixel, kernel_index);

    loop::Body body;
    body.push_back(loop::nest(tile_loops, loops_.stage(loops_.name + "_init", inner, {}, acc, local, sliding_.init)));
    body.push_back(loop::nest(reduction_loops,
                              loops_.stage(loops_.name, axes, {}, acc, local,
                                           sliding_.step(accumulated, element, loops_.at,
                                                         Dims(kernel_index.begin() + static_cast<ptrdiff_t>(first_dim_),
                                                              kernel_index.end())))));
    pixel[0] = context_.add(first_, pixel[0]);
    std::vector<loop::Guard> guards;
    if (column.guarded) guards.push_back({pixel[1], context_.dim(columns_.out)});
    if (rows_.out % band_ != 0) guards.push_back({pixel[0], context_.dim(rows_.out)});
    const Dims to = indices_of(pixel[0], pixel[1]);
    for (const TileResult& result : results) {
      const std::string_view name = context_.name(loops_.emit.builder().function().buffer(result.buffer).name);
      body.push_back(
          loop::nest(tile_loops, loops_.stage(name, points, guards, result.buffer, to, result.value(to, accumulated))));
    }
    return loop::nest(outer,
                      Stmt{loop::Alloc{.buffer = acc, .scope = loop::Scope::kRegisters, .body = std::move(body)}});
  }

  // An element of x, read in place. One bounds check of the row serves all lanes; columns are checked lane by lane.
  Expr element_of(const Dims& pixel, const Dims& kernel_index, bool needs_padding) const {
    const auto at = [&](const SlidingWindowDim& dim, size_t d) {
      return loops_.plus(context_.add(loops_.times(pixel[d], dim.stride), loops_.times(kernel_index[d], dim.dilation)),
                         -dim.before);
    };
    const Dim row = at(rows_, 0), column = at(columns_, 1), zero = context_.dim(0);
    Expr value = x_.at(indices_of(row, column));
    if (needs_padding) value = select(loops_.emit.inside(column, zero, context_.dim(columns_.in)), value, sliding_.pad);
    if (rows_.needs_padding(0, rows_.out))
      value = select(loops_.emit.inside(row, zero, context_.dim(rows_.in)), value, sliding_.pad);
    return sliding_.element(value);
  }

  SlidingWindowLoops loops_;
  Context& context_;
  const SlidingWindow sliding_;
  const LazyTensor x_;
  const Dims dims_;
  const DType dtype_;
  size_t first_dim_ = 0;  // 0 where x has rows and columns, 1 where it has columns only
  SlidingWindowDim rows_, columns_;
  std::vector<SlidingWindowPart> vectors_;
  bool direct_ = false;  // x is read in place
  int64_t band_ = 1;     // rows of the result for one padded input
  std::optional<PaddedInput> padded_;
  Dim first_, member_;  // first row of the band, and channel within the group
};

}  // namespace

bool has_sliding_window(const Windows& windows) {
  const auto is_positive = [](Dim dim) { return dim.constant().value_or(0) > 0; };
  return windows.rank() <= 2 && windows.few_phases() && std::ranges::all_of(windows.in, is_positive) &&
         std::ranges::all_of(windows.out, is_positive) && std::ranges::all_of(windows.kernel, is_positive);
}

LazyTensor sliding_window(const OperatorCall& op, std::string_view name, const SlidingWindow& sliding) {
  const LazyTensor x = op.emit.stored("x", op.arg(0));
  const auto nest = std::make_shared<SlidingWindowNest>(op, std::string(name), sliding, x);
  return op.emit.contract(name, op.dims(), sliding.init->dtype,
                          [nest](const std::vector<TileResult>& results) { return nest->run(results); });
}

}  // namespace tenon::compiler::kernels
