// Links object files to shared objects with lld.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::compiler::native {

// Calls from several threads are executed one after another.
Expected<std::vector<std::byte>> link(std::span<const char> object);

}  // namespace tenon::compiler::native
