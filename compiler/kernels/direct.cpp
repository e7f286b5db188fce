// Pixels or channels as lanes, by the cost of their tiles, and the padded copies that these read.
#include "compiler/kernels/direct.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/kernels/product.h"
#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {
namespace {

constexpr int64_t kPageElements = 1 << 10;  // elements of 4 bytes in a page
constexpr int64_t kCacheLine = 64;          // bytes
constexpr int64_t kShortSum = 64;           // terms of a sum that takes no longer than its store to L3
constexpr double kStoreReload = 0.5;        // cycles to store a sum and load it again
constexpr double kPhaseCycles = 0.5;        // to copy an element of the input into its phase
constexpr double kRolledCycles = 0.6;       // of each iteration of a loop of few terms, beside those of an unrolled one
constexpr double kCopyCycles = 1;           // to copy an element of a pixel beside those of its tile
constexpr double kSplitLoads = 1.06;        // cycles of tiles whose loads cross cache lines, beside others
constexpr double kLinesOfTile = 1.3;        // cache lines of a channel of a tile of pixels, on average

// Lanes are either contiguous output pixels, unrolled over output channels, or output channels, unrolled over
// contiguous pixels of a row. With channels as lanes an element of x is broadcast to all lanes, so strides cost
// nothing, and maps whose width is not a multiple of a vector waste no lanes; but tiles must be transposed before they
// are stored.
//
// Vectors of pixels run along one row, or across all rows, which follow each other in a padded input that is wider than
// the result; pixels between the rows are computed and dropped. Strides are removed by the copy into the padded input:
// it is split into phases, one for each remainder of the input index by the stride, so that adjacent output pixels read
// adjacent elements of a phase.
class Direct {
 public:
  Direct(const OperatorCall& op, const Windows& windows, Dim groups, Times times, Factors factors)
      : op_(op),
        context_(op.context()),
        machine_(op.emit.machine()),
        windows_(windows),
        groups_(groups),
        times_(std::move(times)),
        factors_(factors) {}

  // Whether all sizes that the schedule depends on are constant.
  bool fits() const {
    const auto is_positive = [](Dim dim) { return dim.constant().value_or(0) > 0; };
    return windows_.rank() <= 2 && windows_.few_phases() && std::ranges::all_of(windows_.in, is_positive) &&
           std::ranges::all_of(windows_.out, is_positive) && std::ranges::all_of(op_.arg(1).dims, is_positive) &&
           is_positive(op_.arg(0).dims[1]) && groups_.constant();
  }

