// Gradients of rearrangements: the elements of dy are moved back, and summed where one was repeated.
#include "compiler/ir/gradients/rules.h"

namespace tenon::compiler::gradients {
namespace {

constexpr GradientRow kArranged[] = {
    {ops::kBroadcastTo,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent());
       return g.status();
     }},
    {ops::kSqueeze, same_elements},
    {ops::kExpandDims, same_elements},
    {ops::kReverse, same_again},
};

}  // namespace

std::span<const GradientRow> arrange_gradients() { return kArranged; }

}  // namespace tenon::compiler::gradients
