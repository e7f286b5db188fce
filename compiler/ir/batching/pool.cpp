// Batching rules of pooling of images.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

constexpr BatchingRow kPool[] = {
    {ops::kMaxPool1d, rows},     {ops::kMaxPool2d, rows},       {ops::kMaxPool3d, rows},
    {ops::kAvgPool1d, rows},     {ops::kAvgPool2d, rows},       {ops::kAvgPool3d, rows},
    {ops::kLpPool1d, rows},      {ops::kLpPool2d, rows},        {ops::kLpPool3d, rows},
    {ops::kGlobalAvgPool, rows}, {ops::kGlobalMaxPool, rows},   {ops::kGlobalLpPool, rows},
    {ops::kGlobalSumPool, rows}, {ops::kAdaptiveAvgPool, rows}, {ops::kAdaptiveMaxPool, rows},
};

}  // namespace

std::span<const BatchingRow> pool_batching() { return kPool; }

}  // namespace tenon::compiler::batching
