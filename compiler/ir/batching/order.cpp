// Batching rules of orders along an axis.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

constexpr BatchingRow kOrder[] = {
    {ops::kTopK, along_axis},
    {ops::kSort, along_axis},
    {ops::kArgSort, along_axis},
};

}  // namespace

std::span<const BatchingRow> order_batching() { return kOrder; }

}  // namespace tenon::compiler::batching