  LazyTensor run(const Expr& pad) {
    read_sizes();
    LazyTensor x = op_.arg(0);
    // A convolution with 1x1 kernels and no padding is a matrix product of x, or of the pixels that a stride selects.
    pointwise_ = kernel_[0] * kernel_[1] == 1;
    for (const size_t d : {0, 1}) pointwise_ &= before_[d] == 0 && (out_[d] - 1) * stride_[d] < in_[d];
    if (pointwise_ && (out_[0] != in_[0] || out_[1] != in_[1])) x = subsampled(x);

    // The costs of the knobs: cycles of all tiles.
    const int64_t vector = lanes_of(op_.dtype()), terms = channels_ * kernel_[0] * kernel_[1];
    width_ = pointwise_ ? out_[1] : out_[1] + halo_[1];
    const bool strided = pointwise_ && flat_pixels() >= kPageElements;
    // A vector of pixels reads about two cache lines of the phases for each term, which the next tile loads again from
    // L2 where L1 does not hold them.
    const bool has_phases = phases_[0] * phases_[1] > 1,
               scattered = has_phases && 2 * kCacheLine * terms > machine_.l1_bytes;
    const Terms of_rows{.strided_lanes = scattered, .count = terms, .factors = factors_},
        of_pixels{.strided_lanes = strided || scattered, .count = terms, .factors = factors_};
    const double row_cycles = choose_tile(machine_, outputs_, out_[1], vector, of_rows).cycles *
                              static_cast<double>(out_[0]) * static_cast<double>(terms);
    // The sums of flat tiles are stored and loaded again, to drop the pixels between rows.
    const double unpack_cycles = pointwise_ ? 0 : static_cast<double>(outputs_ * out_[0] * out_[1]) * kStoreReload;
    const double flat_cycles =
        choose_tile(machine_, outputs_, flat_pixels(), vector, of_pixels).cycles * static_cast<double>(terms) +
        unpack_cycles;
    // Channels can be lanes where L2 holds a tile's weights, which each tile of pixels reads again, and where no vector
    // crosses a group boundary.
    across_rows_ = pointwise_ || (windows_.rank() == 2 && out_[1] <= kTransposeSide / 2);
    const TileShape channel_shape = channel_tile();
    if (vector == kTransposeSide && terms * channel_shape.vectors * kTransposeSide <= elements_in(machine_.l2_bytes) &&
        (groups_.constant() == 1 || outputs_ % kTransposeSide == 0)) {
      const double phase_cycles = has_phases ? kPhaseCycles * static_cast<double>(channels_ * in_[0] * in_[1]) : 0;
      // Registers of 64 bytes that begin at any pixel are in two cache lines.
      const double splits = machine_.wide() && !pointwise_ ? kSplitLoads : 1;
      const double pixel_cycles = std::min(row_cycles, flat_cycles) * splits + phase_cycles;
      // Only pixels have unrolled loops over a row of kernel taps.
      const int64_t registers =
          channel_shape.rows * channel_shape.vectors * schedules::kVectorBytes / machine_.vector_bytes;
      const double cycles_of_term =
          static_cast<double>(registers * (factors_ == Factors::kInt16s ? 2 : 1)) / machine_.multiply_adds;
      const double channel_cycles = channel_shape.cycles * (pointwise_ ? 1 : 1 + kRolledCycles / cycles_of_term);
      if (op_.emit.choose_option("lanes", {{"pixels", pixel_cycles}, {"channels", channel_cycles}}) == 1)
        return with_channels_as_lanes(x, pad, channel_shape);
    }
    flat_ = pointwise_ || op_.emit.choose_option("pixels", {{"row", row_cycles}, {"flat", flat_cycles}}) == 1;
    return with_pixels_as_lanes(
        x, pad, choose_tile(op_.emit, outputs_, flat_ ? flat_pixels() : out_[1], vector, flat_ ? of_pixels : of_rows),
        strided);
  }

 private:
  void read_sizes() {
    for (size_t d = 0; d < 2; ++d) {
      // A convolution over one dim is one row of a convolution over two dims.
      const bool exists = d + windows_.rank() >= 2;
      const size_t from = exists ? d + windows_.rank() - 2 : 0;
      out_[d] = exists ? *windows_.out[from].constant() : 1;
      kernel_[d] = exists ? *windows_.kernel[from].constant() : 1;
      stride_[d] = exists ? windows_.strides[from] : 1;
      dilation_[d] = exists ? windows_.dilation[from] : 1;
      before_[d] = exists ? windows_.before[from] : 0;
      in_[d] = exists ? *windows_.in[from].constant() : 1;
      phases_[d] = num_phases(kernel_[d], stride_[d], dilation_[d]);
      halo_[d] = (kernel_[d] - 1) * dilation_[d] / stride_[d];
    }
    const Dims& w = op_.arg(1).dims;
    channels_ = *w[1].constant();
    outputs_ = *w[0].constant() / *groups_.constant();
  }

  // Pixels from the first to the last output pixel, in rows of the width of the padded input.
  int64_t flat_pixels() const { return (out_[0] - 1) * width_ + out_[1]; }

