// Converters of ONNX's quantized operators. Operators on integers become operators on dequantized values, which later
// passes turn into integers again; with computed scales or zero points, as in dynamically quantized models, they become
// explicit arithmetic.
#include "compiler/frontend/onnx_quantize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;

// The zero points of a constant input as a list.
Expected<Ints> zero_points(NodeImport& node, size_t input, DType& integer) {
  TENON_TRY_ASSIGN(zero, node.constant(input, "the zero point"));
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
  TENON_TRY_ASSIGN(scale, node.constant(scale_input, "the scale"));
  if (scale->dtype() != DType::kF32 || scale->shape().size() > 1) {
    return node.fail(
        fmt::format("the scale must be one f32 or a vector, found {}", runtime::to_string(scale->shape())));
  }
  const bool per_channel = scale->shape().size() == 1 && scale->size() != 1;
  Attrs attrs;
  attrs["scale"] = std::vector<double>(scale->data<float>().begin(), scale->data<float>().end());
  Ints zeros{0};
  if (node.has_input(zero_input)) {
    TENON_TRY_ASSIGN(given, zero_points(node, zero_input, integer));
    if (static_cast<int64_t>(given->size()) != scale->size()) {
      return node.fail(fmt::format("{} zero points for {} scales", given->size(), scale->size()));
    }
    zeros = *given;
  }
  attrs["zero_point"] = std::move(zeros);
  attrs["axis"] = per_channel ? axis : int64_t{1};
  return attrs;
}

// Input `i`, if present, reshaped: a scalar where it has one element, otherwise a vector along `axis` of `rank`.
Expected<Atom> along(NodeImport& node, size_t i, std::string_view what, int64_t axis, int rank) {
  TENON_TRY_ASSIGN(atom, node.input(i));
  TENON_TRY_ASSIGN(type, node.type(i));
  Ints shape;
  if (type->rank() > 1 && type->rank() == rank) return *atom;
  if (type->rank() > 1) return node.fail(fmt::format("{} must be a scalar or a vector", what));
  if (type->rank() == 1 && type->dims[0].constant() != 1) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return node.fail(fmt::format("{} is along axis {} of {}", what, axis, rank));
    shape.assign(static_cast<size_t>(rank), 1);
    shape[static_cast<size_t>(axis)] = -1;
  }
  return node.apply(ops::kReshape, {*atom}, {{"shape", shape}});
}

// Whether the inputs of the scale and of the zero point, if present, are constants.
bool are_constants(NodeImport& node, size_t scale, size_t zero) {
  const auto known = [&](size_t i) {
    const auto atom = node.input(i);
    return !node.has_input(i) || (atom && node.constant_tensor(*atom));
  };
  return known(scale) && known(zero);
}
// The dtype of a computed zero point; the dtype of its scale is checked.
Expected<DType> check_computed(NodeImport& node, size_t scale, size_t zero, DType otherwise) {
  TENON_TRY_ASSIGN(scale_type, node.type(scale));
  if (scale_type->dtype != DType::kF32)
    return node.fail(fmt::format("the scale must be f32, found {}", runtime::name(scale_type->dtype)));
  if (!node.has_input(zero)) return otherwise;
  TENON_TRY_ASSIGN(type, node.type(zero));
  if (type->dtype != DType::kI8 && type->dtype != DType::kU8 && type->dtype != DType::kI32)
    return node.fail(fmt::format("the zero point is {}, must be i8, u8 or i32", runtime::name(type->dtype)));
  return type->dtype;
}

Attrs to(DType dtype) { return {{"dtype", std::string(runtime::name(dtype))}}; }

}  // namespace

