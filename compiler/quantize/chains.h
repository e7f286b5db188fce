// Chains of float operators that become one requantization: an anchor with its bias, a residual addition and clamps.
//
//   anchor (conv2d, dense; constant weights) -> bias_add? -> clamp? -> (add residual -> clamp?)?
//
// A clamp is a relu or a clip. Every value inside the chain has one user, the next operator of the chain, in the same
// block. A residual is added only where the sum is feeding_integers().
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/quantize/parameters.h"
#include "support/function_ref.h"

namespace tenon::compiler {

Clamp clamp_of(const Apply& apply);  // of a relu or a clip

// An operator whose result on int8 operands has their scale.
bool keeps_scale(const Apply& apply);

// By variable: whether an integer operator may read it, directly or through operators that have an int8 form. A sum
// that operators on floats alone read, as a normalization of rows, is added in float: its int8 form would cost
// accuracy, and be dequantized at once.
// `is_integer`: whether integers compute a product of two activations.
std::vector<bool> feeding_integers(const Function& function, FunctionRef<bool(const Binding&)> is_integer);

// The terms of a product of bytes whose sums fit into i32.
inline constexpr int64_t kMostTerms = int64_t{1} << 16;
// Whether it is a product of two activations, as those of attention.
bool is_product_of_values(const Apply& apply);
// The axis of the parameters of a product of activations, which are all equal: one of known size, axis 1 or else the
// last such. None where integers do not compute the product: no size is known, or the terms may be over kMostTerms.
std::optional<size_t> product_axis(const Dims& left, const Dims& result, const DimBounds& bounds);
// Whether the binding is a product of two activations that has such an axis.
bool is_integer_product(const Function& function, const Binding& binding);

// By variable: whether its int8 form has no zero point, because a product of two activations for which `is_integer`
// holds reads it, directly or through operators that keep its scale: a zero point would add sums of the other operand.
std::vector<bool> without_zero_point(const Function& function, FunctionRef<bool(const Binding&)> is_integer);

struct Chain {
  const Apply* anchor = nullptr;
  SpanId span{};  // of the anchor
  ConstId weights{};
  std::optional<ConstId> bias;
  Clamp before;  // applied before the residual is added; without a residual, `after` is the only clamp
  std::optional<VarId> residual;
  Clamp after;
  std::vector<size_t> members;  // its bindings; the root is the last
};

struct Chains {
  std::vector<std::optional<Chain>> at_root;  // by binding
  std::vector<bool> inner;                    // by binding: inside a chain, and not its root
};
// Of one block of the function; `uses` are its use_counts(), `feeds` its feeding_integers().
Chains find_chains(const Module& module, const Function& function, const Block& block,
                   const std::vector<uint32_t>& uses, const std::vector<bool>& feeds);

}  // namespace tenon::compiler
