// The parts of a split as slices, which become part of the kernels that read them: the gates of a recurrent cell, the
// halves of a gated activation. A split is a kernel of its own, which copies its operand.
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

Expected<std::optional<Atom>> sliced(Builder& builder, Binding& binding) {
  const auto* project = std::get_if<Project>(&binding.value);
  const Apply* split = project ? builder.application(project->tuple, ops::kSplit) : nullptr;
  if (!split || !split->computed.empty()) return std::nullopt;
  const Atom x = split->args[0];
  const TensorType* type = builder.tensor_type(x);
  const auto rank = static_cast<int64_t>(type->dims.size());
  const int64_t axis = int_attr(split->attrs, "axis") + (int_attr(split->attrs, "axis") < 0 ? rank : 0);
  if (!type->dims[static_cast<size_t>(axis)].constant()) return std::nullopt;
  const std::vector<int64_t>& sizes = ints_attr(split->attrs, "sizes");
  std::vector<int64_t> begin(type->dims.size(), 0), end(type->dims.size(), INT64_MAX), step(type->dims.size(), 1);
  int64_t offset = 0;
  for (uint32_t i = 0; i < project->index; ++i) offset += sizes[i];
  begin[static_cast<size_t>(axis)] = offset;
  end[static_cast<size_t>(axis)] = offset + sizes[project->index];
  TENON_TRY_ASSIGN(part,
                   builder.apply(ops::kSlice, {x},
                                 {{"begin", std::move(begin)}, {"end", std::move(end)}, {"step", std::move(step)}}));
  return std::optional(*part);
}

}  // namespace

Expected<Module> slice_splits(Context& context, Module module) {
  TENON_TRY_ASSIGN(rewritten, rewrite(context, std::move(module), sliced));
  return dead_code(context, std::move(*rewritten));
}

Pass slice_splits_pass() {
  return {"slice_splits", "Takes the parts of a split as slices, which fuse with the operators that read them.",
          slice_splits};
}

}  // namespace tenon::compiler