Expected<Atom> onnx_dequantized(NodeImport& node, size_t i, size_t scale, size_t zero, int64_t axis) {
  TENON_TRY_ASSIGN(x, node.input(i));
  if (are_constants(node, scale, zero)) {
    DType dtype = DType::kU8;
    TENON_TRY_ASSIGN(attrs, scales(node, scale, zero, axis, dtype));
    return node.apply(ops::kDequantize, {*x}, std::move(*attrs));
  }
  TENON_TRY_ASSIGN(type, node.type(i));
  TENON_TRY(check_computed(node, scale, zero, DType::kU8));
  TENON_TRY_ASSIGN(steps, along(node, scale, "the scale", axis, type->rank()));
  TENON_TRY_ASSIGN(value, node.apply(ops::kCast, {*x}, to(DType::kI32)));
  if (node.has_input(zero)) {
    TENON_TRY_ASSIGN(zeros, along(node, zero, "the zero point", axis, type->rank()));
    TENON_TRY_ASSIGN(wide, node.apply(ops::kCast, {*zeros}, to(DType::kI32)));
    TENON_TRY_ASSIGN(less, node.apply(ops::kSubtract, {*value, *wide}));
    *value = *less;
  }
  TENON_TRY_ASSIGN(real, node.apply(ops::kCast, {*value}, to(DType::kF32)));
  return node.apply(ops::kMultiply, {*real, *steps});
}

Expected<Atom> onnx_quantized(NodeImport& node, Atom value, size_t scale, size_t zero, int64_t axis, DType& dtype) {
  if (are_constants(node, scale, zero)) {
    TENON_TRY_ASSIGN(attrs, scales(node, scale, zero, axis, dtype));
    attrs->emplace("dtype", std::string(runtime::name(dtype)));
    return node.apply(ops::kQuantize, {value}, std::move(*attrs));
  }
  TENON_TRY_ASSIGN(found, check_computed(node, scale, zero, dtype));
  dtype = *found;
  if (dtype == DType::kI32) return node.fail("the zero point is i32, must be i8 or u8");
  const int rank = node.builder().tensor_type(value)->rank();
  TENON_TRY_ASSIGN(steps, along(node, scale, "the scale", axis, rank));
  TENON_TRY_ASSIGN(scaled, node.apply(ops::kDivide, {value, *steps}));
  TENON_TRY_ASSIGN(whole, node.apply(ops::kRound, {*scaled}));
  if (node.has_input(zero)) {
    TENON_TRY_ASSIGN(zeros, along(node, zero, "the zero point", axis, rank));
    TENON_TRY_ASSIGN(real, node.apply(ops::kCast, {*zeros}, to(DType::kF32)));
    TENON_TRY_ASSIGN(more, node.apply(ops::kAdd, {*whole, *real}));
    *whole = *more;
  }
  const bool is_signed = dtype == DType::kI8;
  TENON_TRY_ASSIGN(inside, node.apply(ops::kClip, {*whole},
                                      {{"min", is_signed ? -128.0 : 0.0}, {"max", is_signed ? 127.0 : 255.0}}));
  return node.apply(ops::kCast, {*inside}, to(dtype));
}

