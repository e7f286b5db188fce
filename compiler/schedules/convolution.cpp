#include "compiler/schedules/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/tree.h"
#include "compiler/schedules/elements.h"
#include "compiler/schedules/product.h"
#include "compiler/schedules/product_steps.h"
#include "support/try.h"

namespace tenon::compiler::schedules {
namespace {

constexpr int64_t kPageElements = 1 << 10;  // elements of 4 bytes in a page
constexpr int64_t kCacheLine = 64;          // bytes
constexpr int64_t kShortSum = 64;           // terms of a sum that takes no longer than its store to L3
constexpr int64_t kMostPhases = 32;         // remainders by a stride, each of which is a part of the copy
constexpr double kStoreReload = 0.5;        // cycles to store a sum and load it again
constexpr double kPhaseCycles = 0.5;        // to copy an element of the input into its phase
constexpr double kRolledCycles = 0.6;       // of each iteration of a loop of few terms, beside those of an unrolled one
constexpr double kPackCycles = 1;           // to copy an element of a pixel beside those of its tile
constexpr double kSplitLoads = 1.06;        // cycles of tiles whose loads cross cache lines, beside others
constexpr double kLinesOfTile = 1.3;        // cache lines of a channel of a tile of pixels, on average

int64_t round_up(int64_t value, int64_t step) { return ceil_divide(value, step) * step; }

// Lanes are either contiguous output pixels, unrolled over output channels, or output channels, unrolled over
// contiguous pixels of a row. With channels as lanes an element of x is broadcast to all lanes, so strides cost
// nothing, and maps whose width is not a multiple of a vector waste no lanes; but tiles must be transposed before they
// are stored.
//
// Vectors of pixels run along one row, or across all rows, which follow each other in a copy of the elements that is
// wider than the result; pixels between the rows are computed and dropped. The copy is split into phases, one for each
// remainder of the index by the stride, so that adjacent output pixels read adjacent elements of a phase.
class ConvolutionTemplate {
 public:
  ConvolutionTemplate(TypeContext& context, loop::Schedule& schedule, const ConvolutionStages& stages,
                      const Machine& machine, const ChooseOption& choose)
      : context_(context),
        schedule_(schedule),
        steps_(context, schedule),
        stages_(stages),
        machine_(machine),
        choose_(choose) {}

  Status run() {
    TENON_TRY(read_axes());
    if (!has_known_sizes()) return with_rows_of_any_size();
    const double row = row_cycles(), flat = can_be_flat() ? flat_cycles() : std::numeric_limits<double>::infinity();
    across_rows_ = pointwise_ || (rank_ == 2 && out_[1] <= kTransposeSide / 2);
    const TileShape channels = channel_tile();
    if (channels_can_be_lanes(channels) &&
        choose_("lanes", {{"pixels", pixel_cycles(std::min(row, flat))}, {"channels", channel_cycles(channels)}}) == 1)
      return with_channels_as_lanes(channels);
    const bool is_flat = pointwise_ || (can_be_flat() && choose_("pixels", {{"row", row}, {"flat", flat}}) == 1);
    const std::vector<TileShape> shapes =
        tile_shapes(machine_, outputs_, is_flat ? flat_pixels() : out_[1], vector_, terms_of_pixels(is_flat));
    const TileShape shape = choose_tile(choose_, shapes);
    if (pointwise_) return with_pixels_of_all_rows(shape);
    return is_flat ? with_flat_pixels(shape) : with_rows_of_pixels(shape);
  }

 private:
  template <class... Args>
  Status step(std::string_view format, const Args&... args) {
    return steps_.step(format, args...);
  }
  std::vector<Symbol> loops_of(Symbol stage) { return steps_.loops_of(stage); }

  // --- The convolution ---

