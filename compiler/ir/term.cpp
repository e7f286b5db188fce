#include "compiler/ir/term.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/try.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;

}  // namespace

std::pair<Attrs, ComputedAttrs> sizes_attribute(std::string name, const Dims& dims) {
  Ints sizes;
  for (const Dim dim : dims) {
    if (const auto size = dim.constant()) sizes.push_back(*size);
  }
  if (sizes.size() == dims.size()) return {{{std::move(name), std::move(sizes)}}, {}};
  return {{}, {{std::move(name), dims}}};
}

DType Term::dtype() const {
  const TensorType* type = formula_->ok() ? formula_->builder().tensor_type(atom_) : nullptr;
  return type ? type->dtype : DType::kF32;
}

int64_t Term::rank() const {
  const TensorType* type = formula_->ok() ? formula_->builder().tensor_type(atom_) : nullptr;
  return type ? type->rank() : 0;
}

std::optional<int64_t> Term::size(int64_t axis) const {
  if (axis < 0) axis += rank();
  if (axis < 0 || axis >= rank()) return std::nullopt;
  return formula_->builder().tensor_type(atom_)->dims[static_cast<size_t>(axis)].constant();
}

Term Term::cast(DType wanted) const {
  if (dtype() == wanted) return *this;
  return formula_->apply(ops::kCast, {*this}, {{"dtype", std::string(runtime::name(wanted))}});
}

Term Term::reshape(Ints shape) const { return formula_->apply(ops::kReshape, {*this}, {{"shape", std::move(shape)}}); }

Term Term::transpose(Ints axes) const { return formula_->apply(ops::kTranspose, {*this}, {{"axes", std::move(axes)}}); }

Term Term::swap_last_axes() const {
  Ints axes;
  for (int64_t axis = 0; axis < rank(); ++axis) axes.push_back(axis);
  if (axes.size() >= 2) std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return transpose(std::move(axes));
}

Term Term::expand_dims(Ints axes) const {
  return formula_->apply(ops::kExpandDims, {*this}, {{"axes", std::move(axes)}});
}

Term Term::squeeze(Ints axes) const { return formula_->apply(ops::kSqueeze, {*this}, {{"axes", std::move(axes)}}); }

Term Term::slice(int64_t axis, int64_t begin, int64_t end, int64_t step) const {
  const auto dims = static_cast<size_t>(rank());
  if (axis < 0) axis += rank();
  formula_->expect(axis >= 0 && axis < rank(), fmt::format("there is no axis {}", axis));
  if (!formula_->ok()) return *this;
  Ints begins(dims, 0), ends(dims, INT64_MAX), steps(dims, 1);
  const auto at = static_cast<size_t>(axis);
  begins[at] = begin, ends[at] = end, steps[at] = step;
  return formula_->apply(ops::kSlice, {*this}, {{"begin", begins}, {"end", ends}, {"step", steps}});
}

Term Term::pad(int64_t axis, int64_t before, int64_t after, double value) const {
  if (axis < 0) axis += rank();
  formula_->expect(axis >= 0 && axis < rank(), fmt::format("there is no axis {}", axis));
  if (!formula_->ok() || (before == 0 && after == 0)) return *this;
  Ints befores(static_cast<size_t>(rank()), 0), afters = befores;
  befores[static_cast<size_t>(axis)] = before, afters[static_cast<size_t>(axis)] = after;
  return formula_->apply(ops::kPad, {*this}, {{"before", befores}, {"after", afters}, {"value", value}});
}

Term Term::broadcast(Ints shape) const {
  return formula_->apply(ops::kBroadcastTo, {*this}, {{"shape", std::move(shape)}});
}

Term Term::broadcast_to(const Dims& wanted) const {
  if (!formula_->ok() || dims() == wanted) return *this;
  auto [attrs, computed] = sizes_attribute("shape", formula_->proved_sizes(wanted));
  return formula_->checked(formula_->apply(ops::kBroadcastTo, {*this}, std::move(attrs), std::move(computed)), wanted);
}

Term Term::reduce(OperatorId op, Ints axes, bool keep) const {
  return formula_->apply(op, {*this}, {{"axes", std::move(axes)}, {"keep", int64_t{keep}}});
}

Dims Term::dims() const {
  const TensorType* type = formula_->ok() ? formula_->builder().tensor_type(atom_) : nullptr;
  return type ? type->dims : Dims();
}

