#include "compiler/frontend/onnx/expression.h"

#include <fmt/format.h>

namespace tenon::compiler::onnx {

DType real_of(DType dtype) {
  if (runtime::kReals.contains(dtype)) return dtype;
  return runtime::bytes(dtype) > 2 ? DType::kF64 : DType::kF32;
}

DType widest_of(DType a, DType b) {
  if (a == b) return a;
  return a == DType::kF64 || b == DType::kF64 ? DType::kF64 : DType::kF32;
}

Expected<Atom> NodeFormula::append(OperatorId op, const Atoms& args, Attrs attrs, ComputedAttrs computed) {
  return node_.apply(op, args, std::move(attrs), std::move(computed));
}

Diagnostic NodeFormula::located(std::string what, std::string help) const {
  return node_.fail(std::move(what), std::move(help)).error();
}

Term NodeFormula::apply_computed(OperatorId op, const std::vector<Term>& args, const OperatorAttributes& attrs) {
  if (!ok()) return {*this, Atom()};
  Atoms atoms;
  for (const Term& arg : args) atoms.push_back(arg.atom());
  return term(attrs.apply(node_, op, atoms));
}

int64_t NodeFormula::known_size(const Term& x, int64_t axis, std::string_view what) {
  const auto size = x.size(axis);
  if (!size) fail(fmt::format("{} is not constant", what), "bind the model's sizes, as --shapes N=1");
  return size.value_or(1);
}

Term NodeFormula::positions(const Term& x, int64_t axis) {
  if (axis < 0) axis += x.rank();
  const TensorType* type = node_.builder().tensor_type(x.atom());
  if (!type || axis < 0 || axis >= type->rank()) return x;
  std::vector<int64_t> shape(static_cast<size_t>(type->rank()), 1);
  shape[static_cast<size_t>(axis)] = -1;
  return range(Integers(1, Dims{type->dims[static_cast<size_t>(axis)]}, std::nullopt)).reshape(std::move(shape));
}

Term NodeFormula::range(const Integers& count) {
  OperatorAttributes attrs;
  if (const auto problem = attrs.set_scalar(node_, "count", count); !problem)
    return term(std::unexpected(problem.error()));
  return apply_computed(ops::kArange, {}, attrs);
}

Integers NodeFormula::integers(const Term& vector) {
  const auto count = static_cast<size_t>(known_size(vector, 0, "a number of integers"));
  return {count, ok() ? node_.import().sizes(vector.atom()) : std::nullopt, vector.atom()};
}

Status NodeFormula::results(const std::vector<std::optional<Term>>& terms) {
  for (size_t i = 0; i < terms.size() && ok(); ++i) {
    if (terms[i]) TENON_TRY(node_.result(i, terms[i]->atom()));
  }
  return status();
}

}  // namespace tenon::compiler::onnx
