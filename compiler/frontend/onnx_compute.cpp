// Converters of the ONNX operators that compute.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "compiler/frontend/onnx_node.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;

template <const char* op>
Status unary(NodeImport& node) {
  TENON_TAKE(x, node.input(0));
  return node.result(node.apply(op, {*x}));
}

template <const char* op>
Status binary(NodeImport& node) {
  TENON_TAKE(a, node.input(0));
  TENON_TAKE(b, node.input(1));
  return node.result(node.apply(op, {*a, *b}));
}

constexpr char kRelu[] = "relu", kSigmoid[] = "sigmoid", kTanh[] = "tanh", kIdentity[] = "identity";
constexpr char kAdd[] = "add", kSubtract[] = "subtract", kMultiply[] = "multiply", kDivide[] = "divide";
constexpr char kMatmul[] = "matmul", kGlobalAverage[] = "global_avg_pool";

struct Windows {
  Ints kernel, strides, padding, dilation;
};

// Attributes that convolutions and pools share, for two spatial dims.
Expected<Windows> windows(NodeImport& node, Ints kernel) {
  TENON_TAKE(type, node.type(0));
  if (type->dims.size() != 4) {
    return node.fail(
        fmt::format("only two spatial dims are supported, the input is {}", node.builder().context().str(type->dims)));
  }
  Windows w;
  w.kernel = std::move(kernel);
  TENON_TAKE(strides, node.list("strides", Ints{1, 1}));
  TENON_TAKE(dilation, node.list("dilations", Ints{1, 1}));
  TENON_TAKE(pads, node.list("pads", Ints{0, 0, 0, 0}));
  TENON_TAKE(auto_pad, node.string("auto_pad", "NOTSET"));
  w.strides = *strides, w.dilation = *dilation, w.padding = *pads;
  if (w.kernel.size() != 2 || w.strides.size() != 2 || w.dilation.size() != 2 || w.padding.size() != 4) {
    return node.fail(fmt::format("kernel, strides and dilations need 2 values and pads 4, found [{}], [{}], [{}], [{}]",
                                 fmt::join(w.kernel, ", "), fmt::join(w.strides, ", "), fmt::join(w.dilation, ", "),
                                 fmt::join(w.padding, ", ")));
  }
  if (*auto_pad == "NOTSET") return w;
  w.padding = {0, 0, 0, 0};
  if (*auto_pad == "VALID") return w;
  if (*auto_pad != "SAME_UPPER" && *auto_pad != "SAME_LOWER") {
    return node.fail(fmt::format("auto_pad '{}' is not known", *auto_pad));
  }
  for (int axis : {0, 1}) {
    const auto size = type->dims[2 + axis].constant();
    constexpr int64_t kMax = 1 << 20;
    if (!size) return node.fail("auto_pad over an unknown size", "bind it, as --shapes H=224,W=224");
    if (w.strides[axis] < 1 || w.kernel[axis] < 1 || w.dilation[axis] < 1 || w.strides[axis] > kMax ||
        w.kernel[axis] > kMax || w.dilation[axis] > kMax) {
      return node.fail("kernel, strides and dilations must be in 1 .. 2^20");
    }
    const int64_t steps = (*size + w.strides[axis] - 1) / w.strides[axis];
    const int64_t reach = (w.kernel[axis] - 1) * w.dilation[axis] + 1;
    const int64_t total = std::max<int64_t>((steps - 1) * w.strides[axis] + reach - *size, 0);
    const int64_t small = total / 2, large = total - small;
    w.padding[axis] = *auto_pad == "SAME_UPPER" ? small : large;
    w.padding[axis + 2] = total - w.padding[axis];
  }
  return w;
}

Status conv(NodeImport& node) {
  TENON_TAKE(x, node.input(0));
  TENON_TAKE(w, node.input(1));
  TENON_TAKE(weight, node.type(1));
  Ints kernel;
  for (size_t i = 2; i < weight->dims.size(); ++i) kernel.push_back(weight->dims[i].constant().value_or(-1));
  TENON_TAKE(stated, node.list("kernel_shape", kernel));
  if (*stated != kernel) {
    return node.fail(fmt::format("kernel_shape [{}] is not the weight's {}", fmt::join(*stated, ", "),
                                 node.builder().context().str(weight->dims)));
  }
  TENON_TAKE(windows, tenon::compiler::windows(node, kernel));
  TENON_TAKE(groups, node.integer("group", 1));
  TENON_TAKE(product, node.apply("conv2d", {*x, *w},
                                 {{"strides", windows->strides},
                                  {"padding", windows->padding},
                                  {"dilation", windows->dilation},
                                  {"groups", *groups}}));
  if (!node.has_input(2)) return node.result(product);
  TENON_TAKE(bias, node.input(2));
  return node.result(node.apply("bias_add", {*product, *bias}));
}