  LazyTensor with_pixels_as_lanes(const LazyTensor& x, const Expr& pad, const TileShape& shape, bool strided) {
    const int64_t vector = lanes_of(op_.dtype());
    const auto round_up = [](int64_t value, int64_t step) { return (value + step - 1) / step * step; };
    if (!flat_) width_ = round_up(out_[1], vector) + halo_[1];
    const int64_t pixels = flat_ ? flat_pixels() : out_[1];
    const LazyTensor input =
        pointwise_ ? x : pad_by_phase(x, pad, flat_ ? round_up(pixels, vector) + halo_[0] * width_ + halo_[1] : 0);
    const LazyTensor weights = op_.emit.stored("weights", grouped(op_.arg(1)));

    // The batch: image, group, and row unless vectors cross rows.
    const bool rows_outer = has_outer_weights(1, 1, strided);
    Product product{.batch = {x.dims[0], groups_},
                    .rows = context_.dim(outputs_),
                    .columns = context_.dim(pixels),
                    .terms = reduction_extents(),
                    .term = [=, self = *this](const Dims& batch, Dim output, const Dims& k,
                                              Dim pixel) { return self.term(input, weights, batch, output, k, pixel); },
                    .row_panels = weights,
                    .dims = op_.dims()};
    const bool has_lines = !flat_ && windows_.rank() == 2;
    if (has_lines) product.batch.push_back(context_.dim(out_[0]));
    product.order = {.tile = shape, .rows_outer = rows_outer, .lines = rows_outer && has_lines ? 1U : 0U};
    if (!flat_ || pointwise_) {
      product.result_index = [=, self = *this](const Dims& at) { return self.result_index(at); };
      return multiply(op_, "conv", product);
    }
    // The sums keep the row pitch of the padded input; the expression below drops the pixels between rows.
    product.result_index = [=, self = *this](const Dims& at) { return Dims{at[0], self.output(at[1], at[2]), at[3]}; };
    product.dims = {x.dims[0], op_.dims()[1], context_.dim(pixels)};
    const LazyTensor sums = multiply(op_, "conv", product);
    return op_.emit.expression(op_.dims(), op_.dtype(), [=, self = *this](const Dims& at) {
      Dim pixel = at.back();
      if (self.windows_.rank() == 2)
        pixel = self.context_.add(self.context_.multiply(at[2], self.context_.dim(self.width_)), pixel);
      return sums.at({at[0], at[1], pixel});
    });
  }

  Dims reduction_extents() const {
    Dims over{context_.dim(channels_)};
    for (size_t d = 2 - windows_.rank(); d < 2; ++d) over.push_back(context_.dim(kernel_[d]));
    return over;
  }

  // Selects the outer loop by the elements that the inner loop reloads for each block of the outer one. Results whose
  // rows are `strided` and exceed L2, while the input fits, are stored row by row: stores to few pixels of all
  // channels, each in a page of its own, take longer than reloading the input. So are large results of short sums where
  // L1 has too few sets for the channels' lines, so that each block of outputs reloads the input anyway.
  bool has_outer_weights(int64_t pixel_blocks = 1, int64_t weight_blocks = 1, bool strided = false) const {
    const int64_t terms = channels_ * kernel_[0] * kernel_[1], weights = outputs_ * terms,
                  inputs = channels_ * in_[0] * in_[1], results = outputs_ * out_[0] * out_[1];
    const int64_t stores =
        strided && results > elements_in(machine_.l2_bytes) && inputs <= elements_in(machine_.l2_bytes) ? results : 0;
    const bool reloads_anyway = terms <= kShortSum && 2 * results > elements_in(machine_.l2_bytes) && lines_conflict();
    return op_.emit.choose_option("outer",
                                  {{"pixels", static_cast<double>(weights * pixel_blocks + stores)},
                                   {"weights", reloads_anyway ? 0 : static_cast<double>(inputs * weight_blocks)}}) == 1;
  }

  // Whether the cache lines of a pixel's window and of its outputs exceed by half the sets of L1 that their distance, a
  // plane, selects. The sets span a page.
  bool lines_conflict() const {
    const int64_t sets = kPageElements * 4 / kCacheLine, ways = machine_.l1_bytes / (kPageElements * 4),
                  plane = std::max<int64_t>(out_[0] * out_[1] * 4 / kCacheLine, 1);
    const int64_t lines = channels_ * kernel_[0] * phases_[1] + outputs_;
    return 2 * lines >= 3 * ways * (sets / std::gcd(plane, sets));
  }

  // The tile of rows of pixels and vectors of channels, with the cycles of the whole convolution. Tiles cross rows only
  // with 1x1 kernels, or where a tile consists of whole rows: the strides of its pixels are constant then. A machine
  // may have too few registers for a whole row.
  TileShape channel_tile() {
    const bool whole_rows = across_rows_ && kernel_[0] * kernel_[1] > 1;
    TileShape best = schedules::choose_transposed_tile(
        machine_, across_rows_ ? out_[0] * out_[1] : out_[1], outputs_, channels_ * kernel_[0] * kernel_[1], factors_,
        [&](int64_t count) { return !whole_rows || count % out_[1] == 0; });
    if (best.cycles == 0) {
      across_rows_ = false;
      return channel_tile();
    }
    if (!across_rows_) best.cycles *= static_cast<double>(out_[0]);
    return best;
  }

