#include "compiler/backends/llvm/link.h"

#include <fmt/format.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>

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

}  // namespace

Expected<std::vector<std::byte>> link(std::span<const char> object) {
  static std::mutex mutex;  // lld keeps its state in globals
  static bool broken = false;
  const std::lock_guard lock(mutex);
  if (broken) return error("the linker has crashed in this process before", "lld", {}, Fault::kInternal);
  const Scratch scratch;
  if (!scratch.good())
    return error(fmt::format("no temporary directory: {}", std::strerror(errno)), fs::temp_directory_path().string());
  const std::string in = scratch.file("kernels.o"), out = scratch.file("kernels.so");
  if (auto status = runtime::write_file(in, std::as_bytes(object)); !status) return forward_error(status);
  const char* args[] = {"ld.lld",        in.c_str(),        "-o", out.c_str(),   "-shared",
                        "--threads=1",   "--build-id=none", "-z", "noexecstack", "--hash-style=gnu",
                        "--gc-sections", "--strip-all"};
  std::string said;
  llvm::raw_string_ostream stream(said);
  const lld::Result result = lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
  broken = !result.canRunAgain;
  if (result.retCode != 0) return error(fmt::format("the linker failed: {}", said), "lld", {}, Fault::kInternal);
  return runtime::read_file(out);
}

}  // namespace tenon::compiler::native
