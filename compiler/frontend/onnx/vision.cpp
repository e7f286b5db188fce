// Converters of ONNX's operators on images that are formulas of others: grids, blocks, deformed convolutions, crops.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "compiler/frontend/onnx/expression.h"

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;

int64_t product(const Ints& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

constexpr int64_t kMaxPoints = 1 << 24;

// Sizes that are multiplied to one of at most 2^24 elements.
Status check_sizes(NodeImport& node, const Ints& sizes, std::string_view what) {
  int64_t count = 1;
  for (const int64_t size : sizes) {
    if (size < 1 || size > kMaxPoints || (count *= size) > kMaxPoints) {
      return node.fail(fmt::format("{} [{}] is impossible", what, fmt::join(sizes, ", ")));
    }
  }
  return {};
}

// The coordinates in -1 .. 1 of a number of elements: of their centers, or from corner to corner.
Term grid_coordinates(NodeFormula& f, const Integers& count, bool corners) {
  const Term i = f.range(count).cast(DType::kF64), n = f.vector(count).cast(DType::kF64);
  if (!corners) return (i * 2 + 1) / n - 1;
  return i * 2 / f.apply(ops::kMaximum, {n - 1, f.scalar(1, DType::kF64)}) - 1;  // a single element is at -1
}

// The points of a regular grid over -1 .. 1, moved by theta [N, dims, dims + 1]: [N, ..., dims].
Status affine_grid(NodeImport& node) {
  TENON_TRY_ASSIGN(align, node.integer("align_corners", 0));
  TENON_TRY_ASSIGN(size, Integers::input(node, 1, "the size of the images"));
  if (size->size() != 4 && size->size() != 5) return node.fail("the size must have four or five elements");
  const size_t dims = size->size() - 2;
  if (const auto known = size->constants()) {
    TENON_TRY(check_sizes(node, Ints(known->begin() + 2, known->end()), "the size"));
  }
  NodeFormula f(node);
  const DType dtype = f.input(0).dtype(), exact = dtype == DType::kF64 ? dtype : DType::kF32;
  const Term theta = f.input(0).cast(exact);
  f.expect(theta.rank() == 3, "theta must be [N, dims, dims + 1]");
  Ints spatial;
  for (size_t d = 0; d < dims; ++d) spatial.push_back(static_cast<int64_t>(d) + 1);
  const auto column = [&](size_t i) {
    return theta.slice(2, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1).squeeze({2}).expand_dims(spatial);
  };
  Term points = column(dims);  // x, which is the last axis of the images, comes first
  for (size_t i = 0; i < dims && f.ok(); ++i) {
    TENON_TRY_ASSIGN(count, size->part(node, size->size() - 1 - i, size->size() - i));
    Ints shape(dims + 2, 1);
    shape[dims - i] = -1;
    points = points + column(i) * grid_coordinates(f, *count, *align != 0).cast(theta.dtype()).reshape(shape);
  }
  return f.result(points.cast(dtype));
}

// x cut around its center, or padded evenly, to sizes at axes.
Status center_crop_pad(NodeImport& node) {
  TENON_TRY_ASSIGN(sizes, Integers::input(node, 1, "the sizes"));
  NodeFormula f(node);
  Term x = f.input(0);
  const int64_t rank = x.rank();
  Ints all;
  for (int64_t i = 0; i < rank; ++i) all.push_back(i);
  TENON_TRY_ASSIGN(given_axes, node.list("axes", all));
  const Integers axes = Integers::of(node.context(), *given_axes);
  f.expect(axes.size() == sizes->size(), fmt::format("{} sizes for {} axes", sizes->size(), axes.size()));
  for (const int64_t size : sizes->constants().value_or(Ints{}))
    f.expect(size >= 0 && size <= kMaxPoints, fmt::format("the size {} is impossible", size));
  if (!f.ok()) return f.status();
  const Term own = gather(f.apply(ops::kShapeOf, {x}), f.vector(axes), 0), wanted = f.vector(*sizes);
  const Term zero = f.scalar(0, DType::kI64), two = f.scalar(2, DType::kI64);
  const Term missing = f.apply(ops::kMaximum, {wanted - own, zero});
  const Term begin = f.apply(ops::kFloorDivide, {f.apply(ops::kMaximum, {own - wanted, zero}), two});
  const Term before = f.apply(ops::kFloorDivide, {missing, two});
  const auto attribute = [&](OperatorAttributes& attrs, const char* name, const Term& values, int64_t other) -> Status {
    TENON_TRY(f.status());
    TENON_TRY_ASSIGN(list, f.integers(values).at_axes(node, axes, rank, other));
    attrs.set(name, *list);
    return {};
  };
  OperatorAttributes cut(Attrs{{"step", Ints(static_cast<size_t>(rank), 1)}}), padded;
  TENON_TRY(attribute(cut, "begin", begin, 0));
  TENON_TRY(attribute(cut, "end", begin + f.apply(ops::kMinimum, {own, wanted}), INT64_MAX));
  TENON_TRY(attribute(padded, "before", before, 0));
  TENON_TRY(attribute(padded, "after", missing - before, 0));
  return f.result(f.apply_computed(ops::kPad, {f.apply_computed(ops::kSlice, {x}, cut)}, padded));
}

// The attributes of Col2Im: blocks of an image with `dims` spatial dims.
struct ImageBlocks {
  Ints strides, dilations, pads;
};

Expected<ImageBlocks> image_blocks_of(NodeImport& node, size_t dims) {
  TENON_TRY_ASSIGN(strides, node.list("strides", Ints(dims, 1)));
  TENON_TRY_ASSIGN(dilations, node.list("dilations", Ints(dims, 1)));
  TENON_TRY_ASSIGN(pads, node.list("pads", Ints(2 * dims, 0)));
  if (strides->size() != dims || dilations->size() != dims || pads->size() != 2 * dims) {
    return node.fail(fmt::format("strides and dilations require {} values and pads {}", dims, 2 * dims));
  }
  for (size_t d = 0; d < dims; ++d) {
    const auto is_window = [](int64_t value, int64_t least) { return value >= least && value <= kMaxWindow; };
    if (!is_window((*strides)[d], 1) || !is_window((*dilations)[d], 1) || !is_window((*pads)[d], 0) ||
        !is_window((*pads)[dims + d], 0)) {
      return node.fail("strides, dilations and pads must be in 0 .. 2^20");
    }
  }
  return ImageBlocks{*strides, *dilations, *pads};
}

// Blocks of known sizes: a transposed convolution of each channel whose weights copy every element of the block to its
// position.
Status col2im_by_convolution(NodeImport& node, const ImageBlocks& blocks, const Ints& image, const Ints& block) {
  const size_t dims = block.size();
  TENON_TRY(check_sizes(node, image, "the image"));
  TENON_TRY(check_sizes(node, block, "the block"));
  NodeFormula f(node);
  const Term x = f.input(0);
  const int64_t elements = product(block), rows = f.known_size(x, 1, "the number of rows");
  f.expect(rows % elements == 0, fmt::format("{} rows are no multiple of a block of {}", rows, elements));
  Ints shape{0, 0}, kernel{rows, 1}, missing;
  for (size_t d = 0; d < dims && f.ok(); ++d) {
    const int64_t step = blocks.strides[d], padded = image[d] + blocks.pads[d] + blocks.pads[dims + d];
    const int64_t extent = block[d] + (block[d] - 1) * (blocks.dilations[d] - 1);
    f.expect(padded >= extent, "a block is larger than the image");
    const int64_t windows = (padded - extent) / step + 1;
    shape.push_back(windows);
    kernel.push_back(block[d]);
    missing.push_back(padded - (windows - 1) * step - extent);
  }
  if (!f.ok()) return f.status();
  TENON_TRY(check_sizes(node, kernel, "the weights of all channels"));
  runtime::Tensor weights(DType::kF32, kernel);
  for (int64_t row = 0; row < rows; ++row) {
    weights.data<float>()[static_cast<size_t>(row * elements + row % elements)] = 1;
  }
  constexpr std::array kTransposed{ops::kConv1dTranspose, ops::kConv2dTranspose, ops::kConv3dTranspose};
  return f.result(f.apply(kTransposed[dims - 1], {x.reshape(shape), f.constant(weights).cast(x.dtype())},
                          {{"strides", blocks.strides},
                           {"padding", blocks.pads},
                           {"dilation", blocks.dilations},
                           {"output_padding", missing},
                           {"groups", rows / elements}}));
}

// Blocks of sizes that are computed: each element is added to its index in the padded image.
Status col2im_by_scatter(NodeImport& node, const ImageBlocks& blocks, const Integers& image, const Integers& block) {
  const auto dims = static_cast<int64_t>(block.size());
  NodeFormula f(node);
  const Term x = f.input(0);
  const auto constant = [&](const Ints& values) { return f.vector(Integers::of(node.context(), values)); };
  const auto at = [](const Term& vector, int64_t d) { return vector.slice(0, d, d + 1); };
  const Term one = constant({1}), sizes = f.vector(image), sides = f.vector(block);
  const Term before = constant(Ints(blocks.pads.begin(), blocks.pads.begin() + dims));
  const Term padded = sizes + before + constant(Ints(blocks.pads.begin() + dims, blocks.pads.end()));
  const Term strides = constant(blocks.strides), dilations = constant(blocks.dilations);
  const Term extent = (sides - 1) * dilations + 1;
  const Term windows = f.apply(ops::kFloorDivide, {padded - extent, strides}) + 1;
  const Term elements = sides.reduce(ops::kProd, {0}, true), count = windows.reduce(ops::kProd, {0}, true);
  // The index of each element [block, windows] in the padded image, from the last dim to the first.
  Term element = f.range(f.integers(elements)).expand_dims({1}), window = f.range(f.integers(count)).expand_dims({0});
  Term index = f.scalar(0, DType::kI64), factor = one;
  for (int64_t d = dims - 1; d >= 0; --d) {
    const auto digit = [&](Term& value, const Term& radix) {
      const Term quotient = f.apply(ops::kFloorDivide, {value, radix}), result = value - quotient * radix;
      value = quotient;
      return result;
    };
    const Term position =
        digit(element, at(sides, d)) * at(dilations, d) + digit(window, at(windows, d)) * at(strides, d);
    index = index + position * factor;
    factor = factor * at(padded, d);
  }
  const Term outer = f.apply(ops::kShapeOf, {x}).slice(0, 0, 1), any = constant({-1});
  const auto reshaped = [&](const Term& y, const std::vector<Term>& shape) {
    OperatorAttributes attrs;
    attrs.set("shape", f.integers(compiler::concat(shape, 0)));
    return f.apply_computed(ops::kReshape, {y}, attrs);
  };
  // The updates [block * windows, N, C] are added to zeros [image, N, C].
  const Term updates =
      reshaped(reshaped(x, {outer, any, elements, count}).transpose({2, 3, 0, 1}), {elements * count, outer, any});
  const Term channels = f.apply(ops::kShapeOf, {updates}).slice(0, 2, 3);
  OperatorAttributes zeros;
  zeros.set("shape", f.integers(compiler::concat({factor, outer, channels}, 0)));
  const Term base = f.apply_computed(ops::kBroadcastTo, {f.scalar(0, x.dtype())}, zeros);
  const Term sums =
      f.apply(ops::kScatterNd, {base, index.reshape({-1, 1}), updates}, {{"reduction", std::string("add")}});
  const Term y = reshaped(sums.transpose({1, 2, 0}), {outer, channels, padded});
  OperatorAttributes inner(Attrs{{"step", Ints(static_cast<size_t>(dims) + 2, 1)}});
  inner.set("begin", f.integers(compiler::concat({constant({0, 0}), before}, 0)));
  inner.set("end", f.integers(compiler::concat({outer, channels, before + sizes}, 0)));
  return f.result(f.apply_computed(ops::kSlice, {y}, inner));
}

// Blocks [N, C * block, windows], each window's block added to an image.
Status col2im(NodeImport& node) {
  TENON_TRY_ASSIGN(image, Integers::input(node, 1, "the size of the image"));
  TENON_TRY_ASSIGN(block, Integers::input(node, 2, "the size of a block"));
  const size_t dims = block->size();
  if (dims < 1 || dims > 3 || image->size() != dims) return node.fail("one to three spatial dims are supported");
  TENON_TRY_ASSIGN(blocks, image_blocks_of(node, dims));
  const auto image_size = image->constants(), block_size = block->constants();
  TENON_TRY_ASSIGN(x, node.type(0));
  const bool convolves = runtime::kReals.contains(x->dtype) && x->rank() == 3 && x->dims[1].constant();
  if (image_size && block_size && convolves) return col2im_by_convolution(node, *blocks, *image_size, *block_size);
  return col2im_by_scatter(node, *blocks, *image, *block);
}

// A convolution each of whose elements reads x at its own offset, by grid_sample: [N, C, kernel, H', W'] of samples,
// times the weights.
Status deformed_convolution(NodeImport& node) {
  NodeFormula f(node);
  // Coordinates of floats of 2 bytes would be off by parts of an element.
  const DType dtype = f.input(0).dtype(), exact = dtype == DType::kF64 ? dtype : DType::kF32;
  const Term x = f.input(0).cast(exact), w = f.input(1).cast(exact), offset = f.input(2).cast(exact);
  if (x.rank() != 4 || w.rank() != 4 || offset.rank() != 4) return node.fail("only images of two dims are supported");
  TENON_TRY_ASSIGN(strides, node.list("strides", Ints{1, 1}));
  TENON_TRY_ASSIGN(dilations, node.list("dilations", Ints{1, 1}));
  TENON_TRY_ASSIGN(pads, node.list("pads", Ints{0, 0, 0, 0}));
  TENON_TRY_ASSIGN(groups, node.integer("group", 1));
  TENON_TRY_ASSIGN(fields, node.integer("offset_group", 1));
  const int64_t channels = f.known_size(x, 1, "the number of channels"), height = f.known_size(x, 2, "the height"),
                width = f.known_size(x, 3, "the width"), outputs = f.known_size(w, 0, "the number of outputs"),
                rows = f.known_size(w, 2, "the kernel"), columns = f.known_size(w, 3, "the kernel"),
                out_height = f.known_size(offset, 2, "the height"), out_width = f.known_size(offset, 3, "the width");
  TENON_TRY_ASSIGN(kernel, node.list("kernel_shape", Ints{rows, columns}));
  f.expect(*kernel == Ints({rows, columns}), "kernel_shape is not the weight's");
  f.expect(strides->size() == 2 && dilations->size() == 2 && pads->size() == 4, "two strides and dilations, four pads");
  f.expect(*groups > 0 && *fields > 0 && channels % std::max<int64_t>(*fields, 1) == 0 &&
               channels % std::max<int64_t>(*groups, 1) == 0,
           fmt::format("{} channels are no multiple of {} groups and {} offset groups", channels, *groups, *fields));
  const int64_t elements = rows * columns, points = out_height * out_width;
  TENON_TRY(check_sizes(node, {rows, columns, out_height, out_width}, "the kernel and the result"));
  if (!f.ok()) return f.status();
  // Coordinates of the regular convolution, [1, elements, H', W', 1] for y and x.
  std::vector<double> ys, xs;
  for (int64_t i = 0; i < elements * points; ++i) {
    const int64_t column = i % out_width, row = i / out_width % out_height, element = i / points;
    ys.push_back(static_cast<double>(row * (*strides)[0] - (*pads)[0] + element / columns * (*dilations)[0]));
    xs.push_back(static_cast<double>(column * (*strides)[1] - (*pads)[1] + element % columns * (*dilations)[1]));
  }
  const runtime::Shape shape{1, elements, out_height, out_width, 1};
  const Term moves = offset.reshape({-1, elements, 2, out_height, out_width}).transpose({0, 1, 3, 4, 2});
  const auto coordinate = [&](int64_t part, const std::vector<double>& base) {
    return moves.slice(4, part, part + 1) + f.real_constant(shape, base, x.dtype());
  };
  const Term grid = compiler::concat({coordinate(1, xs), coordinate(0, ys)}, 4);
  const Term maps = x.reshape({-1, channels / *fields, height, width});
  Term samples = f.apply(ops::kGridSample, {maps, grid.reshape({-1, elements * out_height, out_width, 2})},
                         {{"normalized", int64_t{0}}});
  if (node.has_input(4)) samples = samples * f.input(4).cast(exact).reshape({-1, 1, elements * out_height, out_width});
  const Term result = matmul(w.reshape({*groups, outputs / *groups, channels / *groups * elements}),
                             samples.reshape({-1, *groups, channels / *groups * elements, points}))
                          .reshape({-1, outputs, out_height, out_width});
  const Term biased = node.has_input(3) ? f.apply(ops::kBiasAdd, {result, f.input(3).cast(exact)}) : result;
  return f.result(biased.cast(dtype));
}

// The elements of x at their indices in the larger map that a pool has read, zeros elsewhere. The indices count the
// elements of output_shape where it is given, as ONNX Runtime and PyTorch do, and not those of the map that
// kernel_shape, strides and pads define, as the text of ONNX's operator has it.
Status max_unpool(NodeImport& node) {
  TENON_TRY_ASSIGN(kernel, node.list("kernel_shape"));
  const size_t dims = kernel->size();
  TENON_TRY_ASSIGN(strides, node.list("strides", Ints(dims, 1)));
  TENON_TRY_ASSIGN(pads, node.list("pads", Ints(2 * dims, 0)));
  NodeFormula f(node);
  const Term x = f.input(0);
  f.expect(x.rank() == static_cast<int64_t>(dims) + 2 && strides->size() == dims && pads->size() == 2 * dims,
           fmt::format("kernel_shape, strides and pads do not fit {} dims", x.rank()));
  if (!f.ok()) return f.status();
  Context& context = node.context();
  Dims shape = x.dims();
  for (size_t d = 0; d < dims; ++d) {
    f.expect((*strides)[d] >= 1 && (*strides)[d] <= kMaxWindow && (*kernel)[d] >= 1 && (*kernel)[d] <= kMaxWindow &&
                 (*pads)[d] >= 0 && (*pads)[d] <= kMaxWindow && (*pads)[dims + d] >= 0 &&
                 (*pads)[dims + d] <= kMaxWindow,
             "kernel_shape and strides must be in 1 .. 2^20, pads in 0 .. 2^20");
    if (!f.ok()) return f.status();
    const Dim steps = context.multiply(context.subtract(shape[d + 2], context.dim(1)), context.dim((*strides)[d]));
    shape[d + 2] = context.add(steps, context.dim((*kernel)[d] - (*pads)[d] - (*pads)[dims + d]));
  }
  Integers sizes(shape.size(), f.proved_sizes(shape), std::nullopt);
  if (node.has_input(2)) {
    TENON_TRY_ASSIGN(given, Integers::input(node, 2, "the shape of the result"));
    f.expect(given->size() == shape.size(), "the shape of the result must have the rank of x");
    if (!f.ok()) return f.status();
    sizes = *given;
  }
  if (const auto known = sizes.constants()) TENON_TRY(check_sizes(node, *known, "the shape of the result"));
  OperatorAttributes zeros;
  zeros.set("shape", sizes);
  const Term map = f.apply_computed(ops::kBroadcastTo, {f.scalar(0, x.dtype())}, zeros);
  const Term filled = f.apply(ops::kScatterElements, {map.reshape({-1}), f.input(1).reshape({-1}), x.reshape({-1})});
  OperatorAttributes attrs;
  attrs.set("shape", sizes);
  return f.result(f.apply_computed(ops::kReshape, {filled}, attrs));
}

// The elements of one axis that belong to each of `bins` bins of a region from `first` to `last`, [R, bins, size].
Term elements_of_bins(const Term& first, const Term& last, int64_t bins, const Term& x, int64_t axis) {
  NodeFormula& f = formula_of(x);
  const Term one = f.scalar(1, x.dtype());
  const Term bin = f.range(Integers::of(f.node().context(), {bins})).cast(x.dtype()).expand_dims({0, 2});
  const Term begin = first.expand_dims({1, 2}), end = last.expand_dims({1, 2});
  const Term width = f.apply(ops::kMaximum, {end - begin + 1, one}) / static_cast<double>(bins);
  const Term at = f.positions(x, axis).reshape({1, 1, -1}).cast(x.dtype());
  return both(less_equal(f.apply(ops::kFloor, {bin * width}) + begin, at),
              less(at, f.apply(ops::kCeil, {(bin + 1) * width}) + begin));
}

// The maxima of the bins of regions [R, 5] (image, left, top, right, bottom) of x [N, C, H, W]; 0 in an empty bin
// (Girshick, Fast R-CNN, 2015, section 2.1).
Status max_roi_pool(NodeImport& node) {
  TENON_TRY_ASSIGN(pooled, node.list("pooled_shape"));
  TENON_TRY_ASSIGN(scale, node.real("spatial_scale", 1.0));
  if (pooled->size() != 2) return node.fail(fmt::format("pooled_shape has {} elements, must have 2", pooled->size()));
  TENON_TRY(check_sizes(node, *pooled, "pooled_shape"));
  NodeFormula f(node);
  const DType dtype = f.input(0).dtype(), exact = dtype == DType::kF64 ? dtype : DType::kF32;
  const Term x = f.input(0).cast(exact), regions = f.input(1).cast(exact);
  f.expect(x.rank() == 4 && regions.rank() == 2 && regions.size(1).value_or(5) == 5,
           "requires images of two dims and regions of five elements");
  const auto corner = [&](int64_t i) {
    return f.apply(ops::kFloor, {regions.slice(1, i, i + 1).squeeze({1}) * *scale + 0.5});
  };
  const Term images = gather(x, regions.slice(1, 0, 1).squeeze({1}).cast(DType::kI64), 0);  // [R, C, H, W]
  const Term rows = elements_of_bins(corner(2), corner(4), (*pooled)[0], x, 2);             // [R, h, H]
  const Term columns = elements_of_bins(corner(1), corner(3), (*pooled)[1], x, 3);          // [R, w, W]
  const Term none = f.scalar(-std::numeric_limits<double>::infinity(), exact), zero = f.scalar(0, exact);
  const Term of_rows = select(rows.expand_dims({1, 4}), images.expand_dims({2}), none).reduce(ops::kMax, {3});
  const Term maxima =
      select(columns.expand_dims({1, 2}), of_rows.expand_dims({3}), none).reduce(ops::kMax, {4});  // [R, C, h, w]
  const Term filled =
      both(rows.reduce(ops::kAny, {2}).expand_dims({1, 3}), columns.reduce(ops::kAny, {2}).expand_dims({1, 2}));
  return f.result(select(filled, maxima, zero).cast(dtype));
}

}  // namespace

std::span<const Converter> vision_converters() {
  static constexpr Converter kTable[] = {
      {"AffineGrid", 2, 2, affine_grid},  {"CenterCropPad", 2, 2, center_crop_pad},
      {"Col2Im", 3, 3, col2im},           {"DeformConv", 3, 5, deformed_convolution},
      {"MaxRoiPool", 2, 2, max_roi_pool}, {"MaxUnpool", 2, 3, max_unpool},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
