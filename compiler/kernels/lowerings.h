// One record an operator: how its elements are written as expressions and stages. The semantics are the reference
// kernels' (runtime/reference), whose checks of shapes and attributes inference has made before; a family is one file.
#pragma once

#include <span>
#include <string_view>

#include "compiler/kernels/emitter.h"

namespace tenon::compiler::kernels {

struct Operation {
  Emitter& emit;
  const Attrs& attrs;
  const std::vector<Value>& args;
  const std::vector<const TensorType*>& results;

  Context& context() const { return emit.context(); }
  const Value& arg(size_t i) const { return args[i]; }
  const Dims& dims() const { return results[0]->dims; }
  DType dtype() const { return results[0]->dtype; }
  Dim dim(int64_t value) const { return emit.dim(value); }

  int64_t integer(std::string_view name) const { return int_attr(attrs, name); }
  double real(std::string_view name) const { return float_attr(attrs, name); }
  const std::string& text(std::string_view name) const { return string_attr(attrs, name); }
  const std::vector<int64_t>& integers(std::string_view name) const { return ints_attr(attrs, name); }
  const std::vector<double>& reals(std::string_view name) const { return floats_attr(attrs, name); }
  // An axis of a tensor of that rank; negative ones count from the end.
  size_t axis(std::string_view name, size_t rank) const {
    const int64_t value = integer(name);
    return static_cast<size_t>(value < 0 ? value + static_cast<int64_t>(rank) : value);
  }
  // Argument i at indices of the result, to which it broadcasts.
  Expr at(size_t i, const Dims& indices) const;
  // The result, computed where it is read.
  std::vector<Value> expression(Element at) const { return {emit.expression(dims(), dtype(), std::move(at))}; }
};

// The values, one a result; or why this operator cannot be written so, on these types and attributes.
using Lower = Expected<std::vector<Value>> (*)(const Operation&);

struct Lowering {
  std::string_view op;
  Lower lower = nullptr;
};

// By name; nullptr where the operator has none.
const Lowering* find_lowering(std::string_view op);
std::vector<std::string_view> lowered_operators();

// The element of a value that broadcasts to indices of a higher rank, aligned at the end.
Expr broadcast(Context& context, const Value& value, const Dims& at);
inline Expr Operation::at(size_t i, const Dims& indices) const { return broadcast(context(), args[i], indices); }

// The families.
std::span<const Lowering> math_lowerings();
std::span<const Lowering> binary_lowerings();
std::span<const Lowering> activation_lowerings();
std::span<const Lowering> move_lowerings();
std::span<const Lowering> index_lowerings();
std::span<const Lowering> recurrent_lowerings();
std::span<const Lowering> reduce_lowerings();
std::span<const Lowering> normalize_lowerings();
std::span<const Lowering> contraction_lowerings();
std::span<const Lowering> convolution_lowerings();
std::span<const Lowering> pool_lowerings();
std::span<const Lowering> quantize_lowerings();
std::span<const Lowering> random_lowerings();
std::span<const Lowering> sample_lowerings();
std::span<const Lowering> scatter_lowerings();
std::span<const Lowering> order_lowerings();

}  // namespace tenon::compiler::kernels
