// Operators that move elements without computing on them.
#include <algorithm>
#include <numeric>

#include "compiler/ir/operators/rules.h"
#include "runtime/reference/layout.h"
#include "runtime/reference/slice.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

Expected<Type> flatten(const RuleInput& in) {
  const TensorType& x = in.arg(0);
  const int64_t axis = int_attr(in.attrs, "axis");
  if (axis < -x.rank() || axis > x.rank()) {
    return error(fmt::format("axis must be in {} .. {}, found {}: {}", -x.rank(), x.rank(), axis, describe(in, {"x"})));
  }
  const auto split = x.dims.begin() + (axis < 0 ? axis + x.rank() : axis);
  return in.context.tensor(
      Dims{in.context.product(std::span(x.dims.begin(), split)), in.context.product(std::span(split, x.dims.end()))},
      x.dtype);
}

// Requires the product of the sizes of x at `axes` to be `wanted`, or a multiple of it, by a requirement on the only
// one of these sizes that is symbolic.
Status require_elements(const RuleInput& in, const std::vector<size_t>& axes, Dim wanted, bool multiple,
                        const std::string& what) {
  Context& context = in.context;
  const TensorType& x = in.arg(0);
  std::optional<size_t> open;
  int64_t others = 1;
  for (size_t i : axes) {
    const auto size = x.dims[i].constant();
    if (size && !__builtin_mul_overflow(others, *size, &others)) continue;
    if (size || open) return error(what, "", "a check at run time supports only a reshape with a single symbolic size");
    open = i;
  }
  const auto count = wanted.constant();
  if (!open || !count || others == 0 || (!multiple && *count % others != 0)) return error(what);
  if (!multiple) return require_size(in, 0, *open, context.dim(*count / others), what);
  const Dim step = context.dim(*count / std::gcd(*count, others));
  return require_size(in, 0, *open, context.multiply(context.floor_divide(x.dims[*open], step), step), what);
}

// A dim in the shape is a size: without zero=1 it must not be 0, which has another meaning there. A size of x is one.
Expected<Type> reshape(const RuleInput& in) {
  const TensorType& x = in.arg(0);
  TENON_TRY(check_int(in, "zero", 0, 1));
  TENON_TRY_ASSIGN(shape, sizes_attr(in, "shape", {}, -1));
  if (std::ranges::any_of(*shape, [](Dim size) { return size.erased(); }))
    return unknown_sizes(in, static_cast<int64_t>(shape->size()), x.dtype);
  const bool copies = int_attr(in.attrs, "zero") == 0;
  auto reason = [&](std::string_view why) {
    std::vector<std::string> sizes;
    for (const Dim size : *shape) sizes.push_back(in.context.str(size));
    return fmt::format("{} cannot be reshaped to [{}]: {}", in.context.str(in.args[0]), fmt::join(sizes, ", "), why);
  };
  const Dim least_size = in.context.dim(copies ? 1 : 0);
  Dims dims;
  std::optional<size_t> open;
  std::vector<bool> copied(shape->size(), false);
  for (size_t i = 0; i < shape->size(); ++i) {
    const Dim size = (*shape)[i];
    const auto value = size.constant();
    if (value == -1 && open) return error(reason("only one size may be -1"));
    const bool of_x = !copies && std::ranges::find(x.dims, size) != x.dims.end();
    if (!value && !of_x && in.prover.less_equal(least_size, size) != Answer::kYes)
      return error(reason(fmt::format("{} may be {}", in.context.str(size), copies ? 0 : -1)), "",
                   copies ? "set zero=1, so that 0 is a size and does not copy the size of x" : "");
    copied[i] = copies && value == 0;
    if (copied[i] && static_cast<int64_t>(i) >= x.rank()) return error(reason("0 copies a size that x does not have"));
    if (value == -1) open = i;
    dims.push_back(copied[i] ? x.dims[i] : value == -1 ? in.context.dim(1) : size);
  }
  // The products of the sizes of both sides, without the sizes that are copied.
  Dim elements = in.context.dim(1), given = elements;
  std::vector<size_t> axes;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (i < shape->size() && copied[i]) continue;
    axes.push_back(i);
    elements = in.context.multiply(elements, x.dims[i]);
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!copied[i]) given = in.context.multiply(given, dims[i]);
  }
  const std::string differs = reason("the number of elements differs");
  if (open) {
    if (given.constant() == 0) return error(reason("-1 is not determined where another size is 0"));
    const Answer answer = in.prover.divides(given, elements);
    if (answer == Answer::kNo) return error(differs);
    if (answer == Answer::kUnknown) TENON_TRY(require_elements(in, axes, given, true, differs));
    dims[*open] = in.context.floor_divide(elements, given);
  } else {
    const Answer answer = in.prover.equal(elements, given);
    if (answer == Answer::kNo) return error(differs);
    if (answer == Answer::kUnknown) TENON_TRY(require_elements(in, axes, given, false, differs));
  }
  return in.context.tensor(std::move(dims), x.dtype);
}