// alpha * A' * B' + beta * C
Status gemm(NodeImport& node) {
  TENON_TAKE(a, node.input(0));
  TENON_TAKE(b, node.input(1));
  TENON_TAKE(alpha, node.real("alpha", 1.0));
  TENON_TAKE(beta, node.real("beta", 1.0));
  TENON_TAKE(trans_a, node.integer("transA", 0));
  TENON_TAKE(trans_b, node.integer("transB", 0));
  if (*trans_a) {
    a = node.apply("transpose", {*a}, {{"axes", Ints{1, 0}}});
    if (!a) return std::unexpected(a.error());
  }
  if (!*trans_b) {
    b = node.apply("transpose", {*b}, {{"axes", Ints{1, 0}}});
    if (!b) return std::unexpected(b.error());
  }
  TENON_TAKE(product, node.apply("dense", {*a, *b}));
  auto scaled = [&](Atom atom, double factor) -> Expected<Atom> {
    if (factor == 1.0) return atom;
    TENON_TAKE(constant, node.constant(runtime::Tensor::of<float>({}, std::array{static_cast<float>(factor)})));
    return node.apply("multiply", {atom, *constant});
  };
  TENON_TAKE(left, scaled(*product, *alpha));
  if (!node.has_input(2)) return node.result(left);
  TENON_TAKE(c, node.input(2));
  TENON_TAKE(bias_type, node.type(2));
  TENON_TAKE(right, scaled(*c, *beta));
  const TensorType* type = node.builder().tensor_type(*left);
  const bool vector = bias_type->dims.size() == 1 && bias_type->dims[0] == type->dims[1];
  return node.result(node.apply(vector ? "bias_add" : "add", {*left, *right}));
}

// A bound of Clip: an attribute up to opset 10, an input from 11.
Expected<double> bound(NodeImport& node, size_t input, const std::string& attr, double fallback) {
  if (node.opset() < 11) return node.real(attr, fallback);
  if (!node.has_input(input)) return fallback;
  TENON_TAKE(tensor, node.constant(input, attr));
  if (tensor->dtype() != DType::kF32 || tensor->size() != 1) return node.fail(attr + " must be one f32");
  return static_cast<double>(tensor->data<float>()[0]);
}

Status clip(NodeImport& node) {
  TENON_TAKE(x, node.input(0));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  TENON_TAKE(lo, bound(node, 1, "min", -kInfinity));
  TENON_TAKE(hi, bound(node, 2, "max", kInfinity));
  return node.result(node.apply("clip", {*x}, {{"min", *lo}, {"max", *hi}}));
}

Status batch_normalization(NodeImport& node) {
  Atoms args;
  for (size_t i = 0; i < 5; ++i) {
    TENON_TAKE(arg, node.input(i));
    args.push_back(*arg);
  }
  TENON_TAKE(epsilon, node.real("epsilon", 1e-5));
  TENON_TAKE(training, node.integer("training_mode", 0));
  TENON_TAKE(spatial, node.integer("spatial", 1));
  if (*training || !*spatial) {
    return node.fail("batch normalization in training mode is not supported", "export the model for inference");
  }
  return node.result(node.apply("batch_norm", std::move(args), {{"epsilon", *epsilon}}));
}

template <bool average>
Status pool(NodeImport& node) {
  TENON_TAKE(x, node.input(0));
  TENON_TAKE(kernel, node.list("kernel_shape"));
  TENON_TAKE(windows, tenon::compiler::windows(node, *kernel));
  TENON_TAKE(ceil, node.integer("ceil_mode", 0));
  Attrs attrs{
      {"kernel", windows->kernel}, {"strides", windows->strides}, {"padding", windows->padding}, {"ceil", *ceil}};
  if (average) {
    TENON_TAKE(count, node.integer("count_include_pad", 0));
    attrs.emplace("count_include_pad", *count);
    if (windows->dilation != Ints{1, 1}) return node.fail("dilated average pooling is not supported");
  } else {
    attrs.emplace("dilation", windows->dilation);
  }
  return node.result(node.apply(average ? "avg_pool2d" : "max_pool2d", {*x}, std::move(attrs)));
}

Status reduce_mean(NodeImport& node) {
  TENON_TAKE(x, node.input(0));
  TENON_TAKE(type, node.type(0));
  Ints axes;
  if (node.has_input(1)) {
    TENON_TAKE(values, node.integers(1, "axes"));
    axes = *values;
  } else {
    TENON_TAKE(values, node.list("axes", Ints{}));
    axes = *values;
  }
  for (int64_t& axis : axes) axis += axis < 0 ? type->rank() : 0;
  std::ranges::sort(axes);
  if (type->rank() != 4 || axes != Ints{2, 3}) {
    return node.fail(fmt::format("a mean over the axes [{}] of {} is not supported, only over both spatial ones",
                                 fmt::join(axes, ", "), node.builder().context().str(type->dims)));
  }
  TENON_TAKE(keep, node.integer("keepdims", 1));
  TENON_TAKE(mean, node.apply("global_avg_pool", {*x}));
  return node.result(*keep ? mean : node.apply("reshape", {*mean}, {{"shape", Ints{0, 0}}}));
}

