// Resampling of images: resize, grid_sample, roi_align. The coordinates are defined as in ONNX.
#include "compiler/ir/operators/rules.h"
#include "runtime/reference/resize.h"

namespace tenon::compiler {
namespace {

using runtime::kReals;

// size * scale, where the product is an integer for all sizes, or the size is a constant.
Expected<Dim> scaled(const RuleInput& in, Dim size, double scale) {
  if (const auto value = size.constant()) {
    return in.context.dim(runtime::reference::resized_length(*value, scale));
  }
  const double inverse = 1 / scale;
  if (scale == std::floor(scale)) return in.context.multiply(size, in.context.dim(static_cast<int64_t>(scale)));
  if (inverse == std::floor(inverse)) {
    return in.context.floor_divide(size, in.context.dim(static_cast<int64_t>(inverse)));
  }
  return error(fmt::format("{} times {} is not an integer expression", in.context.str(size), scale), "",
               "bind the size, as --shapes H=224,W=224, or give sizes");
}

Status check_count(const RuleInput& in, std::string_view attr) {
  const size_t count = in.computed.find(attr)->second.size();
  if (count == in.arg(0).dims.size()) return {};
  return error(fmt::format("{} must have {} values, found {}", attr, in.arg(0).dims.size(), count));
}

Expected<Type> resize(const RuleInput& in) {
  using namespace runtime::reference;
  Dims dims = in.arg(0).dims;
  TENON_TRY(check_string(in, "mode", kResizeModes));
  TENON_TRY(check_string(in, "coordinates", kResizeCoordinates));
  TENON_TRY(check_string(in, "nearest", kResizeRoundings));
  TENON_TRY(check_int(in, "exclude_outside", 0, 1));
  TENON_TRY(check_int(in, "antialias", 0, 1));
  if (in.is_computed("scales")) {
    TENON_TRY(check_count(in, "scales"));
    if (!in.is_computed("sizes")) TENON_TRY(check_ints(in, "sizes", 0, 0, 0));
    return unknown_sizes(in, in.arg(0).rank(), in.arg(0).dtype);
  }
  const auto& scales = floats_attr(in.attrs, "scales");
  TENON_TRY_ASSIGN(given_sizes, sizes_attr(in, "sizes", {}, -1));
  const Dims& sizes = *given_sizes;
  if (sizes.empty() && scales.empty()) return error("requires sizes or scales");
  if (!sizes.empty()) TENON_TRY(sizes_attr(in, "sizes", dims.size(), -1));
  if (!scales.empty() && scales.size() != dims.size()) {
    return error(fmt::format("scales must have {} values, found [{}]", dims.size(), fmt::join(scales, ", ")));
  }
  for (const double scale : scales) {
    if (!(scale > 0 && scale <= 1 << 20)) return error(fmt::format("scale must be positive, found {}", scale));
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!sizes.empty()) {
      if (sizes[d].constant() != -1) dims[d] = sizes[d];
    } else {
      TENON_TRY_ASSIGN(size, scaled(in, dims[d], scales[d]));
      dims[d] = *size;
    }
    if (in.arg(0).dims[d].constant() == 0 && !dims[d].erased() && dims[d].constant() != 0) {
      return error(fmt::format("an empty axis cannot be resized: {}", describe(in, {"x"})));
    }
  }
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

Expected<Type> grid_sample(const RuleInput& in) {
  const bool volume = in.arg(0).rank() == 5;
  if (!volume) TENON_TRY(check_rank(in, 0, "x", 4));
  TENON_TRY(check_rank(in, 1, "grid", in.arg(0).rank()));
  TENON_TRY(check_string(in, "mode", runtime::reference::kResizeModes));
  TENON_TRY(check_string(in, "padding", {"zeros", "border", "reflection"}));
  TENON_TRY(check_int(in, "align_corners", 0, 1));
  TENON_TRY(check_int(in, "normalized", 0, 1));
  if (volume && string_attr(in.attrs, "mode") == "cubic") return error("volumes have no cubic interpolation");
  const Dims &x = in.arg(0).dims, &grid = in.arg(1).dims;
  const std::string what = volume ? "grid must be [N, D, H, W, 3]" : "grid must be [N, H, W, 2]";
  TENON_TRY_ASSIGN(count, require_same(in, 0, 0, 1, 0, what));
  TENON_TRY(require_size(in, 1, grid.size() - 1, in.context.dim(volume ? 3 : 2), what));
  Dims dims{*count, x[1]};
  dims.insert(dims.end(), grid.begin() + 1, grid.end() - 1);
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

Expected<Type> roi_align(const RuleInput& in) {
  TENON_TRY(check_rank(in, 0, "x", 4));
  TENON_TRY(check_rank(in, 1, "rois", 2));
  TENON_TRY(check_ints(in, "size", 2, 1, 1 << 12));
  TENON_TRY(check_int(in, "sampling_ratio", 0, 1 << 10));
  TENON_TRY(check_int(in, "half_pixel", 0, 1));
  TENON_TRY(check_string(in, "mode", {"avg", "max"}));
  const Dims &x = in.arg(0).dims, &rois = in.arg(1).dims;
  TENON_TRY(require_size(in, 1, 1, in.context.dim(4), "rois must be [R, 4]"));
  TENON_TRY(check_vector(in, 2, "batches", in.arg(2).dtype, rois[0]));
  const auto& size = ints_attr(in.attrs, "size");
  return in.context.tensor(Dims{rois[0], x[1], in.context.dim(size[0]), in.context.dim(size[1])}, in.arg(0).dtype);
}

}  // namespace

std::vector<Operator> image_operators() {
  return {
      {.name = "resize",
       .documentation = "x resampled to other sizes, along each dim whose size or scale changes.",
       .inputs = {{"x", kReals}},
       .attributes = {{"sizes", AttrKind::kInts, std::vector<int64_t>{},
                       "the result's sizes, one per dim, -1: the size of x; empty: by the scales", true},
                      {"scales", AttrKind::kFloats, std::vector<double>{},
                       "ratios of the result's sizes to the sizes of x, one per dim; sizes are rounded down. Beside "
                       "sizes, these are "
                       "the ratios of the coordinates alone",
                       true},
                      {"mode", AttrKind::kString, std::string("nearest"), "nearest, linear or cubic"},
                      {"coordinates", AttrKind::kString, std::string("half_pixel"),
                       "coordinates of the result's elements: half_pixel, half_pixel_symmetric, pytorch_half_pixel, "
                       "align_corners, "
                       "asymmetric or tf_half_pixel_for_nn"},
                      {"nearest", AttrKind::kString, std::string("round_prefer_floor"),
                       "rounding to the nearest element: round_prefer_floor, round_prefer_ceil, floor or ceil"},
                      {"cubic", AttrKind::kFloat, -0.75, "slope parameter of the cubic"},
                      {"exclude_outside", AttrKind::kInt, int64_t{0},
                       "1: elements outside of x have no weight in cubic interpolation"},
                      {"antialias", AttrKind::kInt, int64_t{0},
                       "1: where an axis shrinks, linear and cubic weights extend over more elements"}},
       .rule = resize,
       .may_fail = may_be_small},
      {.name = "grid_sample",
       .documentation =
           "x [N, C, H, W] sampled at the coordinates grid [N, H', W', 2], each x and y in -1 .. 1: [N, C, H', W']. "
           "Volumes "
           "x [N, C, D, H, W] have coordinates [N, D', H', W', 3], of x, y and z.",
       .inputs = {{"x", kReals}, Input::same("grid")},
       .attributes = {{"mode", AttrKind::kString, std::string("linear"), "nearest, linear or cubic"},
                      {"padding", AttrKind::kString, std::string("zeros"),
                       "values outside of x: zeros, border or reflection"},
                      {"align_corners", AttrKind::kInt, int64_t{0},
                       "1: -1 and 1 are the centres of the outer elements, 0: their edges"},
                      {"normalized", AttrKind::kInt, int64_t{1},
                       "0: the coordinates are indices of elements instead of -1 .. 1"}},
       .rule = grid_sample,
       .may_fail = may_have_small_map},
      {.name = "roi_align",
       .documentation =
           "Averages or maxima of interpolated samples in the regions rois [R, 4] (left, top, right, bottom) of x "
           "[N, C, H, W], where batches [R] are the indices of the images: [R, C, h, w].",
       .inputs = {{"x", kReals}, Input::same("rois"), {"batches", runtime::kIndices}},
       .attributes = {{"size", AttrKind::kInts, std::nullopt, "[h, w]"},
                      {"sampling_ratio", AttrKind::kInt, int64_t{0},
                       "samples along each side of a bin; 0: the number of elements in the bin"},
                      {"spatial_scale", AttrKind::kFloat, 1.0, "number of elements per unit of rois"},
                      {"mode", AttrKind::kString, std::string("avg"), "avg or max"},
                      {"half_pixel", AttrKind::kInt, int64_t{1}, "1: elements are centred at halves"}},
       .rule = roi_align,
       .may_fail = depends_on_elements,
       .samples = SampleArguments::regions()},
  };
}

}  // namespace tenon::compiler
