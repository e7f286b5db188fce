// Converters of ONNX's layers: convolutions, pools, products, normalizations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/frontend/onnx_expression.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;

struct Windows {
  Ints kernel, strides, padding, dilation;
  std::string auto_pad;
};

// The attributes that convolutions and pools share, for `rank` spatial dims.
Expected<Windows> windows(NodeImport& node, Ints kernel) {
  TENON_TRY_ASSIGN(type, node.type(0));
  const size_t rank = kernel.size();
  if (rank < 1 || rank > 3 || type->dims.size() != rank + 2) {
    return node.fail(fmt::format("one to three spatial dims are supported, the input is {}, the kernel [{}]",
                                 node.builder().context().str(type->dims), fmt::join(kernel, ", ")));
  }
  Windows w;
  w.kernel = std::move(kernel);
  TENON_TRY_ASSIGN(strides, node.list("strides", Ints(rank, 1)));
  TENON_TRY_ASSIGN(dilation, node.list("dilations", Ints(rank, 1)));
  TENON_TRY_ASSIGN(pads, node.list("pads", Ints(2 * rank, 0)));
  TENON_TRY_ASSIGN(auto_pad, node.string("auto_pad", "NOTSET"));
  w.strides = *strides, w.dilation = *dilation, w.padding = *pads, w.auto_pad = *auto_pad;
  if (w.strides.size() != rank || w.dilation.size() != rank || w.padding.size() != 2 * rank) {
    return node.fail(fmt::format("strides and dilations require {} values and pads {}, found [{}], [{}], [{}]", rank,
                                 2 * rank, fmt::join(w.strides, ", "), fmt::join(w.dilation, ", "),
                                 fmt::join(w.padding, ", ")));
  }
  // The padding is computed from these values, so they are bounded.
  const bool computed = w.auto_pad.starts_with("SAME") || node.has("output_shape");
  for (size_t axis = 0; axis < rank && computed; ++axis) {
    if (w.strides[axis] < 1 || w.kernel[axis] < 1 || w.dilation[axis] < 1 || w.strides[axis] > kMaxWindow ||
        w.kernel[axis] > kMaxWindow || w.dilation[axis] > kMaxWindow) {
      return node.fail("kernel, strides and dilations must be in 1 .. 2^20");
    }
  }
  if (w.auto_pad == "NOTSET") return w;
  w.padding.assign(2 * rank, 0);
  if (w.auto_pad != "VALID" && w.auto_pad != "SAME_UPPER" && w.auto_pad != "SAME_LOWER") {
    return node.fail(fmt::format("auto_pad '{}' is not supported", w.auto_pad));
  }
  return w;
}

// Splits `total` elements of padding, with an odd element at the end or at the beginning.
void pad(Windows& w, size_t axis, int64_t total, bool upper) {
  const int64_t small = total / 2, large = total - small;
  w.padding[axis] = upper ? small : large;
  w.padding[axis + w.kernel.size()] = total - w.padding[axis];
}

// The padding of auto_pad: SAME_UPPER and SAME_LOWER give ceil(size / stride) windows.
Expected<Windows> same_windows(NodeImport& node, Ints kernel) {
  TENON_TRY_ASSIGN(w, windows(node, std::move(kernel)));
  TENON_TRY_ASSIGN(type, node.type(0));
  if (!w->auto_pad.starts_with("SAME")) return *w;
  for (size_t axis = 0; axis < w->kernel.size(); ++axis) {
    const auto size = type->dims[2 + axis].constant();
    if (!size) return node.fail("auto_pad over an unknown size", "bind it, as --shapes H=224,W=224");
    const int64_t steps = (*size + w->strides[axis] - 1) / w->strides[axis];
    const int64_t extent = (w->kernel[axis] - 1) * w->dilation[axis] + 1;
    pad(*w, axis, std::max<int64_t>((steps - 1) * w->strides[axis] + extent - *size, 0), w->auto_pad == "SAME_UPPER");
  }
  return *w;
}

