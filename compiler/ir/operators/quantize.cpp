// Conversions between real and quantized values; hw/spec/requantize.h defines the arithmetic of requantization.
#include "compiler/ir/operators/rules.h"
#include "hw/spec/requantize.h"

namespace tenon::compiler {
namespace {

constexpr double kSmallestScale = 1e-37, kLargestScale = 1e37;  // normal f32, as are their reciprocals

// scale and zero_point have one value for the tensor, or one value for each index along axis.
Status check_scales(const RuleInput& in, int64_t zero_lo, int64_t zero_hi) {
  const auto& scales = floats_attr(in.attrs, "scale");
  const auto& zeros = ints_attr(in.attrs, "zero_point");
  if (scales.empty() || (zeros.size() != 1 && zeros.size() != scales.size())) {
    return error(
        fmt::format("requires one zero_point, or one per scale; found {} and {} scales", zeros.size(), scales.size()));
  }
  for (double scale : scales) {
    if (!(scale >= kSmallestScale && scale <= kLargestScale))
      return error(fmt::format("scale must be in {} .. {}, found {}", kSmallestScale, kLargestScale, scale));
  }
  TENON_TRY(check_ints(in, "zero_point", zeros.size(), zero_lo, zero_hi));
  if (scales.size() == 1) return {};
  TENON_TRY_ASSIGN(axis, axis_of(in, "axis", in.arg(0).rank()));
  return require_size(
      in, 0, *axis, in.context.dim(static_cast<int64_t>(scales.size())),
      fmt::format("{} scales for {} channels of axis {}", scales.size(), in.context.str(in.arg(0).dims[*axis]), *axis));
}

Expected<Type> quantize(const RuleInput& in) {
  TENON_TRY_ASSIGN(dtype, dtype_attr(in));
  if (*dtype != DType::kI8 && *dtype != DType::kU8) {
    return error(fmt::format("dtype must be i8 or u8, found {}", runtime::name(*dtype)));
  }
  const bool is_signed = *dtype == DType::kI8;
  TENON_TRY(check_scales(in, is_signed ? -128 : 0, is_signed ? 127 : 255));
  return in.context.tensor(in.arg(0).dims, *dtype);
}

Expected<Type> dequantize(const RuleInput& in) {
  switch (in.arg(0).dtype) {
    case DType::kI8: TENON_TRY(check_scales(in, -128, 127)); break;
    case DType::kU8: TENON_TRY(check_scales(in, 0, 255)); break;
    default: TENON_TRY(check_scales(in, INT32_MIN, INT32_MAX)); break;
  }
  return in.context.tensor(in.arg(0).dims, DType::kF32);
}

Expected<Type> dynamic_quantize(const RuleInput& in) {
  Context& context = in.context;
  return context.tuple({context.tensor(in.arg(0).dims, DType::kU8), context.tensor(Dims{}, DType::kF32),
                        context.tensor(Dims{}, DType::kU8)});
}

Expected<Type> requantize(const RuleInput& in) {
  TENON_TRY_ASSIGN(axis, axis_of(in, "axis", in.arg(0).rank()));
  const Dim channels = in.arg(0).dims[*axis];
  TENON_TRY(check_vector(in, 1, "bias", DType::kI32, channels));
  TENON_TRY(check_vector(in, 2, "multiplier", DType::kU16, channels));
  TENON_TRY(check_vector(in, 3, "shift", DType::kU8, channels));
  TENON_TRY(check_int(in, "zero", -128, 127));
  TENON_TRY(check_int(in, "lo", -128, 127));
  TENON_TRY(check_int(in, "hi", -128, 127));
  TENON_TRY(check_int(in, "v_lo", -2048, 2047));
  TENON_TRY(check_int(in, "v_hi", -2048, 2047));
  return in.context.tensor(in.arg(0).dims, DType::kI8);
}

Expected<Type> requantize_add(const RuleInput& in) {
  TENON_TRY_ASSIGN(result, requantize(in));
  TENON_TRY(require_type(in, 4, "residual", *result));
  TENON_TRY(check_int(in, "r_zero", -128, 127));
  TENON_TRY(check_int(in, "r_multiplier", 0, 65535));
  TENON_TRY(check_int(in, "r_shift", 0, spec::kMaxResidualShift));
  return result;
}

std::vector<AttrSpec> scale_attributes(bool to_integer) {
  std::vector<AttrSpec> specs{{"scale", AttrKind::kFloats, std::nullopt, "one scale, or one per channel"},
                              {"zero_point", AttrKind::kInts, std::vector<int64_t>{0}, "the integer that represents 0"},
                              {"axis", AttrKind::kInt, int64_t{1}, "axis of the channels"}};
  if (to_integer) specs.push_back({"dtype", AttrKind::kString, std::string("i8"), "i8 or u8"});
  return specs;
}

std::vector<AttrSpec> requantize_attributes(bool residual) {
  std::vector<AttrSpec> specs{{"axis", AttrKind::kInt, int64_t{1}, "axis of the channels"},
                              {"zero", AttrKind::kInt, int64_t{0}, "zero point of the result"},
                              {"lo", AttrKind::kInt, int64_t{-128}, "smallest result"},
                              {"hi", AttrKind::kInt, int64_t{127}, "largest result"},
                              {"v_lo", AttrKind::kInt, int64_t{-2048}, "smallest value before the add"},
                              {"v_hi", AttrKind::kInt, int64_t{2047}, "largest value before the add"}};
  if (residual) {
    specs.push_back({"r_zero", AttrKind::kInt, int64_t{0}, "zero point of the residual"});
    specs.push_back({"r_multiplier", AttrKind::kInt, std::nullopt, "multiplier of the residual"});
    specs.push_back(
        {"r_shift", AttrKind::kInt, std::nullopt, "shift of the residual, minus the eight fractional bits"});
  }
  return specs;
}

}  // namespace

std::vector<Operator> quantize_operators() {
  return {
      {.name = "quantize",
       .documentation = "clamp(round_half_even(x / scale) + zero_point) to the range of dtype.",
       .inputs = {{"x", {DType::kF32}}},
       .attributes = scale_attributes(true),
       .rule = quantize,
       .pattern = OpPattern::kElementwise},
      {.name = "dequantize",
       .documentation = "(x - zero_point) * scale.",
       .inputs = {{"x", {DType::kI8, DType::kU8, DType::kI32}}},
       .attributes = scale_attributes(false),
       .rule = dequantize,
       .pattern = OpPattern::kElementwise},
      {.name = "dynamic_quantize",
       .documentation =
           "A tuple of x in u8, its scale (the range of x and 0, divided by 255) and its zero point; x must be finite.",
       .inputs = {{"x", {DType::kF32}}},
       .rule = dynamic_quantize,
       .may_fail = depends_on_elements},
      {.name = "requantize",
       .documentation =
           "i32 accumulators to i8 with bias, multiplier and shift per channel, as defined in hw/spec/requantize.h.",
       .inputs = {{"acc", {DType::kI32}}, {"bias", {DType::kI32}}, "multiplier", "shift"},
       .attributes = requantize_attributes(false),
       .rule = requantize,
       .pattern = OpPattern::kBroadcast,
       .may_fail = may_shift_too_far,
       .samples = SampleArguments::requantization()},
      {.name = "requantize_add",
       .documentation = "requantize, with a scaled i8 residual added before the rounding.",
       .inputs = {{"acc", {DType::kI32}}, {"bias", {DType::kI32}}, "multiplier", "shift", "residual"},
       .attributes = requantize_attributes(true),
       .rule = requantize_add,
       .pattern = OpPattern::kBroadcast,
       .may_fail = may_shift_too_far,
       .samples = SampleArguments::requantization()},
  };
}

}  // namespace tenon::compiler
