// Batching rules of operators with indices.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

// Of a shared table, the parts at the indices of all instances; of tables of their own, those at shared indices, or at
// the instance's own.
Status gather(BatchBuilder& b) {
  if (!b.own(1)) return of_axis(b);
  const int64_t rank = b.rank(0), indices = b.rank(1), axis = int_attr(b.attrs(), "axis");
  const int64_t first = axis < 0 ? axis + rank : axis;
  std::vector<int64_t> axes;
  if (!b.own(0)) {
    const Term parts = b.apply_to({b.arg(0), b.arg(1)});
    // The instances are behind the table's dims before `axis`.
    axes.push_back(first);
    for (int64_t i = 0; i < rank + indices; ++i) {
      if (i != first) axes.push_back(i);
    }
    return b.finish(first == 0 ? parts : parts.transpose(std::move(axes)));
  }
  // The indexed axis is behind the instances, and each index is a tuple of one.
  axes = {0, first + 1};
  for (int64_t i = 1; i <= rank; ++i) {
    if (i != first + 1) axes.push_back(i);
  }
  const Term table = first == 0 ? b.arg(0) : b.arg(0).transpose(std::move(axes));
  const Term parts =
      b.apply(ops::kGatherNd, {table, b.arg(1).expand_dims({indices + 1})}, {{"batch_dims", int64_t{1}}});
  if (first == 0) return b.finish(parts);
  axes = {0};
  for (int64_t i = 0; i < first; ++i) axes.push_back(1 + indices + i);
  for (int64_t i = 1; i <= indices; ++i) axes.push_back(i);
  for (int64_t i = first; i < rank - 1; ++i) axes.push_back(1 + indices + i);
  return b.finish(parts.transpose(std::move(axes)));
}

// Both tensors have the dims of the instances.
Status gather_elements(BatchBuilder& b) {
  const int64_t axis = int_attr(b.attrs(), "axis");
  return b.finish(b.apply_to({b.as_own(0), b.as_own(1)}, {{"axis", axis < 0 ? axis : axis + 1}}));
}

// Rows of indices into the first axis of a shared table.
bool rows_of_gather(const RowsInput& input) {
  const int64_t axis = int_attr(input.attrs, "axis");
  return !input.own[0] && input.own[1] && (axis < 0 ? axis + input.rank(0) : axis) == 0 && input.axes <= input.rank(1);
}

constexpr BatchingRow kIndex[] = {
    {ops::kGather, {gather, rows_of_gather}},
    {ops::kGatherElements, gather_elements},
    {ops::kOneHot, along_axis},
};

}  // namespace

std::span<const BatchingRow> index_batching() { return kIndex; }

}  // namespace tenon::compiler::batching
