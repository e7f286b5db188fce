// Sums as plain loops, which templates (compiler/schedules) turn into register tiles.
//
//   for the axes: for the terms: sums[axes] = step(sums[axes], terms)     a stage, which starts with `init`
//   for the axes: results[result_index(axes)] = epilogue of sums[axes]    a stage
//
// Inside a scan they belong to one step.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/kernels/emitter.h"

namespace tenon::compiler::kernels {

struct PlainSums {
  using Range = std::pair<std::string, Dim>;  // the name of a loop, and its extent

  std::string name;
  Expr init;
  std::vector<Range> axes, terms;
  std::function<Dims(const Dims& at)> extents_of_terms = nullptr;  // where they depend on the axes
  std::function<Expr(const Expr& sum, const Dims& at, const Dims& terms)> step;
  std::function<Dims(const Dims& at)> result_index = nullptr;  // nullptr: the axes
};

// The loops with the names of their stages.
struct PlainStages {
  loop::Body body;
  Symbol sums{}, results{};
};
PlainStages emit_plain_sums(Emitter& emit, const PlainSums& sums, const std::vector<TileResult>& results);

}  // namespace tenon::compiler::kernels
