// Elements by their indices: gather, scatter, one_hot. Negative indices count from the end; other indices out of range
// are an error at run time.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

using runtime::kIndices;

Expected<Type> gather(const RuleInput& in) {
  const Dims &x = in.arg(0).dims, &indices = in.arg(1).dims;
  TENON_TRY_ASSIGN(axis, axis_of(in, "axis", in.arg(0).rank()));
  Dims dims(x.begin(), x.begin() + *axis);
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), x.begin() + *axis + 1, x.end());
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

// Requires the indices to have x's rank and, along all axes except `excluded`, sizes no larger than x's.
Status check_within(const RuleInput& in, int64_t excluded) {
  const Dims &x = in.arg(0).dims, &indices = in.arg(1).dims;
  bool fits = x.size() == indices.size();
  for (size_t d = 0; fits && d < x.size(); ++d) {
    const auto whole = x[d].constant(), part = indices[d].constant();
    fits = static_cast<int64_t>(d) == excluded || x[d] == indices[d] || (whole && part && *part <= *whole);
  }
  if (fits) return {};
  return error(
      fmt::format("indices must fit into x along all axes except {}: {}", excluded, describe(in, {"x", "indices"})));
}

Expected<Type> gather_elements(const RuleInput& in) {
  TENON_TRY_ASSIGN(axis, axis_of(in, "axis", in.arg(0).rank()));
  TENON_TRY(check_within(in, *axis));
  return in.context.tensor(in.arg(1).dims, in.arg(0).dtype);
}

// The dims of the parts of x that the index tuples refer to.
Expected<Dims> part_dims(const RuleInput& in, int64_t batch) {
  const Dims &x = in.arg(0).dims, &indices = in.arg(1).dims;
  const auto depth = indices.empty() ? std::nullopt : indices.back().constant();
  if (!depth || in.arg(1).rank() <= batch || in.arg(0).rank() < batch + *depth) {
    return error(fmt::format("the last dim of indices must be a constant, at most the rank of x: {}",
                             describe(in, {"x", "indices"})));
  }
  Dims dims;
  for (int64_t d = 0; d < batch; ++d) {
    TENON_TRY_ASSIGN(size, require_same(in, 0, d, 1, d, "the batch dims differ"));
    dims.push_back(*size);
  }
  dims.insert(dims.end(), indices.begin() + batch, indices.end() - 1);
  dims.insert(dims.end(), x.begin() + batch + *depth, x.end());
  return dims;
}

Expected<Type> gather_nd(const RuleInput& in) {
  TENON_TRY(check_int(in, "batch_dims", 0, 31));
  TENON_TRY_ASSIGN(dims, part_dims(in, int_attr(in.attrs, "batch_dims")));
  return in.context.tensor(std::move(*dims), in.arg(0).dtype);
}

Status check_reduction(const RuleInput& in) {
  TENON_TRY(check_string(in, "reduction", {"none", "add", "mul", "max", "min"}));
  if (in.arg(0).dtype == DType::kBool && string_attr(in.attrs, "reduction") != "none") {
    return error("reduction must be none for bool");
  }
  return {};
}

Status check_updates(const RuleInput& in, Dims dims) {
  return require_type(in, 2, "updates", in.context.tensor(std::move(dims), in.arg(0).dtype));
}

Expected<Type> scatter_elements(const RuleInput& in) {
  TENON_TRY_ASSIGN(axis, axis_of(in, "axis", in.arg(0).rank()));
  TENON_TRY(check_reduction(in));
  TENON_TRY(check_within(in, *axis));
  TENON_TRY(check_updates(in, in.arg(1).dims));
  return in.args[0];
}

Expected<Type> scatter_nd(const RuleInput& in) {
  TENON_TRY(check_reduction(in));
  TENON_TRY_ASSIGN(dims, part_dims(in, 0));
  TENON_TRY(check_updates(in, std::move(*dims)));
  return in.args[0];
}

