// Tensors from attributes, and random tensors from a key of two 32-bit words, i32 [2]. The same key produces the same
// values.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

Expected<Type> shaped(const RuleInput& in, DType dtype) {
  TENON_TRY_ASSIGN(shape, sizes_attr(in, "shape", {}, 0));
  return in.context.tensor(std::move(*shape), dtype);
}

Expected<Type> full(const RuleInput& in) {
  TENON_TRY_ASSIGN(dtype, dtype_attr(in));
  TENON_TRY(check_value(in, "value", *dtype));
  return shaped(in, *dtype);
}

Expected<Type> arange(const RuleInput& in) {
  TENON_TRY_ASSIGN(dtype, dtype_attr(in));
  if (*dtype == DType::kBool) return error("dtype must be a numeric type, found bool");
  TENON_TRY_ASSIGN(count, size_attr(in, "count", 0));
  TENON_TRY(check_value(in, "start", *dtype));
  return in.context.tensor(Dims{*count}, *dtype);
}

Expected<Type> eye(const RuleInput& in) {
  TENON_TRY_ASSIGN(dtype, dtype_attr(in));
  TENON_TRY_ASSIGN(rows, size_attr(in, "rows", 0));
  TENON_TRY_ASSIGN(columns, size_attr(in, "columns", 0));
  TENON_TRY(check_int(in, "diagonal", -kMaxSize, kMaxSize));
  return in.context.tensor(Dims{*rows, *columns}, *dtype);
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
    return error(fmt::format("dtype must be {}, found {}", runtime::kReals.str(), runtime::name(*dtype)));
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
  const AttrSpec sizes{"shape", AttrKind::kInts, std::nullopt, "the result's sizes"};
  // The number of random words is a constant of a native kernel, so sizes of the type alone do not suffice.
  const AttrSpec shape = in_result_type(sizes), drawn = computable(sizes);
  const Input key{"key", {DType::kI32}};
  return {
      {.name = "full",
       .documentation = "A tensor whose elements have the same value.",
       .attributes = {shape, {"value", AttrKind::kFloat, 0.0, "value of the elements"}, dtype},
       .rule = full,
       .pattern = OpPattern::kInjective},
      {.name = "arange",
       .documentation = "start, start + step, ...: a vector of `count` elements.",
       .attributes = {in_result_type({"count", AttrKind::kInt, std::nullopt, "number of elements"}),
                      {"start", AttrKind::kFloat, 0.0, "first element"},
                      {"step", AttrKind::kFloat, 1.0, "difference of consecutive elements"},
                      {"dtype", AttrKind::kString, std::string("i64"), "the result's dtype"}},
       .rule = arange,
       .pattern = OpPattern::kInjective},
      {.name = "eye",
       .documentation = "A matrix with ones on a diagonal, zeros elsewhere.",
       .attributes = {{"rows", AttrKind::kInt, std::nullopt, "height", true},
                      {"columns", AttrKind::kInt, std::nullopt, "width", true},
                      {"diagonal", AttrKind::kInt, int64_t{0},
                       "index of the diagonal: 1 is right of the main diagonal"},
                      dtype},
       .rule = eye,
       .pattern = OpPattern::kInjective},
      {.name = "random_split",
       .documentation = "New keys from a key, one per row: i32 [count, 2].",
       .inputs = {key},
       .attributes = {{"count", AttrKind::kInt, int64_t{2}, "number of keys"}},
       .rule = random_split,
       .samples = SampleArguments::random_key()},
      {.name = "random_uniform",
       .documentation = "Random values in a .. b, b excluded, by Threefry-2x32 from a key, i32 [2].",
       .inputs = {key},
       .attributes =
           {drawn, {"a", AttrKind::kFloat, 0.0, "lower end"}, {"b", AttrKind::kFloat, 1.0, "upper end"}, dtype},
       .rule = random_values,
       .samples = SampleArguments::random_key()},
      {.name = "random_normal",
       .documentation = "Random values of the normal distribution with mean a and deviation b, from a key, i32 [2].",
       .inputs = {key},
       .attributes = {drawn, {"a", AttrKind::kFloat, 0.0, "mean"}, {"b", AttrKind::kFloat, 1.0, "deviation"}, dtype},
       .rule = random_values,
       .samples = SampleArguments::random_key()},
      {.name = "random_bernoulli",
       .documentation = "Random bools, true with a probability, from a key, i32 [2].",
       .inputs = {key},
       .attributes = {drawn, {"probability", AttrKind::kFloat, 0.5, "probability of true"}},
       .rule = random_bernoulli,
       .samples = SampleArguments::random_key()},
  };
}

}  // namespace tenon::compiler
