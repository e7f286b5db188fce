// Converters of ONNX's operators on images that are formulas of others: grids, blocks, deformed convolutions, crops.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/frontend/onnx_expression.h"

namespace tenon::compiler {
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

// The points of a regular grid over -1 .. 1, moved by theta [N, dims, dims + 1]: [N, ..., dims].
Status affine_grid(NodeImport& node) {
  TENON_TRY_ASSIGN(align, node.integer("align_corners", 0));
  TENON_TRY_ASSIGN(size, node.integers(1, "the size of the images"));
  if (size->size() != 4 && size->size() != 5) return node.fail("the size must have four or five elements");
  const Ints spatial(size->begin() + 2, size->end());
  TENON_TRY(check_sizes(node, spatial, "the size"));
  OnnxFormula f(node);
  const OnnxTerm theta = f.input(0);
  const auto dims = static_cast<int64_t>(spatial.size());
  const int64_t points = product(spatial);
  std::vector<double> grid(static_cast<size_t>((dims + 1) * points), 1.0);  // [dims + 1, points]: x, y, ..., 1
  for (int64_t point = 0; point < points; ++point) {
    int64_t remaining = point;
    for (int64_t d = dims - 1; d >= 0; --d) {
      const int64_t n = spatial[static_cast<size_t>(d)], at = remaining % n;
      remaining /= n;
      const double value = *align ? (n == 1 ? -1.0 : 2.0 * static_cast<double>(at) / static_cast<double>(n - 1) - 1)
                                  : (2.0 * static_cast<double>(at) + 1) / static_cast<double>(n) - 1;
      grid[static_cast<size_t>((dims - 1 - d) * points + point)] = value;
    }
  }
  const OnnxTerm moved = matmul(theta, f.real_constant({dims + 1, points}, grid, theta.dtype()));
  Ints shape{0};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  shape.push_back(dims);
  return f.result(moved.transpose({0, 2, 1}).reshape(shape));
}

Status center_crop_pad(NodeImport& node) {
  TENON_TRY_ASSIGN(sizes, node.integers(1, "the sizes"));
  OnnxFormula f(node);
  OnnxTerm x = f.input(0);
  Ints all;
  for (int64_t i = 0; i < x.rank(); ++i) all.push_back(i);
  TENON_TRY_ASSIGN(axes, node.list("axes", all));
  f.expect(axes->size() == sizes->size(), fmt::format("{} sizes for {} axes", sizes->size(), axes->size()));
  for (size_t i = 0; i < sizes->size() && f.ok(); ++i) {
    const int64_t axis = (*axes)[i], wanted = (*sizes)[i], given = f.known_size(x, axis, "a size of x");
    f.expect(wanted >= 0 && wanted <= kMaxPoints, fmt::format("the size {} is impossible", wanted));
    const int64_t less = (given - wanted) / 2, more = (wanted - given) / 2;
    if (wanted < given) x = x.slice(axis, less, less + wanted);
    if (wanted > given) x = x.pad(axis, more, wanted - given - more);
  }
  return f.result(x);
}

// Blocks [N, C * block, windows], each window's block added to an image: a transposed convolution of each channel whose
// weights copy every element of the block to its position.
Status col2im(NodeImport& node) {
  TENON_TRY_ASSIGN(image, node.integers(1, "the size of the image"));
  TENON_TRY_ASSIGN(block, node.integers(2, "the size of a block"));
  const size_t dims = block->size();
  if (dims < 1 || dims > 3 || image->size() != dims) return node.fail("one to three spatial dims are supported");
  TENON_TRY_ASSIGN(strides, node.list("strides", Ints(dims, 1)));
  TENON_TRY_ASSIGN(dilations, node.list("dilations", Ints(dims, 1)));
  TENON_TRY_ASSIGN(pads, node.list("pads", Ints(2 * dims, 0)));
  if (strides->size() != dims || dilations->size() != dims || pads->size() != 2 * dims) {
    return node.fail(fmt::format("strides and dilations require {} values and pads {}", dims, 2 * dims));
  }
  TENON_TRY(check_sizes(node, *image, "the image"));
  TENON_TRY(check_sizes(node, *block, "the block"));
  OnnxFormula f(node);
  const OnnxTerm x = f.input(0);
  const int64_t elements = product(*block), rows = f.known_size(x, 1, "the number of rows");
  f.expect(rows % elements == 0, fmt::format("{} rows are no multiple of a block of {}", rows, elements));
  Ints shape{0, 0}, kernel{rows, 1}, missing;
  for (size_t d = 0; d < dims && f.ok(); ++d) {
    const int64_t step = (*strides)[d], dilation = (*dilations)[d], before = (*pads)[d], after = (*pads)[dims + d];
    f.expect(step >= 1 && step <= kMaxWindow && dilation >= 1 && dilation <= kMaxWindow && before >= 0 &&
                 before <= kMaxWindow && after >= 0 && after <= kMaxWindow,
             "strides, dilations and pads must be in 0 .. 2^20");
    if (!f.ok()) break;
    const int64_t extent = (*block)[d] + ((*block)[d] - 1) * (dilation - 1);
    const int64_t windows = ((*image)[d] + before + after - extent) / step + 1;
    f.expect((*image)[d] + before + after >= extent, "a block is larger than the image");
    shape.push_back(windows);
    kernel.push_back((*block)[d]);
    missing.push_back((*image)[d] + before + after - (windows - 1) * step - extent);
  }
  if (!f.ok()) return f.status();
  TENON_TRY(check_sizes(node, kernel, "the weights of all channels"));
  runtime::Tensor weights(DType::kF32, kernel);
  for (int64_t row = 0; row < rows; ++row) {
    weights.data<float>()[static_cast<size_t>(row * elements + row % elements)] = 1;
  }
  constexpr std::array kTransposed{ops::kConv1dTranspose, ops::kConv2dTranspose, ops::kConv3dTranspose};
  return f.result(f.apply(kTransposed[dims - 1], {x.reshape(shape), f.constant(weights).cast(x.dtype())},
                          {{"strides", *strides},
                           {"padding", *pads},
                           {"dilation", *dilations},
                           {"output_padding", missing},
                           {"groups", rows / elements}}));
}

// A convolution each of whose elements reads x at its own offset, by grid_sample: [N, C, kernel, H', W'] of samples,
// times the weights.
Status deformed_convolution(NodeImport& node) {
  OnnxFormula f(node);
  const OnnxTerm x = f.input(0), w = f.input(1), offset = f.input(2);
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
  const OnnxTerm moves = offset.reshape({-1, elements, 2, out_height, out_width}).transpose({0, 1, 3, 4, 2});
  const auto coordinate = [&](int64_t part, const std::vector<double>& base, int64_t size) {
    const OnnxTerm at = moves.slice(4, part, part + 1) + f.real_constant(shape, base, x.dtype());
    return (at * 2 + 1) / static_cast<double>(size) - 1;
  };
  const OnnxTerm grid = compiler::concat({coordinate(1, xs, width), coordinate(0, ys, height)}, 4);
  const OnnxTerm maps = x.reshape({-1, channels / *fields, height, width});
  OnnxTerm samples = f.apply(ops::kGridSample, {maps, grid.reshape({-1, elements * out_height, out_width, 2})});
  if (node.has_input(4)) samples = samples * f.input(4).reshape({-1, 1, elements * out_height, out_width});
  const OnnxTerm result = matmul(w.reshape({*groups, outputs / *groups, channels / *groups * elements}),
                                 samples.reshape({-1, *groups, channels / *groups * elements, points}))
                              .reshape({-1, outputs, out_height, out_width});
  return f.result(node.has_input(3) ? f.apply(ops::kBiasAdd, {result, f.input(3)}) : result);
}

// The elements of x at their indices in the larger map that a pool has read, zeros elsewhere.
Status max_unpool(NodeImport& node) {
  TENON_TRY_ASSIGN(kernel, node.list("kernel_shape"));
  const size_t dims = kernel->size();
  TENON_TRY_ASSIGN(strides, node.list("strides", Ints(dims, 1)));
  TENON_TRY_ASSIGN(pads, node.list("pads", Ints(2 * dims, 0)));
  OnnxFormula f(node);
  const OnnxTerm x = f.input(0);
  f.expect(x.rank() == static_cast<int64_t>(dims) + 2 && strides->size() == dims && pads->size() == 2 * dims,
           fmt::format("kernel_shape, strides and pads do not fit {} dims", x.rank()));
  if (!f.ok()) return f.status();
  Ints shape{f.known_size(x, 0, "the batch"), f.known_size(x, 1, "the number of channels")};
  for (size_t d = 0; d < dims; ++d) {
    const int64_t size = f.known_size(x, static_cast<int64_t>(d) + 2, "a size of x");
    f.expect((*strides)[d] >= 1 && (*strides)[d] <= kMaxWindow && (*kernel)[d] >= 1 && (*kernel)[d] <= kMaxWindow &&
                 (*pads)[d] >= 0 && (*pads)[d] <= kMaxWindow && (*pads)[dims + d] >= 0 &&
                 (*pads)[dims + d] <= kMaxWindow,
             "kernel_shape and strides must be in 1 .. 2^20, pads in 0 .. 2^20");
    if (!f.ok()) return f.status();
    shape.push_back((size - 1) * (*strides)[d] - (*pads)[d] - (*pads)[dims + d] + (*kernel)[d]);
  }
  TENON_TRY(check_sizes(node, shape, "the result"));
  const OnnxTerm zeros = f.zeros(x.dtype(), {product(shape)});
  OnnxTerm y = f.apply(ops::kScatterElements, {zeros, f.input(1).reshape({-1}), x.reshape({-1})}).reshape(shape);
  if (node.has_input(2)) {  // a larger result, padded at the end
    TENON_TRY_ASSIGN(sizes, node.integers(2, "the shape of the result"));
    TENON_TRY(check_sizes(node, *sizes, "the shape of the result"));
    f.expect(sizes->size() == shape.size(), "the shape of the result must have the rank of x");
    for (size_t d = 0; d < shape.size() && f.ok(); ++d) {
      f.expect((*sizes)[d] >= shape[d],
               fmt::format("the shape [{}] of the result is too small", fmt::join(*sizes, ", ")));
      y = y.pad(static_cast<int64_t>(d), 0, (*sizes)[d] - shape[d]);
    }
  }
  return f.result(y);
}

}  // namespace

std::span<const OnnxConverter> onnx_vision_converters() {
  static constexpr OnnxConverter kTable[] = {
      {"AffineGrid", 2, 2, affine_grid},          {"CenterCropPad", 2, 2, center_crop_pad}, {"Col2Im", 3, 3, col2im},
      {"DeformConv", 3, 5, deformed_convolution}, {"MaxUnpool", 2, 3, max_unpool},
  };
  return kTable;
}

}  // namespace tenon::compiler
