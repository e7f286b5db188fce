// Batching rules: the operator applied to the arguments of several instances at once. An argument is shared by all
// instances, or it is of each instance its own: such an argument, and the result, have the instances as one more,
// leading axis. A rule keeps the bits: a row of its result is the result of one instance, whatever the others are.
//
// The rules are rows of batching.cpp; an operator without a row is applied to one instance after the other.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/operator.h"
#include "compiler/ir/term.h"

namespace tenon::compiler {

class BatchBuilder : public Formula {
 public:
  // Appends to the builder. `apply` is the application in one instance; `args` are its arguments in the batch, of which
  // those with `own` have the leading axis, of `batch` instances. One of them at least is own.
  BatchBuilder(Builder& builder, const Apply& apply, const Atoms& args, std::vector<bool> own, Dim batch)
      : Formula(builder), apply_(apply), own_(std::move(own)), batch_(batch) {
    for (const Atom& arg : args) args_.emplace_back(*this, arg);
  }

  const Attrs& attrs() const { return apply_.attrs; }
  const Operator& op() const { return *apply_.op; }
  size_t num_args() const { return args_.size(); }
  const Term& arg(size_t i) const { return args_[i]; }
  bool own(size_t i) const { return own_[i]; }
  Dim batch() const { return batch_; }
  // The rank of argument i in one instance.
  int64_t rank(size_t i) const { return args_[i].rank() - (own_[i] ? 1 : 0); }

  // The operator itself, with its attributes, applied to these arguments.
  Term apply_to(const std::vector<Term>& args) { return apply(apply_.op->id, args, apply_.attrs); }

  // What a rule ends with: the result of the batch, with the instances as its leading axis.
  Status finish(const Term& result) {
    result_ = result;
    return status();
  }
  const Term& result() const { return *result_; }

 private:
  const Apply& apply_;
  std::vector<Term> args_;
  std::vector<bool> own_;
  Dim batch_;
  std::optional<Term> result_;
};

// The rule of a built-in operator; nullptr where it has none.
BatchingRule find_batching(OperatorId op);

}  // namespace tenon::compiler
