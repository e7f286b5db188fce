// Targets of LLVM, with the levels that code is generated for.
#pragma once

#include <string>
#include <vector>

#include "compiler/machine/machine.h"
#include "support/diagnostic.h"

namespace llvm {
class Target;
}

namespace tenon::compiler::native {

using Level = Machine;  // the code of a function for one of them

struct Target {
  std::string triple;  // LLVM's normal form: "x86_64-pc-linux-gnu"
  const llvm::Target* target = nullptr;
  std::vector<Level> levels;  // the best first
};

// LLVM's target of any triple; nullptr where this LLVM has none.
const llvm::Target* find_llvm_target(const std::string& triple);
std::string host_triple();
// An empty triple means this machine's; "x86_64", "aarch64", "armhf" and "riscv64" are short for Debian's. An error
// names the supported ones.
Expected<Target> find_target(const std::string& triple);

}  // namespace tenon::compiler::native
