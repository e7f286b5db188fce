// Mutations of modules and texts, most of which are no longer valid.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/module.h"
#include "support/random.h"

namespace tenon::compiler::fuzz {

// A few things of the module exchanged: types, operands, constructors, operators, attributes, arms, results. Every id
// stays within the limits of the representation.
Module mutate(Context& context, const Module& module, Random& random);

// A few tokens deleted, doubled, swapped or replaced.
std::string mutate(std::string_view text, Random& random);

}  // namespace tenon::compiler::fuzz
