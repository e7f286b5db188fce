// Converters of ONNX operators on images.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/frontend/onnx_node.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;

// "bilinear" and "bicubic" are older names.
std::string mode_name(const std::string& mode) {
  return mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
}

Expected<Reals> reals_of(NodeImport& node, size_t input, std::string_view what) {
  TENON_TRY_ASSIGN(tensor, node.constant(input, what));
  if (tensor->dtype() != DType::kF32) return node.fail(fmt::format("{} must be f32", what));
  return Reals(tensor->data<float>().begin(), tensor->data<float>().end());
}

// Scales are an input from opset 9 on; coordinates are computed as by Resize in opset 10, rounded down.
Status upsample(NodeImport& node) {
  TENON_TRY_ASSIGN(mode, node.string("mode", "nearest"));
  const bool second = node.inputs() > 1;
  TENON_TRY_ASSIGN(scales, second ? reals_of(node, 1, "the scales") : node.reals("scales", {}));
  return node.result(node.apply(ops::kResize, {0},
                                {{"scales", *scales},
                                 {"mode", mode_name(*mode)},
                                 {"coordinates", std::string("asymmetric")},
                                 {"nearest", std::string("floor")}}));
}

// The smallest or largest scale of the axes whose sizes are given (others: -1).
Expected<double> common_scale(NodeImport& node, const TensorType& type, const Ints& sizes, bool smallest) {
  std::optional<double> scale;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] < 0) continue;
    const auto given = type.dims[axis].constant();
    if (!given || *given == 0) return node.fail("the aspect ratio is not known", "bind the sizes, as --shapes H=224");
    const double own = static_cast<double>(sizes[axis]) / static_cast<double>(*given);
    scale = !scale ? own : smallest ? std::min(*scale, own) : std::max(*scale, own);
  }
  return scale.value_or(1);
}

Status resize(NodeImport& node) {
  if (node.opset() < 11) return upsample(node);
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(mode, node.string("mode", "nearest"));
  TENON_TRY_ASSIGN(coordinates, node.string("coordinate_transformation_mode", "half_pixel"));
  TENON_TRY_ASSIGN(nearest, node.string("nearest_mode", "round_prefer_floor"));
  TENON_TRY_ASSIGN(cubic, node.real("cubic_coeff_a", -0.75));
  TENON_TRY_ASSIGN(exclude, node.integer("exclude_outside", 0));
  TENON_TRY_ASSIGN(antialias, node.integer("antialias", 0));
  TENON_TRY_ASSIGN(policy, node.string("keep_aspect_ratio_policy", "stretch"));
  TENON_TRY_ASSIGN(outside, node.real("extrapolation_value", 0.0));
  (void)outside;  // only for tf_crop_and_resize, which the operator does not support
  if (*policy != "stretch" && *policy != "not_larger" && *policy != "not_smaller") {
    return node.fail(fmt::format("keep_aspect_ratio_policy '{}' is not supported", *policy));
  }
  const auto rank = static_cast<size_t>(type->rank());
  Ints all;
  for (size_t i = 0; i < rank; ++i) all.push_back(static_cast<int64_t>(i));
  TENON_TRY_ASSIGN(axes, node.list("axes", all));
  auto axis_of_size = [&](size_t i) -> Expected<size_t> {
    const int64_t axis = (*axes)[i] + ((*axes)[i] < 0 ? type->rank() : 0);
    if (axis < 0 || axis >= type->rank()) return node.fail(fmt::format("there is no axis {}", (*axes)[i]));
    return static_cast<size_t>(axis);
  };
  Attrs attrs{{"mode", *mode},   {"coordinates", *coordinates}, {"nearest", *nearest},
              {"cubic", *cubic}, {"exclude_outside", *exclude}, {"antialias", *antialias}};
  bool by_sizes = node.has_input(3);
  if (by_sizes && node.has_input(2)) {  // an empty tensor is equivalent to an omitted input
    TENON_TRY_ASSIGN(sizes, node.constant(3, "the sizes"));
    by_sizes = sizes->size() > 0;
  }
  if (by_sizes) {
    TENON_TRY_ASSIGN(given, node.integers(3, "the sizes"));
    if (given->size() != axes->size()) return node.fail("requires a size for each axis");
    Ints sizes(rank, -1);
    for (size_t i = 0; i < given->size(); ++i) {
      TENON_TRY_ASSIGN(axis, axis_of_size(i));
      sizes[*axis] = (*given)[i];
    }
    if (*policy != "stretch") {
      TENON_TRY_ASSIGN(scale, common_scale(node, *type, sizes, *policy == "not_larger"));
      Reals scales(rank, 1.0);
      for (size_t axis = 0; axis < rank; ++axis) {
        if (sizes[axis] < 0) continue;
        sizes[axis] = static_cast<int64_t>(*scale * static_cast<double>(*type->dims[axis].constant()) + 0.5);
        scales[axis] = *scale;
      }
      attrs.emplace("scales", std::move(scales));
    }
    attrs.emplace("sizes", std::move(sizes));
  } else {
    TENON_TRY_ASSIGN(given, reals_of(node, 2, "the scales"));
    if (given->size() != axes->size()) return node.fail("requires a scale for each axis");
    Reals scales(rank, 1.0);
    for (size_t i = 0; i < given->size(); ++i) {
      TENON_TRY_ASSIGN(axis, axis_of_size(i));
      scales[*axis] = (*given)[i];
    }
    attrs.emplace("scales", std::move(scales));
  }
  return node.result(node.apply(ops::kResize, {0}, std::move(attrs)));
}

