// The checks that every transport performs before it accesses the device, with one wording of the messages.
#pragma once

#include <cstdint>
#include <string_view>

#include "driver/accelerator.h"
#include "driver/allocator.h"

namespace tenon::driver {

// Checks that [offset, offset + bytes) is in `buffer`, and the buffer in a live block; `verb` is "read" or "write".
Status check_access(const Allocator& allocator, const Buffer& buffer, uint64_t offset, uint64_t bytes,
                    std::string_view verb, std::string_view uri);
// The same checks for a transport with another allocator, which passes whether the buffer is live.
Status check_access(bool live, const Buffer& buffer, uint64_t offset, uint64_t bytes, std::string_view verb,
                    std::string_view uri);

// Checks that `offset` is the offset of a register.
Status check_register(uint32_t offset, std::string_view uri);

// Frees the block. A second free is a bug of the caller and ends the program: otherwise the memory could be allocated
// twice.
void release_or_abort(Allocator& allocator, const Buffer& buffer, std::string_view uri);

}  // namespace tenon::driver
