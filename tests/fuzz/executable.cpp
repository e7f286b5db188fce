// Any bytes are an executable or an error.
#include <span>

#include "runtime/executable/executable.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)tenon::runtime::deserialize(std::as_bytes(std::span(data, size)), "input");
  return 0;
}