Status grid_sample(NodeImport& node) {
  TENON_TRY_ASSIGN(mode, node.string("mode", "linear"));
  TENON_TRY_ASSIGN(padding, node.string("padding_mode", "zeros"));
  TENON_TRY_ASSIGN(align, node.integer("align_corners", 0));
  return node.result(node.apply(ops::kGridSample, {0, 1},
                                {{"mode", mode_name(*mode)}, {"padding", *padding}, {"align_corners", *align}}));
}

Status roi_align(NodeImport& node) {
  TENON_TRY_ASSIGN(mode, node.string("mode", "avg"));
  TENON_TRY_ASSIGN(height, node.integer("output_height", 1));
  TENON_TRY_ASSIGN(width, node.integer("output_width", 1));
  TENON_TRY_ASSIGN(ratio, node.integer("sampling_ratio", 0));
  TENON_TRY_ASSIGN(scale, node.real("spatial_scale", 1.0));
  TENON_TRY_ASSIGN(coordinates, node.string("coordinate_transformation_mode",
                                            node.opset() < 16 ? "output_half_pixel" : "half_pixel"));
  if (*coordinates != "half_pixel" && *coordinates != "output_half_pixel") {
    return node.fail(fmt::format("coordinate_transformation_mode '{}' is not supported", *coordinates));
  }
  return node.result(node.apply(ops::kRoiAlign, {0, 1, 2},
                                {{"size", Ints{*height, *width}},
                                 {"sampling_ratio", *ratio},
                                 {"spatial_scale", *scale},
                                 {"mode", *mode},
                                 {"half_pixel", int64_t{*coordinates == "half_pixel"}}}));
}

Status depth_to_space(NodeImport& node) {
  TENON_TRY_ASSIGN(block, node.integer("blocksize"));
  TENON_TRY_ASSIGN(mode, node.string("mode", "DCR"));
  return node.result(node.apply(ops::kDepthToSpace, {0}, {{"block", *block}, {"order", *mode}}));
}

Status space_to_depth(NodeImport& node) {
  TENON_TRY_ASSIGN(block, node.integer("blocksize"));
  return node.result(node.apply(ops::kSpaceToDepth, {0}, {{"block", *block}}));
}

template <class T>
Expected<T> scalar_or(NodeImport& node, size_t input, std::string_view what, T fallback) {
  if (!node.has_input(input)) return fallback;
  TENON_TRY_ASSIGN(tensor, node.constant(input, what));
  if (tensor->dtype() != runtime::dtype_of<T> || tensor->size() != 1) {
    return node.fail(fmt::format("{} must be one {}", what, runtime::name(runtime::dtype_of<T>)));
  }
  return tensor->template data<T>()[0];
}

Status non_max_suppression(NodeImport& node) {
  TENON_TRY_ASSIGN(centered, node.integer("center_point_box", 0));
  TENON_TRY_ASSIGN(most, scalar_or<int64_t>(node, 2, "max_output_boxes_per_class", 0));
  TENON_TRY_ASSIGN(iou, scalar_or<float>(node, 3, "iou_threshold", 0));
  TENON_TRY_ASSIGN(score, scalar_or<float>(node, 4, "score_threshold", -std::numeric_limits<float>::infinity()));
  return node.result(node.apply(ops::kNonMaxSuppression, {0, 1},
                                {{"max_boxes", *most},
                                 {"iou_threshold", static_cast<double>(*iou)},
                                 {"score_threshold", static_cast<double>(*score)},
                                 {"centered", *centered}}));
}

}  // namespace

std::span<const OnnxConverter> onnx_image_converters() {
  static constexpr OnnxConverter kTable[] = {
      {"DepthToSpace", 1, 1, depth_to_space},
      {"GridSample", 2, 2, grid_sample},
      {"NonMaxSuppression", 2, 5, non_max_suppression},
      {"Resize", 1, 4, resize},
      {"RoiAlign", 3, 3, roi_align},
      {"SpaceToDepth", 1, 1, space_to_depth},
      {"Upsample", 1, 2, upsample},
  };
  return kTable;
}

}  // namespace tenon::compiler
