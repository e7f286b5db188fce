#include "compiler/ir/operators/rules.h"

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

Expected<int64_t> axis_of(const RuleInput& in, std::string_view attr, int64_t rank) {
  const int64_t axis = int_attr(in.attrs, attr);
  if (axis < -rank || axis >= rank) {
    return error(
        fmt::format("{} must be in {} .. {}, found {}: {}", attr, -rank, rank - 1, axis, in.context.str(in.args[0])));
  }
  return axis < 0 ? axis + rank : axis;
}

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

Expected<std::pair<Dim, Dim>> windows_2d(const RuleInput& in, int64_t kernel_h, int64_t kernel_w, bool ceil) {
  constexpr int64_t kMax = 1 << 20;
  TENON_TRY(check_ints(in, "strides", 2, 1, kMax));
  TENON_TRY(check_ints(in, "padding", 4, 0, kMax));
  const bool dilated = in.attrs.contains("dilation");
  if (dilated) TENON_TRY(check_ints(in, "dilation", 2, 1, kMax));
  const std::vector<int64_t> dilation = dilated ? ints_attr(in.attrs, "dilation") : std::vector<int64_t>{1, 1};
  const auto &strides = ints_attr(in.attrs, "strides"), &padding = ints_attr(in.attrs, "padding");
  const Dims& dims = in.arg(0).dims;
  auto height =
      windows(in.context, dims[2], {kernel_h, strides[0], padding[0], padding[2], dilation[0], ceil}, "height");
  if (!height) return forward_error(height);
  auto width = windows(in.context, dims[3], {kernel_w, strides[1], padding[1], padding[3], dilation[1], ceil}, "width");
  if (!width) return forward_error(width);
  return std::pair{*height, *width};
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
