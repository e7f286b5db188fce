// Converters of ONNX's quantized operators. Those on integers become the same on dequantized values, which later passes
// turn into integers again.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/frontend/onnx_node.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;

// The zero points of a constant input as a list.
Expected<Ints> zero_points(NodeImport& node, size_t input, DType& integer) {
  TENON_TAKE(zero, node.constant(input, "the zero point"));
  integer = zero->dtype();
  if (integer != DType::kI8 && integer != DType::kU8 && integer != DType::kI32) {
    return node.fail(fmt::format("the zero point is {}, must be i8, u8 or i32", runtime::name(integer)));
  }
  Ints zeros;
  runtime::with_dtype<runtime::kIntegers>(
      integer, [&]<class T>(T) { zeros.assign(zero->data<T>().begin(), zero->data<T>().end()); });
  return zeros;
}

// Scale and zero point, both constant inputs, as attributes.
Expected<Attrs> scales(NodeImport& node, size_t scale_input, size_t zero_input, int64_t axis, DType& integer) {
  TENON_TAKE(scale, node.constant(scale_input, "the scale"));
  if (scale->dtype() != DType::kF32 || scale->shape().size() > 1) {
    return node.fail(
        fmt::format("the scale must be one f32 or a vector, found {}", runtime::to_string(scale->shape())));
  }
  const bool per_channel = scale->shape().size() == 1 && scale->size() != 1;
  Attrs attrs;
  attrs["scale"] = std::vector<double>(scale->data<float>().begin(), scale->data<float>().end());
  Ints zeros{0};
  if (node.has_input(zero_input)) {
    TENON_TAKE(given, zero_points(node, zero_input, integer));
    if (static_cast<int64_t>(given->size()) != scale->size()) {
      return node.fail(fmt::format("{} zero points for {} scales", given->size(), scale->size()));
    }
    zeros = *given;
  }
  attrs["zero_point"] = std::move(zeros);
  attrs["axis"] = per_channel ? axis : int64_t{1};
  return attrs;
}

// Inputs 1 and 2 of QuantizeLinear and DequantizeLinear.
Expected<Attrs> linear_scales(NodeImport& node, DType& integer) {
  for (const char* attr : {"block_size", "precision"}) {
    TENON_TAKE(value, node.integer(attr, 0));
    if (*value != 0) return node.fail(fmt::format("{} {} is not supported", attr, *value));
  }
  TENON_TAKE(axis, node.integer("axis", 1));
  return scales(node, 1, 2, *axis, integer);
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
  TENON_TAKE(attrs, linear_scales(node, dtype));
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
  TENON_TAKE(attrs, linear_scales(node, dtype));
  return node.result(node.apply("dequantize", {*x}, std::move(*attrs)));
}

Status dynamic_quantize_linear(NodeImport& node) { return node.results(node.apply("dynamic_quantize", {0})); }

// Input `i` dequantized, its scale and zero point being the next two inputs.
Expected<Atom> dequantized(NodeImport& node, size_t i, int64_t axis) {
  DType dtype = DType::kU8;
  TENON_TAKE(x, node.input(i));
  TENON_TAKE(attrs, scales(node, i + 1, i + 2, axis, dtype));
  return node.apply("dequantize", {*x}, std::move(*attrs));
}

// The result quantized by the scale and zero point of inputs `i` and `i + 1`.
Status quantized(NodeImport& node, Expected<Atom> value, size_t i) {
  if (!value) return std::unexpected(value.error());
  DType dtype = DType::kU8;
  TENON_TAKE(attrs, scales(node, i, i + 1, 1, dtype));
  attrs->emplace("dtype", std::string(runtime::name(dtype)));
  return node.result(node.apply("quantize", {*value}, std::move(*attrs)));
}

Status qlinear_matmul(NodeImport& node) {
  TENON_TAKE(a, dequantized(node, 0, 0));
  TENON_TAKE(b, dequantized(node, 3, 1));
  return quantized(node, node.apply("matmul", {*a, *b}), 6);
}

// The bias is i32 in units of the scales of x and w.
Status qlinear_conv(NodeImport& node) {
  TENON_TAKE(x, dequantized(node, 0, 1));
  TENON_TAKE(w, dequantized(node, 3, 0));
  TENON_TAKE(product, onnx_convolution(node, *x, *w));
  if (!node.has_input(8)) return quantized(node, *product, 6);
  TENON_TAKE(bias, node.input(8));
  TENON_TAKE(x_scale, node.constant(1, "the scale"));
  TENON_TAKE(w_scale, node.constant(4, "the scale"));
  std::vector<double> steps;
  for (float step : w_scale->data<float>()) steps.push_back(double{step} * double{x_scale->data<float>()[0]});
  TENON_TAKE(real, node.apply("dequantize", {*bias}, {{"scale", steps}, {"axis", int64_t{0}}}));
  return quantized(node, node.apply("bias_add", {*product, *real}), 6);
}

// Input `i` in i32, less the zero point of another input, one value or one for each index of `axis` of `rank`.
Expected<Atom> centered(NodeImport& node, size_t i, size_t zero_input, bool first_axis) {
  TENON_TAKE(x, node.input(i));
  TENON_TAKE(type, node.type(i));
  TENON_TAKE(wide, node.apply("cast", {*x}, {{"dtype", std::string("i32")}}));
  if (!node.has_input(zero_input)) return *wide;
  DType dtype = DType::kU8;
  TENON_TAKE(zeros, zero_points(node, zero_input, dtype));
  runtime::Shape shape;
  if (zeros->size() != 1) {
    shape.assign(static_cast<size_t>(type->rank()), 1);
    if (shape.empty()) return node.fail("a scalar has one zero point");
    (first_axis ? shape.front() : shape.back()) = static_cast<int64_t>(zeros->size());
  }
  const std::vector<int32_t> values(zeros->begin(), zeros->end());
  TENON_TAKE(zero, node.constant(runtime::Tensor::of<int32_t>(shape, values)));
  return node.apply("subtract", {*wide, *zero});
}

Status matmul_integer(NodeImport& node) {
  TENON_TAKE(type, node.type(0));
  if (node.has_input(2)) {
    TENON_TAKE(zero, node.constant(2, "the zero point"));
    if (zero->size() != 1) return node.fail("a zero point a row is not supported");
  }
  TENON_TAKE(a, centered(node, 0, 2, false));
  TENON_TAKE(b, centered(node, 1, 3, false));
  return node.result(node.apply("matmul", {*a, *b}));
}

Status conv_integer(NodeImport& node) {
  TENON_TAKE(x, centered(node, 0, 2, false));
  TENON_TAKE(w, centered(node, 1, 3, true));
  return node.result(onnx_convolution(node, *x, *w));
}

}  // namespace

std::span<const OnnxConverter> onnx_quantize_converters() {
  static constexpr OnnxConverter kTable[] = {
      {"ConvInteger", 2, 4, conv_integer},
      {"DequantizeLinear", 2, 3, dequantize_linear},
      {"DynamicQuantizeLinear", 1, 1, dynamic_quantize_linear},
      {"MatMulInteger", 2, 4, matmul_integer},
      {"QLinearConv", 8, 9, qlinear_conv},
      {"QLinearMatMul", 8, 8, qlinear_matmul},
      {"QuantizeLinear", 2, 3, quantize_linear},
  };
  return kTable;
}

}  // namespace tenon::compiler
