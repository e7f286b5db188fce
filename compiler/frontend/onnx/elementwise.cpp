// Converters of elementwise ONNX operators.
#include <fmt/format.h>

#include <array>
#include <limits>

#include "compiler/frontend/onnx/expression.h"

namespace tenon::compiler::onnx {
namespace {

using runtime::reference::Name;

// An activation whose float attributes have ONNX's names and defaults.
template <OperatorId op, Name... attributes>
Status activation(NodeImport& node) {
  TENON_TRY_ASSIGN(attrs, node.reals_given({attributes.text...}));
  return node.result(node.apply(op, {0}, std::move(*attrs)));
}

Status gelu(NodeImport& node) {
  TENON_TRY_ASSIGN(approximate, node.string("approximate", "none"));
  return node.result(node.apply(*approximate == "tanh" ? ops::kGeluTanh : ops::kGelu, {0}));
}

Status shrink(NodeImport& node) {
  TENON_TRY_ASSIGN(bias, node.real("bias", 0.0));
  TENON_TRY_ASSIGN(lambda, node.real("lambd", 0.5));
  NodeFormula f(node);
  const Term x = f.input(0);
  return f.result(
      f.apply(ops::kShrink, {x.cast(real_of(x.dtype()))}, {{"bias", *bias}, {"lambda", *lambda}}).cast(x.dtype()));
}

Status prelu(NodeImport& node) {
  NodeFormula f(node);
  const Term x = f.input(0), slope = f.input(1);
  if (runtime::kReals.contains(x.dtype())) return f.result(f.apply(ops::kPrelu, {x, slope}));
  if (runtime::kUnsignedIntegers.contains(x.dtype())) return f.result(f.apply(ops::kIdentity, {x}));  // none is below 0
  return f.result(select(less(x, 0.0), x * slope, x));
}

// Max, Min, Sum and Mean of any number of tensors.
template <OperatorId op, bool mean = false>
Status variadic(NodeImport& node) {
  TENON_TRY_ASSIGN(args, node.all_inputs());
  TENON_TRY_ASSIGN(type, node.type(0));
  Expected<Atom> result = (*args)[0];
  for (size_t i = 1; i < args->size() && result; ++i) result = node.apply(op, {*result, (*args)[i]});
  if (!result || !mean) return node.result(std::move(result));
  return node.result(node.apply(ops::kDivide, {*result, node.scalar(static_cast<double>(args->size()), type->dtype)}));
}

Status modulo(NodeImport& node) {
  TENON_TRY_ASSIGN(fmod, node.integer("fmod", 0));
  return node.result(node.apply(*fmod ? ops::kRemainder : ops::kModulo, {0, 1}));
}

Expected<Atom> cast_to(NodeImport& node, Atom atom, DType dtype) {
  if (node.builder().tensor_type(atom)->dtype == dtype) return atom;
  return node.apply(ops::kCast, {atom}, {{"dtype", std::string(runtime::name(dtype))}});
}

// The result has the base's dtype, for any dtype of the exponent.
Status power(NodeImport& node) {
  TENON_TRY_ASSIGN(a, node.input(0));
  TENON_TRY_ASSIGN(b, node.input(1));
  TENON_TRY_ASSIGN(base, node.type(0));
  TENON_TRY_ASSIGN(exponent, node.type(1));
  const bool by_real = runtime::kReals.contains(exponent->dtype) && !runtime::kReals.contains(base->dtype);
  const DType dtype = by_real ? exponent->dtype : base->dtype;
  TENON_TRY_ASSIGN(left, cast_to(node, *a, dtype));
  TENON_TRY_ASSIGN(right, cast_to(node, *b, dtype));
  TENON_TRY_ASSIGN(result, node.apply(ops::kPower, {*left, *right}));
  return node.result(cast_to(node, *result, base->dtype));
}

Status bit_shift(NodeImport& node) {
  TENON_TRY_ASSIGN(direction, node.string("direction", ""));
  if (*direction != "LEFT" && *direction != "RIGHT") return node.fail("direction must be LEFT or RIGHT");
  return node.result(node.apply(*direction == "LEFT" ? ops::kShiftLeft : ops::kShiftRight, {0, 1}));
}

Status is_inf(NodeImport& node) {
  TENON_TRY_ASSIGN(positive, node.integer("detect_positive", 1));
  TENON_TRY_ASSIGN(negative, node.integer("detect_negative", 1));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(infinite, node.apply(ops::kIsInf, {*x}));
  if (*positive && *negative) return node.result(*infinite);
  const Atom zero = node.scalar(0, type->dtype);
  if (!*positive && !*negative) {
    NodeFormula f(node);
    return f.result(f.full(type->dims, 0, DType::kBool));
  }
  TENON_TRY_ASSIGN(side, node.apply(*positive ? ops::kGreater : ops::kLess, {*x, zero}));
  return node.result(node.apply(ops::kLogicalAnd, {*infinite, *side}));
}

// Bounds are attributes up to opset 10, inputs from 11; bounds that are not constants need separate operators.
Status clip(NodeImport& node) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  TENON_TRY_ASSIGN(x, node.input(0));
  if (node.opset() < 11) {
    TENON_TRY_ASSIGN(lo, node.real("min", -kInfinity));
    TENON_TRY_ASSIGN(hi, node.real("max", kInfinity));
    return node.result(node.apply(ops::kClip, {*x}, {{"min", *lo}, {"max", *hi}}));
  }
  double bounds[] = {-kInfinity, kInfinity};
  Expected<Atom> result = *x;
  for (size_t i : {size_t{1}, size_t{2}}) {
    if (!node.has_input(i)) continue;
    TENON_TRY_ASSIGN(bound, node.input(i));
    const runtime::Tensor* known = node.constant_tensor(*bound);
    if (known && known->size() != 1) return node.fail("min and max must be one element");
    if (known && known->dtype() != DType::kI64 && known->dtype() != DType::kU64 && known->dtype() != DType::kF64) {
      runtime::with_dtype<runtime::kAnyDType>(
          known->dtype(), [&]<class T>(T) { bounds[i - 1] = static_cast<double>(known->data<T>()[0]); });
      continue;
    }
    result = node.apply(i == 1 ? ops::kMaximum : ops::kMinimum, {*result, *bound});
    if (!result) return std::unexpected(result.error());
  }
  if (bounds[0] == -kInfinity && bounds[1] == kInfinity) return node.result(std::move(result));
  // Where the lower bound exceeds the upper one, the result is the upper one: ONNX applies the maximum first.
  bounds[0] = std::min(bounds[0], bounds[1]);
  return node.result(node.apply(ops::kClip, {*result}, {{"min", bounds[0]}, {"max", bounds[1]}}));
}

// `x` in another dtype, by the attributes of Cast and CastLike.
Expected<Atom> converted(NodeImport& node, Atom x, DType dtype) {
  TENON_TRY_ASSIGN(saturate, node.integer("saturate", 1));
  TENON_TRY_ASSIGN(rounding, node.string("round_mode", "up"));
  Attrs attrs{{"dtype", std::string(runtime::name(dtype))}};
  if (runtime::kNarrowFloats.contains(dtype)) attrs["saturate"] = *saturate;
  if (dtype == DType::kF8E8M0) attrs["rounding"] = *rounding;
  return node.apply(ops::kCast, {x}, std::move(attrs));
}

Status cast(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(to, node.integer("to"));
  const auto dtype = dtype_of_id(*to);
  if (!dtype) return node.fail(fmt::format("a cast to ONNX's data type {} is not supported", *to));
  return node.result(converted(node, *x, *dtype));
}

Status bit_cast(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(to, node.integer("to"));
  const auto dtype = dtype_of_id(*to);
  if (!dtype) return node.fail(fmt::format("a cast to ONNX's data type {} is not supported", *to));
  return node.result(node.apply(ops::kBitcast, {*x}, {{"dtype", std::string(runtime::name(*dtype))}}));
}

Status cast_like(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(like, node.type(1));
  return node.result(converted(node, *x, like->dtype));
}

// In training, each element is dropped with the probability `ratio`, and the others are scaled. They are the same
// in every run. Output 1 is true for the elements that are kept.
Status dropout(NodeImport& node) {
  NodeFormula f(node);
  const Term x = f.input(0);
  TENON_TRY_ASSIGN(attribute, node.real("ratio", 0.5));
  TENON_TRY_ASSIGN(seed, node.integer("seed", 0));
  std::optional<Term> training;
  if (node.has_input(2)) {
    training = f.input(2);
    const runtime::Tensor* known = f.ok() ? node.constant_tensor(training->atom()) : nullptr;
    const bool valid = training->dtype() == DType::kBool && (!known || known->size() == 1);
    f.expect(valid, "training_mode must be one bool");
    if (valid && known && !known->data<bool>()[0]) training.reset();
  }
  const bool masked = node.node().outputs.size() > 1 && !node.node().outputs[1].empty();
  if (!training && !masked) return f.result(f.apply(ops::kIdentity, {x}));
  Term kept = f.full(x.dims(), 1, DType::kBool);
  if (!training) return f.results({f.apply(ops::kIdentity, {x}), kept});
  const Term ratio = node.has_input(1) ? f.input(1).cast(DType::kF32).reshape({}) : f.scalar(*attribute, DType::kF32);
  const Term key = f.constant(runtime::Tensor::of<int32_t>({2}, std::array{static_cast<int32_t>(*seed), 1}));
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < x.rank(); ++i) shape.push_back(f.known_size(x, i, "a size of x"));
  const Term drawn = f.apply(ops::kRandomUniform, {key}, {{"shape", shape}});
  const Term mode = training->reshape({}), inference = f.apply(ops::kLogicalNot, {mode});
  kept = f.apply(ops::kLogicalOr, {f.apply(ops::kGreaterEqual, {drawn, ratio}), inference});
  const Term scaled =
      x * select(mode, f.apply(ops::kReciprocal, {1.0 - ratio}), f.scalar(1, DType::kF32)).cast(x.dtype());
  return f.results({select(kept, scaled, f.scalar(0, x.dtype())), kept});
}

