#include <openssl/evp.h>

#include <cassert>

#include "runtime/executable/layout.h"

namespace tenon::runtime {

Sha256 sha256(std::span<const std::byte> bytes) {
  Sha256 hash{};
  [[maybe_unused]] int ok = EVP_Digest(bytes.data(), bytes.size(), hash.data(), nullptr, EVP_sha256(), nullptr);
  assert(ok == 1);
  return hash;
}

}  // namespace tenon::runtime
