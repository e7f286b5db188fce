// What can be proved about dims: the one prover for shapes, bounds of loops and ragged extents.
//
// Semantics: a claim is about all values that the variables may have: those in their bounds, >= 0 where none are given,
// for which both sides have a value. kYes: it holds for all of them. kNo: it holds for none. kUnknown: neither could be
// shown; the prover is sound, not complete. It reasons about polynomials as linear sums of monomials, with what defines
// a // b, min and max, by Fourier-Motzkin elimination with integer rounding, within a limit on the work.
#pragma once

#include "compiler/base/dim.h"

namespace tenon::compiler {

enum class Answer : uint8_t { kNo, kUnknown, kYes };

class DimProver {
 public:
  explicit DimProver(DimPool& pool, DimBounds bounds = {}) : pool_(pool), bounds_(std::move(bounds)) {}

  Answer equal(Dim a, Dim b) const;
  Answer less_equal(Dim a, Dim b) const;
  Answer less(Dim a, Dim b) const { return less_equal(pool_.add(a, pool_.dim(1)), b); }
  // Whether a is a multiple of b.
  Answer divides(Dim b, Dim a) const;
  // Whether dim >= 0 for all values for which all of `facts` are.
  bool implied(std::span<const Dim> facts, Dim dim) const;
  // As a bound for every value, no tighter than interval arithmetic sees.
  DimRange range_of(Dim dim) const { return range(dim, bounds_); }

  const DimBounds& bounds() const { return bounds_; }

 private:
  // Whether no values make all of `facts` >= 0.
  bool impossible(const std::vector<Dim>& facts) const;

  DimPool& pool_;
  DimBounds bounds_;
};

}  // namespace tenon::compiler
