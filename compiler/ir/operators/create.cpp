// Tensors made of attributes, and random ones made of a key: two words, i32 [2]. The same key gives the same numbers.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

constexpr int64_t kMax = int64_t{1} << 31;

Expected<Type> shaped(const RuleInput& in, DType dtype) {
  const auto& shape = ints_attr(in.attrs, "shape");
  TENON_TRY(check_ints(in, "shape", shape.size(), 0, kMax));
  return in.context.tensor(shape, dtype);
}

Expected<Type> full(const RuleInput& in) {
  TENON_TRY_ASSIGN(dtype, dtype_attr(in));
  TENON_TRY(check_value(in, "value", *dtype));
  return shaped(in, *dtype);
}

Expected<Type> arange(const RuleInput& in) {
  TENON_TRY_ASSIGN(dtype, dtype_attr(in));
  if (*dtype == DType::kBool) return error("bools do not count: dtype must be another");
  TENON_TRY(check_int(in, "count", 0, kMax));
  TENON_TRY(check_value(in, "start", *dtype));
  return in.context.tensor(Dims{in.context.dim(int_attr(in.attrs, "count"))}, *dtype);
}

Expected<Type> eye(const RuleInput& in) {
  TENON_TRY_ASSIGN(dtype, dtype_attr(in));
  TENON_TRY(check_int(in, "rows", 0, kMax));
  TENON_TRY(check_int(in, "columns", 0, kMax));
  TENON_TRY(check_int(in, "diagonal", -kMax, kMax));
  return in.context.tensor(
      Dims{in.context.dim(int_attr(in.attrs, "rows")), in.context.dim(int_attr(in.attrs, "columns"))}, *dtype);
}

Status check_key(const RuleInput& in) { return check_vector(in, 0, "key", DType::kI32, in.context.dim(2)); }

Expected<Type> random_split(const RuleInput& in) {
  TENON_TRY(check_key(in));
  TENON_TRY(check_int(in, "count", 1, 1 << 20));
  return in.context.tensor(Dims{in.context.dim(int_attr(in.attrs, "count")), in.context.dim(2)}, DType::kI32);
}

Expected<Type> random_values(const RuleInput& in) {
  TENON_TRY(check_key(in));
  TENON_TRY_ASSIGN(dtype, dtype_attr(in));
  if (!runtime::kReals.contains(*dtype)) {
    return error(fmt::format("dtype must be f32 or f64, found {}", runtime::name(*dtype)));
  }
  return shaped(in, *dtype);
}

Expected<Type> random_bernoulli(const RuleInput& in) {
  TENON_TRY(check_key(in));
  const double p = float_attr(in.attrs, "probability");
  if (!(p >= 0 && p <= 1)) return error(fmt::format("probability must be in 0 .. 1, found {}", p));
  return shaped(in, DType::kBool);
}

}  // namespace

std::vector<Operator> create_operators() {
  const AttrSpec dtype{"dtype", AttrKind::kString, std::string("f32"), "the result's dtype"};
  const AttrSpec shape{"shape", AttrKind::kInts, std::nullopt, "the result's sizes"};
  const Input key{"key", {DType::kI32}};
  return {
      {"full",
       "A tensor of one value.",
       {},
       {shape, {"value", AttrKind::kFloat, 0.0, "it"}, dtype},
       full,
       OpPattern::kInjective},
      {"arange",
       "start, start + step, ...: a vector of `count` elements.",
       {},
       {{"count", AttrKind::kInt, std::nullopt, "how many"},
        {"start", AttrKind::kFloat, 0.0, "the first"},
        {"step", AttrKind::kFloat, 1.0, "distance of two"},
        {"dtype", AttrKind::kString, std::string("i64"), "the result's dtype"}},
       arange,
       OpPattern::kInjective},
      {"eye",
       "A matrix with ones on a diagonal, zeros elsewhere.",
       {},
       {{"rows", AttrKind::kInt, std::nullopt, "height"},
        {"columns", AttrKind::kInt, std::nullopt, "width"},
        {"diagonal", AttrKind::kInt, int64_t{0}, "the diagonal: 1 is right of the main one"},
        dtype},
       eye,
       OpPattern::kInjective},
      {"random_split",
       "New keys from a key, one a row: i32 [count, 2].",
       {key},
       {{"count", AttrKind::kInt, int64_t{2}, "how many"}},
       random_split,
       OpPattern::kOpaque},
      {"random_uniform",
       "Random values in a .. b, b excluded, by Threefry-2x32 from a key, i32 [2].",
       {key},
       {shape, {"a", AttrKind::kFloat, 0.0, "lower end"}, {"b", AttrKind::kFloat, 1.0, "upper end"}, dtype},
       random_values,
       OpPattern::kOpaque},
      {"random_normal",
       "Random values of the normal distribution with mean a and deviation b, from a key, i32 [2].",
       {key},
       {shape, {"a", AttrKind::kFloat, 0.0, "mean"}, {"b", AttrKind::kFloat, 1.0, "deviation"}, dtype},
       random_values,
       OpPattern::kOpaque},
      {"random_bernoulli",
       "Random bools, true with a probability, from a key, i32 [2].",
       {key},
       {shape, {"probability", AttrKind::kFloat, 0.5, "of true"}},
       random_bernoulli,
       OpPattern::kOpaque},
  };
}

}  // namespace tenon::compiler
