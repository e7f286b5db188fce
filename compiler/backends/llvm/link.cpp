#include "compiler/backends/llvm/link.h"

#include <fmt/format.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "runtime/file.h"

LLD_HAS_DRIVER(elf)

namespace tenon::compiler::native {
namespace {

namespace fs = std::filesystem;

// A directory of this process, removed with all that is in it.
class Scratch {
 public:
  Scratch() : path_((fs::temp_directory_path() / "tenon-link-XXXXXX").string()) {
    if (!mkdtemp(path_.data())) path_.clear();
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  bool good() const { return !path_.empty(); }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

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
  const Scratch scratch;
  if (!scratch.good())
    return error(fmt::format("no temporary directory: {}", std::strerror(errno)), fs::temp_directory_path().string());
  const std::string in = scratch.file("kernels.o"), out = scratch.file("kernels.so"), log = scratch.file("log");
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