// The elements of the windows as indices in a map of these sizes, [windows, elements of the kernel]. An element outside
// of the map is replaced by the first inside, which does not change the maximum or its first index.
runtime::Tensor window_indices(const Ints& sizes, const Ints& counts, const Windows& w) {
  const size_t rank = sizes.size();
  const auto count = [](const Ints& list) { return runtime::element_count(list); };
  runtime::Tensor indices(DType::kI64, {count(counts), count(w.kernel)});
  const auto data = indices.data<int64_t>();
  for (int64_t window = 0; window < count(counts); ++window) {
    std::optional<int64_t> first;
    std::vector<size_t> outside;
    for (int64_t element = 0; element < count(w.kernel); ++element) {
      int64_t index = 0, scale = 1, origin = window, offset = element;
      bool inside = true;
      for (size_t d = rank; d-- > 0;) {
        const int64_t at = origin % counts[d] * w.strides[d] - w.padding[d] + offset % w.kernel[d] * w.dilation[d];
        inside &= at >= 0 && at < sizes[d];
        index += at * scale, scale *= sizes[d];
        origin /= counts[d], offset /= w.kernel[d];
      }
      const auto position = static_cast<size_t>(window * count(w.kernel) + element);
      if (inside) data[position] = index;
      else outside.push_back(position);
      if (inside && !first) first = index;
    }
    for (const size_t position : outside) data[position] = first.value_or(0);
  }
  return indices;
}

// Whether a constant of these sizes, of i64, is larger than a module should hold.
bool has_many_elements(const Ints& sizes) {
  constexpr int64_t kMostBytes = 128 << 20;
  const auto bytes = runtime::checked_bytes(DType::kI64, sizes);
  return !bytes || *bytes > kMostBytes;
}

// Output 1 of MaxPool: the index of each maximum in x as a flat tensor, by rows or (storage_order 1) by columns.
Status max_pool_indices(NodeImport& node, const Windows& w, const Term& y) {
  TENON_TRY_ASSIGN(by_columns, node.integer("storage_order", 0));
  OnnxFormula& f = formula_of(y);
  const Term x = f.input(0);
  const int64_t batch = f.known_size(x, 0, "the batch"), channels = f.known_size(x, 1, "the number of channels");
  Ints sizes, counts, transposed{0, 1}, shape{batch, channels};
  for (int64_t d = 2; d < x.rank(); ++d) {
    sizes.push_back(f.known_size(x, d, "a size of x"));
    counts.push_back(f.known_size(y, d, "a size of the result"));
    transposed.push_back(x.rank() + 1 - d);
  }
  if (!f.ok()) return f.status();
  const int64_t elements = runtime::element_count(sizes);
  Ints elements_of_all = counts;
  elements_of_all.insert(elements_of_all.end(), w.kernel.begin(), w.kernel.end());
  if (has_many_elements(elements_of_all)) return node.fail("the indices of so many windows are not supported");
  if (has_many_elements({batch, channels})) return node.fail("the indices of so many maps are not supported");
  const runtime::Tensor elements_of_windows = window_indices(sizes, counts, w);
  const Term values = gather(x.reshape({batch, channels, elements}), f.constant(elements_of_windows), 2);
  const Term best = f.apply(ops::kArgMax, {values}, {{"axis", int64_t{3}}});  // [N, C, windows]
  // The maxima's elements as indices in the map, by the row of `elements_of_windows` of their window.
  const int64_t count = runtime::element_count(w.kernel);
  Term flat = gather(f.constant(elements_of_windows).reshape({-1}),
                     best + f.positions(best, 2) * static_cast<double>(count), 0);
  if (*by_columns && sizes.size() == 2) {
    const Term width = f.scalar(static_cast<double>(sizes[1]), DType::kI64);
    flat = f.apply(ops::kRemainder, {flat, width}) * static_cast<double>(sizes[0]) +
           f.apply(ops::kFloorDivide, {flat, width});
  }
  runtime::Tensor maps(DType::kI64, {batch, channels, 1});
  for (int64_t i = 0; i < batch * channels; ++i) maps.data<int64_t>()[static_cast<size_t>(i)] = i * elements;
  shape.insert(shape.end(), counts.begin(), counts.end());
  return f.results({std::nullopt, (flat + f.constant(std::move(maps))).reshape(shape)});
}

