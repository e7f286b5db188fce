#include "compiler/ir/operators/rules.h"

#include "runtime/reference/support.h"

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
  const Type wanted = in.context.tensor(Dims{length}, dtype);
  const std::string what =
      fmt::format("{} must be {}, found {}", name, in.context.str(wanted), in.context.str(in.args[arg]));
  if (in.arg(arg).rank() == 1 && in.arg(arg).dtype == dtype) return require_size(in, arg, 0, length, what);
  return error(what);
}

Status require_size(const RuleInput& in, size_t arg, size_t axis, Dim size, std::string_view what) {
  const Answer answer = in.prover.equal(in.arg(arg).dims[axis], size);
  if (answer == Answer::kYes) return {};
  if (answer == Answer::kUnknown && in.required) {
    in.required->push_back({arg, axis, size});
    return {};
  }
  std::string types;
  for (Type type : in.args) types += (types.empty() ? "" : ", ") + in.context.str(type);
  if (answer == Answer::kNo) return error(fmt::format("{}: {}", what, types));
  return error(fmt::format("{}: {}, and it is not proved that {} is {}", what, types,
                           in.context.str(in.arg(arg).dims[axis]), in.context.str(size)),
               "", "check it first, as match_cast(%x, Tensor[(n,), f32]) does");
}

Expected<Dim> require_same(const RuleInput& in, size_t arg_a, size_t axis_a, size_t arg_b, size_t axis_b,
                           std::string_view what) {
  const Dim a = in.arg(arg_a).dims[axis_a], b = in.arg(arg_b).dims[axis_b];
  if (b.constant() && !a.constant()) {
    if (Status status = require_size(in, arg_a, axis_a, b, what); !status) return std::unexpected(status.error());
    return b;
  }
  if (Status status = require_size(in, arg_b, axis_b, a, what); !status) return std::unexpected(status.error());
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

Status check_string(const RuleInput& in, std::string_view attr, std::span<const std::string_view> allowed) {
  const std::string& value = string_attr(in.attrs, attr);
  if (std::ranges::find(allowed, value) != allowed.end()) return {};
  return error(fmt::format("{} must be {}, found \"{}\"", attr, fmt::join(allowed, " or "), value));
}
Status check_string(const RuleInput& in, std::string_view attr, std::initializer_list<std::string_view> allowed) {
  return check_string(in, attr, std::span(allowed.begin(), allowed.size()));
}

Expected<DType> dtype_attr(const RuleInput& in) { return runtime::parse_dtype(string_attr(in.attrs, "dtype")); }

Status check_value(const RuleInput& in, std::string_view attr, DType dtype) {
  const double value = float_attr(in.attrs, attr);
  if (runtime::reference::representable(dtype, value)) return {};
  return error(fmt::format("{} {} is no value of {}", attr, value, runtime::name(dtype)));
}

Expected<int64_t> axis_of(const RuleInput& in, std::string_view attr, int64_t rank) {
  const int64_t axis = int_attr(in.attrs, attr);
  if (axis < -rank || axis >= rank) {
    return error(
        fmt::format("{} must be in {} .. {}, found {}: {}", attr, -rank, rank - 1, axis, in.context.str(in.args[0])));
  }
  return axis < 0 ? axis + rank : axis;
}

Expected<std::vector<int64_t>> axes_of(const RuleInput& in, std::string_view attr, int64_t rank) {
  std::vector<int64_t> axes = ints_attr(in.attrs, attr);
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) {
      return error(
          fmt::format("{} must be in {} .. {}, found {}: {}", attr, -rank, rank - 1, axis, in.context.str(in.args[0])));
    }
    if (axis < 0) axis += rank;
  }
  std::ranges::sort(axes);
  const auto twice = std::ranges::adjacent_find(axes);
  if (twice != axes.end()) return error(fmt::format("{} has axis {} twice", attr, *twice));
  return axes;
}

Expected<Type> same_as_first(const RuleInput& in) { return in.args[0]; }

