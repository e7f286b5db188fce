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
  if (in.args[arg] == wanted) return {};
  return error(fmt::format("{} must be {}, found {}", name, in.context.str(wanted), in.context.str(in.args[arg])));
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

Expected<Dim> windows(Context& context, Dim extent, const Window& window, std::string_view axis) {
  const int64_t reach = (window.kernel - 1) * window.dilation + 1;
  // extent + pads - reach, the room for further windows
  const Dim room = context.add(extent, context.dim(window.before + window.after - reach));
  if (const auto value = room.constant()) {
    if (*value < 0) {
      return error(fmt::format("the window of {} reaches beyond the padded {} of {}", reach, axis,
                               *extent.constant() + window.before + window.after));
    }
    int64_t steps = *value / window.stride;
    // With ceil a last window may hang over the end, but must start inside the input or the pad before it.
    if (window.ceil && *value % window.stride != 0 &&
        (steps + 1) * window.stride < *extent.constant() + window.before) {
      ++steps;
    }
    return context.dim(steps + 1);
  }
  if (window.stride == 1) return context.add(room, context.dim(1));
  return error(fmt::format("stride {} over a {} of unknown size {}", window.stride, axis, context.str(extent)), "",
               "bind the size, as --shapes H=224,W=224");
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
    TENON_TAKE(count, windows(in.context, in.arg(0).dims[2 + i],
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

Expected<Dims> broadcast(const RuleInput& in, const Dims& a, const Dims& b) {
  const Dims &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  const Dim one = in.context.dim(1);
  Dims result = longer;
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim& dim = result[longer.size() - shorter.size() + i];
    if (dim == shorter[i] || shorter[i] == one) continue;
    if (dim != one) {
      return error(fmt::format("shapes {} and {} do not broadcast: {} is not {}", in.context.str(a), in.context.str(b),
                               in.context.str(dim), in.context.str(shorter[i])),
                   "", "sizes must be equal, or one of them 1");
    }
    dim = shorter[i];
  }
  return result;
}

}  // namespace tenon::compiler
