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

}  // namespace

Status elementwise(BatchBuilder& b) { return b.finish(b.apply_to({b.arg(0)})); }

Status broadcast(BatchBuilder& b) {
  int64_t rank = 0;
  for (size_t i = 0; i < b.num_args(); ++i) rank = std::max(rank, b.rank(i));
  std::vector<Term> args;
  for (size_t i = 0; i < b.num_args(); ++i) args.push_back(b.of_rank(i, rank));
  return b.finish(b.apply_to(args));
}

Status rows(BatchBuilder& b) {
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

Status along_axis(BatchBuilder& b) {
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

Status along_axes(BatchBuilder& b) {
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

Status same_elements(BatchBuilder& b) { return b.finish(b.reshaped(b.arg(0), b.result_dims())); }

Status joined(BatchBuilder& b) {
  std::vector<Term> args;
  for (size_t i = 0; i < b.num_args(); ++i) args.push_back(b.as_own(i));
  Attrs attrs = b.attrs();
  attrs["axis"] = moved(int_attr(attrs, "axis"));
  return b.finish(b.apply_to(args, std::move(attrs)));
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
