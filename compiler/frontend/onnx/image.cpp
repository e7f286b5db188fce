// Converters of ONNX operators on images.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/frontend/onnx/expression.h"
#include "compiler/frontend/onnx/sizes.h"
#include "runtime/reference/resize.h"

namespace tenon::compiler::onnx {
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

// Scales that are computed, at the axes (all others: 1), as a vector of f32.
Expected<Atom> computed_scales(NodeImport& node, size_t input, const Ints& axes, size_t rank) {
  TENON_TRY_ASSIGN(given, node.input(input));
  TENON_TRY_ASSIGN(type, node.type(input));
  if (type->dtype != DType::kF32 || type->rank() != 1) return node.fail("the scales must be a vector of f32");
  if (type->dims[0].constant() != static_cast<int64_t>(axes.size())) return node.fail("requires a scale for each axis");
  if (axes.size() == rank && std::ranges::is_sorted(axes) && axes.front() == 0) return *given;
  const auto count = static_cast<int64_t>(rank);
  const Atom ones = node.builder().constant<float>({count}, std::vector<float>(rank, 1.0f));
  const Atom indices = node.builder().constant<int64_t>({static_cast<int64_t>(axes.size())}, axes);
  return node.apply(ops::kScatterElements, {ones, indices, *given}, {{"axis", int64_t{0}}});
}

// x resampled by scales for all axes: constants, or where x's sizes are unknown and the scales fractions, computed.
Expected<Atom> resized_by(NodeImport& node, Atom x, Attrs attrs, const Reals& scales) {
  const TensorType* type = node.builder().tensor_type(x);
  bool open = false;
  for (size_t axis = 0; axis < scales.size() && axis < type->dims.size(); ++axis)
    open |= !type->dims[axis].constant() && scales[axis] != std::floor(scales[axis]);
  if (!open) {
    attrs.emplace("scales", scales);
    return node.apply(ops::kResize, Atoms{x}, std::move(attrs));
  }
  TENON_TRY_ASSIGN(computed, node.constant(runtime::Tensor::of<double>({static_cast<int64_t>(scales.size())}, scales)));
  OperatorAttributes with_scales(std::move(attrs));
  with_scales.set_operand("scales", *computed);
  return with_scales.apply(node, ops::kResize, {x});
}

// Scales are an input from opset 9 on; coordinates are computed as by Resize in opset 10, rounded down. `x` has the
// shape of input 0.
Expected<Atom> upsampled(NodeImport& node, Atom x) {
  TENON_TRY_ASSIGN(mode, node.string("mode", "nearest"));
  const Attrs attrs{
      {"mode", mode_name(*mode)}, {"coordinates", std::string("asymmetric")}, {"nearest", std::string("floor")}};
  const bool second = node.inputs() > 1;
  if (second && !reals_of(node, 1, "the scales")) {
    TENON_TRY_ASSIGN(type, node.type(0));
    Ints axes;
    for (int64_t i = 0; i < type->rank(); ++i) axes.push_back(i);
    TENON_TRY_ASSIGN(computed, computed_scales(node, 1, axes, axes.size()));
    OperatorAttributes with_scales(attrs);
    with_scales.set_operand("scales", *computed);
    return with_scales.apply(node, ops::kResize, {x});
  }
  TENON_TRY_ASSIGN(scales, second ? reals_of(node, 1, "the scales") : node.reals("scales", {}));
  return resized_by(node, x, attrs, *scales);
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

// Sizes that are computed. With an aspect ratio that is kept, the scale is the smallest or largest of all axes.
Expected<Atom> computed_sizes(NodeImport& node, Atom x, const Attrs& common, const Integers& given, const Ints& axes,
                              const std::string& policy) {
  TENON_TRY_ASSIGN(type, node.type(0));
  const Integers at = Integers::of(node.context(), axes);
  OperatorAttributes attrs(common);
  if (policy == "stretch") {
    TENON_TRY_ASSIGN(sizes, given.at_axes(node, at, type->rank(), -1));
    attrs.set("sizes", *sizes);
    return attrs.apply(node, ops::kResize, {x});
  }
  NodeFormula f(node);
  const Term own = gather(f.apply(ops::kShapeOf, {f.input(0)}), f.term(at.vector(node)), 0).cast(DType::kF64);
  const Term wanted = f.term(given.vector(node)).cast(DType::kF64);
  const Term scale = (wanted / own).reduce(policy == "not_larger" ? ops::kMin : ops::kMax, {0});
  const Term rounded = f.apply(ops::kFloor, {scale * own + 0.5}).cast(DType::kI64);
  const Term ones = f.constant(
      runtime::Tensor::of<double>({type->rank()}, std::vector<double>(static_cast<size_t>(type->rank()), 1.0)));
  const Term indices = f.term(at.vector(node));
  const Term scales = f.apply(
      ops::kScatterElements,
      {ones, indices, f.apply(ops::kBroadcastTo, {scale}, {{"shape", Ints{static_cast<int64_t>(axes.size())}}})},
      {{"axis", int64_t{0}}});
  TENON_TRY(f.status());
  TENON_TRY_ASSIGN(sizes, Integers(axes.size(), std::nullopt, rounded.atom()).at_axes(node, at, type->rank(), -1));
  attrs.set("sizes", *sizes);
  attrs.set_operand("scales", scales.atom());
  return attrs.apply(node, ops::kResize, {x});
}

// The index of the element that is nearest to each coordinate, by the node's rounding.
Term nearest_elements(NodeFormula& f, const Term& at, const std::string& rounding) {
  if (rounding == "floor" || rounding == "round_prefer_ceil")
    return f.apply(ops::kFloor, {rounding == "floor" ? at : at + 0.5});
  f.expect(rounding == "ceil" || rounding == "round_prefer_floor",
           fmt::format("nearest_mode '{}' is not supported", rounding));
  return f.apply(ops::kCeil, {rounding == "ceil" ? at : at - 0.5});
}

// The part of an axis from `begin` to `end` (1: the size of the axis), resampled at `count` coordinates, of which those
// outside of the axis give `outside`.
Term crop_and_resize_axis(const Term& x, int64_t axis, const Term& begin, const Term& end, const Integers& count,
                          const Attrs& attrs, double outside) {
  NodeFormula& f = formula_of(x);
  const Term one = f.scalar(1, DType::kF64), zero = f.scalar(0, DType::kF64);
  const Term size = f.apply(ops::kShapeOf, {x}).slice(0, axis, axis + 1).cast(DType::kF64), last = size - 1;
  const Term results = f.vector(count).cast(DType::kF64);
  const Term share = f.range(count).cast(DType::kF64) / f.apply(ops::kMaximum, {results - 1, one});
  const Term half = share + 0.5;  // a single result is in the middle
  const Term part = compiler::select(f.apply(ops::kEqual, {results, one}), half, share);
  const Term at = begin * last + part * (end - begin) * last;
  const auto elements = [&](const Term& index) {
    return gather(x, f.apply(ops::kMinimum, {f.apply(ops::kMaximum, {index, zero}), last}).cast(DType::kI64), axis);
  };
  Ints shape(static_cast<size_t>(x.rank()), 1);
  shape[static_cast<size_t>(axis)] = -1;
  const Term inside =
      f.apply(ops::kLogicalAnd, {f.apply(ops::kLessEqual, {zero, at}), f.apply(ops::kLessEqual, {at, last})});
  const Term first = f.apply(ops::kFloor, {at}), t = at - first;
  const auto weighted = [&](int64_t offset, const Term& weight) {
    return elements(first + static_cast<double>(offset)) * weight.cast(x.dtype()).reshape(shape);
  };
  Term samples = x;
  if (const std::string& mode = string_attr(attrs, "mode"); mode == "nearest") {
    samples = elements(nearest_elements(f, at, string_attr(attrs, "nearest")));
  } else if (mode == "linear") {
    samples = weighted(0, 1 - t) + weighted(1, t);
  } else {  // the four elements around the coordinate (Keys, Cubic convolution interpolation, 1981)
    const double a = float_attr(attrs, "cubic");
    const auto outer = [&](const Term& d) { return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a; };
    const auto inner = [&](const Term& d) { return (d * (a + 2) - (a + 3)) * d * d + 1; };
    std::vector<Term> weights{outer(t + 1), inner(t), inner(1 - t), outer(2 - t)};
    if (int_attr(attrs, "exclude_outside") == 1) {
      Term sum = zero;
      for (int64_t k = 0; k < 4; ++k) {
        Term& weight = weights[static_cast<size_t>(k)];
        const Term index = first + static_cast<double>(k - 1);
        weight = compiler::select(both(less_equal(zero, index), less_equal(index, last)), weight, zero);
        sum = sum + weight;
      }
      for (Term& weight : weights) weight = weight / sum;
    }
    samples = weighted(-1, weights[0]) + weighted(0, weights[1]) + weighted(1, weights[2]) + weighted(2, weights[3]);
  }
  return compiler::select(inside.reshape(shape), samples, f.scalar(outside, x.dtype()));
}

// Resize with regions of interest (tf_crop_and_resize), one axis after the other; `x` has the shape of input 0.
Expected<Atom> crop_and_resize(NodeImport& node, Atom x, const Attrs& attrs, const Ints& axes) {
  TENON_TRY_ASSIGN(outside, node.real("extrapolation_value", 0.0));
  const std::string& mode = string_attr(attrs, "mode");
  if (!runtime::reference::is_one_of(mode, runtime::reference::kResizeModes))
    return node.fail(fmt::format("the mode '{}' is not supported", mode), "the modes are nearest, linear and cubic");
  const auto count = static_cast<int64_t>(axes.size());
  NodeFormula f(node);
  const Term roi = f.input(1).cast(DType::kF64);
  f.expect(roi.rank() == 1 && roi.size(0) == 2 * count, "roi must have the begin and the end of each axis");
  std::optional<Integers> sizes;
  if (node.has_input(3)) {
    TENON_TRY_ASSIGN(given, Integers::input(node, 3, "the sizes"));
    sizes = *given;
  } else {
    const Term own = gather(f.apply(ops::kShapeOf, {f.input(0)}), f.vector(Integers::of(node.context(), axes)), 0);
    sizes = f.integers(f.apply(ops::kFloor, {own.cast(DType::kF64) * f.input(2).cast(DType::kF64)}).cast(DType::kI64));
  }
  f.expect(sizes->size() == axes.size(), "requires a size for each axis");
  Term y = f.term(x);
  for (int64_t i = 0; i < count && f.ok(); ++i) {
    TENON_TRY_ASSIGN(size, sizes->part(node, static_cast<size_t>(i), static_cast<size_t>(i) + 1));
    y = crop_and_resize_axis(y, axes[static_cast<size_t>(i)], roi.slice(0, i, i + 1),
                             roi.slice(0, count + i, count + i + 1), *size, attrs, *outside);
  }
  TENON_TRY(f.status());
  return y.atom();
}

// `x` has the shape of input 0.
Expected<Atom> resized(NodeImport& node, Atom x) {
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(mode, node.string("mode", "nearest"));
  TENON_TRY_ASSIGN(coordinates, node.string("coordinate_transformation_mode", "half_pixel"));
  TENON_TRY_ASSIGN(nearest, node.string("nearest_mode", "round_prefer_floor"));
  TENON_TRY_ASSIGN(cubic, node.real("cubic_coeff_a", -0.75));
  TENON_TRY_ASSIGN(exclude, node.integer("exclude_outside", 0));
  TENON_TRY_ASSIGN(antialias, node.integer("antialias", 0));
  TENON_TRY_ASSIGN(policy, node.string("keep_aspect_ratio_policy", "stretch"));
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
  if (*coordinates == "tf_crop_and_resize") {
    Ints resized_axes;
    for (size_t i = 0; i < axes->size(); ++i) {
      TENON_TRY_ASSIGN(axis, axis_of_size(i));
      resized_axes.push_back(static_cast<int64_t>(*axis));
    }
    return crop_and_resize(node, x, attrs, resized_axes);
  }
  TENON_TRY(node.real("extrapolation_value", 0.0));  // of tf_crop_and_resize alone
  bool by_sizes = node.has_input(3);
  if (by_sizes && node.has_input(2)) {  // an empty tensor is equivalent to an omitted input
    TENON_TRY_ASSIGN(scales, node.type(2));
    TENON_TRY_ASSIGN(sizes, node.type(3));
    by_sizes = scales->shape() == runtime::Shape{0} || sizes->shape() != runtime::Shape{0};
  }
  if (by_sizes) {
    TENON_TRY_ASSIGN(sizes_input, Integers::input(node, 3, "the sizes"));
    if (!sizes_input->constants()) return computed_sizes(node, x, attrs, *sizes_input, *axes, *policy);
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
  } else if (!reals_of(node, 2, "the scales")) {
    TENON_TRY_ASSIGN(computed, computed_scales(node, 2, *axes, rank));
    OperatorAttributes with_scales(attrs);
    with_scales.set_operand("scales", *computed);
    return with_scales.apply(node, ops::kResize, {x});
  } else {
    TENON_TRY_ASSIGN(given, reals_of(node, 2, "the scales"));
    if (given->size() != axes->size()) return node.fail("requires a scale for each axis");
    Reals scales(rank, 1.0);
    for (size_t i = 0; i < given->size(); ++i) {
      TENON_TRY_ASSIGN(axis, axis_of_size(i));
      scales[*axis] = (*given)[i];
    }
    return resized_by(node, x, std::move(attrs), scales);
  }
  return node.apply(ops::kResize, Atoms{x}, std::move(attrs));
}

// Integers, as quantized models have them, are resized as the same numbers as floats, and truncated.
Status resize(NodeImport& node) {
  NodeFormula f(node);
  const Term x = f.input(0);
  TENON_TRY(f.status());
  const Term real = x.cast(real_of(x.dtype()));
  return f.result(
      f.term(node.opset() < 11 ? upsampled(node, real.atom()) : resized(node, real.atom())).cast(x.dtype()));
}

Status upsample(NodeImport& node) {
  NodeFormula f(node);
  const Term x = f.input(0);
  TENON_TRY(f.status());
  return f.result(f.term(upsampled(node, x.cast(real_of(x.dtype())).atom())).cast(x.dtype()));
}

Status grid_sample(NodeImport& node) {
  TENON_TRY_ASSIGN(mode, node.string("mode", "linear"));
  TENON_TRY_ASSIGN(padding, node.string("padding_mode", "zeros"));
  TENON_TRY_ASSIGN(align, node.integer("align_corners", 0));
  NodeFormula f(node);
  const Term x = f.input(0), grid = f.input(1);
  const DType exact = widest_of(real_of(x.dtype()), grid.dtype());
  return f.result(f.apply(ops::kGridSample, {x.cast(exact), grid.cast(exact)},
                          {{"mode", mode_name(*mode)}, {"padding", *padding}, {"align_corners", *align}})
                      .cast(x.dtype()));
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

// Sets an attribute to an input that is one f32, if the node has it.
Status set_real(NodeImport& node, OperatorAttributes& attrs, const std::string& name, size_t input) {
  if (!node.has_input(input)) return {};
  TENON_TRY_ASSIGN(type, node.type(input));
  if (type->dtype != DType::kF32 || type->rank() > 1 || (type->rank() == 1 && type->dims[0].constant() != 1))
    return node.fail(fmt::format("{} must be one f32", name));
  if (const auto known = node.constant(input, name)) {
    attrs.set(name, static_cast<double>(known->data<float>()[0]));
    return {};
  }
  TENON_TRY_ASSIGN(scalar, node.apply(ops::kReshape, {input}, {{"shape", Ints{}}}));
  attrs.set_operand(name, *scalar);
  return {};
}

Status non_max_suppression(NodeImport& node) {
  TENON_TRY_ASSIGN(centered, node.integer("center_point_box", 0));
  TENON_TRY_ASSIGN(boxes, node.input(0));
  TENON_TRY_ASSIGN(scores, node.input(1));
  OperatorAttributes attrs({{"centered", *centered}, {"max_boxes", int64_t{0}}});
  if (node.has_input(2)) {
    attrs = OperatorAttributes({{"centered", *centered}});
    TENON_TRY_ASSIGN(most, Integers::input(node, 2, "max_output_boxes_per_class"));
    TENON_TRY(attrs.set_scalar(node, "max_boxes", *most));
  }
  TENON_TRY(set_real(node, attrs, "iou_threshold", 3));
  TENON_TRY(set_real(node, attrs, "score_threshold", 4));
  return node.result(attrs.apply(node, ops::kNonMaxSuppression, {*boxes, *scores}));
}

}  // namespace

std::span<const Converter> image_converters() {
  static constexpr Converter kTable[] = {
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

}  // namespace tenon::compiler::onnx
