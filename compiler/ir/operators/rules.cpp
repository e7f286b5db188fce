// The implementation of the shared checks, schemes and helpers.
#include "compiler/ir/operators/rules.h"

#include <cmath>

#include "runtime/reference/support.h"
#include "support/suggest.h"

namespace tenon::compiler {

std::string describe(const RuleInput& in, std::initializer_list<std::string_view> names) {
  std::string text;
  size_t i = 0;
  for (std::string_view name : names) {
    text += fmt::format("{}{} {}", i ? ", " : "", name, in.context.str(in.args[i]));
    ++i;
  }
  return text;
}

Status check_rank(const RuleInput& in, size_t arg, std::string_view name, int64_t rank) {
  if (in.arg(arg).rank() == rank) return {};
  return error(fmt::format("{} must have {} dims, found {}", name, rank, in.context.str(in.args[arg])));
}

Status check_dtype(const RuleInput& in, size_t arg, std::string_view name, std::initializer_list<DType> allowed) {
  std::vector<std::string_view> names;
  for (DType dtype : allowed) {
    if (in.arg(arg).dtype == dtype) return {};
    names.push_back(runtime::name(dtype));
  }
  return error(fmt::format("{} must be of {}, found {}", name, fmt::join(names, " or "), in.context.str(in.args[arg])));
}

Status check_vector(const RuleInput& in, size_t arg, std::string_view name, DType dtype, Dim length) {
  return require_type(in, arg, name, in.context.tensor(Dims{length}, dtype));
}

Status require_type(const RuleInput& in, size_t arg, std::string_view name, Type wanted) {
  const std::string what =
      fmt::format("{} must be {}, found {}", name, in.context.str(wanted), in.context.str(in.args[arg]));
  const TensorType &to = *wanted.tensor(), &found = in.arg(arg);
  if (found.rank() != to.rank() || found.dtype != to.dtype) return error(what);
  for (size_t axis = 0; axis < to.dims.size(); ++axis) TENON_TRY(require_size(in, arg, axis, to.dims[axis], what));
  return {};
}

Expected<Dim> require_quotient(const RuleInput& in, size_t arg, size_t axis, int64_t by, std::string_view what) {
  const Dim size = in.arg(arg).dims[axis], step = in.context.dim(by);
  if (const auto exact = in.context.divide(size, step)) return *exact;
  const Dim quotient = in.context.floor_divide(size, step);
  TENON_TRY(require_size(in, arg, axis, in.context.multiply(quotient, step), what));
  return quotient;
}

Status require_size(const RuleInput& in, size_t arg, size_t axis, Dim size, std::string_view what) {
  const Answer answer = in.prover.equal(in.arg(arg).dims[axis], size);
  if (answer == Answer::kYes) return {};
  if (answer == Answer::kUnknown && in.required) {
    in.required->push_back({arg, axis, size});
    return {};
  }
  std::string types;
  for (size_t i = 0; i < in.args.size(); ++i) {
    if (i > 0) types += ", ";
    const std::string name = in.inputs.empty() ? "" : in.inputs[std::min(i, in.inputs.size() - 1)].name;
    if (!name.empty() && name[0] != '.') types += name + " ";
    types += in.context.str(in.args[i]);
  }
  if (answer == Answer::kNo) return error(fmt::format("{}: {}", what, types));
  return error(fmt::format("{}: {}, and it is not proved that {} is {}", what, types,
                           in.context.str(in.arg(arg).dims[axis]), in.context.str(size)),
               "", "check it first, as match_cast(%x, Tensor[(n,), f32]) does");
}

Expected<Dim> require_same(const RuleInput& in, size_t arg_a, size_t axis_a, size_t arg_b, size_t axis_b,
                           std::string_view what) {
  const Dim a = in.arg(arg_a).dims[axis_a], b = in.arg(arg_b).dims[axis_b];
  if (b.constant() && !a.constant()) {
    TENON_TRY(require_size(in, arg_a, axis_a, b, what));
    return b;
  }
  TENON_TRY(require_size(in, arg_b, axis_b, a, what));
  return a;
}

Dim least(const RuleInput& in, Dim a, Dim b) {
  if (in.prover.less_equal(a, b) == Answer::kYes) return a;
  return in.prover.less_equal(b, a) == Answer::kYes ? b : in.context.minimum({a, b});
}
Dim greatest(const RuleInput& in, Dim a, Dim b) {
  if (in.prover.less_equal(a, b) == Answer::kYes) return b;
  return in.prover.less_equal(b, a) == Answer::kYes ? a : in.context.maximum({a, b});
}

Status check_ints(const RuleInput& in, std::string_view attr, size_t count, int64_t lo, int64_t hi) {
  const auto& values = ints_attr(in.attrs, attr);
  if (values.size() != count) {
    return error(fmt::format("{} must have {} values, found [{}]", attr, count, fmt::join(values, ", ")));
  }
  for (int64_t value : values) {
    if (value < lo || value > hi) {
      return error(fmt::format("{} must be in {} .. {}, found [{}]", attr, lo, hi, fmt::join(values, ", ")));
    }
  }
  return {};
}

Status check_int(const RuleInput& in, std::string_view attr, int64_t lo, int64_t hi) {
  const int64_t value = int_attr(in.attrs, attr);
  if (value >= lo && value <= hi) return {};
  return error(fmt::format("{} must be in {} .. {}, found {}", attr, lo, hi, value));
}

Expected<Dims> sizes_attr(const RuleInput& in, std::string_view attr, std::optional<size_t> count, int64_t lo,
                          int64_t hi) {
  Dims dims;
  const auto found = in.computed.find(attr);
  if (found != in.computed.end()) {
    dims = found->second;
  } else {
    const auto value = in.attrs.find(attr);
    if (auto* one = std::get_if<int64_t>(&value->second)) dims = {in.context.dim(*one)};
    else
      for (int64_t next : std::get<std::vector<int64_t>>(value->second)) dims.push_back(in.context.dim(next));
  }
  const auto written = [&] {
    std::vector<std::string> texts;
    for (const Dim dim : dims) texts.push_back(in.context.str(dim));
    return fmt::format("[{}]", fmt::join(texts, ", "));
  };
  if (count && dims.size() != *count)
    return error(fmt::format("{} must have {} values, found {}", attr, *count, written()));
  for (const Dim dim : dims) {
    if (dim.erased()) continue;
    const auto value = dim.constant();
    if (value && (*value < lo || *value > hi)) {
      return error(fmt::format("{} must be in {} .. {}, found {}", attr, lo, hi,
                               dims.size() == 1 ? in.context.str(dim) : written()));
    }
    if (value || lo == INT64_MIN || in.prover.less_equal(in.context.dim(lo), dim) == Answer::kYes) continue;
    return error(fmt::format("{} must be at least {}, and it is not proved that {} is", attr, lo, in.context.str(dim)),
                 "", fmt::format("write max({}, {})", in.context.str(dim), lo));
  }
  return dims;
}
Expected<Dim> size_attr(const RuleInput& in, std::string_view attr, int64_t lo, int64_t hi) {
  TENON_TRY_ASSIGN(dims, sizes_attr(in, attr, 1, lo, hi));
  return dims->front();
}
Type unknown_sizes(const RuleInput& in, int64_t rank, DType dtype) {
  return in.context.tensor(Dims(static_cast<size_t>(rank), in.context.erased()), dtype);
}

Status check_string(const RuleInput& in, std::string_view attr, std::span<const std::string_view> allowed) {
  const std::string& value = string_attr(in.attrs, attr);
  if (std::ranges::find(allowed, value) != allowed.end()) return {};
  return error(fmt::format("{} must be {}, found \"{}\"", attr, fmt::join(allowed, " or "), value));
}
Status check_string(const RuleInput& in, std::string_view attr, std::initializer_list<std::string_view> allowed) {
  return check_string(in, attr, std::span(allowed.begin(), allowed.size()));
}

Expected<DType> dtype_attr(const RuleInput& in) {
  const std::string& name = string_attr(in.attrs, "dtype");
  auto dtype = runtime::parse_dtype(name);
  if (dtype) return dtype;
  if (std::string suggestion = suggest_dtype(name); !suggestion.empty()) dtype.error().help = std::move(suggestion);
  return dtype;
}

Status check_value(const RuleInput& in, std::string_view attr, DType dtype) {
  if (in.is_computed(attr)) return {};  // the kernel checks it
  const double value = float_attr(in.attrs, attr);
  const bool whole = runtime::kReals.contains(dtype) || std::trunc(value) == value;
  if (whole && runtime::reference::representable(dtype, value)) return {};
  return error(fmt::format("{} {} is not representable in {}", attr, value, runtime::name(dtype)));
}

namespace {

Expected<int64_t> normalize_axis(const RuleInput& in, std::string_view attr, int64_t axis, int64_t rank) {
  const std::string type = in.context.str(in.args[0]);
  if (rank == 0) return error(fmt::format("{} is {}, but a scalar has no axes: {}", attr, axis, type));
  if (axis < -rank || axis >= rank)
    return error(fmt::format("{} must be in {} .. {}, found {}: {}", attr, -rank, rank - 1, axis, type));
  return axis < 0 ? axis + rank : axis;
}

}  // namespace

Expected<int64_t> axis_of(const RuleInput& in, std::string_view attr, int64_t rank) {
  return normalize_axis(in, attr, int_attr(in.attrs, attr), rank);
}

Expected<std::vector<int64_t>> axes_of(const RuleInput& in, std::string_view attr, int64_t rank) {
  std::vector<int64_t> axes = ints_attr(in.attrs, attr);
  for (int64_t& axis : axes) {
    TENON_TRY_ASSIGN(normalized, normalize_axis(in, attr, axis, rank));
    axis = *normalized;
  }
  std::ranges::sort(axes);
  const auto twice = std::ranges::adjacent_find(axes);
  if (twice != axes.end()) return error(fmt::format("{} has axis {} twice", attr, *twice));
  return axes;
}

Expected<Type> same_as_first(const RuleInput& in) { return in.args[0]; }

namespace {

// Whether `wrong` holds for an element of the integer constant; true where the argument is not a constant.
template <class F>
bool may_have(const runtime::Tensor* constant, F&& wrong) {
  if (!constant) return true;
  bool found = false;
  runtime::with_dtype<runtime::kIntegers>(constant->dtype(), [&]<class T>(T) {
    found = std::ranges::any_of(constant->data<T>(), [&](T x) { return wrong(x); });
  });
  return found;
}

bool any_symbolic_or_empty(const Application& apply, size_t from) {
  const auto& sizes = apply.args[0].sizes;
  return std::any_of(sizes.begin() + static_cast<std::ptrdiff_t>(std::min(from, sizes.size())), sizes.end(),
                     [](const auto& size) { return !size || *size == 0; });
}

}  // namespace

bool may_divide_by_zero(const Application& apply) {
  const auto& divisor = apply.args[1];
  return runtime::kIntegers.contains(divisor.dtype) && may_have(divisor.constant, [](auto x) { return x == 0; });
}
bool may_have_negative(const Application& apply) {
  const auto& count = apply.args[1];
  return runtime::kSignedIntegers.contains(count.dtype) && may_have(count.constant, [](auto x) { return x < 0; });
}
bool may_be_outside(const Application& apply) {
  const auto& sizes = apply.args[0].sizes;
  const auto found = apply.attrs.find("axis");
  if (found == apply.attrs.end()) return true;
  const int64_t axis = std::get<int64_t>(found->second);
  const auto size = sizes[axis < 0 ? axis + sizes.size() : axis];
  return !size || may_have(apply.args[1].constant, [&](auto index) {
    return static_cast<int64_t>(index) < -*size || static_cast<int64_t>(index) >= *size;
  });
}
bool may_be_small(const Application& apply) { return any_symbolic_or_empty(apply, 0); }
bool may_have_small_map(const Application& apply) { return any_symbolic_or_empty(apply, 2); }
bool may_shift_too_far(const Application& apply) {
  return may_have(apply.args[3].constant, [](auto x) { return x > 63; });
}
bool depends_on_elements(const Application&) { return true; }

Type of_rank(const SchemeInput& in, size_t rank, DType dtype) {
  Dims dims;
  for (size_t i = 0; i < rank; ++i) dims.push_back(in.fresh());
  return in.context.tensor(std::move(dims), dtype);
}

bool as_first(const SchemeInput& in) {
  if (in.args[0].unknown()) in.args[0] = in.result;
  const TensorType* first = in.args[0].tensor();
  if (!first) return false;
  for (Type& arg : std::span(in.args).subspan(1)) {
    if (arg.unknown()) arg = of_rank(in, 1, first->dtype);
  }
  return true;
}

bool with_scalar(const SchemeInput& in) {
  for (size_t i : {size_t{0}, size_t{1}}) {
    const TensorType *other = in.args[1 - i].tensor(), *result = in.result.tensor();
    if (!other || other->rank() > 0) continue;
    if (in.args[i].unknown() && result) in.args[i] = in.context.tensor(result->dims, other->dtype);
    return true;
  }
  return false;
}

bool alike(const SchemeInput& in) {
  const TensorType* like = in.result.tensor();
  for (Type arg : in.args) {
    if (arg.tensor()) like = arg.tensor();
  }
  if (!like) return false;
  for (Type& arg : in.args) {
    if (arg.unknown()) arg = of_rank(in, like->dims.size(), like->dtype);
  }
  return true;
}

Expected<Dim> windows(const RuleInput& in, Dim extent, const Window& window, std::string_view axis) {
  Context& context = in.context;
  const int64_t footprint = (window.kernel - 1) * window.dilation + 1;
  // extent + padding - footprint, the range of the windows' first positions
  const Dim room = context.add(extent, context.dim(window.before + window.after - footprint));
  if (in.prover.less_equal(context.dim(0), room) == Answer::kNo) {
    return error(fmt::format("the window of {} is larger than the padded {} of {}", footprint, axis,
                             context.str(context.add(extent, context.dim(window.before + window.after)))));
  }
  const Dim stride = context.dim(window.stride), unit = context.dim(1);
  if (!window.ceil) return context.add(context.floor_divide(room, stride), unit);
  // The last window may extend beyond the end, but must start inside the input or the padding before it.
  const Dim starts = context.ceil_divide(context.add(extent, context.dim(window.before)), window.stride);
  return least(in, context.add(context.ceil_divide(room, window.stride), unit), starts);
}

Expected<Dims> windows_over(const RuleInput& in, const std::vector<int64_t>& kernel, bool ceil) {
  const size_t rank = kernel.size();
  TENON_TRY(check_ints(in, "strides", rank, 1, kMaxWindow));
  TENON_TRY(check_ints(in, "padding", 2 * rank, 0, kMaxWindow));
  TENON_TRY(check_ints(in, "dilation", rank, 1, kMaxWindow));
  const auto &strides = ints_attr(in.attrs, "strides"), &padding = ints_attr(in.attrs, "padding"),
             &dilation = ints_attr(in.attrs, "dilation");
  static constexpr std::string_view kNames[] = {"depth", "height", "width"};
  Dims dims;
  for (size_t i = 0; i < rank; ++i) {
    TENON_TRY_ASSIGN(count, windows(in, in.arg(0).dims[2 + i],
                                    {kernel[i], strides[i], padding[i], padding[rank + i], dilation[i], ceil},
                                    kNames[3 - rank + i]));
    dims.push_back(*count);
  }
  return dims;
}

AttrSpec strides_over(size_t rank) {
  return {"strides", AttrKind::kInts, std::vector<int64_t>(rank, 1), "step of the window, one per dim"};
}
AttrSpec padding_over(size_t rank) {
  static constexpr std::string_view kOrder[] = {"[before, after]", "[top, left, bottom, right]",
                                                "[front, top, left, back, bottom, right]"};
  return {"padding", AttrKind::kInts, std::vector<int64_t>(2 * rank, 0),
          fmt::format("elements added: {}", kOrder[rank - 1])};
}
AttrSpec dilation_over(size_t rank) {
  return {"dilation", AttrKind::kInts, std::vector<int64_t>(rank, 1), "distance of the kernel taps, one per dim"};
}

Expected<Dims> broadcast(const RuleInput& in, const Dims& a, const Dims& b, size_t arg_a, size_t arg_b) {
  const Dim unit = in.context.dim(1);
  // As min(n, 1) is: the size of an axis that is cut to its first element.
  const auto at_most_one = [&](Dim dim) { return !dim.erased() && in.prover.less_equal(dim, unit) == Answer::kYes; };
  const size_t rank = std::max(a.size(), b.size());
  Dims result;
  for (size_t i = 0; i < rank; ++i) {
    const bool has_a = i + a.size() >= rank, has_b = i + b.size() >= rank;
    const size_t axis_a = i + a.size() - rank, axis_b = i + b.size() - rank;
    if (!has_a || !has_b) {
      result.push_back(has_a ? a[axis_a] : b[axis_b]);
    } else if (a[axis_a] == b[axis_b] || b[axis_b] == unit) {
      result.push_back(a[axis_a]);
    } else if (a[axis_a] == unit) {
      result.push_back(b[axis_b]);
    } else {
      const std::string what = fmt::format("shapes {} and {} do not broadcast: {} is not {}", in.context.str(a),
                                           in.context.str(b), in.context.str(a[axis_a]), in.context.str(b[axis_b]));
      Expected<Dim> size = b[axis_b];
      const auto require_one = [&](size_t arg, size_t axis, Dim other) {
        size = other;
        if (Status status = require_size(in, arg, axis, unit, what); !status)
          size = std::unexpected(std::move(status.error()));
      };
      const bool one_a = at_most_one(a[axis_a]), one_b = arg_b != kNoArg && at_most_one(b[axis_b]);
      if (one_b && !one_a) require_one(arg_b, axis_b, a[axis_a]);
      else if (one_a && !one_b) require_one(arg_a, axis_a, b[axis_b]);
      else if (arg_b != kNoArg) size = require_same(in, arg_a, axis_a, arg_b, axis_b, what);
      else if (Status status = require_size(in, arg_a, axis_a, *size, what); !status)
        size = std::unexpected(std::move(status.error()));
      if (!size) return error(size.error().what, "", "sizes must be equal, or one of them must be 1");
      result.push_back(*size);
    }
  }
  return result;
}

}  // namespace tenon::compiler