// The kernel's sizes, from the weight's shape; `kernel_shape` may repeat them.
Expected<Ints> kernel_of(NodeImport& node, Atom w) {
  const Dims& dims = node.builder().tensor_type(w)->dims;
  Ints kernel;
  for (size_t i = 2; i < dims.size(); ++i) kernel.push_back(dims[i].constant().value_or(-1));
  TENON_TRY_ASSIGN(stated, node.list("kernel_shape", kernel));
  if (*stated == kernel) return kernel;
  return node.fail(fmt::format("kernel_shape [{}] is not the weight's {}", fmt::join(*stated, ", "),
                               node.builder().context().str(dims)));
}

Status with_bias(NodeImport& node, Expected<Atom> product) {
  if (!product || !node.has_input(2)) return node.result(std::move(product));
  TENON_TRY_ASSIGN(bias, node.input(2));
  return node.result(node.apply(ops::kBiasAdd, {*product, *bias}));
}

Status conv(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(w, node.input(1));
  TENON_TRY_ASSIGN(product, onnx_convolution(node, *x, *w));
  return with_bias(node, *product);
}

// auto_pad and output_shape define how much of the full result is cropped.
Status conv_transpose(NodeImport& node) {
  TENON_TRY_ASSIGN(w, node.input(1));
  TENON_TRY_ASSIGN(kernel, kernel_of(node, *w));
  TENON_TRY_ASSIGN(windows, tenon::compiler::windows(node, *kernel));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(groups, node.integer("group", 1));
  const size_t rank = kernel->size();
  TENON_TRY_ASSIGN(more, node.list("output_padding", Ints(rank, 0)));
  TENON_TRY_ASSIGN(shape, node.list("output_shape", Ints{}));
  if (more->size() != rank || (!shape->empty() && shape->size() != rank)) {
    return node.fail(fmt::format("output_padding and output_shape require {} values", rank));
  }
  const bool same = windows->auto_pad.starts_with("SAME");
  for (size_t axis = 0; axis < rank && (same || !shape->empty()); ++axis) {
    const auto size = type->dims[2 + axis].constant();
    if (!size) return node.fail("auto_pad or output_shape over an unknown size", "bind it, as --shapes H=224,W=224");
    const int64_t wanted = shape->empty() ? *size * windows->strides[axis] : (*shape)[axis];
    const int64_t extent = (windows->kernel[axis] - 1) * windows->dilation[axis] + 1;
    const int64_t total = (*size - 1) * windows->strides[axis] + extent + (*more)[axis] - wanted;
    if (total < 0) (*more)[axis] -= total;
    pad(*windows, axis, std::max<int64_t>(total, 0), windows->auto_pad == "SAME_UPPER");
  }
  constexpr std::array kTransposed{ops::kConv1dTranspose, ops::kConv2dTranspose, ops::kConv3dTranspose};
  return with_bias(node, node.apply(kTransposed[rank - 1], {0, 1},
                                    {{"strides", windows->strides},
                                     {"padding", windows->padding},
                                     {"dilation", windows->dilation},
                                     {"output_padding", *more},
                                     {"groups", *groups}}));
}

template <OperatorId op_1d, OperatorId op_2d, OperatorId op_3d>
Expected<Atom> pooled(NodeImport& node, Atom x) {
  TENON_TRY_ASSIGN(kernel, node.list("kernel_shape"));
  TENON_TRY_ASSIGN(windows, same_windows(node, *kernel));
  TENON_TRY_ASSIGN(ceil, node.integer("ceil_mode", 0));
  Attrs attrs{{"kernel", windows->kernel},
              {"strides", windows->strides},
              {"padding", windows->padding},
              {"dilation", windows->dilation},
              {"ceil", *ceil}};
  if (op_1d == ops::kAvgPool1d) {
    TENON_TRY_ASSIGN(count, node.integer("count_include_pad", 0));
    attrs.emplace("count_include_pad", *count);
  } else if (op_1d == ops::kLpPool1d) {
    TENON_TRY_ASSIGN(power, node.integer("p", 2));
    attrs.emplace("p", *power);
  }
  constexpr std::array kPools{op_1d, op_2d, op_3d};
  return node.apply(kPools[kernel->size() - 1], Atoms{x}, std::move(attrs));
}

