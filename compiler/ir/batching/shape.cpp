// Batching rules of changes of shape.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

// All of the instances, and of each what the attributes say.
Status slice(BatchBuilder& b) {
  Attrs attrs = b.attrs();
  ComputedAttrs computed = b.computed();
  set_first(b, "begin", 0, attrs, computed);
  set_first(b, "end", INT64_MAX, attrs, computed);
  set_first(b, "step", 1, attrs, computed);
  return b.finish(b.apply_to({b.arg(0)}, std::move(attrs), std::move(computed)));
}

constexpr BatchingRow kShape[] = {
    {ops::kFlatten, same_elements}, {ops::kReshape, same_elements}, {ops::kTranspose, along_axes},
    {ops::kConcat, joined},         {ops::kSlice, slice},           {ops::kPad, padded},
};

}  // namespace

std::span<const BatchingRow> shape_batching() { return kShape; }

}  // namespace tenon::compiler::batching
