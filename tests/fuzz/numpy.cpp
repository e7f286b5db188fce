// Any bytes are NumPy files or errors.
#include <span>

#include "runtime/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)tenon::runtime::parse_npy(bytes, "input");
  (void)tenon::runtime::parse_npz(bytes, "input");
  return 0;
}
