// The command `tenon`.
#include <exception>
#include <new>

#include "compiler/cli/command.h"
#include "support/deep_stack.h"

int main(int count, char** arguments) {
  try {
    int code = 0;
    tenon::with_deep_stack([&] { code = tenon::cli::run({arguments + 1, arguments + count}); });
    return code;
  } catch (const std::bad_alloc&) {
    return tenon::exit_code_of(tenon::error("there is not enough memory", {},
                                            "free some, or raise the limit of the process (ulimit -v)",
                                            tenon::Fault::kInternal));
  } catch (const std::exception& fault) {  // expected failures are Diagnostics
    return tenon::exit_code_of(tenon::error(fault.what(), {},
                                            "this is Tenon's fault or the machine's; please report it with the command",
                                            tenon::Fault::kInternal));
  }
}
