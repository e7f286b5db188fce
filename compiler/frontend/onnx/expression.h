// Formulas over the tensors of a graph, for converters of nodes: f.result(x * sigmoid(x * alpha)).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/frontend/onnx/sizes.h"
#include "compiler/ir/term.h"

namespace tenon::compiler::onnx {

// Operators are applied as the node's import does, which folds and names them; an error names the node.
class NodeFormula : public Formula {
 public:
  explicit NodeFormula(NodeImport& node) : Formula(node.builder()), node_(node) {}

  NodeImport& node() { return node_; }
  Term input(size_t i) { return term(node_.input(i)); }
  Term zeros(DType dtype, const std::vector<int64_t>& shape) { return term(node_.zeros(dtype, shape)); }
  Term apply_computed(OperatorId op, const std::vector<Term>& args, const OperatorAttributes& attrs);
  // The constant size of an axis; an error that names `what` where it is symbolic.
  int64_t known_size(const Term& x, int64_t axis, std::string_view what);
  // 0, 1, 2, ... along an axis of x, as i64; all other sizes are 1.
  Term positions(const Term& x, int64_t axis);
  // 0, 1, 2, ... of a number of elements, a vector of i64.
  Term range(const Integers& count);
  // A list of integers as a vector of i64, and back.
  Term vector(const Integers& values) { return term(values.vector(node_)); }
  Integers integers(const Term& vector);

  // The status of the formula, after the outputs that the node has are bound to the terms, in order.
  Status result(const Term& term) { return results({term}); }
  Status results(const std::vector<std::optional<Term>>& terms);

 protected:
  Expected<Atom> append(OperatorId op, const Atoms& args, Attrs attrs, ComputedAttrs computed) override;
  Diagnostic located(std::string what, std::string help) const override;

 private:
  NodeImport& node_;
};

// The dtype of floats in which an operator of floats computes one of integers, whose results are truncated: the dtype
// itself where it is one of floats, f32 where f32 has all of its values, else f64.
DType real_of(DType dtype);

// A dtype of floats with the values of both.
DType widest_of(DType a, DType b);

// Operators that ONNX defines for integers too where ours are of floats: all inputs are cast to floats, the result
// back.
template <OperatorId op, size_t inputs = 1>
Status convert_by_reals(NodeImport& node) {
  NodeFormula f(node);
  const DType dtype = f.input(0).dtype();
  std::vector<Term> args;
  for (size_t i = 0; i < inputs; ++i) args.push_back(f.input(i).cast(real_of(dtype)));
  return f.result(f.apply(op, args).cast(dtype));
}

// The formula of a term: those of converters are all of an NodeFormula.
inline NodeFormula& formula_of(const Term& term) { return static_cast<NodeFormula&>(term.formula()); }

}  // namespace tenon::compiler::onnx