// A sequence is not copied.
Status identity(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  if (!node.builder().tensor_type(*x)) return node.result(0, *x);
  return node.result(node.apply(ops::kIdentity, {*x}));
}

}  // namespace

std::optional<DType> dtype_of_id(int64_t number) {
  static constexpr std::pair<int64_t, DType> kTypes[] = {
      {1, DType::kF32},         {2, DType::kU8},        {3, DType::kI8},          {4, DType::kU16},
      {5, DType::kI16},         {6, DType::kI32},       {7, DType::kI64},         {9, DType::kBool},
      {10, DType::kF16},        {11, DType::kF64},      {12, DType::kU32},        {13, DType::kU64},
      {16, DType::kBF16},       {17, DType::kF8E4M3FN}, {18, DType::kF8E4M3FNUZ}, {19, DType::kF8E5M2},
      {20, DType::kF8E5M2FNUZ}, {21, DType::kU4},       {22, DType::kI4},         {23, DType::kF4E2M1},
      {24, DType::kF8E8M0},     {25, DType::kU2},       {26, DType::kI2}};
  for (const auto& [known, dtype] : kTypes) {
    if (known == number) return dtype;
  }
  return std::nullopt;
}

std::span<const Converter> elementwise_converters() {
  static constexpr Converter kTable[] = {
      {"Abs", 1, 1, convert_plain<ops::kAbs>},
      {"Acos", 1, 1, convert_plain<ops::kAcos>},
      {"Acosh", 1, 1, convert_plain<ops::kAcosh>},
      {"Add", 2, 2, convert_plain<ops::kAdd, 2>},
      {"And", 2, 2, convert_plain<ops::kLogicalAnd, 2>},
      {"Asin", 1, 1, convert_plain<ops::kAsin>},
      {"Asinh", 1, 1, convert_plain<ops::kAsinh>},
      {"Atan", 1, 1, convert_plain<ops::kAtan>},
      {"Atanh", 1, 1, convert_plain<ops::kAtanh>},
      {"BitCast", 1, 1, bit_cast},
      {"BitShift", 2, 2, bit_shift},
      {"BitwiseAnd", 2, 2, convert_plain<ops::kBitwiseAnd, 2>},
      {"BitwiseNot", 1, 1, convert_plain<ops::kBitwiseNot>},
      {"BitwiseOr", 2, 2, convert_plain<ops::kBitwiseOr, 2>},
      {"BitwiseXor", 2, 2, convert_plain<ops::kBitwiseXor, 2>},
      {"Cast", 1, 1, cast},
      {"CastLike", 2, 2, cast_like},
      {"Ceil", 1, 1, convert_plain<ops::kCeil>},
      {"Celu", 1, 1, activation<ops::kCelu, "alpha">},
      {"Clip", 1, 3, clip},
      {"Cos", 1, 1, convert_plain<ops::kCos>},
      {"Cosh", 1, 1, convert_plain<ops::kCosh>},
      {"Div", 2, 2, convert_plain<ops::kDivide, 2>},
      {"Dropout", 1, 3, dropout},
      {"Elu", 1, 1, activation<ops::kElu, "alpha">},
      {"Equal", 2, 2, convert_plain<ops::kEqual, 2>},
      {"Erf", 1, 1, convert_by_reals<ops::kErf>},
      {"Exp", 1, 1, convert_plain<ops::kExp>},
      {"Floor", 1, 1, convert_plain<ops::kFloor>},
      {"Gelu", 1, 1, gelu},
      {"Greater", 2, 2, convert_plain<ops::kGreater, 2>},
      {"GreaterOrEqual", 2, 2, convert_plain<ops::kGreaterEqual, 2>},
      {"HardSigmoid", 1, 1, activation<ops::kHardSigmoid, "alpha", "beta">},
      {"HardSwish", 1, 1, convert_plain<ops::kHardSwish>},
      {"Identity", 1, 1, identity},
      {"IsInf", 1, 1, is_inf},
      {"IsNaN", 1, 1, convert_plain<ops::kIsNan>},
      {"LeakyRelu", 1, 1, activation<ops::kLeakyRelu, "alpha">},
      {"Less", 2, 2, convert_plain<ops::kLess, 2>},
      {"LessOrEqual", 2, 2, convert_plain<ops::kLessEqual, 2>},
      {"Log", 1, 1, convert_plain<ops::kLog>},
      {"Max", 1, 4096, variadic<ops::kMaximum>},
      {"Mean", 1, 4096, variadic<ops::kAdd, true>},
      {"Min", 1, 4096, variadic<ops::kMinimum>},
      {"Mish", 1, 1, convert_plain<ops::kMish>},
      {"Mod", 2, 2, modulo},
      {"Mul", 2, 2, convert_plain<ops::kMultiply, 2>},
      {"Neg", 1, 1, convert_plain<ops::kNegate>},
      {"Not", 1, 1, convert_plain<ops::kLogicalNot>},
      {"Or", 2, 2, convert_plain<ops::kLogicalOr, 2>},
      {"PRelu", 2, 2, prelu},
      {"Pow", 2, 2, power},
      {"Reciprocal", 1, 1, convert_plain<ops::kReciprocal>},
      {"Relu", 1, 1, convert_plain<ops::kRelu>},
      {"Round", 1, 1, convert_plain<ops::kRound>},
      {"Selu", 1, 1, activation<ops::kSelu, "alpha", "gamma">},
      {"Shrink", 1, 1, shrink},
      {"Sigmoid", 1, 1, convert_plain<ops::kSigmoid>},
      {"Sign", 1, 1, convert_plain<ops::kSign>},
      {"Sin", 1, 1, convert_plain<ops::kSin>},
      {"Sinh", 1, 1, convert_plain<ops::kSinh>},
      {"Softplus", 1, 1, convert_plain<ops::kSoftplus>},
      {"Softsign", 1, 1, convert_plain<ops::kSoftsign>},
      {"Sqrt", 1, 1, convert_plain<ops::kSqrt>},
      {"Sub", 2, 2, convert_plain<ops::kSubtract, 2>},
      {"Sum", 1, 4096, variadic<ops::kAdd>},
      {"Tan", 1, 1, convert_plain<ops::kTan>},
      {"Tanh", 1, 1, convert_plain<ops::kTanh>},
      {"ThresholdedRelu", 1, 1, activation<ops::kThresholdedRelu, "alpha">},
      {"Where", 3, 3, convert_plain<ops::kSelect, 3>},
      {"Xor", 2, 2, convert_plain<ops::kLogicalXor, 2>},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
