// Batching rules of activations.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

constexpr BatchingRow kActivation[] = {
    {ops::kRelu, elementwise},
    {ops::kClip, elementwise},
    {ops::kSigmoid, elementwise},
    {ops::kTanh, elementwise},
    {ops::kSoftplus, elementwise},
    {ops::kSoftsign, elementwise},
    {ops::kSwish, elementwise},
    {ops::kMish, elementwise},
    {ops::kGelu, elementwise},
    {ops::kGeluTanh, elementwise},
    {ops::kElu, elementwise},
    {ops::kSelu, elementwise},
    {ops::kCelu, elementwise},
    {ops::kLeakyRelu, elementwise},
    {ops::kThresholdedRelu, elementwise},
    {ops::kHardSigmoid, elementwise},
    {ops::kHardSwish, elementwise},
    {ops::kShrink, elementwise},
    // The slope broadcasts to x.
    {ops::kPrelu,
     [](BatchBuilder& b) {
       return b.finish(b.apply_to({b.as_own(0), b.of_rank(1, b.rank(0))}));
     }},
};

}  // namespace

std::span<const BatchingRow> activation_batching() { return kActivation; }

}  // namespace tenon::compiler::batching
