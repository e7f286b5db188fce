// One record for each operator: how its elements are expressed as scalar expressions and stages. The semantics are
// those of the reference kernels (runtime/reference). Type inference has already checked shapes and attributes. Each
// family of operators is one file.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compiler/kernels/emitter.h"

namespace tenon::compiler::kernels {

// An operator applied to lazy tensors: the input of its lowering.
struct OperatorCall {
  const Operator& op;
  Emitter& emit;
  const Attrs& attrs;
  const std::vector<LazyTensor>& args;
  const std::vector<const TensorType*>& results;

  Context& context() const { return emit.context(); }
  const LazyTensor& arg(size_t i) const { return args[i]; }
  const Dims& dims() const { return results[0]->dims; }
  DType dtype() const { return results[0]->dtype; }
  Dim dim(int64_t value) const { return emit.dim(value); }

  int64_t integer(std::string_view name) const { return int_attr(attrs, name); }
  double real(std::string_view name) const { return float_attr(attrs, name); }
  const std::string& text(std::string_view name) const { return string_attr(attrs, name); }
  const std::vector<int64_t>& integers(std::string_view name) const { return ints_attr(attrs, name); }
  const std::vector<double>& reals(std::string_view name) const { return floats_attr(attrs, name); }
  // An axis of a tensor of this rank; a negative attribute counts from the end.
  size_t axis(std::string_view name, size_t rank) const {
    const int64_t value = integer(name);
    return static_cast<size_t>(value < 0 ? value + static_cast<int64_t>(rank) : value);
  }
  // Argument i at indices of the result, to whose shape it broadcasts.
  Expr at(size_t i, const Dims& indices) const;
  // The result, computed by each reader.
  std::vector<LazyTensor> expression(ElementFunction at) const {
    return {emit.expression(dims(), dtype(), std::move(at))};
  }
};

// One tensor for each result; or an error where the lowering does not support these types or attributes.
using LoweredResults = Expected<std::vector<LazyTensor>>;
using Lower = LoweredResults (*)(const OperatorCall&);

// The lowering f(x) for each element x, where F captures nothing.
template <class F>
constexpr Lower elementwise(F) {
  return [](const OperatorCall& op) -> LoweredResults {
    return op.expression([value = op.arg(0)](const Dims& at) { return F{}(value.at(at)); });
  };
}

// Adds the conditions on sizes that the types leave open to the kernel, unless the sizes prove them (size_checks.h).
using RequireSizes = void (*)(const OperatorCall&);

struct Lowering {
  OperatorId op;
  Lower lower = nullptr;
  RequireSizes require_sizes = nullptr;
};

// The lowering of an operator; nullptr where it has none.
const Lowering* find_lowering(OperatorId op);

// The element of a tensor that broadcasts to a shape of a higher rank, whose trailing dims are aligned.
Expr broadcast(Context& context, const LazyTensor& value, const Dims& at);
inline Expr OperatorCall::at(size_t i, const Dims& indices) const { return broadcast(context(), args[i], indices); }

// The rows of all families: of each file that defines FAMILY_lowerings().
std::vector<std::span<const Lowering>> lowering_families();

}  // namespace tenon::compiler::kernels
