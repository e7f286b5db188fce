// Arithmetic on the tensors of a function under construction, for whoever builds formulas: importers of models,
// gradient rules, batching rules. A formula reads as mathematics, (x * sigmoid(x * alpha)), and appends one binding an
// operator.
//
// The first error is kept and later operations do nothing, so that it is reported once, with the formula's result.
// After an error a term has no dims, and its sizes are unknown.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/builder.h"

namespace tenon::compiler {

class Formula;

// A tensor of the formula, valid as long as the formula.
class Term {
 public:
  Term(Formula& formula, Atom atom) : formula_(&formula), atom_(atom) {}

  Formula& formula() const { return *formula_; }
  Atom atom() const { return atom_; }
  DType dtype() const;
  int64_t rank() const;
  Dims dims() const;
  // The constant size of an axis, which may count from the end; nothing where it is symbolic.
  std::optional<int64_t> size(int64_t axis) const;

  Term cast(DType dtype) const;
  Term reshape(std::vector<int64_t> shape) const;  // 0 copies a size, a single -1 is inferred
  // To the sizes of another tensor, which need not be proved to be sizes, as n - 2.
  Term reshape_to(const Dims& dims) const;
  Term transpose(std::vector<int64_t> axes) const;
  Term swap_last_axes() const;
  Term expand_dims(std::vector<int64_t> axes) const;
  Term squeeze(std::vector<int64_t> axes) const;
  Term slice(int64_t axis, int64_t begin, int64_t end, int64_t step = 1) const;
  Term pad(int64_t axis, int64_t before, int64_t after, double value = 0) const;
  Term broadcast(std::vector<int64_t> shape) const;                                // -1 keeps a size
  Term broadcast_to(const Dims& dims) const;                                       // the sizes of another tensor
  Term reduce(OperatorId op, std::vector<int64_t> axes, bool keep = false) const;  // no axes: all
  // The adjoint of a broadcast from `dims`: sums over the axes that the broadcast added or repeated.
  Term sum_to(const Dims& dims) const;

 private:
  Formula* formula_;
  Atom atom_;
};

class Formula {
 public:
  explicit Formula(Builder& builder) : builder_(builder) {}
  virtual ~Formula() = default;
  Formula(const Formula&) = delete;
  Formula& operator=(const Formula&) = delete;

  Builder& builder() const { return builder_; }
  bool ok() const { return !problem_; }
  Status status() const;
  // Records an error, unless there is one.
  void fail(std::string what, std::string help = {});
  void expect(bool condition, std::string what) {
    if (!condition) fail(std::move(what));
  }

  Term term(Expected<Atom> atom);
  Term constant(runtime::Tensor tensor) { return {*this, builder_.constant(std::move(tensor))}; }
  // A constant of these values; an error where the dtype is not one of floats.
  Term real_constant(runtime::Shape shape, const std::vector<double>& values, DType dtype);
  Term scalar(double value, DType dtype);
  // A tensor of the sizes of another one, which need not be proved to be sizes.
  Term full(const Dims& dims, double value, DType dtype);
  // The value with its sizes checked to be `dims`, when it runs where they are not known to be equal.
  Term checked(const Term& term, const Dims& dims);
  // Dims with the maximum of 0 and each one that is not proved to be a size.
  Dims proved_sizes(const Dims& dims) const;
  Term apply(OperatorId op, std::initializer_list<Term> args, Attrs attrs = {}, ComputedAttrs computed = {});
  Term apply(OperatorId op, const std::vector<Term>& args, Attrs attrs = {}, ComputedAttrs computed = {});
  Term field(const Term& tuple, uint32_t index);

 protected:
  // How an operator is appended, and how an error of the formula is located.
  virtual Expected<Atom> append(OperatorId op, const Atoms& args, Attrs attrs, ComputedAttrs computed);
  virtual Diagnostic located(std::string what, std::string help) const;

 private:
  Builder& builder_;
  std::optional<Diagnostic> problem_;
};

// The attribute `name` as integers where all dims are constants, otherwise as a computed one.
std::pair<Attrs, ComputedAttrs> sizes_attribute(std::string name, const Dims& dims);

// A scalar constant; the value is converted to the dtype.
Atom scalar_constant(Builder& builder, double value, DType dtype);

Term operator+(const Term& a, const Term& b);
Term operator-(const Term& a, const Term& b);
Term operator*(const Term& a, const Term& b);
Term operator/(const Term& a, const Term& b);
Term operator-(const Term& a);
// A number is of the other operand's dtype.
Term operator+(const Term& a, double b);
Term operator-(const Term& a, double b);
Term operator-(double a, const Term& b);
Term operator*(const Term& a, double b);
Term operator/(const Term& a, double b);

Term abs(const Term& x);
Term cos(const Term& x);
Term exp(const Term& x);
Term log(const Term& x);
Term sigmoid(const Term& x);
Term sign(const Term& x);
Term sin(const Term& x);
Term sqrt(const Term& x);
Term tanh(const Term& x);
// Comparisons, tensors of bools.
Term equal(const Term& a, const Term& b);
Term equal(const Term& a, double b);
Term less(const Term& a, const Term& b);
Term less(const Term& a, double b);
Term less_equal(const Term& a, const Term& b);
Term less_equal(const Term& a, double b);
Term both(const Term& a, const Term& b);  // logical and
Term softmax(const Term& x, int64_t axis = -1);
Term matmul(const Term& a, const Term& b);
// The sums of products of a and b by an equation, as "nk,nm->km".
Term einsum(std::string equation, const Term& a, const Term& b);
Term gather(const Term& x, const Term& indices, int64_t axis);
Term select(const Term& condition, const Term& a, const Term& b);
Term concat(const std::vector<Term>& parts, int64_t axis);

}  // namespace tenon::compiler
