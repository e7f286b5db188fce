// Converters of ONNX's quantized operators. Operators on integers become operators on dequantized values, which later
// passes turn into integers again; with computed scales or zero points, as in dynamically quantized models, they become
// explicit arithmetic.
#include "compiler/frontend/onnx/quantize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "compiler/frontend/onnx/expression.h"

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;

constexpr runtime::DTypes kZeroPoints = runtime::DTypes{DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32} |
                                        runtime::kNarrowIntegers | runtime::kNarrowFloats;
// The dtypes of QuantizeLinear's result.
constexpr runtime::DTypes kQuantized = kZeroPoints.without({DType::kI32, DType::kF8E8M0});

// The zero points of a constant input as a list.
Expected<Ints> zero_points(NodeImport& node, size_t input, DType& integer) {
  TENON_TRY_ASSIGN(zero, node.constant(input, "the zero point"));
  integer = zero->dtype();
  Ints zeros;
  runtime::with_dtype<runtime::kIntegers | runtime::kNarrowIntegers>(integer, [&]<class T>(T) {
    for (const T z : zero->data<T>()) zeros.push_back(static_cast<int64_t>(z));
  });
  return zeros;
}

// Scale and zero point, both constant inputs, as attributes.
Expected<Attrs> scales(NodeImport& node, size_t scale_input, size_t zero_input, int64_t axis, DType& integer) {
  TENON_TRY_ASSIGN(scale, node.constant(scale_input, "the scale"));
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

Attrs to(DType dtype) { return {{"dtype", std::string(runtime::name(dtype))}}; }

// The smallest and the largest value of a dtype of integers.
Attrs bounds(DType dtype) {
  Attrs attrs;
  runtime::with_dtype<runtime::kIntegers | runtime::kNarrowIntegers>(dtype, [&]<class T>(T) {
    if constexpr (runtime::is_narrow<T>) {
      attrs = {{"min", T::format.min()}, {"max", T::format.max()}};
    } else {
      using Limits = std::numeric_limits<T>;
      attrs = {{"min", static_cast<double>(Limits::min())}, {"max", static_cast<double>(Limits::max())}};
    }
  });
  return attrs;
}

// The dtype of the zero point, or `otherwise` without one, after the dtypes of both parameters are checked.
Expected<DType> check_parameters(NodeImport& node, size_t scale, size_t zero, DType otherwise) {
  TENON_TRY_ASSIGN(scale_type, node.type(scale));
  constexpr runtime::DTypes kScales = runtime::kReals.without({DType::kF64}) | runtime::DTypes{DType::kI32};
  if (!kScales.contains(scale_type->dtype)) {
    return node.fail(fmt::format("the scale must be {}, found {}", kScales.str(), runtime::name(scale_type->dtype)));
  }
  if (!node.has_input(zero)) return otherwise;
  TENON_TRY_ASSIGN(type, node.type(zero));
  if (!kZeroPoints.contains(type->dtype)) {
    return node.fail(fmt::format("the zero point is {}, must be {}", runtime::name(type->dtype), kZeroPoints.str()));
  }
  return type->dtype;
}

// Whether `quantize` and `dequantize`, whose attributes are the parameters, express a tensor of this dtype: the
// parameters are constants, of the whole tensor or of the indices along an axis.
bool are_attributes(NodeImport& node, size_t scale, size_t zero, const Scales& layout, DType integer,
                    runtime::DTypes integers) {
  const auto known = [&](size_t i) {
    const auto atom = node.input(i);
    return atom && node.constant(i, "the parameter");
  };
  const auto type = node.type(scale);
  return layout.block == 0 && integers.contains(integer) && type && type->dtype == DType::kF32 && type->rank() <= 1 &&
         layout.real.value_or(DType::kF32) == DType::kF32 && known(scale) && (!node.has_input(zero) || known(zero));
}

// The scale or zero point that is input `i` such that it broadcasts with x.
Term parameter(NodeFormula& f, size_t i, std::string_view what, const Scales& layout, const Term& x) {
  if (layout.block == 0) return f.term(along(f.node(), i, what, layout.axis, static_cast<int>(x.rank())));
  Term p = f.input(i);
  const int64_t rank = x.rank(), axis = layout.axis + (layout.axis < 0 ? rank : 0);
  f.expect(p.rank() == rank && axis >= 0 && axis < rank,
           fmt::format("{} of blocks along axis {} must have {} dims, found {}", what, layout.axis, rank, p.rank()));
  if (!f.ok()) return p;
  Ints repeated(static_cast<size_t>(rank) + 1, -1), joined;
  repeated[static_cast<size_t>(axis) + 1] = layout.block;
  for (int64_t d = 0; d < rank; ++d)
    joined.push_back(f.known_size(p, d, fmt::format("a size of {}", what)) * (d == axis ? layout.block : 1));
  const int64_t size = f.known_size(x, axis, "the size of x along the axis of the blocks"), end = joined[axis];
  f.expect(end >= size && end - size < layout.block,
           fmt::format("{} has blocks of {} for {} elements, x has {}", what, layout.block, end, size));
  p = p.expand_dims({axis + 1}).broadcast(std::move(repeated)).reshape(std::move(joined));
  return end == size ? p : p.slice(axis, 0, size);
}

// Input `i`, with integers of less than a byte as bytes.
Expected<Atom> in_bytes(NodeImport& node, size_t i) {
  TENON_TRY_ASSIGN(x, node.input(i));
  const TensorType* type = node.builder().tensor_type(*x);
  if (!type || !runtime::kNarrowIntegers.contains(type->dtype)) return *x;
  const bool is_signed = type->dtype == DType::kI4 || type->dtype == DType::kI2;
  const runtime::Tensor* constant = node.constant_tensor(*x);
  if (!constant) return node.apply(ops::kCast, {*x}, to(is_signed ? DType::kI8 : DType::kU8));
  runtime::Tensor bytes(is_signed ? DType::kI8 : DType::kU8, constant->shape());
  runtime::with_dtype<runtime::kNarrowIntegers>(constant->dtype(), [&]<class T>(T) {
    std::ranges::transform(constant->data<T>(), bytes.bytes().begin(),
                           [](T e) { return static_cast<std::byte>(static_cast<int32_t>(e)); });
  });
  return node.constant(std::move(bytes));
}

// A scale with which all weights are 0, or too small for the operator, whose scales have reciprocals: 0, or of
// subnormal values.
bool is_none(double scale) { return scale >= 0 && scale < 1e-37; }

// A quantized constant whose elements of such a scale are the zero point instead, and their scale one of the others.
runtime::Tensor without_zero_scales(const runtime::Tensor& constant, Attrs& attrs) {
  auto& steps = std::get<std::vector<double>>(attrs.at("scale"));
  const auto& zeros = std::get<Ints>(attrs.at("zero_point"));
  const int64_t rank = static_cast<int64_t>(constant.shape().size()), given = int_attr(attrs, "axis");
  const size_t axis = static_cast<size_t>(given < 0 ? given + rank : given);
  int64_t inner = 1;
  for (size_t d = axis + 1; d < constant.shape().size(); ++d) inner *= constant.shape()[d];
  runtime::Tensor result = constant.clone();
  runtime::with_dtype<runtime::kIntegers>(result.dtype(), [&]<class T>(T) {
    const auto data = result.data<T>();
    for (size_t i = 0; i < data.size(); ++i) {
      const size_t channel = static_cast<size_t>(static_cast<int64_t>(i) / inner) % steps.size();
      if (is_none(steps[channel])) data[i] = static_cast<T>(zeros[zeros.size() == 1 ? 0 : channel]);
    }
  });
  const double largest = std::ranges::max(steps), other = is_none(largest) ? 1 : largest;
  std::ranges::replace_if(steps, is_none, other);
  return result;
}

}  // namespace