  Status read_axes() {
    TENON_TRY_ASSIGN(axes, steps_.axes_of(stages_.sums));
    std::vector<loop::Axis> points = axes->batch;
    points.push_back(axes->rows), points.push_back(axes->columns);
    const std::vector<loop::Axis>& terms = axes->terms;
    if (points.size() < 4 || points.size() != terms.size() + 2)
      return error(
          fmt::format("the stage '{}' is not a convolution: its axes are not image, group, output, pixels, "
                      "channel and kernel",
                      context_.name(stages_.sums)));
    rank_ = points.size() - 3, factors_ = axes->factors, buffer_ = axes->buffer;
    vector_ = lanes_of(schedule_.function().buffer(buffer_).dtype);
    groups_ = points[1].extent.constant().value_or(0), outputs_ = points[2].extent.constant().value_or(0);
    channels_ = terms[0].extent.constant().value_or(0);
    output_ = points[2].var;
    for (size_t d = 0; d < rank_; ++d) pixels_.push_back(points[3 + d]);
    return read_operands(terms);
  }

  // The operands' buffers, and of the elements' indices the strides, the dilations and the footprint of the windows.
  Status read_operands(const std::vector<loop::Axis>& terms) {
    loop::Function& function = steps_.function();
    TENON_TRY_ASSIGN(path, loop::find_stage(context_, function, stages_.sums));
    std::vector<int64_t> strides(rank_), dilations(rank_);
    std::vector<loop::BufferAxis> sizes;
    loop::for_each_access(path->stage(), [&](const loop::Access& access) {
      if (access.writes || access.buffer == buffer_) return;
      if (loop::mentions(access.indices, output_)) {
        weights_ = access.buffer;
        return;
      }
      if (access.indices.size() != rank_ + 2) return;
      elements_.emplace(context_, schedule_, stages_.sums, access.buffer);
      sizes = function.buffer(access.buffer).axes;
      for (size_t d = 0; d < rank_; ++d) {
        const auto pixel = context_.linear_in(pixels_[d].var, access.indices[2 + d]);
        const auto kernel_index = pixel ? context_.linear_in(terms[1 + d].var, pixel->second) : std::nullopt;
        strides[d] = pixel ? pixel->first.constant().value_or(0) : 0;
        dilations[d] = kernel_index ? kernel_index->first.constant().value_or(0) : 0;
      }
    });
    if (!weights_ || !elements_ || std::ranges::count(strides, 0) > 0)
      return error(
          fmt::format("the stage '{}' is not a convolution: it does not multiply weights and the elements of "
                      "sliding windows",
                      context_.name(stages_.sums)));
    pointwise_ = true;
    const size_t known = std::min<size_t>(rank_, 2);  // of the sizes below
    for (size_t d = 0; d < rank_; ++d) {
      const Dim size = sizes[2 + d].extent;
      pointwise_ &= terms[1 + d].extent.constant() == 1 && strides[d] == 1 && size == pixels_[d].extent;
      if (d + known < rank_) continue;
      // A convolution over one dim is one row of a convolution over two dims.
      const size_t to = d + 2 - rank_;
      out_[to] = pixels_[d].extent.constant().value_or(0), in_[to] = size.constant().value_or(0);
      kernel_[to] = terms[1 + d].extent.constant().value_or(0);
      stride_[to] = strides[d], dilation_[to] = std::max<int64_t>(dilations[d], 1);
      phases_[to] = dilation_[to] == 1 ? std::min(kernel_[to], stride_[to]) : stride_[to];
      halo_[to] = (kernel_[to] - 1) * dilation_[to] / stride_[to];
    }
    num_terms_ = channels_ * kernel_[0] * kernel_[1];
    return {};
  }

  bool has_known_sizes() const {
    const auto are_known = [](const int64_t(&sizes)[2]) { return sizes[0] > 0 && sizes[1] > 0; };
    return rank_ <= 2 && groups_ > 0 && outputs_ > 0 && channels_ > 0 && are_known(out_) && are_known(in_) &&
           are_known(kernel_) && phases_[0] <= kMostPhases && phases_[1] <= kMostPhases;
  }

  // --- The costs of the knobs: cycles of all tiles ---