  LazyTensor with_channels_as_lanes(const LazyTensor& x, const Expr& pad, const TileShape& shape) const {
    Context& context = context_;
    // Weights that exceed L1 are loaded again for each tile.
    const int64_t lanes = shape.vectors * kTransposeSide;
    const bool exceeds_l1 = outputs_ * channels_ * kernel_[0] * kernel_[1] > elements_in(machine_.l1_bytes);
    const bool weights_outer = exceeds_l1
                                   ? has_outer_weights(out_[0] * out_[1] / shape.rows, (outputs_ + lanes - 1) / lanes)
                                   : has_outer_weights();
    const LazyTensor weights = op_.emit.stored("weights", grouped(op_.arg(1)));
    const bool packed = pointwise_ && across_rows_ && packs_pixels(shape, lanes);
    const LazyTensor input = packed ? pixels_of(x) : pointwise_ ? x : pad_input(x, pad);
    // The row and column of an output pixel; `line`: the indices of the batch after image and group.
    const auto pixel_of = [&context, rank = windows_.rank(), across_rows = across_rows_, width = context.dim(out_[1])](
                              Dim pixel, const Dims& batch) {
      if (rank == 1) return Dims{pixel};
      if (!across_rows) return Dims{batch[2], pixel};
      return Dims{context.floor_divide(pixel, width), context.modulo(pixel, width)};
    };
    Product product{.batch = {x.dims[0], groups_},
                    .rows = context.dim(across_rows_ ? out_[0] * out_[1] : out_[1]),
                    .columns = context.dim(outputs_),
                    .terms = reduction_extents(),
                    .term = nullptr,
                    .panels = weights,
                    .dims = op_.dims()};
    const bool has_lines = !across_rows_ && windows_.rank() == 2;
    if (has_lines) product.batch.push_back(context.dim(out_[0]));
    if (packed) product.row_panels = input;
    product.order = {
        .tile = shape, .rows_outer = !weights_outer, .lines = weights_outer && has_lines ? 1U : 0U, .transposed = true};
    product.term = [=, &context, self = *this](const Dims& batch, Dim pixel, const Dims& k, Dim output) {
      Dims from{batch[0], context.add(context.multiply(batch[1], context.dim(self.channels_)), k[0])};
      Dims weight{batch[1], output};
      weight.insert(weight.end(), k.begin(), k.end());
      if (packed) return self.times_(weights.at(weight), input.at({from[0], pixel, from[1]}));
      const Dims to = pixel_of(pixel, batch);
      for (size_t d = 0; d < to.size(); ++d) {
        const size_t axis = 2 - to.size() + d;
        from.push_back(context.add(context.multiply(to[d], context.dim(self.stride_[axis])),
                                   context.multiply(k[1 + d], context.dim(self.dilation_[axis]))));
      }
      return self.times_(weights.at(weight), input.at(from));
    };
    product.result_index = [=, self = *this](const Dims& at) {
      Dims to{at[0], self.output(at[1], at.back())};
      for (const Dim coordinate : pixel_of(at[at.size() - 2], at)) to.push_back(coordinate);
      return to;
    };
    return multiply(op_, "conv", product);
  }

  // Whether the pixels of a tile are copied side by side. In place, each channel of a tile is in a cache line of its
  // own, or in two, which each tile of outputs loads from L2 again where L1 does not hold them.
  bool packs_pixels(const TileShape& shape, int64_t outputs_of_tile) const {
    const double tiles = std::ceil(static_cast<double>(outputs_) / static_cast<double>(outputs_of_tile)),
                 pixel_tiles = std::ceil(static_cast<double>(out_[0] * out_[1]) / static_cast<double>(shape.rows)),
                 lines = kLinesOfTile * pixel_tiles * static_cast<double>(channels_ * kCacheLine);
    const double in_place = lines > static_cast<double>(machine_.l1_bytes) ? tiles * lines / machine_.l2_loads : 0,
                 copies = kCopyCycles * static_cast<double>(channels_ * out_[0] * out_[1]);
    return op_.emit.choose_option("input", {{"in_place", in_place}, {"packed", copies}}) == 1;
  }

