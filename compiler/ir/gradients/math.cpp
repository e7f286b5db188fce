// Gradients of functions of one element.
#include <numbers>

#include "compiler/ir/gradients/rules.h"

namespace tenon::compiler::gradients {
namespace {

constexpr GradientRow kMath[] = {
    {ops::kAbs, chain<[](GradientBuilder& g) { return sign(g.arg(0)); }>, "0 at 0"},
    {ops::kNegate,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, -g.cotangent());
       return g.status();
     }},
    {ops::kSign, zero, "0 everywhere"},
    {ops::kReciprocal, chain<[](GradientBuilder& g) { return -(g.result() * g.result()); }>},
    {ops::kExp, chain<[](GradientBuilder& g) { return g.result(); }>},
    {ops::kExpm1, chain<[](GradientBuilder& g) { return g.result() + 1; }>},
    {ops::kLog,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent() / g.arg(0));
       return g.status();
     }},
    {ops::kLog1p,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent() / (g.arg(0) + 1));
       return g.status();
     }},
    {ops::kSqrt,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent() / (g.result() * 2));
       return g.status();
     }},
    {ops::kRsqrt, chain<[](GradientBuilder& g) { return g.result() * g.result() * g.result() * -0.5; }>},
    {ops::kErf, chain<[](GradientBuilder& g) { return exp(-(g.arg(0) * g.arg(0))) * (2 * std::numbers::inv_sqrtpi); }>},
    {ops::kSin, chain<[](GradientBuilder& g) { return cos(g.arg(0)); }>},
    {ops::kCos, chain<[](GradientBuilder& g) { return -sin(g.arg(0)); }>},
    {ops::kTan, chain<[](GradientBuilder& g) { return g.result() * g.result() + 1; }>},
    {ops::kAsin, chain<[](GradientBuilder& g) { return g.apply(ops::kRsqrt, {1 - g.arg(0) * g.arg(0)}); }>},
    {ops::kAcos, chain<[](GradientBuilder& g) { return -g.apply(ops::kRsqrt, {1 - g.arg(0) * g.arg(0)}); }>},
    {ops::kAtan,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent() / (g.arg(0) * g.arg(0) + 1));
       return g.status();
     }},
    {ops::kSinh, chain<[](GradientBuilder& g) { return g.apply(ops::kCosh, {g.arg(0)}); }>},
    {ops::kCosh, chain<[](GradientBuilder& g) { return g.apply(ops::kSinh, {g.arg(0)}); }>},
    {ops::kAsinh, chain<[](GradientBuilder& g) { return g.apply(ops::kRsqrt, {g.arg(0) * g.arg(0) + 1}); }>},
    {ops::kAcosh, chain<[](GradientBuilder& g) { return g.apply(ops::kRsqrt, {g.arg(0) * g.arg(0) - 1}); }>},
    {ops::kAtanh,
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, g.cotangent() / (1 - g.arg(0) * g.arg(0)));
       return g.status();
     }},
    {ops::kFloor, zero, "0 everywhere"},
    {ops::kCeil, zero, "0 everywhere"},
    {ops::kRound, zero, "0 everywhere"},
    {ops::kTrunc, zero, "0 everywhere"},
};

}  // namespace

std::span<const GradientRow> math_gradients() { return kMath; }

}  // namespace tenon::compiler::gradients
