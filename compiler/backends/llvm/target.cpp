#include "compiler/backends/llvm/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <mutex>

namespace tenon::compiler::native {
namespace {

void initialize() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
  });
}

}  // namespace

std::string host_triple() { return llvm::sys::getDefaultTargetTriple(); }

Expected<Target> find_target(const std::string& name) {
  initialize();
  Target target;
  target.triple = llvm::Triple::normalize(name.empty() ? host_triple() : name);
  const llvm::Triple triple(target.triple);
  std::string reason;
  target.target = llvm::TargetRegistry::lookupTarget(target.triple, reason);
  if (!target.target || !target.target->hasTargetMachine() || !target.target->hasMCAsmBackend()) {
    std::vector<std::string> known;
    for (const llvm::Target& one : llvm::TargetRegistry::targets()) known.emplace_back(one.getName());
    std::ranges::sort(known);
    return error(fmt::format("there is no processor for the triple '{}'", name), {},
                 fmt::format("LLVM {} has {}", LLVM_VERSION_STRING, fmt::join(known, ", ")));
  }
  if (!triple.isOSBinFormatELF() || !triple.isOSLinux()) {
    return error(fmt::format("'{}' is no Linux with ELF files", name), {},
                 "native code is for such, as x86_64-unknown-linux-gnu or aarch64-unknown-linux-gnu");
  }
  if (triple.getArch() == llvm::Triple::x86_64) {
    target.levels = {{"x86-64-v4+vnni", "x86-64-v4", "+avx512vnni", true, true, true},
                     {"x86-64-v4", "x86-64-v4", "", true, true},
                     {"x86-64-v3", "x86-64-v3", "", true, false},
                     {"x86-64-v2", "x86-64-v2", "", false, false}};
  } else if (triple.getArch() == llvm::Triple::aarch64) {
    target.levels = {{"armv8.2-a+dotprod", "generic", "+v8.2a,+neon,+dotprod", true, false, false, true},
                     {"armv8-a", "generic", "+v8a,+neon", true, false}};
  } else {
    target.levels = {{"generic", "generic", "", false, false}};
  }
  return target;
}

}  // namespace tenon::compiler::native