  // x as [N, pixels, channels].
  LazyTensor pixels_of(const LazyTensor& x) const {
    Context& context = context_;
    const Dims dims{x.dims[0], context.dim(out_[0] * out_[1]), x.dims[1]};
    return op_.emit.stored("pixels", op_.emit.expression(dims, x.dtype, [=, self = *this, &context](const Dims& at) {
      const Dim width = context.dim(self.out_[1]);
      Dims from{at[0], at[2]};
      if (self.windows_.rank() == 2) from.push_back(context.floor_divide(at[1], width));
      from.push_back(self.windows_.rank() == 2 ? context.modulo(at[1], width) : at[1]);
      return x.at(from);
    }));
  }

  // x with its padding, as far as windows read.
  LazyTensor pad_input(const LazyTensor& x, const Expr& pad) const {
    Dims dims{x.dims[0], x.dims[1]}, region = dims;
    bool is_inside = true, overlaps = true;
    for (size_t d = 2 - windows_.rank(); d < 2; ++d) {
      const int64_t size = (out_[d] - 1) * stride_[d] + (kernel_[d] - 1) * dilation_[d] + 1;
      is_inside &= before_[d] == 0 && size <= in_[d];
      overlaps &= size > before_[d];
      dims.push_back(context_.dim(size)), region.push_back(context_.dim(std::min(in_[d], size - before_[d])));
    }
    if (is_inside) return op_.emit.stored("x", x);
    const LazyTensor padded = op_.emit.overwritten("padded_input", dims, pad);
    if (overlaps) {
      op_.emit.overwrite("copy", padded, region, [x, before = windows_.before, &context = context_](const Dims& at) {
        Dims to = at;
        for (size_t d = 0; d < before.size(); ++d) to[2 + d] = context.add(to[2 + d], context.dim(before[d]));
        return std::pair(to, x.at(at));
      });
    }
    return padded;
  }

  // The pixels of x that a strided convolution with 1x1 kernels reads.
  LazyTensor subsampled(const LazyTensor& x) {
    Dims dims{x.dims[0], x.dims[1]};
    dims.insert(dims.end(), windows_.out.begin(), windows_.out.end());
    const LazyTensor result =
        op_.emit.stored("x", op_.emit.expression(dims, x.dtype, [x, windows = windows_, &context = context_](Dims at) {
          for (size_t d = 0; d < windows.rank(); ++d)
            at[2 + d] = context.multiply(at[2 + d], context.dim(windows.strides[d]));
          return x.at(at);
        }));
    std::ranges::copy(out_, in_);
    std::ranges::fill(stride_, 1);
    return result;
  }

