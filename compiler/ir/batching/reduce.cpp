// Batching rules of reductions, and functions along an axis.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

constexpr BatchingRow kReduce[] = {
    {ops::kSum, along_axes},        {ops::kMean, along_axes},      {ops::kProd, along_axes},
    {ops::kMax, along_axes},        {ops::kMin, along_axes},       {ops::kAll, along_axes},
    {ops::kAny, along_axes},        {ops::kSumSquare, along_axes}, {ops::kNormL1, along_axes},
    {ops::kNormL2, along_axes},     {ops::kLogSum, along_axes},    {ops::kLogSumExp, along_axes},
    {ops::kArgMax, along_axis},     {ops::kArgMin, along_axis},    {ops::kSoftmax, along_axis},
    {ops::kLogSoftmax, along_axis}, {ops::kHardmax, along_axis},   {ops::kCumsum, along_axis},
    {ops::kCumprod, along_axis},
};

}  // namespace

std::span<const BatchingRow> reduce_batching() { return kReduce; }

}  // namespace tenon::compiler::batching
