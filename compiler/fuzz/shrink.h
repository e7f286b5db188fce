// Makes a failing module small: fewer globals, bindings and arms, smaller results, as long as it verifies and fails.
#pragma once

#include <functional>

#include "compiler/ir/module.h"

namespace tenon::compiler::fuzz {

using Fails = std::function<bool(const Module&)>;

// Makes at most `budget` proposals; `fails` is asked about those that verify. Returns the smallest one found.
Module shrink(Context& context, Module module, const Fails& fails, int budget = 4000);

}  // namespace tenon::compiler::fuzz
