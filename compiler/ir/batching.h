// Batching rules: the operator applied to the arguments of several instances at once. An argument is shared by all
// instances, or it is of each instance its own: such an argument, and the result, have the instances as one more,
// leading axis. A rule keeps the bits: a row of its result is the result of one instance, whatever the others are.
//
// The rules are rows of tables, a file a family of operators in compiler/ir/batching; an operator without a row is
// applied to one instance after the other. A rule for some arguments alone says what it lacks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/operator.h"
#include "compiler/ir/term.h"

namespace tenon::compiler {

class BatchBuilder : public Formula {
 public:
  // Appends to the builder. `apply` is the application in one instance, whose result has the type `result`; `args` are
  // its arguments in the batch, of which those with `own` have the leading axis, of `batch` instances. One of them at
  // least is own. The values of computed attributes are shared, and valid in the builder's function. `lengths`: of the
  // instances' sequences, [batch], where they differ (Batching::sequences).
  BatchBuilder(Builder& builder, const Apply& apply, Type result, const Atoms& args, std::vector<bool> own, Dim batch,
               std::optional<Atom> lengths = {})
      : Formula(builder), apply_(apply), result_type_(result), own_(std::move(own)), batch_(batch) {
    for (const Atom& arg : args) args_.emplace_back(*this, arg);
    if (lengths) lengths_.emplace(*this, *lengths);
  }

  const Attrs& attrs() const { return apply_.attrs; }
  const ComputedAttrs& computed() const { return apply_.computed; }
  const Operator& op() const { return *apply_.op; }
  size_t num_args() const { return args_.size(); }
  const Term& arg(size_t i) const { return args_[i]; }
  bool own(size_t i) const { return own_[i]; }
  Dim batch() const { return batch_; }
  const std::optional<Term>& lengths() const { return lengths_; }
  // The rank of argument i in one instance.
  int64_t rank(size_t i) const { return args_[i].rank() - (own_[i] ? 1 : 0); }
  // The dims of the result, a tensor, in the batch.
  Dims result_dims() const;

  // Argument i with the leading axis: a shared one is repeated.
  Term as_own(size_t i);
  // Argument i, whose instances' axis stays the first one before as many axes of size 1 as give it this rank in one
  // instance, so that it broadcasts with arguments of that rank. A shared argument stays as it is.
  Term of_rank(size_t i, int64_t rank) const;
  // The elements in these dims. An error where they are not proved to be sizes: an inferred size is not known where
  // there are no elements.
  Term reshaped(const Term& term, const Dims& dims);
  // Records the error that the rule does not support argument i as it is, own or shared.
  void expect_own(size_t i);
  void expect_shared(size_t i);

  // The operator itself, with its attributes or with others, applied to these arguments.
  Term apply_to(const std::vector<Term>& args) { return apply(op().id, args, attrs(), computed()); }
  Term apply_to(const std::vector<Term>& args, Attrs attrs, ComputedAttrs computed = {}) {
    return apply(op().id, args, std::move(attrs), std::move(computed));
  }

  // What a rule ends with: the result of the batch, with the instances as its leading axis.
  Status finish(const Term& result) {
    result_ = result;
    return status();
  }
  const Term& result() const { return *result_; }

 private:
  Diagnostic located(std::string what, std::string help) const override;

  const Apply& apply_;
  Type result_type_;
  std::vector<Term> args_;
  std::vector<bool> own_;
  Dim batch_;
  std::optional<Term> lengths_;
  std::optional<Term> result_;
};

// An application whose own arguments and result have the same first `axes` dims, the axes of its rows. The dims of
// shared arguments have no variable of these.
struct RowsInput {
  const Operator& op;
  const Attrs& attrs;
  std::span<const Type> args;  // tensors
  const std::vector<bool>& own;
  Type result;
  int64_t axes;

  int64_t rank(size_t i) const { return args[i].tensor()->rank(); }
  // Whether the attribute of an axis of tensors of this rank names one after the axes of rows.
  bool follows_rows(int64_t axis, int64_t rank) const { return (axis < 0 ? axis + rank : axis) >= axes; }
};

// What a table says of an operator. `rows`: whether each row of the result depends on this row of the own arguments,
// and on the shared arguments, alone; nullptr: never. `sequences`: the first axis of argument 0 and of field 0 of the
// result are the steps of a sequence, and the rule supports instances whose sequences have other lengths: their axis is
// that of the longest one then, whose end the elements of the others need not fill.
struct Batching {
  BatchingRule rule = nullptr;
  RowsRule rows = nullptr;
  bool sequences = false;

  constexpr Batching() = default;
  template <class Rule>
  constexpr Batching(Rule one, RowsRule other = nullptr) : rule(one), rows(other) {}  // NOLINT
  static constexpr Batching of_sequences(BatchingRule rule) {
    Batching batching(rule);
    batching.sequences = true;
    return batching;
  }
  Status operator()(BatchBuilder& b) const { return rule(b); }
};
struct BatchingRow {
  OperatorId op;
  Batching batching;
};

// The rules of a built-in operator; none where it has no row.
Batching find_batching(OperatorId op);

// The rows of an application in one instance: the greatest number of first axes that the result and all own arguments
// have in common, so that the rows along them are independent of each other, and the rows of several instances may be
// one call. Each of these dims is 1 or a variable of its own, the last one a variable; no other dim, and no attribute,
// depends on them. `own`: of each argument; `types`: of the arguments; `most`: axes. 0: there are none.
int64_t independent_rows(const Apply& apply, std::span<const Type> types, const std::vector<bool>& own, Type result,
                         int64_t most = INT64_MAX);

// Of a unit whose calls differ in the length of a sequence: this size, a variable, which is the first one of each
// parameter and result that has it. Its batched function has one parameter more than the unit, the lengths, and this
// axis has the size of the longest one there. Nothing of any other unit.
std::optional<Dim> sequence_length(const Module& module, const Function& unit);

}  // namespace tenon::compiler
