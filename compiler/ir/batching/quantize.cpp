// Batching rules of conversions between floats and scaled integers.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

// The accumulators and the residual may be of each instance its own, the parameters are shared.
Status requantize_add(BatchBuilder& b) {
  for (const size_t i : {1, 2, 3}) b.expect_shared(i);
  Attrs attrs = b.attrs();
  const int64_t axis = int_attr(attrs, "axis");
  attrs["axis"] = axis < 0 ? axis : axis + 1;
  return b.finish(b.apply_to({b.as_own(0), b.arg(1), b.arg(2), b.arg(3), b.as_own(4)}, std::move(attrs), b.computed()));
}

constexpr BatchingRow kQuantize[] = {
    {ops::kQuantize, along_axis},
    {ops::kDequantize, along_axis},
    {ops::kRequantize, along_axis},
    {ops::kRequantizeAdd, requantize_add},
};

}  // namespace

std::span<const BatchingRow> quantize_batching() { return kQuantize; }

}  // namespace tenon::compiler::batching
