// Any bytes are an executable that can be written again, or an error. The hash in the preface is made to fit, so that
// the fuzzer gets past it.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/executable/executable.h"
#include "runtime/executable/layout.h"

using namespace tenon::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> file(size);
  if (size != 0) std::memcpy(file.data(), data, size);
  Preface preface;
  if (size >= sizeof preface) {
    std::memcpy(&preface, file.data(), sizeof preface);
    preface.magic = kMagic;
    preface.version = kExecutableVersion;
    preface.file_bytes = size;
    if (preface.header_bytes > size - sizeof preface) preface.header_bytes = size - sizeof preface;
    preface.header_hash = sha256(std::span(file).subspan(sizeof preface, preface.header_bytes));
    std::memcpy(file.data(), &preface, sizeof preface);
  }
  const auto executable = deserialize(file, "fuzz");
  if (executable && !serialize(*executable)) std::abort();
  return 0;
}
