// Batching rules of conversions between floats and scaled integers.
#include <algorithm>

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

// One scale for all elements has no axis.
bool rows_of_scales(const RowsInput& input) {
  bool is_one = input.own[0];
  for (size_t i = 1; i < input.args.size(); ++i) {
    const Dims& dims = input.args[i].tensor()->dims;
    is_one &= !input.own[i] && std::ranges::all_of(dims, [](Dim dim) { return dim.constant() == 1; });
  }
  return is_one || rows_of_axis(input);
}

constexpr BatchingRow kQuantize[] = {
    {ops::kQuantize, {of_axis, rows_of_scales}},
    {ops::kDequantize, {of_axis, rows_of_scales}},
    {ops::kRequantize, {of_axis, rows_of_scales}},
    {ops::kRequantizeAdd, requantize_add},
};

}  // namespace

std::span<const BatchingRow> quantize_batching() { return kQuantize; }

}  // namespace tenon::compiler::batching
