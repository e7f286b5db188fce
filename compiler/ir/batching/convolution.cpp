// Batching rules of convolutions, of images with shared weights.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

constexpr BatchingRow kConvolution[] = {
    {ops::kConv1d, rows},          {ops::kConv2d, rows},          {ops::kConv3d, rows},
    {ops::kConv1dTranspose, rows}, {ops::kConv2dTranspose, rows}, {ops::kConv3dTranspose, rows},
};

}  // namespace

std::span<const BatchingRow> convolution_batching() { return kConvolution; }

}  // namespace tenon::compiler::batching