namespace {

// The attributes that QuantizeLinear and DequantizeLinear share.
Expected<int64_t> linear_axis(NodeImport& node) {
  for (const char* attr : {"block_size", "precision"}) {
    TENON_TRY_ASSIGN(value, node.integer(attr, 0));
    if (*value != 0) return node.fail(fmt::format("{} {} is not supported", attr, *value));
  }
  return node.integer("axis", 1);
}

Status quantize_linear(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(output, node.integer("output_dtype", 0));
  DType dtype = DType::kU8;  // ONNX's default
  switch (*output) {         // TensorProto.DataType
    case 0:
    case 2: break;
    case 3: dtype = DType::kI8; break;
    default: return node.fail(fmt::format("output_dtype {} is not supported, only 2 (u8) and 3 (i8)", *output));
  }
  const DType wanted = dtype;
  TENON_TRY_ASSIGN(axis, linear_axis(node));
  TENON_TRY_ASSIGN(value, onnx_quantized(node, *x, 1, 2, *axis, dtype));
  if (*output != 0 && dtype != wanted) {
    return node.fail(
        fmt::format("output_dtype is {}, the zero point is {}", runtime::name(wanted), runtime::name(dtype)));
  }
  return node.result(*value);
}

Status dequantize_linear(NodeImport& node) {
  TENON_TRY_ASSIGN(output, node.integer("output_dtype", 0));
  if (*output != 0 && *output != 1) {
    return node.fail(fmt::format("output_dtype {} is not supported, only 1 (f32)", *output));
  }
  TENON_TRY_ASSIGN(axis, linear_axis(node));
  return node.result(onnx_dequantized(node, 0, 1, 2, *axis));
}

Status dynamic_quantize_linear(NodeImport& node) { return node.results(node.apply(ops::kDynamicQuantize, {0})); }

// The result quantized by the scale and zero point of inputs `i` and `i + 1`.
Status quantized_result(NodeImport& node, const Expected<Atom>& value, size_t i) {
  if (!value) return std::unexpected(value.error());
  DType dtype = DType::kU8;
  return node.result(onnx_quantized(node, *value, i, i + 1, 1, dtype));
}

Status qlinear_matmul(NodeImport& node) {
  TENON_TRY_ASSIGN(a, onnx_dequantized(node, 0, 1, 2, -2));
  TENON_TRY_ASSIGN(b, onnx_dequantized(node, 3, 4, 5, -1));
  return quantized_result(node, node.apply(ops::kMatmul, {*a, *b}), 6);
}

// The bias is i32 in units of the scales of x and w.
Status qlinear_conv(NodeImport& node) {
  TENON_TRY_ASSIGN(x, onnx_dequantized(node, 0, 1, 2, 1));
  TENON_TRY_ASSIGN(w, onnx_dequantized(node, 3, 4, 5, 0));
  TENON_TRY_ASSIGN(product, onnx_convolution(node, *x, *w));
  if (!node.has_input(8)) return quantized_result(node, *product, 6);
  TENON_TRY_ASSIGN(bias, node.input(8));
  Expected<Atom> real = error("none");
  if (are_constants(node, 1, 4)) {
    TENON_TRY_ASSIGN(x_scale, node.constant(1, "the scale"));
    TENON_TRY_ASSIGN(w_scale, node.constant(4, "the scale"));
    std::vector<double> steps;
    for (float step : w_scale->data<float>()) steps.push_back(double{step} * double{x_scale->data<float>()[0]});
    real = node.apply(ops::kDequantize, {*bias}, {{"scale", steps}, {"axis", int64_t{0}}});
  } else {
    TENON_TRY_ASSIGN(x_scale, along(node, 1, "the scale", 0, 1));
    TENON_TRY_ASSIGN(w_scale, along(node, 4, "the scale", 0, 1));
    TENON_TRY_ASSIGN(steps, node.apply(ops::kMultiply, {*x_scale, *w_scale}));
    TENON_TRY_ASSIGN(wide, node.apply(ops::kCast, {*bias}, to(DType::kF32)));
    real = node.apply(ops::kMultiply, {*wide, *steps});
  }
  if (!real) return std::unexpected(real.error());
  return quantized_result(node, node.apply(ops::kBiasAdd, {*product, *real}), 6);
}

// Input `i` in i32, minus its zero point where it is a constant; a computed zero point is subtracted from the sums
// later. So operands are bytes minus a constant, which kernels of contractions read directly.
struct Factor {
  Atom value;
  std::optional<Atom> zero;