Expected<Type> transpose(const RuleInput& in) {
  const TensorType& x = in.arg(0);
  const auto& axes = ints_attr(in.attrs, "axes");
  std::vector<int64_t> sorted = axes;
  std::ranges::sort(sorted);
  bool permutation = static_cast<int64_t>(axes.size()) == x.rank();
  for (size_t i = 0; i < sorted.size(); ++i) permutation &= sorted[i] == static_cast<int64_t>(i);
  if (!permutation) {
    return error(fmt::format("axes [{}] must be a permutation of 0 .. {}: {}", fmt::join(axes, ", "), x.rank() - 1,
                             describe(in, {"x"})));
  }
  Dims dims;
  for (int64_t axis : axes) dims.push_back(x.dims[axis]);
  return in.context.tensor(std::move(dims), x.dtype);
}

Expected<Type> concat(const RuleInput& in) {
  const TensorType& first = in.arg(0);
  TENON_TRY_ASSIGN(axis, axis_of(in, "axis", first.rank()));
  Dims dims = first.dims;
  for (size_t i = 1; i < in.args.size(); ++i) {
    const TensorType& next = in.arg(i);
    const std::string what = fmt::format("arguments 0 and {} must be equal except along axis {}", i, *axis);
    if (next.rank() != first.rank() || next.dtype != first.dtype) {
      return error(fmt::format("{}: {} and {}", what, in.context.str(in.args[0]), in.context.str(in.args[i])));
    }
    for (int64_t d = 0; d < first.rank(); ++d) {
      if (d != *axis) TENON_TRY(require_size(in, i, d, dims[d], what));
    }
    dims[*axis] = in.context.add(dims[*axis], next.dims[*axis]);
  }
  return in.context.tensor(std::move(dims), first.dtype);
}

Expected<Type> pad(const RuleInput& in) {
  const TensorType& x = in.arg(0);
  constexpr int64_t kMax = int64_t{1} << 30;
  TENON_TRY_ASSIGN(before, sizes_attr(in, "before", x.dims.size(), 0, kMax));
  TENON_TRY_ASSIGN(after, sizes_attr(in, "after", x.dims.size(), 0, kMax));
  Dims dims;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    dims.push_back(in.context.add(x.dims[i], in.context.add((*before)[i], (*after)[i])));
  }
  TENON_TRY(check_value(in, "value", x.dtype));
  return in.context.tensor(std::move(dims), x.dtype);
}