template <OperatorId op_1d, OperatorId op_2d, OperatorId op_3d>
Status pool(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(y, pooled<op_1d, op_2d, op_3d>(node, *x));
  TENON_TRY(node.result(*y));
  if (op_1d != ops::kMaxPool1d || node.node().outputs.size() < 2) return {};
  TENON_TRY_ASSIGN(kernel, node.list("kernel_shape"));
  TENON_TRY_ASSIGN(windows, same_windows(node, *kernel));
  OnnxFormula f(node);
  return max_pool_indices(node, *windows, {f, *y});
}

Status global_lp_pool(NodeImport& node) {
  TENON_TRY_ASSIGN(power, node.integer("p", 2));
  return node.result(node.apply(ops::kGlobalLpPool, {0}, {{"p", *power}}));
}

// alpha * A' * B' + beta * C
Status gemm(NodeImport& node) {
  TENON_TRY_ASSIGN(a, node.input(0));
  TENON_TRY_ASSIGN(b, node.input(1));
  TENON_TRY_ASSIGN(alpha, node.real("alpha", 1.0));
  TENON_TRY_ASSIGN(beta, node.real("beta", 1.0));
  TENON_TRY_ASSIGN(trans_a, node.integer("transA", 0));
  TENON_TRY_ASSIGN(trans_b, node.integer("transB", 0));
  if (*trans_a) {
    a = node.apply(ops::kTranspose, {*a}, {{"axes", Ints{1, 0}}});
    if (!a) return std::unexpected(a.error());
  }
  if (!*trans_b) {
    b = node.apply(ops::kTranspose, {*b}, {{"axes", Ints{1, 0}}});
    if (!b) return std::unexpected(b.error());
  }
  TENON_TRY_ASSIGN(product, node.apply(ops::kDense, {*a, *b}));
  auto scaled = [&](Atom atom, double factor) -> Expected<Atom> {
    if (factor == 1.0) return atom;
    TENON_TRY_ASSIGN(constant, node.constant(runtime::Tensor::of<float>({}, std::array{static_cast<float>(factor)})));
    return node.apply(ops::kMultiply, {atom, *constant});
  };
  TENON_TRY_ASSIGN(left, scaled(*product, *alpha));
  if (!node.has_input(2)) return node.result(left);
  TENON_TRY_ASSIGN(c, node.input(2));
  TENON_TRY_ASSIGN(bias_type, node.type(2));
  TENON_TRY_ASSIGN(right, scaled(*c, *beta));
  const TensorType* type = node.builder().tensor_type(*left);
  const bool vector = bias_type->dims.size() == 1 && bias_type->dims[0] == type->dims[1];
  return node.result(node.apply(vector ? ops::kBiasAdd : ops::kAdd, {*left, *right}));
}

// A vector is treated as a matrix of one row or column, which is removed from the result.
Status matmul(NodeImport& node) {
  TENON_TRY_ASSIGN(a, node.input(0));
  TENON_TRY_ASSIGN(b, node.input(1));
  TENON_TRY_ASSIGN(a_type, node.type(0));
  TENON_TRY_ASSIGN(b_type, node.type(1));
  Ints gone;
  if (a_type->rank() == 1) {
    a = node.apply(ops::kExpandDims, {*a}, {{"axes", Ints{0}}});
    if (!a) return std::unexpected(a.error());
    gone.push_back(-2);
  }
  if (b_type->rank() == 1) {
    b = node.apply(ops::kExpandDims, {*b}, {{"axes", Ints{1}}});
    if (!b) return std::unexpected(b.error());
    gone.push_back(-1);
  }
  TENON_TRY_ASSIGN(product, node.apply(ops::kMatmul, {*a, *b}));
  return node.result(gone.empty() ? product : node.apply(ops::kSqueeze, {*product}, {{"axes", gone}}));
}

Status einsum(NodeImport& node) {
  TENON_TRY_ASSIGN(args, node.all_inputs());
  TENON_TRY_ASSIGN(equation, node.string("equation", ""));
  return node.result(node.apply(ops::kEinsum, std::move(*args), {{"equation", *equation}}));
}

