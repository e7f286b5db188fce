// Any bytes are a configuration or an error; a configuration round-trips through its canonical text.
#include <cstdlib>

#include "hw/spec/config.h"

using namespace tenon::spec;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = parse_config(std::string_view(reinterpret_cast<const char*>(data), size), "input");
  if (config && *parse_config(to_json(*config), "again") != *config) std::abort();
  return 0;
}
