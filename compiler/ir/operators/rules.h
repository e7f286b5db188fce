// What the type rules of the operator families share.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "compiler/ir/module.h"
#include "compiler/ir/operator.h"
#include "support/try.h"

namespace tenon::compiler {

// "x Tensor[(1, 3, 8, 8), f32], w Tensor[...]": all the shapes that a message about two of them should show.
std::string describe(const RuleInput& in, std::initializer_list<std::string_view> names);

Status check_rank(const RuleInput& in, size_t arg, std::string_view name, int64_t rank);
Status check_dtype(const RuleInput& in, size_t arg, std::string_view name, std::initializer_list<DType> allowed);
// Whether arg is a vector of `length`, as a bias or a scale is.
Status check_vector(const RuleInput& in, size_t arg, std::string_view name, DType dtype, Dim length);
// That argument `arg` has `size` along `axis`: nothing where that is proved, an error where it never is, a check before
// the operator otherwise. `what` says what is wrong, as "w takes 3 channels, x has n"; the types are added.
Status require_size(const RuleInput& in, size_t arg, size_t axis, Dim size, std::string_view what);
// As require_size for all sizes of an argument, whose rank and dtype are those of `wanted` or an error. `name`: its
// own.
Status require_type(const RuleInput& in, size_t arg, std::string_view name, Type wanted);
// The size of an argument divided by `by`, > 0: the size is required to be a multiple of it.
Expected<Dim> require_quotient(const RuleInput& in, size_t arg, size_t axis, int64_t by, std::string_view what);
// That two arguments have one size: a check is on the one whose size says less. The size that the operator may rely on.
Expected<Dim> require_same(const RuleInput& in, size_t arg_a, size_t axis_a, size_t arg_b, size_t axis_b,
                           std::string_view what);
// The less of both where the prover knows it, min(a, b) otherwise; and the greater.
Dim least(const RuleInput& in, Dim a, Dim b);
Dim greatest(const RuleInput& in, Dim a, Dim b);
// `count` values, each in [lo, hi].
Status check_ints(const RuleInput& in, std::string_view attr, size_t count, int64_t lo, int64_t hi);
Status check_int(const RuleInput& in, std::string_view attr, int64_t lo, int64_t hi);
Status check_string(const RuleInput& in, std::string_view attr, std::span<const std::string_view> allowed);
Status check_string(const RuleInput& in, std::string_view attr, std::initializer_list<std::string_view> allowed);
// The attribute `dtype`; and that the float attribute is a value of that dtype.
Expected<DType> dtype_attr(const RuleInput& in);
Status check_value(const RuleInput& in, std::string_view attr, DType dtype);
// The attribute as an axis of a tensor of that rank; negative ones count from the end.
Expected<int64_t> axis_of(const RuleInput& in, std::string_view attr, int64_t rank);

// The attribute as sorted axes, none twice.
Expected<std::vector<int64_t>> axes_of(const RuleInput& in, std::string_view attr, int64_t rank);

// The rule of operators whose result has the type of their first argument.
Expected<Type> same_as_first(const RuleInput& in);

// Reasons to fail. An integer is divided by 0; raised to, or shifted by, less than 0; an index is outside of the axis;
// the first argument has a size that is not known, or 0, and may be too small (of it all, or of what windows go over).
bool may_divide_by_zero(const Application& apply);
bool may_have_negative(const Application& apply);
bool may_be_outside(const Application& apply);
bool may_be_small(const Application& apply);
bool may_have_small_map(const Application& apply);
bool may_shift_too_far(const Application& apply);  // argument 3, beyond 63
bool depends_on_elements(const Application& apply);

// Schemes: the result has the type of the first argument, others are vectors of its dtype; the result of an argument
// and a scalar has the argument's shape; the arguments have one rank and dtype.
bool as_first(const SchemeInput& in);
bool with_scalar(const SchemeInput& in);
bool alike(const SchemeInput& in);
// A type of that rank with sizes to be found.
Type of_rank(const SchemeInput& in, size_t rank, DType dtype);

// Number of windows of `kernel` taps over `extent` with pads, or why there is none.
struct Window {
  int64_t kernel, stride, before, after, dilation = 1;
  bool ceil = false;
};
Expected<Dim> windows(const RuleInput& in, Dim extent, const Window& window, std::string_view axis);
// The spatial dims of a [N, C, ...] tensor, one for each of `kernel`, under the attributes strides, padding and
// dilation.
Expected<Dims> windows_over(const RuleInput& in, const std::vector<int64_t>& kernel, bool ceil);

// The sizes of both together, aligned at their ends: equal, or one of them the number 1. They are the first sizes of
// arguments `arg_a` and `arg_b`; kNoArg: `b` is no argument's.
inline constexpr size_t kNoArg = SIZE_MAX;
Expected<Dims> broadcast(const RuleInput& in, const Dims& a, const Dims& b, size_t arg_a = 0, size_t arg_b = 1);

// The attributes of windows over so many spatial dims.
AttrSpec strides_over(size_t rank);
AttrSpec padding_over(size_t rank);
AttrSpec dilation_over(size_t rank);

}  // namespace tenon::compiler