Term Term::reshape_to(const Dims& wanted) const {
  if (!formula_->ok() || dims() == wanted) return *this;
  // A single size that is not proved to be one is inferred from the others.
  const Dims proved = formula_->proved_sizes(wanted), from = dims();
  Dims shape = wanted;
  std::vector<size_t> open;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (proved[i] != wanted[i] && std::ranges::find(from, wanted[i]) == from.end()) open.push_back(i);
  }
  if (open.size() == 1) shape[open[0]] = formula_->builder().context().dim(-1);
  auto [attrs, computed] = sizes_attribute("shape", shape);
  attrs.emplace("zero", int64_t{1});
  return formula_->checked(formula_->apply(ops::kReshape, {*this}, std::move(attrs), std::move(computed)), wanted);
}

Term Term::sum_to(const Dims& wanted) const {
  const Dims from = dims();
  if (!formula_->ok() || from == wanted) return *this;
  formula_->expect(from.size() >= wanted.size(), "the sum of a broadcast has more dims than the broadcast");
  if (!formula_->ok()) return *this;
  Ints leading, repeated;
  const size_t added = from.size() - wanted.size();
  for (size_t axis = 0; axis < added; ++axis) leading.push_back(static_cast<int64_t>(axis));
  for (size_t axis = 0; axis < wanted.size(); ++axis) {
    if (wanted[axis].constant() == 1 && from[added + axis].constant() != 1)
      repeated.push_back(static_cast<int64_t>(axis));
  }
  Term sum = *this;
  if (!leading.empty()) sum = sum.reduce(ops::kSum, std::move(leading));
  if (!repeated.empty()) sum = sum.reduce(ops::kSum, std::move(repeated), true);
  return sum;
}

Status Formula::status() const {
  if (problem_) return std::unexpected(*problem_);
  return {};
}

void Formula::fail(std::string what, std::string help) {
  if (!problem_) problem_ = located(std::move(what), std::move(help));
}

Term Formula::term(Expected<Atom> atom) {
  if (atom) return {*this, *atom};
  if (!problem_) problem_ = std::move(atom.error());
  return {*this, Atom()};
}

Term Formula::real_constant(runtime::Shape shape, const std::vector<double>& values, DType dtype) {
  const bool real = runtime::kReals.contains(dtype);
  expect(real, fmt::format("requires floats, found {}", runtime::name(dtype)));
  runtime::Tensor tensor(real ? dtype : DType::kF32, std::move(shape));
  runtime::with_dtype<runtime::kReals>(tensor.dtype(), [&]<class T>(T) {
    std::ranges::transform(values, tensor.data<T>().begin(), [](double value) { return static_cast<T>(value); });
  });
  return constant(std::move(tensor));
}

Term Formula::scalar(double value, DType dtype) { return {*this, scalar_constant(builder_, value, dtype)}; }

Dims Formula::proved_sizes(const Dims& dims) const {
  Context& context = builder_.context();
  const DimProver prover(context);  // without bounds of the function, which the operator may leave for another one
  Dims sizes;
  for (const Dim dim : dims) {
    const bool proved = dim.erased() || prover.less_equal(context.dim(0), dim) == Answer::kYes;
    sizes.push_back(proved ? dim : context.maximum({dim, context.dim(0)}));
  }
  return sizes;
}

Term Formula::checked(const Term& term, const Dims& dims) {
  if (!ok() || term.dims() == dims) return term;
  return this->term(builder_.bind(Cast{term.atom(), builder_.context().tensor(dims, term.dtype()), {}}, Symbol{}));
}

Term Formula::full(const Dims& dims, double value, DType dtype) {
  if (!ok()) return {*this, Atom()};
  auto [attrs, computed] = sizes_attribute("shape", proved_sizes(dims));
  attrs.emplace("value", value);
  attrs.emplace("dtype", std::string(runtime::name(dtype)));
  return checked(apply(ops::kFull, {}, std::move(attrs), std::move(computed)), dims);
}

Term Formula::apply(OperatorId op, std::initializer_list<Term> args, Attrs attrs, ComputedAttrs computed) {
  return apply(op, std::vector<Term>(args), std::move(attrs), std::move(computed));
}

