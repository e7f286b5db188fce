// What the tables of gradient rules share. A rule reads as the chain rule: dy, the adjoint of the result y, times the
// derivative of y by an argument.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/ir/gradients.h"

namespace tenon::compiler::gradients {

// The tables of all families.
std::vector<std::span<const GradientRow>> gradient_families();

// The rule of a function that is constant wherever it has a derivative.
inline Status zero(GradientBuilder& g) { return g.status(); }

// The rule of a function of one element: dy * derivative(g).
template <auto derivative>
Status chain(GradientBuilder& g) {
  if (g.wants(0)) g.add(0, g.cotangent() * derivative(g));
  return g.status();
}

// The rule of an operator that is its own adjoint.
Status same_again(GradientBuilder& g);
// The rule of an operator that changes the shape alone.
Status same_elements(GradientBuilder& g);

// Attributes, of which a list of sizes may be symbolic.
struct Attributes {
  Attrs attrs;
  ComputedAttrs computed;
  void set(std::string name, Dims dims);
  void set(std::string name, const Term& operand) { computed.emplace(std::move(name), operand.atom()); }
};
Term apply(OperatorId op, const std::vector<Term>& args, Attributes attributes);
// An attribute of one value an axis, whether constant or computed: its value of this axis, as a list of one.
void set_from_axis(GradientBuilder& g, const std::string& name, int64_t axis, Attributes& attributes);

double float_attr(const GradientBuilder& g, std::string_view name);
int64_t int_attr(const GradientBuilder& g, std::string_view name);
const std::vector<int64_t>& ints_attr(const GradientBuilder& g, std::string_view name);
const std::string& string_attr(const GradientBuilder& g, std::string_view name);
// The attribute `name` as an axis of a tensor of this rank, which may count from the end.
int64_t axis_attr(const GradientBuilder& g, std::string_view name, int64_t rank);

Term zeros_like(const Term& x);
// The elements of the value in the shape of x, which has as many: when it runs, where that is not proved.
Term reshaped_like(const Term& value, const Term& x);
// 0 .. count - 1, i64.
Term indices_below(Formula& formula, Dim count);
Term unit_matrix(Formula& formula, Dim size, DType dtype);
// The value of a dim, a scalar.
Term size_value(Formula& formula, Dim dim, DType dtype);
// x where the condition is true, else 0; and the opposite. 0 replaces Inf and NaN also.
Term keep_where(const Term& condition, const Term& x);
Term drop_where(const Term& condition, const Term& x);

// The elements begin .. begin + size of each dim.
Term part(const Term& x, const Dims& begin, const Dims& sizes);
// The elements begin .. begin + size of one axis.
Term part(const Term& x, int64_t axis, Dim begin, Dim size);
// A new axis at the index `axis` of a result of `rank` dims: x, a vector, along this axis.
Term along(const Term& x, int64_t axis, int64_t rank);

// The adjoint of gather: zeros of the dims `dims`, to whose parts at indices along `axis` the updates are added, which
// have the dims dims[:axis] + indices.shape + dims[axis + 1:].
Term add_at(const Dims& dims, int64_t axis, const Term& indices, const Term& updates);

// A value with the dims of a reduction's result as one that broadcasts to the reduction's argument: with size 1 in
// place of the reduced axes, whether the reduction kept them or not, or with the argument's sizes.
Term unreduced(GradientBuilder& g, const Term& value);

}  // namespace tenon::compiler::gradients
