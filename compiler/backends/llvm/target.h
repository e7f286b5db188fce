// Processors and their levels, with LLVM's names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace llvm {
class Target;
}

namespace tenon::compiler::native {

enum class Family : uint8_t { kX86, kArm, kOther };

struct Level {
  std::string name;           // "x86-64-v3"
  std::string cpu, features;  // LLVM's names
  Family family = Family::kOther;
  int64_t vector_bytes = 16, registers = 16;  // vector registers
  bool fma = false;                           // fused multiply-add
  bool dot = false;                           // dot products of bytes: of u8 and i8 on x86, of two of a kind on AArch64

  bool wide() const { return vector_bytes == 64; }
  bool masks() const { return vector_bytes > 16; }  // has masked loads and stores
  // Whether the level is useful only for functions with dot products.
  bool for_dots() const { return dot && family == Family::kX86; }
};

struct Target {
  std::string triple;  // LLVM's normal form: "x86_64-pc-linux-gnu"
  const llvm::Target* target = nullptr;
  std::vector<Level> levels;  // the best first
};

std::string host_triple();
// An empty triple means this machine's; "x86_64", "aarch64" and "armhf" are short for Debian's. An error names the
// supported ones.
Expected<Target> find_target(const std::string& triple);

}  // namespace tenon::compiler::native
