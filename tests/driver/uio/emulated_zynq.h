// A Zynq board for tests: a child process that emulates the board, in a directory that this object creates and removes.
#pragma once

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "driver/uio/emulator.h"

namespace tenon::driver {

// A temporary directory that exists as long as the object.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "tenon-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class EmulatedZynq {
 public:
  explicit EmulatedZynq(uio::EmulatorOptions options) {
    options.root = scratch_.path();
    options_ = std::move(options);
    restart();
  }
  ~EmulatedZynq() { kill(); }
  // Emulates the board, after kill() a new one.
  void restart() {
    auto emulator = uio::Emulator::create(options_);
    if (!emulator) {
      fmt::print(stderr, "{}\n", emulator.error().str());
      std::abort();
    }
    process_ = fork();
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)(*emulator)->run();
      _exit(1);
    }
  }
  void kill() {
    if (process_ < 0) return;
    ::kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  const std::filesystem::path& root() const { return scratch_.path(); }
  std::string uri() const { return fmt::format("uio:?root={}", root().string()); }

 private:
  Scratch scratch_;
  uio::EmulatorOptions options_;
  pid_t process_ = -1;
};

}  // namespace tenon::driver
