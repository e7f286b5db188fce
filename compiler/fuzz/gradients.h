// Derivatives of random modules beside central differences.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "compiler/fuzz/oracle.h"
#include "compiler/ir/run_value.h"

namespace tenon::compiler::fuzz {

// The module with @main as @f, and a new @main that is the gradient of a weighted sum of all floats of the result of @f
// by all parameters with floats: of the sum, @loss, or, for the second order, of a sum over the gradient of another
// sum. Nothing where @f has no parameter or no result with floats.
std::optional<Module> with_gradient(Context& context, const Module& module, bool second_order);

// The module with its derivatives expanded, where @main is the gradient of @loss as above. What has no derivative is
// counted in `counts.underivable` by the first words of the error, and nothing is returned.
Expected<std::optional<Module>> expand_gradients(Context& context, const Module& module, Counts& counts);

// How the derivative along a random direction at these inputs differs from the central difference of @loss; nothing
// where they agree, or where the function has no derivative there, as at a kink.
std::optional<std::string> disagreement(Context& context, const Module& expanded, std::span<const RunValue> inputs,
                                        uint64_t seed, int64_t steps, Counts& counts);

}  // namespace tenon::compiler::fuzz
