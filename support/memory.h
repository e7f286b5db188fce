// How much memory the process can have: what a file asks for is compared with it before anything is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/diagnostic.h"

namespace tenon {

// The bytes that the machine has free, within the limits of the process and of its control group.
uint64_t usable_memory();

// An error where `what` takes more bytes than that; small sizes are not looked at.
Status check_memory(uint64_t bytes, std::string_view what, std::string where);

}  // namespace tenon
