// How much a loop function computes for given parameters, counted without computing it.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

struct Work {
  int64_t points = 0;  // of all stages that reduce nothing
  int64_t terms = 0;   // points of the stages that reduce: terms of sums
  // Terms that are products of elements of two tensors, as of matrix products, attention and convolutions.
  int64_t products = 0;
};

// The points that loops visit, of which those whose guards fail count only where they are masked lanes of a vector,
// which are computed too; the points of both arms of an If count. Errors: parameters
// that do not fit the signature; sizes that depend on a computed index; more than 2^63 points.
Expected<Work> work_of(const TypeContext& context, const Function& function, std::span<const runtime::Tensor> params);
// Of a function whose sizes are over its dims alone.
Expected<Work> work_of(const TypeContext& context, const Function& function, const std::map<Symbol, int64_t>& dims);

}  // namespace tenon::compiler::loop
