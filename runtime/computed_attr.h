// Attributes that are computed when a model runs: their values from the tensors that have them.
#pragma once

#include <span>
#include <string>

#include "runtime/attrs.h"
#include "runtime/tensor.h"

namespace tenon::runtime {

// The kind of an attribute: a number or a list, of integers or of floats.
enum class ComputedKind : uint8_t { kInteger, kIntegers, kReal, kReals };
inline constexpr size_t kComputedKinds = static_cast<size_t>(ComputedKind::kReals) + 1;

// The attribute whose values are the elements of `parts`, in order; integers from i64, floats from f32 or f64. An error
// where the tensors have another dtype, or not one element for a number.
Expected<Attr> computed_attr(std::string_view name, ComputedKind kind, std::span<const Tensor> parts);

}  // namespace tenon::runtime
