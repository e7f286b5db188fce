// Chains of float operators that become one requantization: an anchor with its bias, a residual addition and
// rectifiers.
//
//   anchor (conv2d, dense; constant weights) -> bias_add? -> rectifier? -> (add residual -> rectifier?)?
//
// A rectifier is a relu or a clip. Every value inside has one user, the next of the chain.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

struct Rectifier {
  double lo = -std::numeric_limits<double>::infinity(), hi = std::numeric_limits<double>::infinity();
};
Rectifier rectifier_of(const Apply& apply);  // a relu or a clip

struct Chain {
  const Apply* anchor = nullptr;
  SpanId span{};  // of the anchor
  ConstId weights{};
  std::optional<ConstId> bias;
  Rectifier before;  // the residual is added; with no residual everything is in `after`
  std::optional<VarId> residual;
  Rectifier after;
};

struct Chains {
  std::vector<std::optional<Chain>> at_root;  // by binding
  std::vector<bool> inner;                    // by binding: part of a chain, but not its root
};
Chains find_chains(const Module& module, const Function& function);

}  // namespace tenon::compiler
