// Reductions of whole maps to one element each, as of global pooling: several channels at a time, each in the lanes of
// a vector register, whose halves are then added up.
#pragma once

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

struct MapSum {
  Expr pad;  // an element of x whose term is the identity of the reduction
  std::function<Expr(const Expr& x)> term;
  std::function<Expr(const Expr& a, const Expr& b)> step;
};

// Whether the maps of x are supported: their sizes are constant, and at least one vector.
bool has_map_sum(const LazyTensor& x, DType dtype);
// The reduction of op.arg(0), with op's dims. Requires has_map_sum().
LazyTensor map_sum(const OperatorCall& op, std::string_view name, const MapSum& sum);

}  // namespace tenon::compiler::kernels