Expected<Dim> windows(const RuleInput& in, Dim extent, const Window& window, std::string_view axis) {
  Context& context = in.context;
  const int64_t reach = (window.kernel - 1) * window.dilation + 1;
  // extent + pads - reach, the room for further windows
  const Dim room = context.add(extent, context.dim(window.before + window.after - reach));
  if (in.prover.less_equal(context.dim(0), room) == Answer::kNo) {
    return error(fmt::format("the window of {} reaches beyond the padded {} of {}", reach, axis,
                             context.str(context.add(extent, context.dim(window.before + window.after)))));
  }
  const Dim stride = context.dim(window.stride), one = context.dim(1);
  if (!window.ceil) return context.add(context.floor_divide(room, stride), one);
  // A last window may hang over the end, but must start inside the input or the pad before it.
  const Dim starts = context.ceil_divide(context.add(extent, context.dim(window.before)), window.stride);
  return least(in, context.add(context.ceil_divide(room, window.stride), one), starts);
}

Expected<Dims> windows_over(const RuleInput& in, const std::vector<int64_t>& kernel, bool ceil) {
  constexpr int64_t kMax = 1 << 20;
  const size_t rank = kernel.size();
  TENON_TRY(check_ints(in, "strides", rank, 1, kMax));
  TENON_TRY(check_ints(in, "padding", 2 * rank, 0, kMax));
  TENON_TRY(check_ints(in, "dilation", rank, 1, kMax));
  const auto &strides = ints_attr(in.attrs, "strides"), &padding = ints_attr(in.attrs, "padding"),
             &dilation = ints_attr(in.attrs, "dilation");
  static constexpr std::string_view kNames[] = {"depth", "height", "width"};
  Dims dims;
  for (size_t i = 0; i < rank; ++i) {
    TENON_TAKE(count, windows(in, in.arg(0).dims[2 + i],
                              {kernel[i], strides[i], padding[i], padding[rank + i], dilation[i], ceil},
                              kNames[3 - rank + i]));
    dims.push_back(*count);
  }
  return dims;
}

AttrSpec strides_over(size_t rank) {
  return {"strides", AttrKind::kInts, std::vector<int64_t>(rank, 1), "step of the window, one a dim"};
}
AttrSpec padding_over(size_t rank) {
  static constexpr std::string_view kOrder[] = {"[before, after]", "[top, left, bottom, right]",
                                                "[front, top, left, back, bottom, right]"};
  return {"padding", AttrKind::kInts, std::vector<int64_t>(2 * rank, 0),
          fmt::format("elements added: {}", kOrder[rank - 1])};
}
AttrSpec dilation_over(size_t rank) {
  return {"dilation", AttrKind::kInts, std::vector<int64_t>(rank, 1), "distance of the taps, one a dim"};
}

Expected<Dims> broadcast(const RuleInput& in, const Dims& a, const Dims& b, size_t arg_a, size_t arg_b) {
  const Dim one = in.context.dim(1);
  const size_t rank = std::max(a.size(), b.size());
  Dims result;
  for (size_t i = 0; i < rank; ++i) {
    const bool has_a = i + a.size() >= rank, has_b = i + b.size() >= rank;
    const size_t axis_a = i + a.size() - rank, axis_b = i + b.size() - rank;
    if (!has_a || !has_b) {
      result.push_back(has_a ? a[axis_a] : b[axis_b]);
    } else if (a[axis_a] == b[axis_b] || b[axis_b] == one) {
      result.push_back(a[axis_a]);
    } else if (a[axis_a] == one) {
      result.push_back(b[axis_b]);
    } else {
      const std::string what = fmt::format("shapes {} and {} do not broadcast: {} is not {}", in.context.str(a),
                                           in.context.str(b), in.context.str(a[axis_a]), in.context.str(b[axis_b]));
      Expected<Dim> size = b[axis_b];
      if (arg_b != kNoArg) size = require_same(in, arg_a, axis_a, arg_b, axis_b, what);
      else if (Status status = require_size(in, arg_a, axis_a, *size, what); !status)
        size = std::unexpected(status.error());
      if (!size) return error(size.error().what, "", "sizes must be equal, or one of them the number 1");
      result.push_back(*size);
    }
  }
  return result;
}

}  // namespace tenon::compiler