// The number of elements of an axis that a slice selects; `?` where it is not known.
Dim slice_length(const RuleInput& in, Dim size, Dim begin_dim, Dim end_dim, Dim step_dim) {
  Context& context = in.context;
  // Every size is smaller than kFar: an index beyond it is clamped to the end.
  constexpr int64_t kFar = int64_t{1} << 41;
  const auto given_begin = begin_dim.constant(), given_end = end_dim.constant(), given_step = step_dim.constant();
  if (!given_step || *given_step == 0) return context.erased();
  if (size.constant() && given_begin && given_end)
    return context.dim(runtime::reference::slice_length(*size.constant(), *given_begin, *given_end, *given_step));
  const int64_t step = std::clamp(*given_step, -kFar, kFar);
  const Dim zero = context.dim(0), minus = context.dim(-1), last = context.subtract(size, context.dim(1));
  // A dim counts from the begin where it is proved not to be negative, from the end where it is proved to be negative.
  const auto sign = [&](Dim index) -> std::optional<bool> {
    if (index.erased()) return std::nullopt;
    if (in.prover.less_equal(zero, index) == Answer::kYes) return true;
    return in.prover.less(index, zero) == Answer::kYes ? std::optional(false) : std::nullopt;
  };
  const auto from_begin = sign(begin_dim), from_end = sign(end_dim);
  if (!from_begin || !from_end) return context.erased();
  if (step > 0) {
    // [begin, end), each clamped into 0 .. size; the slice is empty where begin is after end.
    const Dim stop = given_end && *given_end >= kFar   ? size
                     : *from_end                       ? least(in, end_dim, size)
                     : given_end && *given_end < -kFar ? zero
                                                       : greatest(in, context.add(size, end_dim), zero);
    const Dim begin = given_begin ? context.dim(std::clamp(*given_begin, -kFar, kFar)) : begin_dim;
    const Dim room = context.subtract(stop, begin);
    const Dim inside = *from_begin ? room : least(in, context.subtract(room, size), stop);
    return context.ceil_divide(greatest(in, inside, zero), step);
  }
  // Into `lowest` .. size - 1; the last element alone is not clamped from below, since it is -1 of an empty axis.
  const auto clamped = [&](Dim index, std::optional<int64_t> value, bool positive, Dim lowest) {
    if (value && (*value >= kFar || *value == -1)) return last;
    if (value && *value < -kFar) return least(in, lowest, last);
    return least(in, positive ? index : greatest(in, context.add(size, index), lowest), last);
  };
  const Dim room = context.subtract(clamped(begin_dim, given_begin, *from_begin, zero),
                                    clamped(end_dim, given_end, *from_end, minus));
  return context.ceil_divide(greatest(in, room, zero), -step);
}

Expected<Type> slice(const RuleInput& in) {
  const TensorType& x = in.arg(0);
  TENON_TRY_ASSIGN(begin, sizes_attr(in, "begin", {}, INT64_MIN, INT64_MAX));
  TENON_TRY_ASSIGN(end, sizes_attr(in, "end", {}, INT64_MIN, INT64_MAX));
  TENON_TRY_ASSIGN(step, sizes_attr(in, "step", {}, INT64_MIN, INT64_MAX));
  if (begin->size() != x.dims.size() || end->size() != x.dims.size() || step->size() != x.dims.size()) {
    return error(fmt::format("requires a begin, an end and a step for each dim, found {}, {} and {}: {}", begin->size(),
                             end->size(), step->size(), describe(in, {"x"})));
  }
  Dims dims;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if ((*step)[i].constant() == 0) return error(fmt::format("step 0 along axis {}", i));
    dims.push_back(slice_length(in, x.dims[i], (*begin)[i], (*end)[i], (*step)[i]));
  }
  return in.context.tensor(std::move(dims), x.dtype);
}

Expected<Type> layout_transform(const RuleInput& in) {
  using runtime::reference::Layout;
  TENON_TRY_ASSIGN(from, Layout::parse(string_attr(in.attrs, "from")));
  TENON_TRY_ASSIGN(to, Layout::parse(string_attr(in.attrs, "to")));
  TENON_TRY(check_same_axes(*from, *to));
  TENON_TRY(check_rank(in, 0, "x", from->rank()));
  TENON_TRY(check_int(in, "channels", 0, int64_t{1} << 31));
  const int64_t channels = int_attr(in.attrs, "channels");
  const Dims& x = in.arg(0).dims;
  Dims dims(to->rank());
  for (size_t i = 0; i < to->axes.size(); ++i) {
    const auto source = static_cast<size_t>(std::ranges::find(from->axes, to->axes[i]) - from->axes.begin());
    Dim size = x[source];
    if (from->blocked == to->axes[i]) {
      if (x.back().constant() != from->block) {
        return error(
            fmt::format("layout {} must end in a dim of {}: {}", from->text, from->block, describe(in, {"x"})));
      }
      const Dim stored = in.context.multiply(size, in.context.dim(from->block));
      size = channels ? in.context.dim(channels) : stored;
      const auto room = stored.constant();
      if (channels && (!room || channels > *room || channels <= *room - from->block)) {
        return error(
            fmt::format("{} channels do not fill {} blocks of {}", channels, in.context.str(x[source]), from->block));
      }
    }
    if (to->blocked == to->axes[i]) {
      const auto value = size.constant();
      const auto exact = in.context.divide(size, in.context.dim(to->block));
      if (!value && !exact) {
        return error(fmt::format("axis {} of size {} cannot be split into blocks of {}", to->axes[i],
                                 in.context.str(size), to->block));
      }
      size = value ? in.context.dim((*value + to->block - 1) / to->block) : *exact;
    }
    dims[i] = size;
  }
  if (to->block) dims.back() = in.context.dim(to->block);
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

}  // namespace

