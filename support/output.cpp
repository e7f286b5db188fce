#include "support/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "support/printable.h"

namespace tenon {
void write_stdout(std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stdout); }

void write_stderr(std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

void write_stdout_escaped(std::string_view text) { write_stdout(printable_text(text)); }
void write_stderr_escaped(std::string_view text) { write_stderr(printable_text(text)); }

Status flush_output() {
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return {};
  return error(fmt::format("the output cannot be written{}", flushed ? "" : fmt::format(": {}", std::strerror(errno))),
               {}, "look for free space where it goes");
}

int exit_code_of(const Status& status) {
  const Status written = flush_output();
  for (const Status& ended : {status, written}) {
    if (!ended) print_stderr("{}\n", ended.error().str());
  }
  const Status& decisive = status ? written : status;
  return decisive ? 0 : static_cast<int>(decisive.error().fault);
}

}  // namespace tenon
