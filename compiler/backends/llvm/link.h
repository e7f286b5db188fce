// Object files to shared objects, by lld.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::compiler::native {

// One at a time in a process: others wait.
Expected<std::vector<std::byte>> link(std::span<const char> object);

}  // namespace tenon::compiler::native
