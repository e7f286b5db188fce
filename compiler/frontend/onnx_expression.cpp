#include "compiler/frontend/onnx_expression.h"

#include <fmt/format.h>

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;

}  // namespace

DType OnnxTerm::dtype() const {
  const TensorType* type = formula_->ok() ? formula_->node().builder().tensor_type(atom_) : nullptr;
  return type ? type->dtype : DType::kF32;
}

int64_t OnnxTerm::rank() const {
  const TensorType* type = formula_->ok() ? formula_->node().builder().tensor_type(atom_) : nullptr;
  return type ? type->rank() : 0;
}

std::optional<int64_t> OnnxTerm::size(int64_t axis) const {
  if (axis < 0) axis += rank();
  if (axis < 0 || axis >= rank()) return std::nullopt;
  return formula_->node().builder().tensor_type(atom_)->dims[static_cast<size_t>(axis)].constant();
}

OnnxTerm OnnxTerm::cast(DType wanted) const {
  if (dtype() == wanted) return *this;
  return formula_->apply(ops::kCast, {*this}, {{"dtype", std::string(runtime::name(wanted))}});
}

OnnxTerm OnnxTerm::reshape(Ints shape) const {
  return formula_->apply(ops::kReshape, {*this}, {{"shape", std::move(shape)}});
}

OnnxTerm OnnxTerm::transpose(Ints axes) const {
  return formula_->apply(ops::kTranspose, {*this}, {{"axes", std::move(axes)}});
}

OnnxTerm OnnxTerm::swap_last_axes() const {
  Ints axes;
  for (int64_t axis = 0; axis < rank(); ++axis) axes.push_back(axis);
  if (axes.size() >= 2) std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return transpose(std::move(axes));
}

OnnxTerm OnnxTerm::expand_dims(Ints axes) const {
  return formula_->apply(ops::kExpandDims, {*this}, {{"axes", std::move(axes)}});
}

OnnxTerm OnnxTerm::squeeze(Ints axes) const {
  return formula_->apply(ops::kSqueeze, {*this}, {{"axes", std::move(axes)}});
}

OnnxTerm OnnxTerm::slice(int64_t axis, int64_t begin, int64_t end, int64_t step) const {
  const auto dims = static_cast<size_t>(rank());
  if (axis < 0) axis += rank();
  formula_->expect(axis >= 0 && axis < rank(), fmt::format("there is no axis {}", axis));
  if (!formula_->ok()) return *this;
  Ints begins(dims, 0), ends(dims, INT64_MAX), steps(dims, 1);
  const auto at = static_cast<size_t>(axis);
  begins[at] = begin, ends[at] = end, steps[at] = step;
  return formula_->apply(ops::kSlice, {*this}, {{"begin", begins}, {"end", ends}, {"step", steps}});
}

OnnxTerm OnnxTerm::pad(int64_t axis, int64_t before, int64_t after, double value) const {
  if (axis < 0) axis += rank();
  formula_->expect(axis >= 0 && axis < rank(), fmt::format("there is no axis {}", axis));
  if (!formula_->ok() || (before == 0 && after == 0)) return *this;
  Ints befores(static_cast<size_t>(rank()), 0), afters = befores;
  befores[static_cast<size_t>(axis)] = before, afters[static_cast<size_t>(axis)] = after;
  return formula_->apply(ops::kPad, {*this}, {{"before", befores}, {"after", afters}, {"value", value}});
}

OnnxTerm OnnxTerm::broadcast(Ints shape) const {
  return formula_->apply(ops::kBroadcastTo, {*this}, {{"shape", std::move(shape)}});
}

OnnxTerm OnnxTerm::reduce(OperatorId op, Ints axes, bool keep) const {
  return formula_->apply(op, {*this}, {{"axes", std::move(axes)}, {"keep", int64_t{keep}}});
}

Status OnnxFormula::status() const {
  if (problem_) return std::unexpected(*problem_);
  return {};
}

void OnnxFormula::fail(std::string what, std::string help) {
  if (!problem_) problem_ = node_.fail(std::move(what), std::move(help)).error();
}

OnnxTerm OnnxFormula::term(Expected<Atom> atom) {
  if (atom) return {*this, *atom};
  if (!problem_) problem_ = std::move(atom.error());
  return {*this, Atom()};
}

OnnxTerm OnnxFormula::real_constant(runtime::Shape shape, const std::vector<double>& values, DType dtype) {
  const bool real = runtime::kReals.contains(dtype);
  expect(real, fmt::format("requires floats, found {}", runtime::name(dtype)));
  runtime::Tensor tensor(real ? dtype : DType::kF32, std::move(shape));
  runtime::with_dtype<runtime::kReals>(tensor.dtype(), [&]<class T>(T) {
    std::ranges::transform(values, tensor.data<T>().begin(), [](double value) { return static_cast<T>(value); });
  });
  return constant(std::move(tensor));
}

OnnxTerm OnnxFormula::apply(OperatorId op, std::initializer_list<OnnxTerm> args, Attrs attrs) {
  return apply(op, std::vector<OnnxTerm>(args), std::move(attrs));
}

