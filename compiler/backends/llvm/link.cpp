#include "compiler/backends/llvm/link.h"

#include <fmt/format.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "runtime/file.h"
#include "runtime/temporary.h"

LLD_HAS_DRIVER(elf)

namespace tenon::compiler::native {
namespace {

namespace fs = std::filesystem;

// lld keeps its state in globals, which one link leaves to the next: after links for several processors in one process
// its memory is corrupt. So each has a process of its own, a copy of this one, which says what went wrong in a file.
int link_in_child(const std::vector<const char*>& args, const std::string& log) {
  std::string said;
  llvm::raw_string_ostream stream(said);
  const lld::Result result = lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
  (void)runtime::write_file(log, std::as_bytes(std::span(said)));
  return result.retCode == 0 ? 0 : 1;
}

}  // namespace

Expected<std::vector<std::byte>> link(std::span<const char> object) {
  const runtime::TemporaryDirectory scratch;
  if (scratch.path().empty())
    return error(fmt::format("no temporary directory: {}", std::strerror(errno)), fs::temp_directory_path().string());
  const std::string in = scratch.path() + "/kernels.o", out = scratch.path() + "/kernels.so",
                    log = scratch.path() + "/log";
  if (auto status = runtime::write_file(in, std::as_bytes(object)); !status) return forward_error(status);
  const std::vector<const char*> args = {"ld.lld",        in.c_str(),        "-o", out.c_str(),   "-shared",
                                         "--threads=1",   "--build-id=none", "-z", "noexecstack", "--hash-style=gnu",
                                         "--gc-sections", "--strip-all"};
  const pid_t child = fork();
  if (child < 0)
    return error(fmt::format("no process for the linker: {}", std::strerror(errno)), "lld", {}, Fault::kInternal);
  if (child == 0) _exit(link_in_child(args, log));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) {
    const auto said = runtime::read_file(log);
    const std::string text =
        said ? std::string(reinterpret_cast<const char*>(said->data()), said->size()) : "it crashed";
    return error(fmt::format("the linker failed: {}", text), "lld", {}, Fault::kInternal);
  }
  return runtime::read_file(out);
}

}  // namespace tenon::compiler::native