  // Pixels from the first to the last output pixel, in rows of the width of the copied elements.
  int64_t flat_pixels() const { return (out_[0] - 1) * (out_[1] + halo_[1]) + out_[1]; }
  bool can_be_flat() const { return pointwise_ || (rank_ == 2 && !has_phases()); }
  bool has_phases() const { return stride_[0] > 1 || stride_[1] > 1; }
  // Whether the same pixel of each channel is in a page of its own.
  bool spans_pages() const { return pointwise_ && flat_pixels() >= kPageElements; }

  Terms terms_of_pixels(bool flat) const {
    // A vector of pixels reads about two cache lines of the phases for each term, which the next tile loads again from
    // L2 where L1 does not hold them.
    const bool scattered = has_phases() && 2 * kCacheLine * num_terms_ > machine_.l1_bytes;
    return {.strided_lanes = scattered || (flat && spans_pages()), .count = num_terms_, .factors = factors_};
  }
  double row_cycles() const {
    return choose_tile(machine_, outputs_, out_[1], vector_, terms_of_pixels(false)).cycles *
           static_cast<double>(out_[0]) * static_cast<double>(num_terms_);
  }
  // The sums of flat tiles are stored and loaded again, to drop the pixels between rows.
  double flat_cycles() const {
    const double unpack_cycles = pointwise_ ? 0 : static_cast<double>(outputs_ * out_[0] * out_[1]) * kStoreReload;
    return choose_tile(machine_, outputs_, flat_pixels(), vector_, terms_of_pixels(true)).cycles *
               static_cast<double>(num_terms_) +
           unpack_cycles;
  }
  // Registers of 64 bytes that begin at any pixel are in two cache lines.
  double pixel_cycles(double tile_cycles) const {
    const double copy_cycles = has_phases() ? kPhaseCycles * static_cast<double>(channels_ * in_[0] * in_[1]) : 0;
    return tile_cycles * (machine_.wide() && !pointwise_ ? kSplitLoads : 1) + copy_cycles;
  }

  // Channels can be lanes where L2 holds a tile's weights, which each tile of pixels reads again, and where no vector
  // crosses a group boundary.
  bool channels_can_be_lanes(const TileShape& shape) const {
    return vector_ == kTransposeSide && num_terms_ * shape.vectors * kTransposeSide <= elements_in(machine_.l2_bytes) &&
           (groups_ == 1 || outputs_ % kTransposeSide == 0);
  }
  // Only pixels have unrolled loops over a row of kernel taps.
  double channel_cycles(const TileShape& shape) const {
    const int64_t registers = shape.rows * shape.vectors * kVectorBytes / machine_.vector_bytes;
    const double cycles_of_term =
        static_cast<double>(registers * (factors_ == Factors::kInt16s ? 2 : 1)) / machine_.multiply_adds;
    return shape.cycles * (pointwise_ ? 1 : 1 + kRolledCycles / cycles_of_term);
  }
  // The tile of rows of pixels and vectors of channels, with the cycles of the whole convolution. Tiles cross rows only
  // with 1x1 kernels, or where a tile consists of whole rows: the strides of its pixels are constant then. A machine
  // may have too few registers for a whole row.
  TileShape channel_tile() {
    const bool whole_rows = across_rows_ && !pointwise_;
    TileShape best =
        choose_transposed_tile(machine_, across_rows_ ? out_[0] * out_[1] : out_[1], outputs_, num_terms_, factors_,
                               [&](int64_t count) { return !whole_rows || count % out_[1] == 0; });
    if (best.cycles == 0) {
      across_rows_ = false;
      return channel_tile();
    }
    if (!across_rows_) best.cycles *= static_cast<double>(out_[0]);
    return best;
  }