std::vector<Operator> shape_operators() {
  return {
      {.name = "flatten",
       .documentation = "x as a matrix: the dims before axis become rows, the others columns.",
       .inputs = {"x"},
       .attributes = {{"axis", AttrKind::kInt, int64_t{1}, "first axis of the columns"}},
       .rule = flatten,
       .pattern = OpPattern::kInjective,
       .continuous = true,
       .elements = Elements::kSame},
      {.name = "reshape",
       .documentation = "The elements of x, in order, in another shape.",
       .inputs = {"x"},
       .attributes = {in_result_type({"shape", AttrKind::kInts, std::nullopt,
                                      "sizes; 0 copies the size of x, a single -1 is inferred"}),
                      {"zero", AttrKind::kInt, int64_t{0}, "1: a size of 0 is a size"}},
       .rule = reshape,
       .pattern = OpPattern::kInjective,
       .continuous = true,
       .samples = SampleArguments::same_size(),
       .elements = Elements::kSame},
      {.name = "transpose",
       .documentation = "Dim i of the result is dim axes[i] of x.",
       .inputs = {"x"},
       .attributes = {{"axes", AttrKind::kInts, std::nullopt, "a permutation"}},
       .rule = transpose,
       .pattern = OpPattern::kInjective,
       .scheme = alike,
       .continuous = true,
       .samples = SampleArguments::permutation(),
       .elements = Elements::kMoved},
      {.name = "concat",
       .documentation = "The concatenation of the arguments along axis.",
       .inputs = {"...x"},
       .attributes = {{"axis", AttrKind::kInt, std::nullopt, "axis that grows"}},
       .rule = concat,
       .pattern = OpPattern::kInjective,
       .scheme = alike,
       .continuous = true,
       .elements = Elements::kMoved},
      {.name = "slice",
       .documentation =
           "The elements begin, begin + step, ... before end of each dim. Negative indices count from the end of the "
           "dim; "
           "indices out of range are clamped. Where step < 0, the end -2^63 is before the first element.",
       .inputs = {"x"},
       .attributes = {{"begin", AttrKind::kInts, std::nullopt, "first index, one per dim", true},
                      in_result_type({"end", AttrKind::kInts, std::nullopt,
                                      "index after the last, one per dim; 2^63 - 1: the end of the dim"}),
                      {"step", AttrKind::kInts, std::nullopt, "step, one per dim, not 0", true}},
       .rule = slice,
       .pattern = OpPattern::kInjective,
       .continuous = true,
       .elements = Elements::kMoved},
      {.name = "pad",
       .documentation = "x padded with elements of `value`.",
       .inputs = {"x"},
       .attributes = {{"before", AttrKind::kInts, std::nullopt, "elements before each dim", true},
                      in_result_type({"after", AttrKind::kInts, std::nullopt, "elements after each dim"}),
                      {"value", AttrKind::kFloat, 0.0, "value of the padding", true}},
       .rule = pad,
       .pattern = OpPattern::kInjective,
       .scheme = alike,
       .continuous = true,
       .elements = Elements::kPadded},
      {.name = "layout_transform",
       .documentation =
           "x in another layout. A layout has a letter per axis, as NCHW or NHWC; NCHW16c splits axis C into "
           "blocks of 16 that "
           "become the last dim: [N, ceil(C / 16), H, W, 16], padded with zeros.",
       .inputs = {"x"},
       .attributes = {{"from", AttrKind::kString, std::nullopt, "layout of x"},
                      {"to", AttrKind::kString, std::nullopt, "layout of the result"},
                      {"channels", AttrKind::kInt, int64_t{0},
                       "size of the axis that is blocked in `from`; 0: all of its blocks are full"}},
       .rule = layout_transform,
       .pattern = OpPattern::kInjective,
       .continuous = true},
  };
}

}  // namespace tenon::compiler
