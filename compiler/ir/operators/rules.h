// The checks, schemes and helpers that the type rules of the operator families share.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "compiler/ir/module.h"
#include "compiler/ir/operator.h"
#include "support/try.h"

namespace tenon::compiler {

// The largest size or count in an attribute.
inline constexpr int64_t kMaxSize = int64_t{1} << 31;

// "x Tensor[(1, 3, 8, 8), f32], w Tensor[...]": the types of the first arguments, for messages.
std::string describe(const RuleInput& in, std::initializer_list<std::string_view> names);

Status check_rank(const RuleInput& in, size_t arg, std::string_view name, int64_t rank);
Status check_dtype(const RuleInput& in, size_t arg, std::string_view name, std::initializer_list<DType> allowed);
// Requires the argument to be a vector of `length`, as a bias or a scale.
Status check_vector(const RuleInput& in, size_t arg, std::string_view name, DType dtype, Dim length);
// Requires argument `arg` to have `size` along `axis`: success where it is proved, an error where it is refuted, and a
// check before the operator otherwise. `what` is the message, as "w expects 3 channels, x has n"; the types are added.
Status require_size(const RuleInput& in, size_t arg, size_t axis, Dim size, std::string_view what);
// require_size for all sizes of the argument `name`; a rank or dtype other than that of `wanted` is an error.
Status require_type(const RuleInput& in, size_t arg, std::string_view name, Type wanted);
// The size of an argument divided by `by` > 0, where the size is required to be a multiple of `by`.
Expected<Dim> require_quotient(const RuleInput& in, size_t arg, size_t axis, int64_t by, std::string_view what);
// Requires two arguments to have the same size, and returns this size. A check is inserted for the argument whose size
// is symbolic, if the other size is a constant.
Expected<Dim> require_same(const RuleInput& in, size_t arg_a, size_t axis_a, size_t arg_b, size_t axis_b,
                           std::string_view what);
// The smaller or larger of two dims where the prover can compare them, otherwise min(a, b) or max(a, b).
Dim least(const RuleInput& in, Dim a, Dim b);
Dim greatest(const RuleInput& in, Dim a, Dim b);
// Requires the attribute to have `count` values, each in [lo, hi].
Status check_ints(const RuleInput& in, std::string_view attr, size_t count, int64_t lo, int64_t hi);
Status check_int(const RuleInput& in, std::string_view attr, int64_t lo, int64_t hi);
// An attribute that may be computed, as dims: constants in [lo, hi], dims that are proved to be at least lo, or `?`
// where an operand has them. `count`: the number of values, where only one is possible.
Expected<Dims> sizes_attr(const RuleInput& in, std::string_view attr, std::optional<size_t> count, int64_t lo,
                          int64_t hi = kMaxSize);
Expected<Dim> size_attr(const RuleInput& in, std::string_view attr, int64_t lo, int64_t hi = kMaxSize);
// The spec with `computable` set.
inline AttrSpec computable(AttrSpec spec) {
  spec.computable = true;
  return spec;
}
// A computable attribute whose value the sizes of the result tell.
inline AttrSpec in_result_type(AttrSpec spec) {
  spec.computable = spec.in_type = true;
  return spec;
}
// A tensor of this rank whose sizes are all unknown.
Type unknown_sizes(const RuleInput& in, int64_t rank, DType dtype);
Status check_string(const RuleInput& in, std::string_view attr, std::span<const std::string_view> allowed);
Status check_string(const RuleInput& in, std::string_view attr, std::initializer_list<std::string_view> allowed);
// The attribute `dtype`; and the check that a float attribute is representable in a dtype.
Expected<DType> dtype_attr(const RuleInput& in);
Status check_value(const RuleInput& in, std::string_view attr, DType dtype);
// The attribute as an axis of a tensor of this rank; negative values count from the end.
Expected<int64_t> axis_of(const RuleInput& in, std::string_view attr, int64_t rank);

// The attribute as sorted axes without duplicates.
Expected<std::vector<int64_t>> axes_of(const RuleInput& in, std::string_view attr, int64_t rank);

// The type rule of operators whose result has the type of their first argument.
Expected<Type> same_as_first(const RuleInput& in);

// Conditions under which the kernel may fail: an integer is divided by 0; an exponent or a shift is negative; an index
// is outside of the axis; a size of the first argument (any size, or a spatial size) is symbolic or 0, so that it may
// be too small.
bool may_divide_by_zero(const Application& apply);
bool may_have_negative(const Application& apply);
bool may_be_outside(const Application& apply);
bool may_be_small(const Application& apply);
bool may_have_small_map(const Application& apply);
bool may_shift_too_far(const Application& apply);  // argument 3 is above 63
bool depends_on_elements(const Application& apply);

// Schemes: the result has the type of the first argument and the others are vectors of its dtype; the result of an
// argument and a scalar has the argument's shape; all arguments have the same rank and dtype.
bool as_first(const SchemeInput& in);
bool with_scalar(const SchemeInput& in);
bool alike(const SchemeInput& in);
// A tensor type of this rank with unknown sizes.
Type of_rank(const SchemeInput& in, size_t rank, DType dtype);

// The number of sliding windows over `extent` with padding; an error where no window fits.
struct Window {
  int64_t kernel, stride, before, after, dilation = 1;
  bool ceil = false;
};
Expected<Dim> windows(const RuleInput& in, Dim extent, const Window& window, std::string_view axis);
// The spatial dims of the result of windows over a [N, C, ...] tensor, one for each dim of `kernel`, with the
// attributes strides, padding and dilation.
Expected<Dims> windows_over(const RuleInput& in, const std::vector<int64_t>& kernel, bool ceil);

// The broadcast shape of `a` and `b`, aligned at their last dims: sizes must be equal, or one of them 1; a size that is
// proved to be at most 1 must be 1 beside another one. `a` and `b` are leading dims of the arguments `arg_a` and
// `arg_b`; kNoArg: `b` does not belong to an argument.
inline constexpr size_t kNoArg = SIZE_MAX;
Expected<Dims> broadcast(const RuleInput& in, const Dims& a, const Dims& b, size_t arg_a = 0, size_t arg_b = 1);

// The attributes of windows over `rank` spatial dims.
AttrSpec strides_over(size_t rank);
AttrSpec padding_over(size_t rank);
AttrSpec dilation_over(size_t rank);

}  // namespace tenon::compiler
