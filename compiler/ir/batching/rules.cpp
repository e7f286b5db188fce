#include "compiler/ir/batching/rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::compiler::batching {
namespace {

int64_t moved(int64_t axis) { return axis < 0 ? axis : axis + 1; }

// The attribute of an axis, or of axes, has a value that is no constant.
void expect_constant(BatchBuilder& b, std::string_view name) {
  b.expect(b.attrs().find(name) != b.attrs().end(),
           fmt::format("{} is not batched where {} is computed", b.op().name, name));
}

// Whether the first argument alone is own.
bool has_one_own(const RowsInput& input) { return input.own[0] && std::ranges::count(input.own, true) == 1; }

}  // namespace

Status of_elements(BatchBuilder& b) { return b.finish(b.apply_to({b.arg(0)})); }

Status of_broadcast(BatchBuilder& b) {
  int64_t rank = 0;
  for (size_t i = 0; i < b.num_args(); ++i) rank = std::max(rank, b.rank(i));
  std::vector<Term> args;
  for (size_t i = 0; i < b.num_args(); ++i) args.push_back(b.of_rank(i, rank));
  return b.finish(b.apply_to(args));
}

Status of_rows(BatchBuilder& b) {
  b.expect_own(0);
  std::vector<Term> args{b.arg(0)};
  for (size_t i = 1; i < b.num_args(); ++i) {
    b.expect_shared(i);
    args.push_back(b.arg(i));
  }
  Dims dims = args[0].dims();
  if (!b.ok()) return b.status();
  dims[1] = b.builder().context().multiply(dims[0], dims[1]);
  dims.erase(dims.begin());
  args[0] = b.reshaped(args[0], dims);
  return b.finish(b.reshaped(b.apply_to(args), b.result_dims()));
}

Status of_axis(BatchBuilder& b) {
  b.expect_own(0);
  for (size_t i = 1; i < b.num_args(); ++i) b.expect_shared(i);
  expect_constant(b, "axis");
  if (!b.ok()) return b.status();
  Attrs attrs = b.attrs();
  attrs["axis"] = moved(int_attr(attrs, "axis"));
  std::vector<Term> args;
  for (size_t i = 0; i < b.num_args(); ++i) args.push_back(b.arg(i));
  return b.finish(b.apply_to(args, std::move(attrs), b.computed()));
}

Status of_axes(BatchBuilder& b) {
  expect_constant(b, "axes");
  if (!b.ok()) return b.status();
  Attrs attrs = b.attrs();
  std::vector<int64_t> axes = ints_attr(attrs, "axes");
  for (int64_t& axis : axes) axis = moved(axis);
  if (b.op().is(ops::kTranspose)) axes.insert(axes.begin(), 0);
  const bool all = axes.empty() && !b.op().is_one_of({ops::kExpandDims, ops::kSqueeze, ops::kReverse});
  for (int64_t axis = 1; all && axis <= b.rank(0); ++axis) axes.push_back(axis);
  // No axes of a scalar: an axis of size 1 is reduced instead, since none stand for all.
  const Term x = all && axes.empty() ? b.arg(0).expand_dims({1}) : b.arg(0);
  if (all && axes.empty()) axes.push_back(1), attrs["keep"] = int64_t{0};
  attrs["axes"] = std::move(axes);
  return b.finish(b.apply_to({x}, std::move(attrs), b.computed()));
}

Status of_same_elements(BatchBuilder& b) { return b.finish(b.reshaped(b.arg(0), b.result_dims())); }

Status of_joined(BatchBuilder& b) {
  std::vector<Term> args;
  for (size_t i = 0; i < b.num_args(); ++i) args.push_back(b.as_own(i));
  Attrs attrs = b.attrs();
  attrs["axis"] = moved(int_attr(attrs, "axis"));
  return b.finish(b.apply_to(args, std::move(attrs)));
}

// The last dims of a matrix are one element of an operator that is no elementwise one.
bool rows_of_elements(const RowsInput& input) {
  return input.op.pattern == OpPattern::kElementwise || input.axes <= input.rank(0) - 2;
}

// A shared argument has no row of its own for each row.
bool rows_of_broadcast(const RowsInput& input) {
  const int64_t rank = input.result.tensor()->rank();
  for (size_t i = 0; i < input.args.size(); ++i) {
    const Dims& dims = input.args[i].tensor()->dims;
    if (input.own[i] && std::ssize(dims) != rank) return false;
    for (int64_t axis = 0; !input.own[i] && axis < std::ssize(dims); ++axis) {
      if (axis + rank - std::ssize(dims) < input.axes && dims[axis].constant() != 1) return false;
    }
  }
  return true;
}

bool rows_of_rows(const RowsInput& input) { return input.axes == 1 && has_one_own(input); }

bool rows_of_axis(const RowsInput& input) {
  const auto axis = input.attrs.find("axis");
  return has_one_own(input) && axis != input.attrs.end() &&
         input.follows_rows(std::get<int64_t>(axis->second), input.rank(0));
}

bool rows_of_axes(const RowsInput& input) {
  const auto found = input.attrs.find("axes");
  if (!has_one_own(input) || found == input.attrs.end()) return false;
  const std::span axes = std::get<std::vector<int64_t>>(found->second);
  if (input.op.is(ops::kTranspose)) {
    for (int64_t i = 0; i < input.axes; ++i) {
      if (axes.empty() || (axes[i] < 0 ? axes[i] + input.rank(0) : axes[i]) != i) return false;
    }
    return true;
  }
  const int64_t rank = input.op.is(ops::kExpandDims) ? input.result.tensor()->rank() : input.rank(0);
  return !axes.empty() && std::ranges::all_of(axes, [&](int64_t axis) { return input.follows_rows(axis, rank); });
}

bool rows_of_same_elements(const RowsInput&) { return true; }

bool rows_of_joined(const RowsInput& input) {
  return std::ranges::find(input.own, false) == input.own.end() &&
         input.follows_rows(int_attr(input.attrs, "axis"), input.result.tensor()->rank());
}

Status padded(BatchBuilder& b) {
  Attrs attrs = b.attrs();
  ComputedAttrs computed = b.computed();
  set_first(b, "before", 0, attrs, computed);
  set_first(b, "after", 0, attrs, computed);
  return b.finish(b.apply_to({b.arg(0)}, std::move(attrs), std::move(computed)));
}

void set_first(BatchBuilder& b, std::string_view name, int64_t first, Attrs& attrs, ComputedAttrs& computed) {
  if (const auto found = attrs.find(name); found != attrs.end()) {
    auto& values = std::get<std::vector<int64_t>>(found->second);
    values.insert(values.begin(), first);
  } else if (const auto other = computed.find(name); other != computed.end()) {
    auto* dims = std::get_if<Dims>(&other->second);
    b.expect(dims, fmt::format("{} is not batched where {} is an operand", b.op().name, name));
    if (dims) dims->insert(dims->begin(), b.builder().context().dim(first));
  }
}

}  // namespace tenon::compiler::batching
