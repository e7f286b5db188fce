// Copies, casts, selections and biases: an element of the result depends on the elements at its index.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

Expected<Type> bias_add(const RuleInput& in) {
  TENON_TRY_ASSIGN(axis, axis_of(in, "axis", in.arg(0).rank()));
  if (Status status = check_vector(in, 1, "b", in.arg(0).dtype, in.arg(0).dims[*axis]); !status) {
    return error(fmt::format("{}: {}, axis {}", status.error().what, describe(in, {"x", "b"}), *axis));
  }
  return in.args[0];
}

Expected<Type> cast(const RuleInput& in) {
  TENON_TRY_ASSIGN(dtype, dtype_attr(in));
  TENON_TRY(check_int(in, "saturate", 0, 1));
  TENON_TRY(check_string(in, "rounding", {"nearest", "up", "down"}));
  return in.context.tensor(in.arg(0).dims, *dtype);
}

Expected<Type> bitcast(const RuleInput& in) {
  TENON_TRY_ASSIGN(dtype, dtype_attr(in));
  const DType from = in.arg(0).dtype;
  if (runtime::bits(from) != runtime::bits(*dtype) || *dtype == DType::kBool)
    return error(fmt::format("the dtypes must have the same width, and bool has no bits of others: x is {}, dtype {}",
                             runtime::name(from), runtime::name(*dtype)));
  return in.context.tensor(in.arg(0).dims, *dtype);
}

Expected<Type> select(const RuleInput& in) {
  if (in.arg(1).dtype != in.arg(2).dtype) {
    return error(fmt::format("a and b must have the same dtype: {}", describe(in, {"condition", "a", "b"})), "",
                 "insert a cast");
  }
  TENON_TRY_ASSIGN(values, broadcast(in, in.arg(1).dims, in.arg(2).dims, 1, 2));
  TENON_TRY_ASSIGN(dims, broadcast(in, in.arg(0).dims, *values, 0, kNoArg));
  return in.context.tensor(std::move(*dims), in.arg(1).dtype);
}

}  // namespace

std::vector<Operator> elementwise_operators() {
  return {
      {.name = "identity",
       .documentation = "x.",
       .inputs = {"x"},
       .rule = same_as_first,
       .pattern = OpPattern::kElementwise,
       .continuous = true,
       .elements = Elements::kSame},
      {.name = "stop_gradient",
       .documentation = "x, which derivatives take for a constant.",
       .inputs = {"x"},
       .rule = same_as_first,
       .pattern = OpPattern::kElementwise,
       .continuous = true,
       .elements = Elements::kSame},
      {.name = "bitcast",
       .documentation = "The bits of x as elements of another dtype of the same width.",
       .inputs = {"x"},
       .attributes = {{"dtype", AttrKind::kString, std::nullopt, "the result's dtype, as i32"}},
       .rule = bitcast,
       .pattern = OpPattern::kElementwise,
       .interpreted = "expressions of the loop level have no bits"},
      {.name = "cast",
       .documentation =
           "x in another dtype: floats truncate to integers and saturate, integers of 2 and 4 bits and other integers "
           "wrap, "
           "bool is x != 0.",
       .inputs = {"x"},
       .attributes = {{"dtype", AttrKind::kString, std::nullopt, "the result's dtype, as i32"},
                      {"saturate", AttrKind::kInt, int64_t{1},
                       "0: values beyond the range of a float of 8 bits become infinity or NaN; 1: its largest value"},
                      {"rounding", AttrKind::kString, std::string("nearest"),
                       "nearest, up or down: of casts to f8e8m0"}},
       .rule = cast,
       .pattern = OpPattern::kElementwise},
      {.name = "select",
       .documentation = "a where condition is true, else b; all three arguments broadcast.",
       .inputs = {{"condition", runtime::kBoolean}, "a", "b"},
       .rule = select,
       .pattern = OpPattern::kBroadcast,
       .continuous = true},
      {.name = "bias_add",
       .documentation = "x plus b[c], where c is the index along axis; integers wrap.",
       .inputs = {{"x", runtime::kNumericTypes}, "b"},
       .attributes = {{"axis", AttrKind::kInt, int64_t{1}, "axis of the channels"}},
       .rule = bias_add,
       .pattern = OpPattern::kBroadcast,
       .scheme = as_first,
       .continuous = true},
  };
}

}  // namespace tenon::compiler