// By the statistics of the batch; outputs 1 and 2 are those of the inputs 3 and 4, moved towards them.
Status train_batch_normalization(NodeImport& node, double epsilon) {
  TENON_TRY_ASSIGN(momentum, node.real("momentum", 0.9));
  OnnxFormula f(node);
  const Term x = f.input(0);
  Ints axes{0};
  for (int64_t i = 2; i < x.rank(); ++i) axes.push_back(i);
  const Term mean = x.reduce(ops::kMean, axes), centered = x - x.reduce(ops::kMean, axes, true);
  const Term variance = (centered * centered).reduce(ops::kMean, axes);
  const auto moved = [&](const Term& from, const Term& to) {
    return from * *momentum + to.cast(from.dtype()) * (1 - *momentum);
  };
  const Term y = f.apply(ops::kBatchNorm, {x, f.input(1), f.input(2), mean, variance}, {{"epsilon", epsilon}});
  return f.results({y, moved(f.input(3), mean), moved(f.input(4), variance)});
}

Status batch_normalization(NodeImport& node) {
  Atoms args;
  for (size_t i = 0; i < 5; ++i) {
    TENON_TRY_ASSIGN(arg, node.input(i));
    args.push_back(*arg);
  }
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-5));
  TENON_TRY_ASSIGN(training, node.integer("training_mode", 0));
  TENON_TRY_ASSIGN(spatial, node.integer("spatial", 1));
  if (!*spatial) return node.fail("statistics of each element are not supported", "export the model for inference");
  if (*training) return train_batch_normalization(node, *epsilon);
  return node.result(node.apply(ops::kBatchNorm, std::move(args), {{"epsilon", *epsilon}}));
}

// Outputs 1 and 2 of LayerNormalization: the mean over the axes from `axis` on, and 1 over the deviation.
Status row_statistics(NodeImport& node, int64_t axis, double epsilon) {
  OnnxFormula f(node);
  const Term x = f.input(0);
  Ints axes;
  for (int64_t i = axis < 0 ? axis + x.rank() : axis; i < x.rank(); ++i) axes.push_back(i);
  const Term mean = x.reduce(ops::kMean, axes, true), centered = x - mean;
  const Term variance = (centered * centered).reduce(ops::kMean, axes, true);
  return f.results({std::nullopt, mean, f.apply(ops::kRsqrt, {variance + epsilon})});
}

Status layer_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(scale, node.input(1));
  TENON_TRY_ASSIGN(axis, node.integer("axis", -1));
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-5));
  TENON_TRY_ASSIGN(stash, node.integer("stash_type", 1));
  (void)stash;  // the dtype of the sums; the operator uses the dtype of x
  TENON_TRY_ASSIGN(type, node.type(1));
  const auto shape = type->shape();
  if (!node.has_input(2) && !shape) return node.fail("the scale's sizes must be known where there is no bias");
  TENON_TRY_ASSIGN(bias, node.has_input(2) ? node.input(2) : node.zeros(type->dtype, *shape));
  TENON_TRY(node.result(node.apply(ops::kLayerNorm, {*x, *scale, *bias}, {{"axis", *axis}, {"epsilon", *epsilon}})));
  return node.node().outputs.size() > 1 ? row_statistics(node, *axis, *epsilon) : Status();
}

Status instance_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-5));
  return node.result(node.apply(ops::kInstanceNorm, {0, 1, 2}, {{"epsilon", *epsilon}}));
}

Status group_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-5));
  TENON_TRY_ASSIGN(groups, node.integer("num_groups"));
  TENON_TRY_ASSIGN(stash, node.integer("stash_type", 1));
  (void)stash;
  TENON_TRY_ASSIGN(x, node.type(0));
  if (node.opset() < 21 && (x->rank() < 2 || x->dims[1].constant() != *groups)) {
    return node.fail("group normalization with one scale per group is not supported",
                     "convert the model to opset 21 or later");
  }
  return node.result(node.apply(ops::kGroupNorm, {0, 1, 2}, {{"groups", *groups}, {"epsilon", *epsilon}}));
}

Status rms_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-5));
  TENON_TRY_ASSIGN(axis, node.integer("axis", -1));
  TENON_TRY_ASSIGN(stash, node.integer("stash_type", 1));
  (void)stash;
  return node.result(node.apply(ops::kRmsNorm, {0, 1}, {{"axis", *axis}, {"epsilon", *epsilon}}));
}

Status lp_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(axis, node.integer("axis", -1));
  TENON_TRY_ASSIGN(power, node.integer("p", 2));
  return node.result(node.apply(ops::kLpNormalize, {0}, {{"axis", *axis}, {"p", *power}}));
}

