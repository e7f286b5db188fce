// Processors and their levels, as LLVM names them.
#pragma once

#include <string>
#include <vector>

#include "hw/spec/diagnostic.h"

namespace llvm {
class Target;
}

namespace tenon::compiler::native {

struct Level {
  std::string name;           // "x86-64-v3"
  std::string cpu, features;  // of LLVM
  bool fma = false;           // has a fused multiply and add
  bool wide = false;          // vectors of 512 bits are worth it
  bool vnni = false;          // dot products of bytes, as x86 has them: made for functions that use instructions
  bool neon_dot = false;      // and as AArch64 has them
};

struct Target {
  std::string triple;  // as LLVM writes it: "x86_64-pc-linux-gnu"
  const llvm::Target* target = nullptr;
  std::vector<Level> levels;  // the best first
};

std::string host_triple();
// An empty triple is this machine's; "x86_64", "aarch64" and "armhf" are short for Debian's. An error names what is
// there.
Expected<Target> find_target(const std::string& triple);

}  // namespace tenon::compiler::native
