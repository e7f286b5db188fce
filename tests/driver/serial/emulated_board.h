// A board with a serial line for tests: a child process that emulates the board, behind a pseudo-terminal.
#pragma once

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>

#include "driver/serial/emulator.h"

namespace tenon::driver {

class EmulatedBoard {
 public:
  // `make` makes the far end of the line, in the child.
  template <class Make>
  explicit EmulatedBoard(const Make& make, const serial::Noise& noise = {}) {
    auto line = make();
    if (!line) abort_with(line.error());
    auto emulator = serial::Emulator::create(std::move(*line), noise);
    if (!emulator) abort_with(emulator.error());
    tty_ = (*emulator)->tty();
    process_ = fork();
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)(*emulator)->run();
      _exit(1);
    }
  }
  ~EmulatedBoard() { kill(); }
  EmulatedBoard(const EmulatedBoard&) = delete;
  EmulatedBoard& operator=(const EmulatedBoard&) = delete;
  void kill() {
    if (process_ < 0) return;
    ::kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  std::string uri(const std::string& options = {}) const {
    return fmt::format("serial:{}?baud=1000000{}", tty_, options);
  }

 private:
  [[noreturn]] static void abort_with(const Diagnostic& diagnostic) {
    fmt::print(stderr, "{}\n", diagnostic.str());
    std::abort();
  }

  std::string tty_;
  pid_t process_ = -1;
};

// The model of the bridge, of a named configuration.
inline auto bridge_of(std::string config, uint64_t memory_bytes) {
  return [=] { return serial::make_bridge(spec::load_config(config).value(), memory_bytes); };
}

}  // namespace tenon::driver