Expected<Type> one_hot(const RuleInput& in) {
  TENON_TRY_ASSIGN(depth, size_attr(in, "depth", 1));
  TENON_TRY_ASSIGN(axis, axis_of(in, "axis", in.arg(0).rank() + 1));
  TENON_TRY_ASSIGN(dtype, dtype_attr(in));
  TENON_TRY(check_value(in, "on", *dtype));
  TENON_TRY(check_value(in, "off", *dtype));
  Dims dims = in.arg(0).dims;
  dims.insert(dims.begin() + *axis, *depth);
  return in.context.tensor(std::move(dims), *dtype);
}

AttrSpec reduction_attribute() {
  return {"reduction", AttrKind::kString, std::string("none"),
          "combination of updates with elements of x: none, add, mul, max or min"};
}

}  // namespace

std::vector<Operator> index_operators() {
  return {
      {.name = "gather",
       .documentation = "The parts of x at indices along axis: x.shape[:axis] + indices.shape + x.shape[axis + 1:].",
       .inputs = {"x", {"indices", kIndices}},
       .attributes = {{"axis", AttrKind::kInt, int64_t{0}, "axis that is indexed"}},
       .rule = gather,
       .pattern = OpPattern::kInjective,
       .may_fail = may_be_outside,
       .continuous = true,
       .samples = SampleArguments::indices()},
      {.name = "gather_elements",
       .documentation =
           "For each element of indices, the element of x at the same index, except that the index along axis "
           "is the element of indices.",
       .inputs = {"x", {"indices", kIndices}},
       .attributes = {{"axis", AttrKind::kInt, int64_t{0}, "axis that is indexed"}},
       .rule = gather_elements,
       .pattern = OpPattern::kInjective,
       .may_fail = may_be_outside,
       .continuous = true,
       .samples = SampleArguments::element_indices()},
      {.name = "gather_nd",
       .documentation =
           "The parts of x at the index tuples in the last dim of indices, after batch_dims leading dims that "
           "both share.",
       .inputs = {"x", {"indices", kIndices}},
       .attributes = {{"batch_dims", AttrKind::kInt, int64_t{0}, "leading dims that both share"}},
       .rule = gather_nd,
       .pattern = OpPattern::kInjective,
       .may_fail = may_be_outside,
       .continuous = true,
       .samples = SampleArguments::index_tuples()},
      {.name = "scatter_elements",
       .documentation =
           "x with updates written in order, each at its own index, except that the index along axis is the "
           "element of indices.",
       .inputs = {"x", {"indices", kIndices}, "updates"},
       .attributes = {{"axis", AttrKind::kInt, int64_t{0}, "axis that is indexed"}, reduction_attribute()},
       .rule = scatter_elements,
       .may_fail = may_be_outside,
       .continuous = true,
       .samples = SampleArguments::element_indices()},
      {.name = "scatter_nd",
       .documentation = "x with updates written in order to its parts at the index tuples in the last dim of indices.",
       .inputs = {"x", {"indices", kIndices}, "updates"},
       .attributes = {reduction_attribute()},
       .rule = scatter_nd,
       .may_fail = may_be_outside,
       .continuous = true,
       .samples = SampleArguments::index_tuples()},
      {.name = "one_hot",
       .documentation =
           "A new axis of size depth with `on` at the index and `off` elsewhere; an index out of range produces `off` "
           "only.",
       .inputs = {{"indices", kIndices}},
       .attributes = {{"depth", AttrKind::kInt, std::nullopt, "size of the new axis", true},
                      {"axis", AttrKind::kInt, int64_t{-1}, "index of the new axis"},
                      {"on", AttrKind::kFloat, 1.0, "value at the index", true},
                      {"off", AttrKind::kFloat, 0.0, "value elsewhere", true},
                      {"dtype", AttrKind::kString, std::string("f32"), "the result's dtype"}},
       .rule = one_hot,
       .pattern = OpPattern::kInjective},
  };
}

}  // namespace tenon::compiler
