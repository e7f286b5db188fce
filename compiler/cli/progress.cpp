#include "compiler/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "support/output.h"

namespace tenon::cli {
Progress::Progress(std::string what, size_t total, bool quiet)
    : what_(std::move(what)), total_(total), shown_(!quiet && total > 1 && isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (shown_) write_stderr(kClearLine);
}

void Progress::step() {
  using namespace std::chrono;
  ++done_;
  const auto now = steady_clock::now();
  if (!shown_ || (now - last_ < milliseconds(100) && done_ < total_)) return;
  last_ = now;
  const double elapsed = duration<double>(now - begin_).count();
  const double left = elapsed / static_cast<double>(done_) * static_cast<double>(total_ - done_);
  constexpr size_t kWidth = 30;
  const size_t full = kWidth * done_ / total_;
  write_stderr(kClearLine);
  print_stderr("{} [{:#<{}}{:.<{}}] {}/{}, {:.0f} s left", what_, "", full, "", kWidth - full, done_, total_, left);
  std::fflush(stderr);
}

StageLine::StageLine(bool quiet) : shown_(!quiet && isatty(STDERR_FILENO)) {}

StageLine::~StageLine() {
  if (shown_) write_stderr(kClearLine);
}

void StageLine::show(std::string_view stage) const {
  if (!shown_) return;
  write_stderr(kClearLine);
  print_stderr("{} ...", stage);
  std::fflush(stderr);
}

}  // namespace tenon::cli
