// A small use of a device, from which tests see that it works.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "driver/accelerator.h"
#include "support/try.h"

namespace tenon::driver {

// Writes, launches an empty stream, reads: an error, or nothing.
inline Status use(Accelerator& accelerator) {
  TENON_TRY_ASSIGN(buffer, accelerator.allocate(5000));
  std::vector<std::byte> data(5000), back(5000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 31);
  TENON_TRY(accelerator.write(*buffer, 0, data));
  TENON_TRY(start(accelerator, {.instructions = buffer->address & ~uint64_t{15}, .count = 0}));
  TENON_TRY(finish(accelerator, std::chrono::seconds(1)));
  TENON_TRY(accelerator.read(*buffer, 0, back));
  if (data != back) return error("other bytes");
  accelerator.free(*buffer);
  return {};
}

inline std::string use(const std::string& uri) {
  const auto opened = open(uri);
  if (!opened) return opened.error().str();
  const auto used = use(**opened);
  return used ? "" : used.error().str();
}

}  // namespace tenon::driver
