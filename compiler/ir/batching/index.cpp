// Batching rules of operators with indices.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

// Of a shared table, the parts at the indices of all instances; of tables of their own, those at shared indices.
Status gather(BatchBuilder& b) {
  if (!b.own(1)) return along_axis(b);
  b.expect_shared(0);
  const int64_t rank = b.rank(0), indices = b.rank(1), axis = int_attr(b.attrs(), "axis");
  const int64_t first = axis < 0 ? axis + rank : axis;
  const Term parts = b.apply_to({b.arg(0), b.arg(1)});
  // The instances are behind the table's dims before `axis`.
  std::vector<int64_t> axes{first};
  for (int64_t i = 0; i < rank + indices; ++i) {
    if (i != first) axes.push_back(i);
  }
  return b.finish(first == 0 ? parts : parts.transpose(std::move(axes)));
}

// Both tensors have the dims of the instances.
Status gather_elements(BatchBuilder& b) {
  const int64_t axis = int_attr(b.attrs(), "axis");
  return b.finish(b.apply_to({b.as_own(0), b.as_own(1)}, {{"axis", axis < 0 ? axis : axis + 1}}));
}

constexpr BatchingRow kIndex[] = {
    {ops::kGather, gather},
    {ops::kGatherElements, gather_elements},
    {ops::kOneHot, along_axis},
};

}  // namespace

std::span<const BatchingRow> index_batching() { return kIndex; }

}  // namespace tenon::compiler::batching
