// The prover of claims about dims. Shapes, bounds of loops and ragged extents use the same prover.
//
// Semantics: a claim is about all values of the variables within their bounds (>= 0 where no bounds are given) for
// which both sides have a value. kYes: the claim holds for all of them. kNo: the claim holds for none of them.
// kUnknown: neither could be proved; the prover is sound, but not complete. It treats polynomials as linear sums of
// monomials, adds the defining inequalities of a // b, min and max and what the functions of rows state about the terms
// at hand, and applies Fourier-Motzkin elimination with integer rounding, within a limit on the work.
#pragma once

#include "compiler/base/dim.h"

namespace tenon::compiler {

enum class Answer : uint8_t { kNo, kUnknown, kYes };

// Functions that describe rows of elements, one row after another: `offsets` of a row is its first element, and of
// `count` the number of all elements; `rows` of an element is the row that contains it, `order` permutes the rows, and
// `positions` does so inversely; `counts` is a number of rows. Unnamed ones do not exist.
struct RowFunctions {
  Symbol offsets{}, rows{}, order{}, positions{}, counts{};
  Symbol var{};  // the row, in the width
  Dim count, width;
};

class DimProver {
 public:
  explicit DimProver(DimPool& pool, DimBounds bounds = {}, std::vector<RowFunctions> rows = {})
      : pool_(pool), bounds_(std::move(bounds)), rows_(std::move(rows)) {}

  Answer equal(Dim a, Dim b) const;
  Answer less_equal(Dim a, Dim b) const;
  Answer less(Dim a, Dim b) const { return less_equal(pool_.add(a, pool_.dim(1)), b); }
  // Whether a is a multiple of b.
  Answer divides(Dim b, Dim a) const;
  // Whether dim >= 0 for all values for which every dim of `facts` is >= 0.
  bool implied(std::span<const Dim> facts, Dim dim) const;
  // A range that contains every value of the dim, by interval arithmetic.
  DimRange range_of(Dim dim) const { return range(dim, bounds_); }

  const DimBounds& bounds() const { return bounds_; }

 private:
  // Whether no values of the variables make every dim of `facts` >= 0.
  bool impossible(const std::vector<Dim>& facts) const;
  // The dim without a constant >= 0 and without the factors of all other terms that are >= 0: a dim that is >= 0 where
  // the result is.
  Dim reduced(Dim dim) const;
  std::vector<Dim> products(const std::vector<Dim>& claims) const;

  DimPool& pool_;
  DimBounds bounds_;
  std::vector<RowFunctions> rows_;
};

}  // namespace tenon::compiler
