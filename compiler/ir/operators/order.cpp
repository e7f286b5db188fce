// Sorting and searching: results whose order or size depends on the data. A size that depends on the data is `?`.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

using runtime::kNumericTypes;

Expected<Type> top_k(const RuleInput& in) {
  TENON_TRY_ASSIGN(k, size_attr(in, "k", 0));
  TENON_TRY(check_int(in, "largest", 0, 1));
  TENON_TRY_ASSIGN(axis, axis_of(in, "axis", in.arg(0).rank()));
  Dims dims = in.arg(0).dims;
  if (!k->erased() && in.prover.less(dims[*axis], *k) == Answer::kYes) {
    return error(fmt::format("axis {} has {} elements, k is {}: {}", *axis, in.context.str(dims[*axis]),
                             in.context.str(*k), describe(in, {"x"})));
  }
  dims[*axis] = *k;
  return in.context.tuple({in.context.tensor(dims, in.arg(0).dtype), in.context.tensor(dims, DType::kI64)});
}

Expected<Type> sort(const RuleInput& in) {
  TENON_TRY(axis_of(in, "axis", in.arg(0).rank()));
  TENON_TRY(check_int(in, "descending", 0, 1));
  return in.args[0];
}
Expected<Type> arg_sort(const RuleInput& in) {
  TENON_TRY(sort(in));
  return in.context.tensor(in.arg(0).dims, DType::kI64);
}

Expected<Type> unique(const RuleInput& in) {
  TENON_TRY(check_int(in, "sorted", 0, 1));
  TENON_TRY_ASSIGN(axes, axes_of(in, "axes", in.arg(0).rank()));
  if (axes->size() > 1) return error("parts along several axes are not supported");
  const Type indices = in.context.tensor(Dims{in.context.erased()}, DType::kI64);
  Dims parts{in.context.erased()};
  Dim count = in.context.product(in.arg(0).dims);
  if (!axes->empty()) {
    parts = in.arg(0).dims;
    count = std::exchange(parts[axes->front()], in.context.erased());
  }
  return in.context.tuple({in.context.tensor(std::move(parts), in.arg(0).dtype), indices,
                           in.context.tensor(Dims{count}, DType::kI64), indices});
}

Expected<Type> nonzero(const RuleInput& in) {
  return in.context.tensor(Dims{in.context.dim(in.arg(0).rank()), in.context.erased()}, DType::kI64);
}

Expected<Type> compress(const RuleInput& in) {
  TENON_TRY_ASSIGN(axis, axis_of(in, "axis", in.arg(0).rank()));
  TENON_TRY(check_rank(in, 1, "condition", 1));
  Dims dims = in.arg(0).dims;
  dims[*axis] = in.context.erased();
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

Expected<Type> non_max_suppression(const RuleInput& in) {
  TENON_TRY(check_rank(in, 0, "boxes", 3));
  TENON_TRY(check_rank(in, 1, "scores", 3));
  TENON_TRY(size_attr(in, "max_boxes", 0, INT64_MAX));
  TENON_TRY(check_int(in, "centered", 0, 1));
  constexpr std::string_view kShapes = "boxes must be [B, N, 4] and scores [B, C, N]";
  TENON_TRY(require_size(in, 0, 2, in.context.dim(4), kShapes));
  TENON_TRY(require_same(in, 0, 0, 1, 0, kShapes));
  TENON_TRY(require_same(in, 0, 1, 1, 2, kShapes));
  return in.context.tensor(Dims{in.context.erased(), in.context.dim(3)}, DType::kI64);
}

}  // namespace

std::vector<Operator> order_operators() {
  const AttrSpec axis{"axis", AttrKind::kInt, int64_t{-1}, "axis along which elements are ordered"};
  const AttrSpec descending{"descending", AttrKind::kInt, int64_t{0}, "1: the largest first"};
  return {
      {.name = "top_k",
       .documentation = "A tuple of the k largest elements along axis, sorted, and their indices, i64; equal elements "
                        "keep their order.",
       .inputs = {{"x", kNumericTypes}},
       .attributes = {{"k", AttrKind::kInt, std::nullopt, "number of elements", true},
                      axis,
                      {"largest", AttrKind::kInt, int64_t{1}, "0: the smallest"}},
       .rule = top_k,
       .may_fail = may_be_small},
      {.name = "sort",
       .documentation = "The elements along axis, sorted; NaN comes after all other values.",
       .inputs = {{"x", kNumericTypes}},
       .attributes = {axis, descending},
       .rule = sort,
       .continuous = true,
       .elements = Elements::kSelected},
      {.name = "arg_sort",
       .documentation = "The indices, i64, that sort the elements along axis; equal elements keep their order.",
       .inputs = {{"x", kNumericTypes}},
       .attributes = {axis, descending},
       .rule = arg_sort},
      {.name = "unique",
       .documentation = "A tuple of the distinct elements of x [?], the index of the first occurrence of each [?], the "
                        "index of each "
                        "element of x among the distinct elements [size of x], and the number of occurrences [?]; the "
                        "indices are i64. "
                        "With an axis, of the distinct parts of x along it, compared element by element.",
       .inputs = {{"x", kNumericTypes}},
       .attributes = {{"sorted", AttrKind::kInt, int64_t{1}, "0: in the order of their first occurrences"},
                      {"axes", AttrKind::kInts, std::vector<int64_t>{}, "the axis of the parts; none: elements"}},
       .rule = unique,
       .interpreted = "the sizes of its result depend on elements"},
      {.name = "nonzero",
       .documentation = "The indices of the elements that are not 0 (or true), as columns: [rank of x, ?], i64.",
       .inputs = {"x"},
       .rule = nonzero,
       .interpreted = "the sizes of its result depend on elements"},
      {.name = "compress",
       .documentation =
           "The parts of x along axis where condition is true; parts after the end of condition are dropped.",
       .inputs = {"x", {"condition", runtime::kBoolean}},
       .attributes = {{"axis", AttrKind::kInt, int64_t{0}, "axis that shrinks"}},
       .rule = compress,
       .may_fail = may_be_small,
       .samples = SampleArguments::condition(),
       .interpreted = "the sizes of its result depend on elements"},
      {.name = "non_max_suppression",
       .documentation =
           "The boxes of [B, N, 4] with scores [B, C, N] that overlap no selected box with a higher score of their "
           "batch "
           "and class: [?, 3] of batch, class and box, i64.",
       .inputs = {{"boxes", {DType::kF32}}, {"scores", {DType::kF32}}},
       .attributes = {{"max_boxes", AttrKind::kInt, std::nullopt, "maximum number of boxes per batch and class", true},
                      {"iou_threshold", AttrKind::kFloat, 0.0,
                       "boxes overlap where intersection over union is above this threshold", true},
                      {"score_threshold", AttrKind::kFloat, -std::numeric_limits<double>::infinity(),
                       "scores must be above this threshold", true},
                      {"centered", AttrKind::kInt, int64_t{0},
                       "0: a box is two corners [y, x, y, x]; 1: [x, y, width, height]"}},
       .rule = non_max_suppression,
       .samples = SampleArguments::boxes(),
       .interpreted = "the sizes of its result depend on elements"},
  };
}

}  // namespace tenon::compiler
