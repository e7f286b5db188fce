// Batching rules of normalizations.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

constexpr BatchingRow kNormalize[] = {
    {ops::kBatchNorm, rows},         {ops::kInstanceNorm, rows},    {ops::kGroupNorm, rows},
    {ops::kLocalResponseNorm, rows}, {ops::kLayerNorm, along_axis}, {ops::kRmsNorm, along_axis},
    {ops::kLpNormalize, along_axis},
};

}  // namespace

std::span<const BatchingRow> normalize_batching() { return kNormalize; }

}  // namespace tenon::compiler::batching