  // The weights as [groups, outputs of a group, ...].
  LazyTensor grouped(const LazyTensor& w) const {
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

  // The padded input split into phases: [N, C, row phases, column phases, rows, columns], as far as tiles read; where
  // vectors cross rows, at least `elements` pixels instead of rows and columns. It is filled with padding first and
  // then overwritten with x, phase by phase, so that no element needs a bounds check.
  LazyTensor pad_by_phase(const LazyTensor& x, const Expr& pad, int64_t elements) const {
    Emitter& emit = op_.emit;
    Context& context = context_;
    const int64_t rows = elements > 0 ? (elements + width_ - 1) / width_ : out_[0] + halo_[0];
    Dims dims{x.dims[0], x.dims[1], context.dim(phases_[0]), context.dim(phases_[1])};
    if (!flat_) dims.push_back(context.dim(rows));
    dims.push_back(context.dim(flat_ ? rows * width_ : width_));
    const LazyTensor padded = emit.overwritten("padded_input", dims, pad);
    for (int64_t row_phase = 0; row_phase < phases_[0]; ++row_phase) {
      for (int64_t column_phase = 0; column_phase < phases_[1]; ++column_phase) {
        // The rows and columns first .. last of a phase are elements of x.
        const int64_t phase[2] = {row_phase, column_phase}, size[2] = {rows, width_};
        int64_t first[2], last[2];
        for (size_t d = 0; d < 2; ++d) {
          const int64_t offset = before_[d] - phase[d];
          first[d] = offset > 0 ? (offset + stride_[d] - 1) / stride_[d] : 0;
          last[d] = std::min(in_[d] - 1 + offset < 0 ? -1 : (in_[d] - 1 + offset) / stride_[d], size[d] - 1);
        }
        if (first[0] > last[0] || first[1] > last[1]) continue;
        const Dims region{x.dims[0], x.dims[1], context.dim(last[0] - first[0] + 1),
                          context.dim(last[1] - first[1] + 1)};
        emit.overwrite("copy", padded, region, [=, self = *this, &context](const Dims& at) {
          Dims to{at[0], at[1], context.dim(row_phase), context.dim(column_phase)}, from{at[0], at[1]};
          for (size_t d = 0; d < 2; ++d) {
            to.push_back(context.add(at[2 + d], context.dim(first[d])));
            if (d == 0 && self.windows_.rank() == 1) continue;
            from.push_back(context.add(context.multiply(to.back(), context.dim(self.stride_[d])),
                                       context.dim(phase[d] - self.before_[d])));
          }
          if (self.flat_) {
            const Dim column = to.back();
            to.pop_back();
            to.back() = context.add(context.multiply(to.back(), context.dim(self.width_)), column);
          }
          return std::pair(to, x.at(from));
        });
      }
    }
    return padded;
  }

  // A term of a pixel: the index in a row, or across rows. `batch`: image, group, and row unless vectors cross rows.
  Expr term(const LazyTensor& input, const LazyTensor& weights, const Dims& batch, Dim output, const Dims& k,
            Dim at) const {
    Context& context = context_;
    const Dim zero = context.dim(0);
    const Dim channel = context.add(context.multiply(batch[1], context.dim(channels_)), k[0]);
    const Dim kernel_index[2] = {windows_.rank() == 2 ? k[1] : zero, k.back()};
    Dim pixel[2], phase[2];
    for (size_t d = 0; d < 2; ++d) {
      const Dim shift = context.multiply(kernel_index[d], context.dim(dilation_[d])), stride = context.dim(stride_[d]);
      pixel[d] = context.floor_divide(shift, stride);
      phase[d] = phases_[d] == 1 ? zero : context.modulo(shift, stride);
    }
    const Dim width = context.dim(width_);
    Dims from{batch[0], channel};
    if (!pointwise_) from.insert(from.end(), phase, phase + 2);
    if (!flat_) {
      from.push_back(context.add(pixel[0], windows_.rank() == 2 ? batch[2] : zero));
      from.push_back(context.add(pixel[1], at));
    } else if (pointwise_ && windows_.rank() == 2) {
      from.push_back(context.floor_divide(at, width)), from.push_back(context.modulo(at, width));
    } else {
      from.push_back(context.add(at, context.add(context.multiply(pixel[0], width), pixel[1])));
    }
    Dims weight{batch[1], output};
    weight.insert(weight.end(), k.begin(), k.end());
    return times_(weights.at(weight), input.at(from));
  }

  // The output channel.
  Dim output(Dim group, Dim index) const {
    return context_.add(context_.multiply(group, context_.dim(outputs_)), index);
  }
  // Of the result, from those of the batch, of the output channel in its group and of the pixel.
  Dims result_index(const Dims& at) const {
    Dims index{at[0], output(at[1], at[at.size() - 2])};
    const Dim width = context_.dim(width_), pixel = at.back();
    if (windows_.rank() == 2) index.push_back(flat_ ? context_.floor_divide(pixel, width) : at[2]);
    index.push_back(flat_ && windows_.rank() == 2 ? context_.modulo(pixel, width) : pixel);
    return index;
  }

  OperatorCall op_;
  Context& context_;
  const Machine& machine_;
  Windows windows_;
  Dim groups_;
  Times times_;
  const Factors factors_;
  int64_t channels_ = 0, outputs_ = 0;  // input and output channels of a group
  int64_t out_[2]{}, in_[2]{}, kernel_[2]{}, stride_[2]{}, dilation_[2]{}, before_[2]{};
  int64_t phases_[2]{}, halo_[2]{};
  int64_t width_ = 0;         // of a row of the padded input
  bool pointwise_ = false;    // 1x1 kernels without padding
  bool flat_ = false;         // vectors of pixels cross rows
  bool across_rows_ = false;  // tiles with channels as lanes cross rows
};

}  // namespace

std::optional<LazyTensor> direct_convolution(const OperatorCall& op, const Expr& pad, const Times& times,
                                             Factors factors) {
  const Dims& w = op.arg(1).dims;
  Direct direct(op, read_windows(op, Dims(w.begin() + 2, w.end())), op.context().dim(op.integer("groups")), times,
                factors);
  return direct.fits() ? std::optional(direct.run(pad)) : std::nullopt;
}

}  // namespace tenon::compiler::kernels
