// What every transport checks before it touches the device, with one wording of the messages.
#pragma once

#include <cstdint>
#include <string_view>

#include "driver/accelerator.h"
#include "driver/allocator.h"

namespace tenon::driver {

// Whether [offset, offset + bytes) lies in `buffer`, and the buffer in a live block; `verb` is "read" or "write".
Status check_access(const Allocator& allocator, const Buffer& buffer, uint64_t offset, uint64_t bytes,
                    std::string_view verb, std::string_view uri);

// Whether `offset` is that of a register.
Status check_register(uint32_t offset, std::string_view uri);

// Gives the block back. A second free is a bug of the caller's and ends the program: going on would hand the memory out
// twice.
void release_or_abort(Allocator& allocator, const Buffer& buffer, std::string_view uri);

}  // namespace tenon::driver
