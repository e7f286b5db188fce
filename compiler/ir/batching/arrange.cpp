// Batching rules of operators that arrange elements.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

Status tile(BatchBuilder& b) {
  Attrs attrs = b.attrs();
  ComputedAttrs computed = b.computed();
  set_first(b, "repeats", 1, attrs, computed);
  return b.finish(b.apply_to({b.arg(0)}, std::move(attrs), std::move(computed)));
}

// The dims that a broadcast adds are leading ones of each instance.
Status broadcast_to(BatchBuilder& b) {
  const Dims dims = b.result_dims();
  return b.finish(b.of_rank(0, static_cast<int64_t>(dims.size()) - 1).broadcast_to(dims));
}

// The sizes are the same for all instances.
Status shape_of(BatchBuilder& b) {
  return b.finish(b.apply_to({b.arg(0)}).slice(0, 1, INT64_MAX).broadcast_to(b.result_dims()));
}

constexpr BatchingRow kArrange[] = {
    {ops::kSplit, along_axis},         {ops::kStack, joined},         {ops::kTile, tile},
    {ops::kBroadcastTo, broadcast_to}, {ops::kSqueeze, along_axes},   {ops::kExpandDims, along_axes},
    {ops::kReverse, along_axes},       {ops::kPadEdge, padded},       {ops::kPadReflect, padded},
    {ops::kPadWrap, padded},           {ops::kTriangle, elementwise}, {ops::kShapeOf, shape_of},
    {ops::kDepthToSpace, rows},        {ops::kSpaceToDepth, rows},
};

}  // namespace

std::span<const BatchingRow> arrange_batching() { return kArrange; }

}  // namespace tenon::compiler::batching