Term Formula::apply(OperatorId op, const std::vector<Term>& args, Attrs attrs, ComputedAttrs computed) {
  if (!ok()) return {*this, Atom()};
  Atoms atoms;
  for (const Term& arg : args) atoms.push_back(arg.atom());
  return term(append(op, atoms, std::move(attrs), std::move(computed)));
}

Term Formula::field(const Term& tuple, uint32_t index) {
  return ok() ? term(builder_.project(tuple.atom(), index)) : tuple;
}

Expected<Atom> Formula::append(OperatorId op, const Atoms& args, Attrs attrs, ComputedAttrs computed) {
  return builder_.apply(op, args, std::move(attrs), {}, std::move(computed));
}

Diagnostic Formula::located(std::string what, std::string help) const {
  return error(std::move(what), builder_.module().span(builder_.span()).str(), std::move(help)).error();
}

Atom scalar_constant(Builder& builder, double value, DType dtype) {
  runtime::Tensor tensor(dtype, {});
  runtime::with_dtype<runtime::kAnyDType>(dtype, [&]<class T>(T) { tensor.data<T>()[0] = static_cast<T>(value); });
  return builder.constant(std::move(tensor));
}

namespace {

Term binary(OperatorId op, const Term& a, const Term& b) { return a.formula().apply(op, {a, b}); }
Term number(const Term& like, double value) { return like.formula().scalar(value, like.dtype()); }
Term unary(OperatorId op, const Term& x) { return x.formula().apply(op, {x}); }

}  // namespace

Term operator+(const Term& a, const Term& b) { return binary(ops::kAdd, a, b); }
Term operator-(const Term& a, const Term& b) { return binary(ops::kSubtract, a, b); }
Term operator*(const Term& a, const Term& b) { return binary(ops::kMultiply, a, b); }
Term operator/(const Term& a, const Term& b) { return binary(ops::kDivide, a, b); }
Term operator-(const Term& a) { return unary(ops::kNegate, a); }
Term operator+(const Term& a, double b) { return a + number(a, b); }
Term operator-(const Term& a, double b) { return a - number(a, b); }
Term operator-(double a, const Term& b) { return number(b, a) - b; }
Term operator*(const Term& a, double b) { return a * number(a, b); }
Term operator/(const Term& a, double b) { return a / number(a, b); }

Term abs(const Term& x) { return unary(ops::kAbs, x); }
Term cos(const Term& x) { return unary(ops::kCos, x); }
Term exp(const Term& x) { return unary(ops::kExp, x); }
Term log(const Term& x) { return unary(ops::kLog, x); }
Term sigmoid(const Term& x) { return unary(ops::kSigmoid, x); }
Term sign(const Term& x) { return unary(ops::kSign, x); }
Term sin(const Term& x) { return unary(ops::kSin, x); }
Term sqrt(const Term& x) { return unary(ops::kSqrt, x); }
Term tanh(const Term& x) { return unary(ops::kTanh, x); }
Term equal(const Term& a, const Term& b) { return binary(ops::kEqual, a, b); }
Term equal(const Term& a, double b) { return equal(a, number(a, b)); }
Term less(const Term& a, const Term& b) { return binary(ops::kLess, a, b); }
Term less(const Term& a, double b) { return less(a, number(a, b)); }
Term less_equal(const Term& a, const Term& b) { return binary(ops::kLessEqual, a, b); }
Term less_equal(const Term& a, double b) { return less_equal(a, number(a, b)); }
Term both(const Term& a, const Term& b) { return binary(ops::kLogicalAnd, a, b); }
Term softmax(const Term& x, int64_t axis) { return x.formula().apply(ops::kSoftmax, {x}, {{"axis", axis}}); }
Term matmul(const Term& a, const Term& b) { return binary(ops::kMatmul, a, b); }
Term einsum(std::string equation, const Term& a, const Term& b) {
  return a.formula().apply(ops::kEinsum, {a, b}, {{"equation", std::move(equation)}});
}
Term gather(const Term& x, const Term& indices, int64_t axis) {
  return x.formula().apply(ops::kGather, {x, indices}, {{"axis", axis}});
}
Term select(const Term& condition, const Term& a, const Term& b) {
  return a.formula().apply(ops::kSelect, {condition, a, b});
}
Term concat(const std::vector<Term>& parts, int64_t axis) {
  return parts.front().formula().apply(ops::kConcat, parts, {{"axis", axis}});
}

}  // namespace tenon::compiler
