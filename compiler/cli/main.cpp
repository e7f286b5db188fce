// The command `tenon`.
#include <cstdio>
#include <exception>

#include "compiler/cli/command.h"
#include "support/deep_stack.h"

int main(int count, char** arguments) {
  try {
    int code = 0;
    tenon::with_deep_stack([&] { code = tenon::cli::run({arguments + 1, arguments + count}); });
    return code;
  } catch (const std::exception& fault) {  // mostly out of memory: expected failures are Diagnostics
    std::fprintf(stderr,
                 "error: %s\n  help: this is Tenon's fault or the machine's; please report it with the command\n",
                 fault.what());
    return static_cast<int>(tenon::Fault::kInternal);
  }
}
