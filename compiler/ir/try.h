// Passing errors on: the two statements that functions returning Expected are full of.
#pragma once

#include "hw/spec/diagnostic.h"

// Returns the error of a Status or an Expected from the function.
#define TENON_TRY(expression) \
  if (auto tenon_try = (expression); !tenon_try) return std::unexpected(std::move(tenon_try.error()))

// Declares `variable` as an Expected that has a value, or returns its error.
#define TENON_TAKE(variable, ...) \
  auto variable = (__VA_ARGS__);  \
  if (!variable) return std::unexpected(std::move(variable.error()))
