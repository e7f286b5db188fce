// The command `tenon`.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "compiler/cli/command.h"
#include "support/deep_stack.h"

int main(int count, char** arguments) {
  try {
    int code = 0;
    tenon::with_deep_stack([&] { code = tenon::cli::run({arguments + 1, arguments + count}); });
    // The last part of the output is written here: a full disk must not look like success.
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    std::fprintf(stderr, "error: the output cannot be written: %s\n", std::strerror(errno));
    return code != 0 ? code : static_cast<int>(tenon::Fault::kInternal);
  } catch (const std::exception& fault) {  // mostly out of memory: expected failures are Diagnostics
    std::fprintf(stderr,
                 "error: %s\n  help: this is Tenon's fault or the machine's; please report it with the command\n",
                 fault.what());
    return static_cast<int>(tenon::Fault::kInternal);
  }
}
