// Operators that move elements and compute nothing.
#include <algorithm>

#include "compiler/ir/operators/rules.h"
#include "runtime/reference/layout.h"
#include "runtime/reference/slice.h"

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

Expected<Type> reshape(const RuleInput& in) {
  const TensorType& x = in.arg(0);
  const auto& shape = ints_attr(in.attrs, "shape");
  auto fail = [&](std::string_view why) {
    return error(fmt::format("{} cannot become [{}]: {}", in.context.str(in.args[0]), fmt::join(shape, ", "), why));
  };
  Dims dims;
  std::optional<size_t> open;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < -1) return fail("a size is negative");
    if (shape[i] == -1 && open) return fail("only one size may be -1");
    if (shape[i] == 0 && static_cast<int64_t>(i) >= x.rank()) return fail("0 copies a size that x does not have");
    if (shape[i] == -1) open = i;
    dims.push_back(shape[i] == 0 ? x.dims[i] : in.context.dim(shape[i] == -1 ? 1 : shape[i]));
  }
  const Dim all = in.context.product(x.dims), rest = in.context.product(dims);
  if (open) {
    if (rest.constant() == 0) return fail("-1 is open where another size is 0");
    const auto solved = in.context.divide(all, rest);
    if (!solved) return fail("the number of elements differs");
    dims[*open] = *solved;
  } else if (all != rest) {
    return fail("the number of elements differs");
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
  const auto axis = axis_of(in, "axis", first.rank());
  if (!axis) return std::unexpected(axis.error());
  Dims dims = first.dims;
  for (size_t i = 1; i < in.args.size(); ++i) {
    const TensorType& next = in.arg(i);
    bool fits = next.rank() == first.rank() && next.dtype == first.dtype;
    for (int64_t d = 0; fits && d < first.rank(); ++d) fits = d == *axis || next.dims[d] == first.dims[d];
    if (!fits) {
      return error(fmt::format("arguments 0 and {} must be equal but along axis {}: {} and {}", i, *axis,
                               in.context.str(in.args[0]), in.context.str(in.args[i])));
    }
    dims[*axis] = in.context.add(dims[*axis], next.dims[*axis]);
  }
  return in.context.tensor(std::move(dims), first.dtype);
}

Expected<Type> pad(const RuleInput& in) {
  const TensorType& x = in.arg(0);
  constexpr int64_t kMax = int64_t{1} << 30;
  TENON_TRY(check_ints(in, "before", x.dims.size(), 0, kMax));
  TENON_TRY(check_ints(in, "after", x.dims.size(), 0, kMax));
  const auto &before = ints_attr(in.attrs, "before"), &after = ints_attr(in.attrs, "after");
  Dims dims;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    dims.push_back(in.context.add(x.dims[i], in.context.dim(before[i] + after[i])));
  }
  return in.context.tensor(std::move(dims), x.dtype);
}

Expected<Type> slice(const RuleInput& in) {
  const TensorType& x = in.arg(0);
  const auto &begin = ints_attr(in.attrs, "begin"), &end = ints_attr(in.attrs, "end"),
             &step = ints_attr(in.attrs, "step");
  if (begin.size() != x.dims.size() || end.size() != x.dims.size() || step.size() != x.dims.size()) {
    return error(fmt::format("needs a begin, an end and a step for each dim, found {}, {} and {}: {}", begin.size(),
                             end.size(), step.size(), describe(in, {"x"})));
  }
  Dims dims;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (step[i] == 0) return error(fmt::format("step 0 along axis {}", i));
    const auto size = x.dims[i].constant();
    if (!size && begin[i] == 0 && end[i] == INT64_MAX && step[i] == 1) {
      dims.push_back(x.dims[i]);
    } else if (!size) {
      return error(fmt::format("a part of axis {}, whose size {} is unknown", i, in.context.str(x.dims[i])), "",
                   "bind the size, as --shapes N=1");
    } else {
      dims.push_back(in.context.dim(runtime::reference::slice_length(*size, begin[i], end[i], step[i])));
    }
  }
  return in.context.tensor(std::move(dims), x.dtype);
}

Expected<Type> layout_transform(const RuleInput& in) {
  using runtime::reference::Layout;
  auto from = Layout::parse(string_attr(in.attrs, "from")), to = Layout::parse(string_attr(in.attrs, "to"));
  if (!from) return forward_error(from);
  if (!to) return forward_error(to);
  if (Status status = check_same_axes(*from, *to); !status) return std::unexpected(status.error());
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
        return error(fmt::format("axis {} of size {} cannot be cut into blocks of {}", to->axes[i],
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
      {"flatten",
       "x as a matrix: the dims before axis become rows, the others columns.",
       {"x"},
       {{"axis", AttrKind::kInt, int64_t{1}, "first axis of the columns"}},
       flatten,
       Pattern::kInjective},
      {"reshape",
       "The elements of x, in order, in another shape.",
       {"x"},
       {{"shape", AttrKind::kInts, std::nullopt, "sizes; 0 copies x's, one -1 is what remains"}},
       reshape,
       Pattern::kInjective},
      {"transpose",
       "Dim i of the result is dim axes[i] of x.",
       {"x"},
       {{"axes", AttrKind::kInts, std::nullopt, "a permutation"}},
       transpose,
       Pattern::kInjective},
      {"concat",
       "The arguments one after another along axis.",
       {"...x"},
       {{"axis", AttrKind::kInt, std::nullopt, "axis that grows"}},
       concat,
       Pattern::kInjective},
      {"slice",
       "Elements begin, begin + step, ... before end of each dim. Negative ones count from the end of the dim; those "
       "beyond it are moved to it. Where step < 0, the end -2^63 is before the first element.",
       {"x"},
       {{"begin", AttrKind::kInts, std::nullopt, "first index, one a dim"},
        {"end", AttrKind::kInts, std::nullopt, "index behind the last, one a dim; 2^63 - 1: all"},
        {"step", AttrKind::kInts, std::nullopt, "distance, one a dim, not 0"}},
       slice,
       Pattern::kInjective},
      {"pad",
       "x with elements of `value` around it.",
       {"x"},
       {{"before", AttrKind::kInts, std::nullopt, "elements before each dim"},
        {"after", AttrKind::kInts, std::nullopt, "elements after each dim"},
        {"value", AttrKind::kFloat, 0.0, "their value"}},
       pad,
       Pattern::kInjective},
      {"layout_transform",
       "x in another layout. A layout is a letter an axis, as NCHW or NHWC; NCHW16c cuts axis C into blocks of 16 that "
       "become the last dim: [N, ceil(C / 16), H, W, 16], filled up with zeros.",
       {"x"},
       {{"from", AttrKind::kString, std::nullopt, "layout of x"},
        {"to", AttrKind::kString, std::nullopt, "layout of the result"},
        {"channels", AttrKind::kInt, int64_t{0}, "size of the axis that `from` cuts; 0: all of its blocks are full"}},
       layout_transform,
       Pattern::kInjective},
  };
}

}  // namespace tenon::compiler