  // Selects the outer loop by the elements that the inner loop reloads for each block of the outer one. Results whose
  // rows span pages and exceed L2, while the input fits, are stored row by row: stores to few pixels of all channels,
  // each in a page of its own, take longer than reloading the input. So are large results of short sums where L1 has
  // too few sets for the channels' lines, so that each block of outputs reloads the input anyway.
  bool has_outer_weights(int64_t pixel_blocks = 1, int64_t weight_blocks = 1, bool spans_pages = false) const {
    const int64_t weights = outputs_ * num_terms_, inputs = channels_ * in_[0] * in_[1],
                  results = outputs_ * out_[0] * out_[1], l2_elements = elements_in(machine_.l2_bytes);
    const int64_t stores = spans_pages && results > l2_elements && inputs <= l2_elements ? results : 0;
    const bool reloads_anyway = num_terms_ <= kShortSum && 2 * results > l2_elements && lines_conflict();
    return choose_("outer", {{"pixels", static_cast<double>(weights * pixel_blocks + stores)},
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

  // Whether the pixels of a tile are copied side by side. In place, each channel of a tile is in a cache line of its
  // own, or in two, which each tile of outputs loads from L2 again where L1 does not hold them.
  bool packs_pixels(const TileShape& shape, int64_t outputs_of_tile) const {
    const double tiles = std::ceil(static_cast<double>(outputs_) / static_cast<double>(outputs_of_tile)),
                 pixel_tiles = std::ceil(static_cast<double>(out_[0] * out_[1]) / static_cast<double>(shape.rows)),
                 lines = kLinesOfTile * pixel_tiles * static_cast<double>(channels_ * kCacheLine);
    const double in_place = lines > static_cast<double>(machine_.l1_bytes) ? tiles * lines / machine_.l2_loads : 0,
                 copies = kPackCycles * static_cast<double>(channels_ * out_[0] * out_[1]);
    return choose_("input", {{"in_place", in_place}, {"packed", copies}}) == 1;
  }

  // --- Steps ---

  Symbol name_of(loop::BufferId buffer) const { return schedule_.function().buffer(buffer).name; }
  std::vector<loop::Axis> axes_of(Symbol stage) {
    loop::Function& function = steps_.function();
    return loop::find_stage(context_, function, stage)->stage().axes;
  }
  Symbol row_axis() const { return pixels_[0].var; }
  Symbol column_axis() const { return pixels_.back().var; }

  // The loops of the results as image, group, pixels but the last, and those of the two axes of a matrix.
  Status order_results(bool channels_last) {
    std::vector<Symbol> order = loops_of(stages_.results);
    const auto output = order.begin() + 2, last = order.end() - (channels_last ? 0 : 1);
    std::rotate(output, output + 1, last);
    return std::equal(order.begin(), order.end(), loops_of(stages_.results).begin())
               ? Status()
               : step("reorder({}, {})", stages_.results, steps_.joined(order));
  }

  Status product(const ProductStages& product) {
    return schedule_product(context_, schedule_, product, machine_, choose_);
  }

  // The pixels of all rows as one axis of the sums and one loop of the results; returns the axis.
  Expected<Symbol> fuse_rows() {
    Symbol pixel = column_axis();
    for (size_t d = rank_ - 1; d-- > 0;) {
      TENON_TRY(step("fuse_axes({}, {}, {})", stages_.sums, pixels_[d].var, pixel));
      const std::vector<Symbol> loops = loops_of(stages_.results);
      TENON_TRY(step("fuse({}, {}, {})", stages_.results, loops[loops.size() - 2], loops.back()));
      TENON_TRY_ASSIGN(axes, steps_.axes_of(stages_.sums));
      pixel = axes->columns.var;
    }
    return pixel;
  }

  // --- The elements ---

  // Stores the padding first where the elements are read as they are.
  Status fill_elements() {
    const auto stage = elements_->stage();
    return stage ? elements_->fill(*stage) : Status();
  }

  // Copies the elements into rows of width_ in each phase. Flat: without phases, in `rows` adjacent rows.
  Status copy_elements(std::optional<int64_t> rows = {}) {
    TENON_TRY_ASSIGN(found, elements_->stage_or_copy());
    const Symbol stage = *found;
    TENON_TRY(elements_->extend(stage, rank_ + 1, width_ * stride_[1]));
    if (rows) TENON_TRY(elements_->extend(stage, rank_, *rows));
    TENON_TRY(elements_->fill(stage));
    if (rows) return step("layout({}, a0 a1 a2 a3 -> a0 a1 a2*a3)", elements_->name());
    if (stride_[1] > 1) {
      // The columns of one remainder after those of the other.
      const Symbol columns = loops_of(stage).back();
      const int64_t count = steps_.extent_of(stage, columns).constant().value_or(1);
      TENON_TRY_ASSIGN(copies,
                       steps_.split(stage, columns,
                                    count % stride_[1] == 0 || count < stride_[1] ? fmt::format("{}", stride_[1])
                                                                                  : fmt::format("{}, 1", stride_[1])));
      const std::vector<Symbol> loops = loops_of(stage);
      TENON_TRY(step("reorder({}, {}, {})", stage, loops.back(), loops[loops.size() - 2]));
    }
    std::string phases, quotients;
    for (size_t axis = 2; axis < rank_ + 2; ++axis) {
      const int64_t stride = stride_[axis - rank_];
      const std::string name = ProductSteps::axis(axis);
      if (stride > 1) phases += fmt::format(" {}%{}", name, stride);
      quotients += stride > 1 ? fmt::format(" {}/{}", name, stride) : " " + name;
    }
    return phases.empty() ? Status()
                          : step("layout({}, {} -> a0 a1{}{})", elements_->name(), ProductSteps::axes(rank_ + 2),
                                 phases, quotients);
  }

  // --- Pixels as lanes ---

  Status with_rows_of_pixels(const TileShape& shape) {
    width_ = round_up(out_[1], vector_) + halo_[1];
    TENON_TRY(copy_elements());
    TENON_TRY(order_results(false));
    const bool rows_outer = has_outer_weights();
    return product({.sums = stages_.sums,
                    .results = stages_.results,
                    .row_panels = name_of(*weights_),
                    .order = TileOrder{.tile = shape, .rows_outer = rows_outer, .lines = rows_outer ? rank_ - 1 : 0},
                    .matrix = MatrixAxes{output_, column_axis()}});
  }

  Status with_pixels_of_all_rows(const TileShape& shape) {
    TENON_TRY(fill_elements());
    TENON_TRY_ASSIGN(pixel, fuse_rows());
    return product({.sums = stages_.sums,
                    .results = stages_.results,
                    .row_panels = name_of(*weights_),
                    .order = TileOrder{.tile = shape, .rows_outer = has_outer_weights(1, 1, spans_pages())},
                    .matrix = MatrixAxes{output_, *pixel}});
  }

  // The sums keep the row pitch of the copied elements; the results' stage drops the pixels between rows.
  Status with_flat_pixels(const TileShape& shape) {
    width_ = out_[1] + halo_[1];
    const int64_t read = round_up(out_[0] * width_, vector_) + halo_[0] * width_ + halo_[1];
    TENON_TRY(copy_elements(ceil_divide(read, width_)));
    if (width_ != out_[1]) TENON_TRY(step("pad({}, {}, {})", stages_.sums, column_axis(), width_));
    TENON_TRY_ASSIGN(copy, steps_.stage_of_step("cache_write({})", stages_.sums));
    TENON_TRY(step("fuse_axes({}, {}, {})", stages_.sums, row_axis(), column_axis()));
    const std::vector<loop::Axis> copied = axes_of(*copy);
    TENON_TRY(step("fuse_axes({}, {}, {})", *copy, copied[3].var, copied[4].var));
    TENON_TRY_ASSIGN(axes, steps_.axes_of(stages_.sums));
    return product({.sums = stages_.sums,
                    .results = *copy,
                    .row_panels = name_of(*weights_),
                    .order = TileOrder{.tile = shape, .rows_outer = has_outer_weights()},
                    .matrix = MatrixAxes{output_, axes->columns.var}});
  }

  // Vectors along the last dim, or across all of known sizes where a pixel is the sum of one element of each channel.
  // The elements are copied as far as the last vector of a row reads.
  Status with_rows_of_any_size() {
    const Dim columns = pixels_.back().extent;
    const auto count = columns.constant();
    const bool flat = pointwise_ && std::ranges::all_of(pixels_, [](const loop::Axis& axis) {
                        return axis.extent.constant().has_value();
                      });
    const std::vector<TileShape> shapes =
        tile_shapes(machine_, outputs_, std::max<int64_t>(count.value_or(2 * vector_), 1), vector_,
                    {.strided_rows = true, .factors = factors_});
    ProductStages stages{.sums = stages_.sums,
                         .results = stages_.results,
                         .order = TileOrder{.tile = choose_tile(choose_, shapes), .rolled = !flat},
                         .matrix = MatrixAxes{output_, column_axis()}};
    if (flat) {
      TENON_TRY(fill_elements());
      TENON_TRY_ASSIGN(pixel, fuse_rows());
      stages.matrix->columns = *pixel;
      return product(stages);
    }
    TENON_TRY_ASSIGN(copy, elements_->stage_or_copy());
    TENON_TRY(elements_->extend_to_vectors(*copy, columns, vector_, stride_[1]));
    TENON_TRY(elements_->fill(*copy));
    TENON_TRY(order_results(false));
    return product(stages);
  }

  // --- Channels as lanes ---

  Status with_channels_as_lanes(const TileShape& shape) {
    // Weights that exceed L1 are loaded again for each tile.
    const int64_t lanes = shape.vectors * kTransposeSide;
    const bool exceeds_l1 = outputs_ * num_terms_ > elements_in(machine_.l1_bytes);
    const bool weights_outer = exceeds_l1
                                   ? has_outer_weights(out_[0] * out_[1] / shape.rows, ceil_divide(outputs_, lanes))
                                   : has_outer_weights();
    const bool packed = pointwise_ && across_rows_ && packs_pixels(shape, lanes);
    ProductStages stages{.sums = stages_.sums,
                         .results = stages_.results,
                         .panels = name_of(*weights_),
                         .order = TileOrder{.tile = shape,
                                            .rows_outer = !weights_outer,
                                            .lines = weights_outer && !across_rows_ ? rank_ - 1 : 0,
                                            .transposed = true}};
    if (packed) {
      TENON_TRY_ASSIGN(copy, elements_->copy());
      if (rank_ == 2)
        TENON_TRY(step("fuse_axes({}, {}, {})", *copy, elements_->axis_at(*copy, 2), elements_->axis_at(*copy, 3)));
      stages.row_panels = elements_->name();
    } else {
      TENON_TRY(fill_elements());
    }
    Symbol pixel = column_axis();
    if (across_rows_) {
      TENON_TRY_ASSIGN(fused, fuse_rows());
      pixel = *fused;
    }
    stages.matrix = MatrixAxes{pixel, output_};
    TENON_TRY(order_results(true));
    return product(stages);
  }

  TypeContext& context_;
  loop::Schedule& schedule_;
  ProductSteps steps_;
  const ConvolutionStages stages_;
  const Machine& machine_;
  const ChooseOption& choose_;
  size_t rank_ = 0;                 // of the pixels' axes
  std::vector<loop::Axis> pixels_;  // axes of the sums
  Symbol output_{};                 // the axis of output channels
  loop::BufferId buffer_{};         // of the sums
  std::optional<loop::BufferId> weights_;
  std::optional<Elements> elements_;
  Factors factors_ = Factors::kElements;
  int64_t vector_ = 1, num_terms_ = 0;
  int64_t groups_ = 0, channels_ = 0, outputs_ = 0;  // channels, outputs: of a group; 0: not constant
  // Of rows and columns.
  int64_t out_[2]{1, 1}, in_[2]{1, 1}, kernel_[2]{1, 1}, stride_[2]{1, 1}, dilation_[2]{1, 1}, phases_[2]{1, 1};
  int64_t halo_[2]{};         // elements of a phase beyond the pixels
  int64_t width_ = 0;         // of a row of a phase
  bool pointwise_ = false;    // a pixel is the sum over the channels of one element
  bool across_rows_ = false;  // tiles with channels as lanes cross rows
};

}  // namespace

Status schedule_convolution(TypeContext& context, loop::Schedule& schedule, const ConvolutionStages& stages,
                            const Machine& machine, const ChooseOption& choose) {
  return ConvolutionTemplate(context, schedule, stages, machine, choose).run();
}

}  // namespace tenon::compiler::schedules