Status softmax(NodeImport& node) {
  TENON_TAKE(x, node.input(0));
  TENON_TAKE(type, node.type(0));
  TENON_TAKE(axis, node.integer("axis", node.opset() < 13 ? 1 : -1));
  // Up to opset 12 all axes from `axis` on were one; that is the same for the last.
  if (node.opset() < 13 && *axis != -1 && *axis != type->rank() - 1) {
    return node.fail(fmt::format("softmax from axis {} to the end is not supported", *axis),
                     "convert the model to opset 13 or later");
  }
  return node.result(node.apply("softmax", {*x}, {{"axis", *axis}}));
}

// scale and zero point as attributes; both must be constants.
Expected<Attrs> scales(NodeImport& node, DType& integer) {
  TENON_TAKE(scale, node.constant(1, "the scale"));
  if (scale->dtype() != DType::kF32 || scale->shape().size() > 1) {
    return node.fail(
        fmt::format("the scale must be one f32 or a vector, found {}", runtime::to_string(scale->shape())));
  }
  const bool per_channel = scale->shape().size() == 1 && scale->size() != 1;
  Attrs attrs;
  attrs["scale"] = std::vector<double>(scale->data<float>().begin(), scale->data<float>().end());
  Ints zeros{0};
  if (node.has_input(2)) {
    TENON_TAKE(zero, node.constant(2, "the zero point"));
    if (zero->size() != scale->size()) {
      return node.fail(fmt::format("{} zero points for {} scales", zero->size(), scale->size()));
    }
    integer = zero->dtype();
    if (integer == DType::kI8) zeros.assign(zero->data<int8_t>().begin(), zero->data<int8_t>().end());
    else if (integer == DType::kU8) zeros.assign(zero->data<uint8_t>().begin(), zero->data<uint8_t>().end());
    else if (integer == DType::kI32) zeros.assign(zero->data<int32_t>().begin(), zero->data<int32_t>().end());
    else return node.fail(fmt::format("the zero point is {}, must be i8, u8 or i32", runtime::name(integer)));
  }
  attrs["zero_point"] = std::move(zeros);
  TENON_TAKE(axis, node.integer("axis", 1));
  for (const char* attr : {"block_size", "precision"}) {
    TENON_TAKE(value, node.integer(attr, 0));
    if (*value != 0) return node.fail(fmt::format("{} {} is not supported", attr, *value));
  }
  attrs["axis"] = per_channel ? *axis : 1;
  return attrs;
}

Status quantize_linear(NodeImport& node) {
  TENON_TAKE(x, node.input(0));
  TENON_TAKE(output, node.integer("output_dtype", 0));
  DType dtype = DType::kU8;  // what ONNX says where nothing else does
  switch (*output) {         // numbers of TensorProto.DataType
    case 0:
    case 2: break;
    case 3: dtype = DType::kI8; break;
    default: return node.fail(fmt::format("output_dtype {} is not supported, only 2 (u8) and 3 (i8)", *output));
  }
  const DType wanted = dtype;
  TENON_TAKE(attrs, scales(node, dtype));
  if (*output != 0 && dtype != wanted) {
    return node.fail(
        fmt::format("output_dtype says {}, the zero point is {}", runtime::name(wanted), runtime::name(dtype)));
  }
  attrs->emplace("dtype", std::string(runtime::name(dtype)));
  return node.result(node.apply("quantize", {*x}, std::move(*attrs)));
}

Status dequantize_linear(NodeImport& node) {
  TENON_TAKE(x, node.input(0));
  TENON_TAKE(output, node.integer("output_dtype", 0));
  if (*output != 0 && *output != 1) {
    return node.fail(fmt::format("output_dtype {} is not supported, only 1 (f32)", *output));
  }
  DType dtype = DType::kI8;
  TENON_TAKE(attrs, scales(node, dtype));
  return node.result(node.apply("dequantize", {*x}, std::move(*attrs)));
}

}  // namespace

std::span<const OnnxConverter> onnx_compute_converters() {
  static constexpr OnnxConverter kTable[] = {
      {"Add", 2, 2, binary<kAdd>},
      {"AveragePool", 1, 1, pool<true>},
      {"BatchNormalization", 5, 5, batch_normalization},
      {"Clip", 1, 3, clip},
      {"Conv", 2, 3, conv},
      {"DequantizeLinear", 2, 3, dequantize_linear},
      {"Div", 2, 2, binary<kDivide>},
      {"Dropout", 1, 3, unary<kIdentity>},
      {"Gemm", 2, 3, gemm},
      {"GlobalAveragePool", 1, 1, unary<kGlobalAverage>},
      {"Identity", 1, 1, unary<kIdentity>},
      {"MatMul", 2, 2, binary<kMatmul>},
      {"MaxPool", 1, 1, pool<false>},
      {"Mul", 2, 2, binary<kMultiply>},
      {"QuantizeLinear", 2, 3, quantize_linear},
      {"ReduceMean", 1, 2, reduce_mean},
      {"Relu", 1, 1, unary<kRelu>},
      {"Sigmoid", 1, 1, unary<kSigmoid>},
      {"Softmax", 1, 1, softmax},
      {"Sub", 2, 2, binary<kSubtract>},
      {"Tanh", 1, 1, unary<kTanh>},
  };
  return kTable;
}

}  // namespace tenon::compiler