Expected<Atom> dequantized(NodeImport& node, size_t i, size_t scale, size_t zero, const Scales& layout) {
  TENON_TRY_ASSIGN(type, node.type(i));
  TENON_TRY_ASSIGN(dtype, check_parameters(node, scale, zero, type->dtype));
  TENON_TRY_ASSIGN(bytes, in_bytes(node, i));
  constexpr runtime::DTypes kIntegers = runtime::DTypes{DType::kI8, DType::kU8, DType::kI32} | runtime::kNarrowIntegers;
  if (kIntegers.contains(type->dtype) && are_attributes(node, scale, zero, layout, *dtype, kIntegers)) {
    TENON_TRY_ASSIGN(attrs, scales(node, scale, zero, layout.axis, *dtype));
    std::vector<double>& steps = std::get<std::vector<double>>(attrs->at("scale"));
    if (std::ranges::none_of(steps, is_none)) return node.apply(ops::kDequantize, {*bytes}, std::move(*attrs));
    // Weights of a channel with such a scale are the zero point with any other scale.
    if (const runtime::Tensor* constant = node.constant_tensor(*bytes)) {
      const Atom zeros = node.builder().constant(without_zero_scales(*constant, *attrs));
      return node.apply(ops::kDequantize, {zeros}, std::move(*attrs));
    }
  }
  NodeFormula f(node);
  const DType computed = runtime::kNarrowFloats.contains(type->dtype) ? DType::kF32 : DType::kI32;
  const Term x = f.term(*bytes);
  Term value = x.cast(computed);
  if (node.has_input(zero)) value = value - parameter(f, zero, "the zero point", layout, x).cast(computed);
  const Term steps = parameter(f, scale, "the scale", layout, x);
  const Term real = value.cast(DType::kF32) * steps.cast(DType::kF32);
  TENON_TRY(f.status());
  return real.cast(layout.real.value_or(steps.dtype())).atom();
}

