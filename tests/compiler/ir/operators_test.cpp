// Tests of type rules: the types of results, the messages for wrong arguments, and the completeness of every record.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "compiler/ir/operator.h"
#include "compiler/ir/operator_reference.h"
#include "compiler/ir/text.h"

namespace tenon::compiler {
namespace {

using testing::HasSubstr;

// `call` is an expression over %a, %b, ... of the given types. Returns its type, or the first line of the error.
std::string type_of(const std::vector<std::string>& params, const std::string& call) {
  Context context;
  std::string list;
  for (size_t i = 0; i < params.size(); ++i) {
    list += (i ? ", %" : "%") + std::string(1, static_cast<char>('a' + i)) + ": Tensor[" + params[i] + "]";
  }
  const std::string text =
      "#[version = \"1\"]\ndef @main[N, H](" + list + ") -> Tensor[(77,), bool] {\n" + call + "\n}\n";
  auto module = parse(context, text);
  EXPECT_FALSE(module);
  std::string what = module.error().what;
  what = what.substr(0, what.find('\n'));
  const std::string mismatch = "the function returns Tensor[(77,), bool], but its result is ";
  return what.starts_with(mismatch) ? what.substr(mismatch.size()) : what;
}

struct Case {
  std::string name;
  std::vector<std::string> params;
  std::string call, answer;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
class TypeRule : public testing::TestWithParam<Case> {};

TEST_P(TypeRule, ReturnsTheTypeOrTheError) {
  EXPECT_THAT(type_of(GetParam().params, GetParam().call), HasSubstr(GetParam().answer));
}

const std::string kImage = "(N, 4, 9, 8), f32", kInt = "(N, 4, 9, 8), i8";

INSTANTIATE_TEST_SUITE_P(
    Contractions, TypeRule,
    testing::Values(
        Case{"conv", {kImage, "(6, 4, 3, 3), f32"}, "conv2d(%a, %b)", "Tensor[(N, 6, 7, 6), f32]"},
        Case{"conv_int", {kInt, "(6, 4, 3, 3), i8"}, "conv2d(%a, %b, pad_value=-3)", "Tensor[(N, 6, 7, 6), i32]"},
        Case{"conv_all",
             {kImage, "(6, 2, 3, 2), f32"},
             "conv2d(%a, %b, strides=[2, 3], padding=[1, 0, 2, 1], dilation=[2, 1], groups=2)",
             "Tensor[(N, 6, 4, 3), f32]"},
        Case{"conv_symbolic",
             {"(N, 4, H, 8), f32", "(6, 4, 3, 3), f32"},
             "conv2d(%a, %b)",
             "Tensor[(N, 6, H - 2, 6), f32]"},
        Case{"conv_mixed",
             {kImage, "(6, 4, 3, 3), i8"},
             "conv2d(%a, %b)",
             "conv2d: x and w must have the same dtype, found Tensor[(N, 4, 9, 8), f32] and Tensor[(6, 4, 3, 3), i8]"},
        Case{"conv_rank",
             {"(4, 9, 8), f32", "(6, 4, 3, 3), f32"},
             "conv2d(%a, %b)",
             "conv2d: x must have 4 dims, found Tensor[(4, 9, 8), f32]"},
        Case{"conv_channels",
             {kImage, "(6, 3, 3, 3), f32"},
             "conv2d(%a, %b)",
             "conv2d: w expects 3 x 1 group input channels, x has 4: x Tensor[(N, 4, 9, 8), f32], w Tensor[(6, 3, 3, "
             "3), "
             "f32]"},
        Case{"conv_groups",
             {kImage, "(5, 2, 3, 3), f32"},
             "conv2d(%a, %b, groups=2)",
             "5 output channels do not divide into 2 groups"},
        Case{"conv_large",
             {kImage, "(6, 4, 3, 11), f32"},
             "conv2d(%a, %b, padding=[0, 1, 0, 1])",
             "the window of 11 is larger than the padded width of 10"},
        Case{"conv_pad_value",
             {kInt, "(6, 4, 3, 3), i8"},
             "conv2d(%a, %b, pad_value=128)",
             "pad_value must be in -128 .. 127, found 128"},
        Case{"dense", {"(N, 3), i8", "(5, 3), i8"}, "dense(%a, %b)", "Tensor[(N, 5), i32]"},
        Case{"dense_features", {"(N, 3), f32", "(5, 4), f32"}, "dense(%a, %b)", "dense: x has 3 features, w expects 4"},
        Case{"matmul", {"(2, 1, N, 3), f32", "(7, 3, 4), f32"}, "matmul(%a, %b)", "Tensor[(2, 7, N, 4), f32]"},
        Case{"matmul_inner", {"(2, 3), f32", "(4, 2), f32"}, "matmul(%a, %b)", "matmul: a has 3 columns, b has 4 rows"},
        Case{"arity", {kImage}, "conv2d(%a)", "conv2d takes 2 arguments (x, w), found 1"},
        Case{"tuple", {kImage}, "relu((%a, %a))", "relu: argument 0 must be a tensor, found (Tensor["}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Elementwise, TypeRule,
    testing::Values(
        Case{"relu", {kInt}, "relu(%a)", "Tensor[(N, 4, 9, 8), i8]"},
        Case{"relu_bool",
             {"(N,), bool"},
             "relu(%a)",
             "relu: x must be of i8 or i16 or i32 or i64 or u8 or u16 or u32 or u64 or f16 or bf16 or f32 or f64, "
             "found Tensor[(N,), bool]"},
        Case{"clip_bounds", {kImage}, "clip(%a, min=2, max=1)", "clip: min 2 is above max 1"},
        Case{"sigmoid",
             {kInt},
             "sigmoid(%a)",
             "sigmoid: x must be of f16 or bf16 or f32 or f64, found Tensor[(N, 4, 9, 8), i8]"},
        Case{"add", {"(N, 1, 3), f32", "(4, 1), f32"}, "add(%a, %b)", "Tensor[(N, 4, 3), f32]"},
        Case{"add_shapes",
             {"(N, 3), f32", "(N, 4), f32"},
             "add(%a, %b)",
             "add: shapes (N, 3) and (N, 4) do not broadcast: 3 is not 4"},
        Case{"add_unknown", {"(N, 3), f32", "(H, 3), f32"}, "add(%a, %b)", "Tensor[(N, 3), f32]"},
        Case{"add_dtypes",
             {"(N,), f32", "(N,), i32"},
             "add(%a, %b)",
             "add: a and b must have the same dtype, found Tensor[(N,), f32] and Tensor[(N,), i32]"},
        Case{"bias_add", {kImage, "(4,), f32"}, "bias_add(%a, %b)", "Tensor[(N, 4, 9, 8), f32]"},
        Case{"bias_axis", {kImage, "(8,), f32"}, "bias_add(%a, %b, axis=-1)", "Tensor[(N, 4, 9, 8), f32]"},
        Case{"bias_length",
             {kImage, "(5,), f32"},
             "bias_add(%a, %b)",
             "bias_add: b must be Tensor[(4,), f32], found Tensor[(5,), f32]"},
        Case{"bias_no_axis", {kImage, "(4,), f32"}, "bias_add(%a, %b, axis=4)", "axis must be in -4 .. 3, found 4"},
        Case{"norm", {kImage, "(4,), f32"}, "batch_norm(%a, %b, %b, %b, %b)", "Tensor[(N, 4, 9, 8), f32]"},
        Case{"norm_length",
             {kImage, "(4,), f32", "(3,), f32"},
             "batch_norm(%a, %b, %b, %c, %b)",
             "mean must be Tensor[(4,), f32]"},
        Case{"cast", {kImage}, "cast(%a, dtype=\"i64\")", "Tensor[(N, 4, 9, 8), i64]"},
        Case{"cast_dtype", {kImage}, "cast(%a, dtype=\"f8\")", "f8"}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    PoolsAndShapes, TypeRule,
    testing::Values(
        Case{"max_pool", {kInt}, "max_pool2d(%a, kernel=[2, 2], strides=[2, 2])", "Tensor[(N, 4, 4, 4), i8]"},
        Case{"max_pool_ceil",
             {kImage},
             "max_pool2d(%a, kernel=[2, 2], strides=[2, 2], ceil=1)",
             "Tensor[(N, 4, 5, 4), f32]"},
        Case{"max_pool_pad",
             {kImage},
             "max_pool2d(%a, kernel=[2, 2], padding=[2, 0, 0, 0])",
             "padding [2, 0, 0, 0] must be smaller than the kernel [2, 2]"},
        Case{"avg_pool_int",
             {kInt},
             "avg_pool2d(%a, kernel=[2, 2])",
             "avg_pool2d: x must be of f16 or bf16 or f32 or f64"},
        Case{"global_avg", {kImage}, "global_avg_pool(%a)", "Tensor[(N, 4, 1, 1), f32]"},
        Case{"global_sum", {kInt}, "global_sum_pool(%a)", "Tensor[(N, 4, 1, 1), i32]"},
        Case{"softmax_scalar", {"(), f32"}, "softmax(%a)", "softmax: axis is -1, but a scalar has no axes"},
        Case{"softmax_axis", {kImage}, "softmax(%a, axis=-5)", "softmax: axis must be in -4 .. 3, found -5"},
        Case{"flatten", {kImage}, "flatten(%a, axis=2)", "Tensor[(4*N, 72), f32]"},
        Case{"reshape", {kImage}, "reshape(%a, shape=[-1, 0, 12])", "Tensor[(6*N, 4, 12), f32]"},
        Case{"reshape_count",
             {kImage},
             "reshape(%a, shape=[0, 5, -1])",
             "cannot be reshaped to [0, 5, -1]: the number of elements differs"},
        Case{"reshape_two_inferred", {kImage}, "reshape(%a, shape=[-1, -1])", "only one size may be -1"},
        Case{"transpose", {kImage}, "transpose(%a, axes=[3, 0, 2, 1])", "Tensor[(8, N, 9, 4), f32]"},
        Case{"transpose_axes",
             {kImage},
             "transpose(%a, axes=[0, 0, 1, 2])",
             "axes [0, 0, 1, 2] must be a permutation of 0 .. 3"},
        Case{"concat", {"(N, 2), f32", "(H, 2), f32"}, "concat(%a, %b, %a, axis=0)", "Tensor[(2*N + H, 2), f32]"},
        Case{"concat_shapes",
             {"(N, 2), f32", "(N, 3), f32"},
             "concat(%a, %b, axis=0)",
             "arguments 0 and 1 must be equal except along axis 0"},
        Case{"pad", {"(N, 2), f32"}, "pad(%a, before=[1, 0], after=[0, 3])", "Tensor[(N + 1, 5), f32]"},
        Case{"slice",
             {"(N, 7), f32"},
             "slice(%a, begin=[0, -1], end=[9223372036854775807, 0], step=[1, -2])",
             "Tensor[(N, 3), f32]"},
        Case{"slice_unknown",
             {"(N, 7), f32"},
             "slice(%a, begin=[1, 0], end=[3, 7], step=[1, 1])",
             "Tensor[(max(min(N - 1, 2), 0), 7), f32]"},
        Case{"layout", {kInt}, "layout_transform(%a, from=\"NCHW\", to=\"NCHW16c\")", "Tensor[(N, 1, 9, 8, 16), i8]"},
        Case{"layout_rows", {kInt}, "layout_transform(%a, from=\"NCHW\", to=\"NHWC\")", "Tensor[(N, 9, 8, 4), i8]"},
        Case{"layout_back",
             {"(N, 2, 9, 8, 16), i8"},
             "layout_transform(%a, from=\"NCHW16c\", to=\"NCHW\", channels=20)",
             "Tensor[(N, 20, 9, 8), i8]"},
        Case{"layout_channels",
             {"(N, 2, 9, 8, 16), i8"},
             "layout_transform(%a, from=\"NCHW16c\", to=\"NCHW\", channels=16)",
             "16 channels do not fill 2 blocks of 16"},
        Case{"layout_name", {kInt}, "layout_transform(%a, from=\"NCHW\", to=\"NCHW0c\")", "'NCHW0c' is not a layout"},
        Case{"layout_axes",
             {kInt},
             "layout_transform(%a, from=\"NCHW\", to=\"NCHD\")",
             "layouts NCHW and NCHD have different axes"},
        Case{"too_large",
             {"(1048576, 1048576), f32"},
             "pad(%a, before=[0, 0], after=[1, 0])",
             "has more than 2^40 elements"}),
    [](const auto& info) { return info.param.name; });

const std::string kAcc = "(N, 4, 2, 2), i32", kBias = "(4,), i32", kMul = "(4,), u16", kShift = "(4,), u8";

INSTANTIATE_TEST_SUITE_P(
    Quantization, TypeRule,
    testing::Values(
        Case{"quantize", {kImage}, "quantize(%a, scale=[0.1], zero_point=[-3])", "Tensor[(N, 4, 9, 8), i8]"},
        Case{"quantize_u8", {kImage}, "quantize(%a, scale=[1, 2, 3, 4], dtype=\"u8\")", "Tensor[(N, 4, 9, 8), u8]"},
        Case{"quantize_scale", {kImage}, "quantize(%a, scale=[0])", "scale must be in 1e-37 .. 1e+37, found 0"},
        Case{"quantize_denormal_scale",
             {kImage},
             "quantize(%a, scale=[1e-40])",
             "scale must be in 1e-37 .. 1e+37, found 1e-40"},
        Case{"quantize_zero",
             {kImage},
             "quantize(%a, scale=[1], zero_point=[128])",
             "zero_point must be in -128 .. 127, found [128]"},
        Case{"quantize_channels", {kImage}, "quantize(%a, scale=[1, 2])", "2 scales for 4 channels of axis 1"},
        Case{"dequantize", {kAcc}, "dequantize(%a, scale=[0.1])", "Tensor[(N, 4, 2, 2), f32]"},
        Case{"requantize",
             {kAcc, kBias, kMul, kShift},
             "requantize(%a, %b, %c, %d, zero=-128, lo=-128, hi=127)",
             "Tensor[(N, 4, 2, 2), i8]"},
        Case{"requantize_bias",
             {kAcc, "(3,), i32", kMul, kShift},
             "requantize(%a, %b, %c, %d)",
             "bias must be Tensor[(4,), i32], found Tensor[(3,), i32]"},
        Case{"requantize_multiplier",
             {kAcc, kBias, "(4,), i16", kShift},
             "requantize(%a, %b, %c, %d)",
             "multiplier must be Tensor[(4,), u16]"},
        Case{"requantize_range",
             {kAcc, kBias, kMul, kShift},
             "requantize(%a, %b, %c, %d, v_hi=2048)",
             "v_hi must be in -2048 .. 2047, found 2048"},
        Case{"requantize_add",
             {kAcc, kBias, kMul, kShift, "(N, 4, 2, 2), i8"},
             "requantize_add(%a, %b, %c, %d, %e, r_multiplier=40000, r_shift=9)",
             "Tensor[(N, 4, 2, 2), i8]"},
        Case{"residual",
             {kAcc, kBias, kMul, kShift, "(N, 4, 2, 1), i8"},
             "requantize_add(%a, %b, %c, %d, %e, r_multiplier=40000, r_shift=9)",
             "residual must be Tensor[(N, 4, 2, 2), i8], found Tensor[(N, 4, 2, 1), i8]"},
        Case{"residual_shift",
             {kAcc, kBias, kMul, kShift, "(N, 4, 2, 2), i8"},
             "requantize_add(%a, %b, %c, %d, %e, r_multiplier=40000, r_shift=32)",
             "r_shift must be in 0 .. 31, found 32"}),
    [](const auto& info) { return info.param.name; });

TEST(Operators, TheReferencePageHasEachOperator) {
  Context context;
  const std::string page = operator_reference(context);
  for (const Operator* op : context.operators()) {
    EXPECT_NE(page.find("\n### " + op->name + "\n"), std::string::npos) << op->name;
    EXPECT_NE(page.find(op->documentation), std::string::npos) << op->name;
    EXPECT_NE(page.find(op->gradient_note), std::string::npos) << op->name;
  }
}

TEST(Operators, EveryHandleNamesARecordAndEveryRecordHasAHandle) {
  const Context context;
  for (const std::string_view text : kOperatorNames) {
    const OperatorId id = find_operator_id(text);
    EXPECT_EQ(context.op(id).name, text);
    EXPECT_TRUE(context.op(id).is(id)) << text;
    EXPECT_EQ(context.find_operator(text), &context.op(id)) << text;
    EXPECT_EQ(name(id), text);
  }
  for (const Operator* op : context.operators()) EXPECT_LT(op->id, OperatorId::kAdded) << op->name << " has no handle";
}

TEST(Operators, AnAddedOperatorHasAnIdOfItsOwnAndAReplacedOneKeepsIts) {
  Context context;
  Operator record = context.op(ops::kRelu);
  record.name = "first";
  const Operator* first = context.add_operator(record);
  record.name = "second";
  const Operator* second = context.add_operator(record);
  EXPECT_NE(first->id, second->id);
  EXPECT_EQ(&context.op(first->id), first);
  EXPECT_EQ(&context.op(second->id), second);
  record.name = "relu";
  const Operator* relu = context.add_operator(record);
  EXPECT_TRUE(relu->is(ops::kRelu));
  EXPECT_EQ(&context.op(ops::kRelu), relu);
}

TEST(Operators, HaveDocumentationRuleAndKernel) {
  Context context;
  EXPECT_GE(context.operators().size(), 120u);
  for (const Operator* op : context.operators()) {
    EXPECT_FALSE(op->documentation.empty()) << op->name;
    EXPECT_NE(op->rule, nullptr) << op->name;
    EXPECT_TRUE(op->reference) << op->name;
    for (const AttrSpec& spec : op->attributes) {
      EXPECT_FALSE(spec.documentation.empty()) << op->name << " " << spec.name;
      if (spec.default_value) {
        EXPECT_EQ(spec.default_value->index(), static_cast<size_t>(spec.kind)) << op->name;
      }
    }
  }
}

}  // namespace
}  // namespace tenon::compiler
