// Arithmetic on the tensors of a graph, for converters of nodes that are formulas: f.result(x * sigmoid(x * alpha)).
//
// The first error is kept and later operations do nothing, so that a converter reports it once, with its result. After
// an error a term has no dims, and its sizes are unknown.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "compiler/frontend/onnx_sizes.h"

namespace tenon::compiler {

class OnnxFormula;

// A tensor of the formula, valid as long as the formula.
class OnnxTerm {
 public:
  OnnxTerm(OnnxFormula& formula, Atom atom) : formula_(&formula), atom_(atom) {}

  OnnxFormula& formula() const { return *formula_; }
  Atom atom() const { return atom_; }
  DType dtype() const;
  int64_t rank() const;
  // The constant size of an axis, which may count from the end; nothing where it is symbolic.
  std::optional<int64_t> size(int64_t axis) const;

  OnnxTerm cast(DType dtype) const;
  OnnxTerm reshape(std::vector<int64_t> shape) const;  // 0 copies a size, a single -1 is inferred
  OnnxTerm transpose(std::vector<int64_t> axes) const;
  OnnxTerm swap_last_axes() const;
  OnnxTerm expand_dims(std::vector<int64_t> axes) const;
  OnnxTerm squeeze(std::vector<int64_t> axes) const;
  OnnxTerm slice(int64_t axis, int64_t begin, int64_t end, int64_t step = 1) const;
  OnnxTerm pad(int64_t axis, int64_t before, int64_t after, double value = 0) const;
  OnnxTerm broadcast(std::vector<int64_t> shape) const;                                // -1 keeps a size
  OnnxTerm reduce(OperatorId op, std::vector<int64_t> axes, bool keep = false) const;  // no axes: all

 private:
  OnnxFormula* formula_;
  Atom atom_;
};

class OnnxFormula {
 public:
  explicit OnnxFormula(NodeImport& node) : node_(node) {}

  NodeImport& node() { return node_; }
  bool ok() const { return !problem_; }
  Status status() const;
  // Records an error, unless there is one.
  void fail(std::string what, std::string help = {});
  void expect(bool condition, std::string what) {
    if (!condition) fail(std::move(what));
  }

  OnnxTerm input(size_t i) { return term(node_.input(i)); }
  OnnxTerm term(Expected<Atom> atom);
  OnnxTerm constant(runtime::Tensor tensor) { return {*this, node_.builder().constant(std::move(tensor))}; }
  // A constant of these values; an error where the dtype is not one of floats.
  OnnxTerm real_constant(runtime::Shape shape, const std::vector<double>& values, DType dtype);
  OnnxTerm zeros(DType dtype, const std::vector<int64_t>& shape) { return term(node_.zeros(dtype, shape)); }
  OnnxTerm scalar(double value, DType dtype) { return {*this, node_.scalar(value, dtype)}; }
  OnnxTerm apply(OperatorId op, std::initializer_list<OnnxTerm> args, Attrs attrs = {});
  OnnxTerm apply(OperatorId op, const std::vector<OnnxTerm>& args, Attrs attrs = {});
  OnnxTerm apply_computed(OperatorId op, const std::vector<OnnxTerm>& args, const OnnxAttributes& attrs);
  OnnxTerm field(const OnnxTerm& tuple, uint32_t index);
  // The constant size of an axis; an error that names `what` where it is symbolic.
  int64_t known_size(const OnnxTerm& x, int64_t axis, std::string_view what);
  // 0, 1, 2, ... along an axis of x, as i64; all other sizes are 1.
  OnnxTerm positions(const OnnxTerm& x, int64_t axis);
  // 0, 1, 2, ... of a number of elements, a vector of i64.
  OnnxTerm range(const OnnxInts& count);
  // A list of integers as a vector of i64, and back.
  OnnxTerm vector(const OnnxInts& values) { return term(values.vector(node_)); }
  OnnxInts integers(const OnnxTerm& vector);

  // The status of the formula, after the outputs that the node has are bound to the terms, in order.
  Status result(const OnnxTerm& term) { return results({term}); }
  Status results(const std::vector<std::optional<OnnxTerm>>& terms);

 private:
  NodeImport& node_;
  std::optional<Diagnostic> problem_;
};

OnnxTerm operator+(const OnnxTerm& a, const OnnxTerm& b);
OnnxTerm operator-(const OnnxTerm& a, const OnnxTerm& b);
OnnxTerm operator*(const OnnxTerm& a, const OnnxTerm& b);
OnnxTerm operator/(const OnnxTerm& a, const OnnxTerm& b);
OnnxTerm operator-(const OnnxTerm& a);
// A number is of the other operand's dtype.
OnnxTerm operator+(const OnnxTerm& a, double b);
OnnxTerm operator-(const OnnxTerm& a, double b);
OnnxTerm operator-(double a, const OnnxTerm& b);
OnnxTerm operator*(const OnnxTerm& a, double b);
OnnxTerm operator/(const OnnxTerm& a, double b);

OnnxTerm sigmoid(const OnnxTerm& x);
OnnxTerm tanh(const OnnxTerm& x);
OnnxTerm sqrt(const OnnxTerm& x);
OnnxTerm softmax(const OnnxTerm& x, int64_t axis = -1);
OnnxTerm matmul(const OnnxTerm& a, const OnnxTerm& b);
OnnxTerm gather(const OnnxTerm& x, const OnnxTerm& indices, int64_t axis);
OnnxTerm select(const OnnxTerm& condition, const OnnxTerm& a, const OnnxTerm& b);
OnnxTerm concat(const std::vector<OnnxTerm>& parts, int64_t axis);

}  // namespace tenon::compiler
