// A server of devices for tests: the command `tenon serve` in a process of its own, which ends with the object.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace tenon::driver {

inline constexpr char kTenon[] = TENON_BINARY_DIR "/bin/tenon";

// A child process whose standard output is a pipe; killed with the object.
class Process {
 public:
  explicit Process(std::vector<std::string> command, bool quiet = false) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    std::vector<char*> arguments;
    for (std::string& argument : command) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(ends[1], STDOUT_FILENO);
      if (quiet) dup2(ends[1], STDERR_FILENO);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
  }
  Process(Process&& other) noexcept
      : process_(std::exchange(other.process_, -1)), output_(std::exchange(other.output_, -1)) {}
  Process& operator=(Process&& other) noexcept {
    std::swap(process_, other.process_);
    std::swap(output_, other.output_);
    return *this;
  }
  ~Process() {
    kill();
    if (output_ >= 0) close(output_);
  }

  pid_t id() const { return process_; }
  void signal(int number) const { ::kill(process_, number); }
  void kill() { signal_and_wait(SIGKILL); }
  void signal_and_wait(int number) {
    if (process_ < 0) return;
    ::kill(process_, number);
    wait();
  }
  // The exit code; 128 and the signal where one ended it.
  int wait() {
    int status = 0;
    if (process_ < 0 || waitpid(std::exchange(process_, -1), &status, 0) < 0) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // The next line of its output; empty at the end of the output.
  std::string line() const {
    std::string text;
    for (char c = 0; read(output_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  // The remaining output.
  std::string text() const {
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t got = 0; (got = read(output_, part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<size_t>(got));
    }
    return text;
  }

 private:
  pid_t process_ = -1;
  int output_ = -1;
};

class Served {
 public:
  // `arguments` follow `tenon serve --listen ADDRESS`.
  explicit Served(std::vector<std::string> arguments, const std::string& address = "127.0.0.1:0")
      : process_(command(std::move(arguments), address)) {
    const std::string line = process_.line();  // "serving 1 device at HOST:PORT"
    address_ = line.substr(line.rfind(' ') + 1);
  }

  const std::string& address() const { return address_; }
  std::string uri(const std::string& suffix = "") const { return "remote:" + address_ + suffix; }
  Process& process() { return process_; }

 private:
  static std::vector<std::string> command(std::vector<std::string> arguments, const std::string& address) {
    arguments.insert(arguments.begin(), {kTenon, "serve", "--listen", address});
    return arguments;
  }
  Process process_;
  std::string address_;
};

}  // namespace tenon::driver