Expected<Atom> quantized(NodeImport& node, Atom value, size_t scale, size_t zero, const Scales& layout, DType& dtype) {
  TENON_TRY_ASSIGN(found, check_parameters(node, scale, zero, dtype));
  dtype = *found;
  if (!kQuantized.contains(dtype)) {
    return node.fail(fmt::format("the zero point is {}, must be {}", runtime::name(dtype), kQuantized.str()));
  }
  NodeFormula f(node);
  const Term x = f.term(value).cast(DType::kF32);
  if (are_attributes(node, scale, zero, layout, dtype, {DType::kI8, DType::kU8})) {
    TENON_TRY_ASSIGN(attrs, scales(node, scale, zero, layout.axis, dtype));
    attrs->emplace("dtype", std::string(runtime::name(dtype)));
    TENON_TRY(f.status());
    return node.apply(ops::kQuantize, {x.atom()}, std::move(*attrs));
  }
  Term scaled = x / parameter(f, scale, "the scale", layout, x).cast(DType::kF32);
  const bool integers = !runtime::kNarrowFloats.contains(dtype);
  if (integers) scaled = f.apply(ops::kRound, {scaled});
  if (node.has_input(zero)) scaled = scaled + parameter(f, zero, "the zero point", layout, x).cast(DType::kF32);
  if (integers) scaled = f.apply(ops::kClip, {scaled}, bounds(dtype));
  const Term result = scaled.cast(dtype);
  TENON_TRY(f.status());
  return result.atom();
}