OnnxTerm OnnxFormula::apply(OperatorId op, const std::vector<OnnxTerm>& args, Attrs attrs) {
  if (!ok()) return {*this, Atom()};
  Atoms atoms;
  for (const OnnxTerm& arg : args) atoms.push_back(arg.atom());
  return term(node_.apply(op, atoms, std::move(attrs)));
}

OnnxTerm OnnxFormula::apply_computed(OperatorId op, const std::vector<OnnxTerm>& args, const OnnxAttributes& attrs) {
  if (!ok()) return {*this, Atom()};
  Atoms atoms;
  for (const OnnxTerm& arg : args) atoms.push_back(arg.atom());
  return term(attrs.apply(node_, op, atoms));
}

OnnxTerm OnnxFormula::field(const OnnxTerm& tuple, uint32_t index) {
  return ok() ? term(node_.builder().project(tuple.atom(), index)) : tuple;
}

int64_t OnnxFormula::known_size(const OnnxTerm& x, int64_t axis, std::string_view what) {
  const auto size = x.size(axis);
  if (!size) fail(fmt::format("{} is not constant", what), "bind the model's sizes, as --shapes N=1");
  return size.value_or(1);
}

OnnxTerm OnnxFormula::positions(const OnnxTerm& x, int64_t axis) {
  if (axis < 0) axis += x.rank();
  const TensorType* type = node_.builder().tensor_type(x.atom());
  if (!type || axis < 0 || axis >= type->rank()) return x;
  Ints shape(static_cast<size_t>(type->rank()), 1);
  shape[static_cast<size_t>(axis)] = -1;
  return range(OnnxInts(1, Dims{type->dims[static_cast<size_t>(axis)]}, std::nullopt)).reshape(std::move(shape));
}

OnnxTerm OnnxFormula::range(const OnnxInts& count) {
  OnnxAttributes attrs;
  if (const auto problem = attrs.set_scalar(node_, "count", count); !problem)
    return term(std::unexpected(problem.error()));
  return apply_computed(ops::kArange, {}, attrs);
}

OnnxInts OnnxFormula::integers(const OnnxTerm& vector) {
  const auto count = static_cast<size_t>(known_size(vector, 0, "a number of integers"));
  return {count, ok() ? node_.import().sizes(vector.atom()) : std::nullopt, vector.atom()};
}

Status OnnxFormula::results(const std::vector<std::optional<OnnxTerm>>& terms) {
  for (size_t i = 0; i < terms.size() && ok(); ++i) {
    if (terms[i]) TENON_TRY(node_.result(i, terms[i]->atom()));
  }
  return status();
}

namespace {

OnnxTerm binary(OperatorId op, const OnnxTerm& a, const OnnxTerm& b) { return a.formula().apply(op, {a, b}); }
OnnxTerm number(const OnnxTerm& like, double value) { return like.formula().scalar(value, like.dtype()); }
OnnxTerm unary(OperatorId op, const OnnxTerm& x) { return x.formula().apply(op, {x}); }

}  // namespace

OnnxTerm operator+(const OnnxTerm& a, const OnnxTerm& b) { return binary(ops::kAdd, a, b); }
OnnxTerm operator-(const OnnxTerm& a, const OnnxTerm& b) { return binary(ops::kSubtract, a, b); }
OnnxTerm operator*(const OnnxTerm& a, const OnnxTerm& b) { return binary(ops::kMultiply, a, b); }
OnnxTerm operator/(const OnnxTerm& a, const OnnxTerm& b) { return binary(ops::kDivide, a, b); }
OnnxTerm operator-(const OnnxTerm& a) { return unary(ops::kNegate, a); }
OnnxTerm operator+(const OnnxTerm& a, double b) { return a + number(a, b); }
OnnxTerm operator-(const OnnxTerm& a, double b) { return a - number(a, b); }
OnnxTerm operator-(double a, const OnnxTerm& b) { return number(b, a) - b; }
OnnxTerm operator*(const OnnxTerm& a, double b) { return a * number(a, b); }
OnnxTerm operator/(const OnnxTerm& a, double b) { return a / number(a, b); }

OnnxTerm sigmoid(const OnnxTerm& x) { return unary(ops::kSigmoid, x); }
OnnxTerm tanh(const OnnxTerm& x) { return unary(ops::kTanh, x); }
OnnxTerm sqrt(const OnnxTerm& x) { return unary(ops::kSqrt, x); }
OnnxTerm softmax(const OnnxTerm& x, int64_t axis) { return x.formula().apply(ops::kSoftmax, {x}, {{"axis", axis}}); }
OnnxTerm matmul(const OnnxTerm& a, const OnnxTerm& b) { return binary(ops::kMatmul, a, b); }
OnnxTerm gather(const OnnxTerm& x, const OnnxTerm& indices, int64_t axis) {
  return x.formula().apply(ops::kGather, {x, indices}, {{"axis", axis}});
}
OnnxTerm select(const OnnxTerm& condition, const OnnxTerm& a, const OnnxTerm& b) {
  return a.formula().apply(ops::kSelect, {condition, a, b});
}
OnnxTerm concat(const std::vector<OnnxTerm>& parts, int64_t axis) {
  return parts.front().formula().apply(ops::kConcat, parts, {{"axis", axis}});
}

}  // namespace tenon::compiler