  Expected<Atom> centered(NodeImport& node) const {
    return zero ? node.apply(ops::kSubtract, {value, *zero}) : Expected<Atom>(value);
  }
};
Expected<Factor> factor(NodeImport& node, size_t i, size_t zero_input, int64_t axis) {
  TENON_TRY_ASSIGN(x, node.input(i));
  TENON_TRY_ASSIGN(type, node.type(i));
  TENON_TRY_ASSIGN(wide, node.apply(ops::kCast, {*x}, to(DType::kI32)));
  if (!node.has_input(zero_input)) return Factor{*wide, {}};
  TENON_TRY_ASSIGN(zero_type, node.type(zero_input));
  if (zero_type->dtype != type->dtype) {
    return node.fail(fmt::format("the zero point is {}, of values in {}", runtime::name(zero_type->dtype),
                                 runtime::name(type->dtype)));
  }
  TENON_TRY_ASSIGN(narrow, along(node, zero_input, "the zero point", axis, type->rank()));
  TENON_TRY_ASSIGN(zero, node.apply(ops::kCast, {*narrow}, to(DType::kI32)));
  TENON_TRY_ASSIGN(given, node.input(zero_input));
  if (!node.constant_tensor(*given)) return Factor{*wide, *zero};
  TENON_TRY_ASSIGN(less, node.apply(ops::kSubtract, {*wide, *zero}));
  return Factor{*less, {}};
}

// sum - a * b
Expected<Atom> less_product(NodeImport& node, Atom sum, Atom a, Atom b) {
  TENON_TRY_ASSIGN(product, node.apply(ops::kMultiply, {a, b}));
  return node.apply(ops::kSubtract, {sum, *product});
}

Status matmul_integer(NodeImport& node) {
  TENON_TRY_ASSIGN(a, factor(node, 0, 2, -2));
  TENON_TRY_ASSIGN(b, factor(node, 1, 3, -1));
  TENON_TRY_ASSIGN(sum, node.apply(ops::kMatmul, {a->value, b->value}));
  const auto over = [&](Atom x, int64_t axis) {
    return node.apply(ops::kSum, {x}, {{"axes", Ints{axis}}, {"keep", int64_t{1}}});
  };
  if (a->zero) {
    TENON_TRY_ASSIGN(columns, over(b->value, -2));
    TENON_TRY_ASSIGN(less, less_product(node, *sum, *a->zero, *columns));
    *sum = *less;
  }
  if (b->zero) {
    TENON_TRY_ASSIGN(left, a->centered(node));
    TENON_TRY_ASSIGN(rows, over(*left, -1));
    TENON_TRY_ASSIGN(less, less_product(node, *sum, *rows, *b->zero));
    *sum = *less;
  }
  return node.result(*sum);
}

// x is padded with its computed zero point, whose contribution to the sums of each output is subtracted.
Status conv_integer(NodeImport& node) {
  TENON_TRY_ASSIGN(x, factor(node, 0, 2, 1));
  TENON_TRY_ASSIGN(w, factor(node, 1, 3, 0));
  TENON_TRY_ASSIGN(weights, w->centered(node));
  if (!x->zero) return node.result(onnx_convolution(node, x->value, *weights));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(w_type, node.type(1));
  if (type->rank() != w_type->rank() || type->rank() < 3)
    return node.fail(fmt::format("x has {} dims, the weight {}", type->rank(), w_type->rank()));
  const auto padded = [&](Atom inner, Ints before, Ints after) -> Expected<Atom> {
    before.insert(before.begin(), 2, 0), after.insert(after.begin(), 2, 0);
    TENON_TRY_ASSIGN(less, node.apply(ops::kSubtract, {inner, *x->zero}));
    TENON_TRY_ASSIGN(wider, node.apply(ops::kPad, {*less}, {{"before", before}, {"after", after}}));
    TENON_TRY_ASSIGN(more, node.apply(ops::kAdd, {*wider, *x->zero}));
    TENON_TRY_ASSIGN(bytes, node.apply(ops::kCast, {*more}, to(type->dtype)));
    return node.apply(ops::kCast, {*bytes}, to(DType::kI32));
  };
  TENON_TRY_ASSIGN(sum, onnx_convolution(node, x->value, *weights, padded));
  Ints axes, shape(static_cast<size_t>(type->rank()), 1);
  for (int64_t axis = 1; axis < type->rank(); ++axis) axes.push_back(axis);
  shape[1] = -1;
  TENON_TRY_ASSIGN(of_outputs, node.apply(ops::kSum, {*weights}, {{"axes", axes}}));
  TENON_TRY_ASSIGN(aligned, node.apply(ops::kReshape, {*of_outputs}, {{"shape", shape}}));
  return node.result(less_product(node, *sum, *aligned, *x->zero));
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
