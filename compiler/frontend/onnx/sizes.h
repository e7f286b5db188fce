// Lists of integers that nodes have as attributes or inputs: shapes, axes, indices. Each number is a constant, a dim,
// or the element of a tensor that is computed when the model runs.
//
// Models compute shapes by nodes (Shape, Gather, Concat, Reshape). The importer appends these nodes like all others and
// computes beside them, for small vectors of integers, their elements as dims (fold_sizes()). A node that reads such a
// vector as a shape gets the dims, so that its result has a type with known sizes; the nodes that computed the vector
// are dead code then.
#pragma once

#include "compiler/frontend/onnx/node.h"

namespace tenon::compiler::onnx {

// The elements of the result of an operator on integers, from those of its arguments (std::nullopt: not known);
// std::nullopt where they are not known. A bool is 0 or 1.
std::optional<Dims> fold_sizes(Context& context, const Apply& apply, std::span<const TensorType> types,
                               std::span<const std::optional<Dims>> args, const TensorType& result);
// Whether a tensor has at most so many elements; the product of sizes that a model states may exceed 64 bits.
bool has_at_most(std::span<const int64_t> shape, int64_t elements);
// The elements of a small constant of integers or bools.
std::optional<Dims> constant_sizes(Context& context, const runtime::Tensor& tensor);

class Integers {
 public:
  Integers(size_t count, std::optional<Dims> dims, std::optional<Atom> operand)
      : count_(count), dims_(std::move(dims)), operand_(operand) {}
  static Integers of(Context& context, const std::vector<int64_t>& values);
  // Input i, a scalar or a vector of a constant length; `what` names its purpose in the message.
  static Expected<Integers> input(NodeImport& node, size_t i, std::string_view what);

  size_t size() const { return count_; }
  const std::optional<Dims>& dims() const { return dims_; }
  // The values where all of them are constants.
  std::optional<std::vector<int64_t>> constants() const;
  // The values as a vector of i64, or as a scalar.
  Expected<Atom> vector(NodeImport& node) const;
  Expected<Atom> scalar(NodeImport& node) const;

  // `rank` values: those of this list at the axes, `other` at all others.
  Expected<Integers> at_axes(NodeImport& node, const Integers& axes, int64_t rank, int64_t other) const;
  // The values from `begin` to before `end`.
  Expected<Integers> part(NodeImport& node, size_t begin, size_t end) const;

 private:
  size_t count_;
  std::optional<Dims> dims_;
  std::optional<Atom> operand_;
};

// The attributes of an application of an operator, some of which may be computed.
class OperatorAttributes {
 public:
  OperatorAttributes(Attrs attrs = {}) : attrs_(std::move(attrs)) {}  // NOLINT: constants are attributes

  void set(const std::string& name, Attr value) { attrs_.insert_or_assign(name, std::move(value)); }
  void set(const std::string& name, Integers value) { computed_.insert_or_assign(name, std::move(value)); }
  // A value that is one integer or one float, or a list of floats, which is a tensor at run time.
  Status set_scalar(NodeImport& node, const std::string& name, const Integers& value);
  void set_operand(const std::string& name, Atom value) { operands_.insert_or_assign(name, value); }

  // The result of the operator. Dims that the type rule does not accept become operands, which the kernel checks.
  Expected<Atom> apply(NodeImport& node, OperatorId op, const Atoms& args) const;

 private:
  Attrs attrs_;
  std::map<std::string, Integers> computed_, scalars_;
  std::map<std::string, Atom> operands_;
};

}  // namespace tenon::compiler::onnx