Status local_response_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(attrs, node.reals_given({"alpha", "beta", "bias"}));
  TENON_TRY_ASSIGN(size, node.integer("size"));
  attrs->emplace("size", *size);
  return node.result(node.apply(ops::kLocalResponseNorm, {0}, std::move(*attrs)));
}

// (x - mean) / (deviation + 1e-9)
Status mean_variance_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(axes, node.list("axes", Ints{0, 2, 3}));
  const Attrs reduced{{"axes", *axes}, {"keep", int64_t{1}}};
  TENON_TRY_ASSIGN(mean, node.apply(ops::kMean, {*x}, reduced));
  TENON_TRY_ASSIGN(centered, node.apply(ops::kSubtract, {*x, *mean}));
  TENON_TRY_ASSIGN(square, node.apply(ops::kMultiply, {*centered, *centered}));
  TENON_TRY_ASSIGN(variance, node.apply(ops::kMean, {*square}, reduced));
  TENON_TRY_ASSIGN(deviation, node.apply(ops::kSqrt, {*variance}));
  TENON_TRY_ASSIGN(divisor, node.apply(ops::kAdd, {*deviation, node.scalar(1e-9, type->dtype)}));
  return node.result(node.apply(ops::kDivide, {*centered, *divisor}));
}

}  // namespace

Expected<Atom> onnx_convolution(NodeImport& node, Atom x, Atom w, const OnnxPadding& padded) {
  TENON_TRY_ASSIGN(kernel, kernel_of(node, w));
  TENON_TRY_ASSIGN(windows, same_windows(node, *kernel));
  TENON_TRY_ASSIGN(groups, node.integer("group", 1));
  if (Ints& padding = windows->padding; padded && std::ranges::any_of(padding, [](int64_t size) { return size > 0; })) {
    const auto middle = padding.begin() + static_cast<ptrdiff_t>(kernel->size());
    TENON_TRY_ASSIGN(wider, padded(x, Ints(padding.begin(), middle), Ints(middle, padding.end())));
    x = *wider;
    std::ranges::fill(padding, 0);
  }
  constexpr std::array kConvolutions{ops::kConv1d, ops::kConv2d, ops::kConv3d};
  return node.apply(kConvolutions[kernel->size() - 1], {x, w},
                    {{"strides", windows->strides},
                     {"padding", windows->padding},
                     {"dilation", windows->dilation},
                     {"groups", *groups}});
}

Expected<Atom> onnx_average_pool(NodeImport& node, Atom x) {
  return pooled<ops::kAvgPool1d, ops::kAvgPool2d, ops::kAvgPool3d>(node, x);
}

std::span<const OnnxConverter> onnx_layer_converters() {
  static constexpr OnnxConverter kTable[] = {
      {"AveragePool", 1, 1, pool<ops::kAvgPool1d, ops::kAvgPool2d, ops::kAvgPool3d>},
      {"BatchNormalization", 5, 5, batch_normalization},
      {"Conv", 2, 3, conv},
      {"ConvTranspose", 2, 3, conv_transpose},
      {"Einsum", 1, 4096, einsum},
      {"Det", 1, 1, convert_plain<ops::kDet>},
      {"Gemm", 2, 3, gemm},
      {"GlobalAveragePool", 1, 1, convert_plain<ops::kGlobalAvgPool>},
      {"GlobalLpPool", 1, 1, global_lp_pool},
      {"GlobalMaxPool", 1, 1, convert_plain<ops::kGlobalMaxPool>},
      {"GroupNormalization", 3, 3, group_normalization},
      {"InstanceNormalization", 3, 3, instance_normalization},
      {"LRN", 1, 1, local_response_normalization},
      {"LayerNormalization", 2, 3, layer_normalization},
      {"LpNormalization", 1, 1, lp_normalization},
      {"LpPool", 1, 1, pool<ops::kLpPool1d, ops::kLpPool2d, ops::kLpPool3d>},
      {"MatMul", 2, 2, matmul},
      {"MaxPool", 1, 1, pool<ops::kMaxPool1d, ops::kMaxPool2d, ops::kMaxPool3d>},
      {"MeanVarianceNormalization", 1, 1, mean_variance_normalization},
      {"RMSNormalization", 2, 2, rms_normalization},
  };
  return kTable;
}

}  // namespace tenon::compiler
