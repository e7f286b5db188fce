// Batching rules of copies, conversions and selections.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

// b is along one axis of x. Where each instance has its own, it broadcasts with x.
Status bias_add(BatchBuilder& b) {
  if (!b.own(1)) return of_axis(b);
  const int64_t rank = b.rank(0), axis = int_attr(b.attrs(), "axis");
  std::vector<int64_t> added;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != (axis < 0 ? axis + rank : axis)) added.push_back(i + 1);
  }
  const Term bias = added.empty() ? b.arg(1) : b.arg(1).expand_dims(std::move(added));
  return b.finish(b.arg(0) + bias);
}

constexpr BatchingRow kElementwise[] = {
    {ops::kIdentity, elementwise},
    {ops::kBitcast, elementwise},
    {ops::kCast, elementwise},
    {ops::kSelect, broadcast},
    {ops::kBiasAdd, {bias_add, rows_of_axis}},
};

}  // namespace

std::span<const BatchingRow> elementwise_batching() { return kElementwise; }

}  // namespace tenon::compiler::batching
