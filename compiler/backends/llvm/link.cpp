#include "compiler/backends/llvm/link.h"

#include <elf.h>
#include <fmt/format.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <vector>

#include "runtime/temporary.h"
#include "support/file.h"
#include "support/try.h"

LLD_HAS_DRIVER(elf)

namespace tenon::compiler::native {
namespace {

namespace fs = std::filesystem;

struct Linked {
  bool good = false;
  bool reusable = true;  // lld may run again in this process
  std::string output;
};

Linked run_lld(const std::vector<const char*>& args) {
  // A fatal error of lld ends the process, unless crashes are caught.
  llvm::CrashRecoveryContext::Enable();
  Linked linked;
  llvm::raw_string_ostream stream(linked.output);
  const lld::Result result = lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
  linked.good = result.retCode == 0, linked.reusable = result.canRunAgain;
  llvm::CrashRecoveryContext::Disable();
  return linked;
}

// lld stores a pointer to an object's symbol _GLOBAL_OFFSET_TABLE_ in a global variable, which outlives the object, and
// the next link writes through it. Kernels for x86-64 and AArch64 do not use this symbol.
bool may_link_in_process(std::span<const char> object) {
  Elf64_Half machine = EM_NONE;  // at the same offset in both classes
  if (object.size() >= sizeof(Elf64_Ehdr) && object[EI_DATA] == ELFDATA2LSB)
    std::memcpy(&machine, object.data() + offsetof(Elf64_Ehdr, e_machine), sizeof machine);
  return machine == EM_X86_64 || machine == EM_AARCH64;
}

// Links in a child process, which writes its errors to a file. Takes ten times as long.
Linked link_in_child(const std::vector<const char*>& args, const std::string& log) {
  const pid_t child = fork();
  if (child < 0) return {.output = fmt::format("cannot create a process: {}", std::strerror(errno))};
  if (child == 0) {
    const Linked linked = run_lld(args);
    (void)write_file(log, std::as_bytes(std::span(linked.output)));
    _exit(linked.good ? 0 : 1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const auto output = read_file(log);
  return {.good = status == 0,
          .output = output ? std::string(reinterpret_cast<const char*>(output->data()), output->size()) : "it crashed"};
}

}  // namespace

Expected<std::vector<std::byte>> link(std::span<const char> object) {
  const runtime::TemporaryDirectory scratch;
  if (scratch.path().empty())
    return error(fmt::format("no temporary directory: {}", std::strerror(errno)), fs::temp_directory_path().string());
  const std::string in = scratch.path() + "/kernels.o", out = scratch.path() + "/kernels.so";
  TENON_TRY(write_file(in, std::as_bytes(object)));
  const std::vector<const char*> args = {"ld.lld",        in.c_str(),        "-o", out.c_str(),   "-shared",
                                         "--threads=1",   "--build-id=none", "-z", "noexecstack", "--hash-style=gnu",
                                         "--gc-sections", "--strip-debug"};
  static std::mutex mutex;  // other state of lld is global, too
  static bool reusable = true;
  const std::lock_guard lock(mutex);
  const bool in_process = reusable && may_link_in_process(object);
  const Linked linked = in_process ? run_lld(args) : link_in_child(args, scratch.path() + "/log");
  if (in_process) reusable = linked.reusable;
  if (!linked.good) return error(fmt::format("the linker failed: {}", linked.output), "lld", {}, Fault::kInternal);
  return read_file(out);
}

}  // namespace tenon::compiler::native
