// Error propagation: the two statements with which a function that returns an Expected returns the errors of its
// callees.
#pragma once

#include "support/diagnostic.h"

// Returns the error of a Status or an Expected from the enclosing function.
#define TENON_TRY(...) \
  if (auto&& tenon_try = (__VA_ARGS__); !tenon_try) return std::unexpected(std::move(tenon_try.error()))

// Declares `variable` as an Expected that has a value, or returns its error from the enclosing function.
#define TENON_TRY_ASSIGN(variable, ...) \
  auto variable = (__VA_ARGS__);        \
  if (!variable) return std::unexpected(std::move(variable.error()))
