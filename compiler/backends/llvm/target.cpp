#include "compiler/backends/llvm/target.h"

#include <fmt/format.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/ARMTargetParser.h>
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

// Architectures with a short name, which messages list.
struct Architecture {
  std::string_view short_name, triple;
};
constexpr Architecture kArchitectures[] = {{"x86_64", "x86_64-unknown-linux-gnu"},
                                           {"aarch64", "aarch64-unknown-linux-gnu"},
                                           {"armhf", "armv7-unknown-linux-gnueabihf"},
                                           {"riscv64", "riscv64-unknown-linux-gnu"}};

std::unexpected<Diagnostic> refused(std::string reason) {
  std::string supported;
  for (const Architecture& architecture : kArchitectures) {
    supported += fmt::format("{}{} ({})", supported.empty() ? "" : ", ", architecture.triple, architecture.short_name);
  }
  return error(std::move(reason), {},
               fmt::format("native code supports {}; and, in one level, other little-endian processors with Linux "
                           "that LLVM {} supports",
                           supported, LLVM_VERSION_STRING),
               Fault::kUsage);
}

}  // namespace

const llvm::Target* find_llvm_target(const std::string& triple) {
  initialize();
  std::string reason;
  return llvm::TargetRegistry::lookupTarget(triple, reason);
}

std::string host_triple() { return llvm::sys::getDefaultTargetTriple(); }

Expected<Target> find_target(const std::string& name) {
  initialize();
  Target target;
  const auto* const short_name = std::ranges::find(kArchitectures, name, &Architecture::short_name);
  llvm::Triple triple(llvm::Triple::normalize(name.empty()                             ? host_triple()
                                              : short_name != std::end(kArchitectures) ? std::string(short_name->triple)
                                                                                       : name));
  std::string reason;
  target.target = llvm::TargetRegistry::lookupTarget(triple.str(), reason);
  if (!target.target || !target.target->hasTargetMachine() || !target.target->hasMCAsmBackend())
    return refused(fmt::format("LLVM has no target for the triple '{}'", name));
  if (!triple.isOSBinFormatELF() || !triple.isOSLinux())
    return refused(fmt::format("'{}' is not Linux with ELF files", name));
  if (!triple.isLittleEndian()) return refused(fmt::format("'{}' is big-endian", name));
  std::string_view architecture = llvm::Triple::getArchTypeName(triple.getArch());
  if (triple.isARM() || triple.isThumb()) {
    // "arm" alone is the distributions' name for their oldest architecture, which with an FPU is ARMv7.
    const std::string_view arch = triple.getArchName();
    if (arch != "arm" && llvm::ARM::parseArchVersion(arch) < 7)
      return refused(fmt::format("'{}' is older than ARMv7", name));
    triple.setArchName("armv7");
    architecture = "arm";
  }
  const auto levels = machines_of(architecture);
  target.levels.assign(levels.begin(), levels.end());
  // The runtime compares the triple's first part with its own.
  if (!triple.isARM()) triple.setArchName(llvm::Triple::getArchTypeName(triple.getArch()));
  target.triple = triple.str();
  return target;
}

}  // namespace tenon::compiler::native
