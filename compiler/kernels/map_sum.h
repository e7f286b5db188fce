// Reductions of whole maps to one element each, as global pooling does: the elements of some channels are added up in
// the lanes of a vector each, and the lanes by halves, all in registers.
#pragma once

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

struct MapSum {
  Expr pad;  // an element of x whose term changes no sum
  std::function<Expr(const Expr& x)> term;
  std::function<Expr(const Expr& a, const Expr& b)> step;
};

// Whether the sizes of x's maps are known, and fill a vector.
bool sums_maps(const Value& x, DType dtype);
// Of op.arg(0), where sums_maps(); the result has op's dims.
Value sum_maps(const Operation& op, std::string_view name, const MapSum& sum);

}  // namespace tenon::compiler::kernels
