#include "compiler/ir/gradients.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace tenon::compiler {
namespace {

struct GradientRow {
  OperatorId op;
  GradientRule rule;
};

// Each row reads as the chain rule: the result's adjoint dy times the derivative by an argument.
constexpr GradientRow kGradients[] = {
    {ops::kDense,  // y = x w^T
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, einsum("nm,mk->nk", g.cotangent(), g.arg(1)));
       if (g.wants(1)) g.add(1, einsum("nm,nk->mk", g.cotangent(), g.arg(0)));
       return g.status();
     }},
    {ops::kMultiply,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent() * g.arg(1));
       if (g.wants(1)) g.add(1, g.cotangent() * g.arg(0));
       return g.status();
     }},
    {ops::kTanh,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent() * (1 - g.result() * g.result()));
       return g.status();
     }},
};

}  // namespace

void GradientBuilder::add(size_t i, const Term& term) {
  assert(wanted_[i]);
  const Term sum = term.sum_to(arg(i).dims());
  adjoints_[i] = adjoints_[i] ? *adjoints_[i] + sum : sum;
}

GradientRule find_gradient(OperatorId op) {
  const auto* row = std::ranges::find(kGradients, op, &GradientRow::op);
  return row == std::end(kGradients) ? nullptr : row->rule;
}

}  // namespace tenon::compiler
