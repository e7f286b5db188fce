// The dims of a function: which ones the sizes of its parameters determine, and how.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "compiler/ir/context.h"
#include "compiler/ir/module.h"

namespace tenon::compiler {

// The tensors whose sizes a caller of the type sees: a tensor, and those in the fields of tuples.
void visible_tensors(Type type, std::vector<const TensorType*>& tensors);

// The equation by which a size determines a dim: size = factor * dim + offset.
struct SizeSolution {
  Symbol dim{};
  size_t tensor = 0, axis = 0;
  Dim factor, offset;
};
// The next dim variable of `open` that one of the sizes determines, by an equation that has no other unknown variable.
std::optional<SizeSolution> solve_next(Context& context, const std::vector<const TensorType*>& tensors,
                                       const std::set<Symbol>& open);

// The dims of a function that the sizes of its parameters' tensors do not determine: callers pass them, in this order.
std::vector<Symbol> hidden_dims(Context& context, const Function& function);

// Declares the variables of the sizes of all values of a function that was put together without a Builder's dims, and
// of those that its body computes with.
void declare_dims(Context& context, Function& function);

// Adds parameters of the function `around` to the function, which reads no element of them, where their sizes determine
// its hidden dims: as the length to which a slice cuts a table. Only parameters of the element types are added; returns
// which ones.
std::vector<VarId> add_size_params(Context& context, const Function& around, runtime::DTypes dtypes,
                                   Function& function);

}  // namespace tenon::compiler
