#include "driver/checks.h"
#include "support/output.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace tenon::driver {

Status check_access(const Allocator& allocator, const Buffer& buffer, uint64_t offset, uint64_t bytes,
                    std::string_view verb, std::string_view uri) {
  return check_access(allocator.contains(buffer.address, buffer.size), buffer, offset, bytes, verb, uri);
}

Status check_access(bool live, const Buffer& buffer, uint64_t offset, uint64_t bytes, std::string_view verb,
                    std::string_view uri) {
  if (!live) {
    return error(
        fmt::format("{} of a buffer that is not alive: address {:#x}, {} bytes", verb, buffer.address, buffer.size),
        std::string(uri), "allocate the buffer first, and do not use it after free()");
  }
  if (offset > buffer.size || bytes > buffer.size - offset) {
    return error(fmt::format("{} of bytes [{}, {}) of a buffer of {} bytes", verb, offset, offset + bytes, buffer.size),
                 std::string(uri));
  }
  return {};
}

Status check_register(uint32_t offset, std::string_view uri) {
  if (offset % 4 == 0 && offset < spec::kRegisterSpaceBytes) return {};
  return error(
      fmt::format("register offset {:#x} must be a multiple of 4 below {:#x}", offset, spec::kRegisterSpaceBytes),
      std::string(uri));
}

void release_or_abort(Allocator& allocator, const Buffer& buffer, std::string_view uri) {
  auto status = allocator.release(buffer.address, buffer.size);
  if (status) return;
  status.error().where = uri;
  print_stderr("{}\n", status.error().str());
  std::abort();
}

}  // namespace tenon::driver
