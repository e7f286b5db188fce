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
                                           {"armhf", "armv7-unknown-linux-gnueabihf"}};

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
  if (triple.getArch() == llvm::Triple::x86_64) {
    using enum Family;
    target.levels = {{"x86-64-v4+vnni", "x86-64-v4", "+avx512vnni", kX86, 64, 32, true, true},
                     {"x86-64-v4", "x86-64-v4", "", kX86, 64, 32, true},
                     {"x86-64-v3+vnni", "x86-64-v3", "+avxvnni", kX86, 32, 16, true, true},
                     {"x86-64-v3", "x86-64-v3", "", kX86, 32, 16, true},
                     {"x86-64-v2", "x86-64-v2", "", kX86, 16, 16}};
  } else if (triple.getArch() == llvm::Triple::aarch64) {
    target.levels = {{"armv8.2-a+dotprod", "generic", "+v8.2a,+neon,+dotprod", Family::kArm, 16, 32, true, true},
                     {"armv8-a", "generic", "+v8a,+neon", Family::kArm, 16, 32, true}};
  } else if (triple.isARM() || triple.isThumb()) {
    // "arm" alone is the distributions' name for their oldest architecture, which with an FPU is ARMv7.
    const std::string_view arch = triple.getArchName();
    if (arch != "arm" && llvm::ARM::parseArchVersion(arch) < 7)
      return refused(fmt::format("'{}' is older than ARMv7", name));
    triple.setArchName("armv7");
    target.levels = {{"armv7-a+neon", "generic", "+armv7-a,+vfp3,+neon", Family::kArm, 16, 16},
                     {"armv7-a", "generic", "+armv7-a,+vfp3d16,-neon", Family::kArm, 16, 8}};
  } else {
    target.levels = {{"generic", "generic", ""}};
  }
  // The runtime compares the triple's first part with its own.
  if (!triple.isARM()) triple.setArchName(llvm::Triple::getArchTypeName(triple.getArch()));
  target.triple = triple.str();
  return target;
}

}  // namespace tenon::compiler::native
