// Copies, casts, choices and biases: elements from the elements at their place.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

Expected<Type> bias_add(const RuleInput& in) {
  const auto axis = axis_of(in, "axis", in.arg(0).rank());
  if (!axis) return std::unexpected(axis.error());
  if (Status status = check_vector(in, 1, "b", in.arg(0).dtype, in.arg(0).dims[*axis]); !status) {
    return error(fmt::format("{}: {}, axis {}", status.error().what, describe(in, {"x", "b"}), *axis));
  }
  return in.args[0];
}

Expected<Type> cast(const RuleInput& in) {
  TENON_TRY_ASSIGN(dtype, dtype_attr(in));
  return in.context.tensor(in.arg(0).dims, *dtype);
}

Expected<Type> select(const RuleInput& in) {
  if (in.arg(1).dtype != in.arg(2).dtype) {
    return error(fmt::format("a and b must have one dtype: {}", describe(in, {"condition", "a", "b"})), "",
                 "insert a cast");
  }
  auto dims = broadcast(in, in.arg(1).dims, in.arg(2).dims, 1, 2);
  if (dims) dims = broadcast(in, in.arg(0).dims, *dims, 0, kNoArg);
  if (!dims) return forward_error(dims);
  return in.context.tensor(std::move(*dims), in.arg(1).dtype);
}

}  // namespace

std::vector<Operator> elementwise_operators() {
  return {
      {"identity", "x.", {"x"}, {}, same_as_first, OpPattern::kElementwise},
      {"cast",
       "x in another dtype: floats truncate to integers and saturate, integers wrap, bool is x != 0.",
       {"x"},
       {{"dtype", AttrKind::kString, std::nullopt, "the result's dtype, as i32"}},
       cast,
       OpPattern::kElementwise},
      {"select",
       "a where condition is true, else b; the three broadcast.",
       {{"condition", runtime::kBoolean}, "a", "b"},
       {},
       select,
       OpPattern::kBroadcast},
      {"bias_add",
       "x plus b[c], where c is the index along axis; integers wrap.",
       {{"x", runtime::kNumbers}, "b"},
       {{"axis", AttrKind::kInt, int64_t{1}, "axis of the channels"}},
       bias_add,
       OpPattern::kBroadcast,
       nullptr,
       as_first},
  };
}

}  // namespace tenon::compiler