namespace {

// The attributes that QuantizeLinear and DequantizeLinear share; `output` is the dtype of the result, if stated.
Expected<Scales> linear_scales(NodeImport& node, runtime::DTypes outputs, std::optional<DType>& output) {
  Scales layout;
  TENON_TRY_ASSIGN(precision, node.integer("precision", 0));
  if (*precision != 0 && dtype_of_id(*precision) != DType::kF32)
    return node.fail(fmt::format("precision {} is not supported, only 1 (f32)", *precision));
  TENON_TRY_ASSIGN(block, node.integer("block_size", 0));
  if (*block < 0) return node.fail(fmt::format("block_size {} is negative", *block));
  TENON_TRY_ASSIGN(axis, node.integer("axis", 1));
  layout.axis = *axis, layout.block = *block;
  TENON_TRY_ASSIGN(number, node.integer("output_dtype", 0));
  if (*number == 0) return layout;
  output = dtype_of_id(*number);
  if (!output || !outputs.contains(*output)) {
    return node.fail(fmt::format("output_dtype {}{} is not supported, must be {}", *number,
                                 output ? fmt::format(" ({})", runtime::name(*output)) : "", outputs.str()));
  }
  return layout;
}

Status quantize_linear(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  std::optional<DType> wanted;
  TENON_TRY_ASSIGN(layout, linear_scales(node, kQuantized, wanted));
  DType dtype = wanted.value_or(DType::kU8);  // ONNX's default
  TENON_TRY_ASSIGN(value, quantized(node, *x, 1, 2, *layout, dtype));
  if (wanted && dtype != *wanted) {
    return node.fail(
        fmt::format("output_dtype is {}, the zero point is {}", runtime::name(*wanted), runtime::name(dtype)));
  }
  return node.result(*value);
}

Status dequantize_linear(NodeImport& node) {
  std::optional<DType> wanted;
  TENON_TRY_ASSIGN(layout, linear_scales(node, runtime::kReals.without({DType::kF64}), wanted));
  layout->real = wanted;
  return node.result(dequantized(node, 0, 1, 2, *layout));
}

Status dynamic_quantize_linear(NodeImport& node) { return node.results(node.apply(ops::kDynamicQuantize, {0})); }

// The result quantized by the scale and zero point of inputs `i` and `i + 1`.
Status quantized_result(NodeImport& node, const Expected<Atom>& value, size_t i) {
  if (!value) return std::unexpected(value.error());
  DType dtype = DType::kU8;
  return node.result(quantized(node, *value, i, i + 1, {}, dtype));
}

Status qlinear_matmul(NodeImport& node) {
  TENON_TRY_ASSIGN(a, dequantized(node, 0, 1, 2, {.axis = -2, .real = DType::kF32}));
  TENON_TRY_ASSIGN(b, dequantized(node, 3, 4, 5, {.axis = -1, .real = DType::kF32}));
  return quantized_result(node, node.apply(ops::kMatmul, {*a, *b}), 6);
}

// The bias is i32 in units of the scales of x and w.
Status qlinear_conv(NodeImport& node) {
  TENON_TRY_ASSIGN(x, dequantized(node, 0, 1, 2, {.axis = 1}));
  TENON_TRY_ASSIGN(w, dequantized(node, 3, 4, 5, {.axis = 0}));
  TENON_TRY_ASSIGN(product, convolution(node, *x, *w));
  if (!node.has_input(8)) return quantized_result(node, *product, 6);
  TENON_TRY_ASSIGN(bias, node.input(8));
  Expected<Atom> real = error("none");
  if (are_attributes(node, 1, 9, {}, DType::kI32, {DType::kI32}) &&
      are_attributes(node, 4, 9, {}, DType::kI32, {DType::kI32})) {
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
  // A vector is a matrix of one row or column, which is removed from the result.
  Ints vectors;
  for (auto* factor : {&*a, &*b}) {
    if (node.builder().tensor_type(factor->value)->rank() != 1) continue;
    const int64_t axis = factor == &*a ? 0 : 1;
    TENON_TRY_ASSIGN(matrix, node.apply(ops::kExpandDims, {factor->value}, {{"axes", Ints{axis}}}));
    factor->value = *matrix;
    vectors.push_back(axis - 2);
  }
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
  if (!vectors.empty()) return node.result(node.apply(ops::kSqueeze, {*sum}, {{"axes", vectors}}));
  return node.result(*sum);
}

// x is padded with its computed zero point, whose contribution to the sums of each output is subtracted.
Status conv_integer(NodeImport& node) {
  TENON_TRY_ASSIGN(x, factor(node, 0, 2, 1));
  TENON_TRY_ASSIGN(w, factor(node, 1, 3, 0));
  TENON_TRY_ASSIGN(weights, w->centered(node));
  if (!x->zero) return node.result(convolution(node, x->value, *weights));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(w_type, node.type(1));
  if (type->rank() != w_type->rank() || type->rank() < 3)
    return node.fail(fmt::format("x has {} dims, the weight {}", type->rank(), w_type->rank()));
  const auto padded = [&](Atom inner, const Integers& before, const Integers& after) -> Expected<Atom> {
    OperatorAttributes attrs;
    attrs.set("before", before);
    attrs.set("after", after);
    TENON_TRY_ASSIGN(less, node.apply(ops::kSubtract, {inner, *x->zero}));
    TENON_TRY_ASSIGN(wider, attrs.apply(node, ops::kPad, {*less}));
    TENON_TRY_ASSIGN(more, node.apply(ops::kAdd, {*wider, *x->zero}));
    TENON_TRY_ASSIGN(bytes, node.apply(ops::kCast, {*more}, to(type->dtype)));
    return node.apply(ops::kCast, {*bytes}, to(DType::kI32));
  };
  TENON_TRY_ASSIGN(sum, convolution(node, x->value, *weights, padded));
  Ints axes, shape(static_cast<size_t>(type->rank()), 1);
  for (int64_t axis = 1; axis < type->rank(); ++axis) axes.push_back(axis);
  shape[1] = -1;
  TENON_TRY_ASSIGN(of_outputs, node.apply(ops::kSum, {*weights}, {{"axes", axes}}));
  TENON_TRY_ASSIGN(aligned, node.apply(ops::kReshape, {*of_outputs}, {{"shape", shape}}));
  return node.result(less_product(node, *sum, *aligned, *x->zero));
}

}  // namespace

std::span<const Converter> quantize_converters() {
  static constexpr Converter kTable[] = {
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

}  // namespace tenon::compiler::onnx
