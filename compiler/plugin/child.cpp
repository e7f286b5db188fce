#include "compiler/plugin/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

namespace tenon::compiler::plugin {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kResident = 'm', kStep = 's', kOwnStep = 'o', kAnswer = 'a', kException = 'x';

// The bytes that this process has mapped; 0: unknown.
uint64_t mapped_bytes() {
  unsigned long long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%llu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// The most bytes that a process has had in memory.
uint64_t peak_bytes(const rusage& usage) { return static_cast<uint64_t>(usage.ru_maxrss) << 10; }

// In the child, before foreign code runs.
void enter_child() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);  // so that its own children end with it
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGINT, SIGTERM, SIGPIPE})
    std::signal(signal, SIG_DFL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  dup2(STDERR_FILENO, STDOUT_FILENO);  // results of the command are the parent's
  if (const int none = open("/dev/null", O_RDONLY | O_CLOEXEC); none >= 0) dup2(none, STDIN_FILENO);
}

// Of this process; nullopt: as much as its parent may have.
void set_memory_limit(std::optional<uint64_t> bytes) {
  rlimit memory{};
  if (TENON_SANITIZED || getrlimit(RLIMIT_AS, &memory) != 0) return;
  memory.rlim_cur = bytes ? std::min<rlim_t>(*bytes, memory.rlim_max) : memory.rlim_max;
  setrlimit(RLIMIT_AS, &memory);
}

// The messages of a child: a kind, a length of 8 bytes, and the bytes.
class Reader {
 public:
  std::string step = "the start";
  std::optional<std::string> answer, exception;
  bool too_long = false;
  bool is_limited = true;  // the step
  bool has_begun = false;  // the step; its time is counted from here on
  uint64_t resident = 0;   // the most bytes that the child had in memory before the step

  // An answer may be large, and is stored once.
  void append(std::string_view bytes, uint64_t most) {
    while (!bytes.empty() && !too_long) {
      move(bytes, kHead, head_);
      if (head_.size() < kHead) return;
      uint64_t length = 0;
      std::memcpy(&length, head_.data() + 1, sizeof length);
      too_long = length > most;
      if (too_long) return;
      move(bytes, length, text_);
      if (text_.size() == length) finish();
    }
  }

 private:
  static constexpr size_t kHead = 1 + sizeof(uint64_t);

  // Moves bytes to the end of the text until it has `size`.
  static void move(std::string_view& bytes, uint64_t size, std::string& text) {
    const std::string_view taken = bytes.substr(0, size - text.size());
    text += taken;
    bytes.remove_prefix(taken.size());
  }

  void finish() {
    std::string text = std::exchange(text_, {});
    switch (std::exchange(head_, {})[0]) {
      case kResident: std::memcpy(&resident, text.data(), std::min(text.size(), sizeof resident)); break;
      case kStep: begin(std::move(text), true); break;
      case kOwnStep: begin(std::move(text), false); break;
      case kException: exception = std::move(text); break;
      default: answer = std::move(text);
    }
  }

  void begin(std::string text, bool limited) {
    step = std::move(text);
    is_limited = limited;
    has_begun = true;
  }

  std::string head_, text_;  // of the message that is read
};

std::string mebibytes(uint64_t bytes) { return fmt::format("{} MiB", bytes >> 20); }

// How a child without an answer ended.
std::string describe_end(int status, const rusage& usage, const Reader& reader, const Limits& limits) {
  if (reader.exception) return fmt::format("{} threw an exception: {}", reader.step, *reader.exception);
  const bool took_all = peak_bytes(usage) >= reader.resident + limits.memory / 10 * 9;
  const std::string memory = !reader.is_limited ? ""
                             : took_all
                                 ? fmt::format(", after it had taken the {} that it may take", mebibytes(limits.memory))
                                 : fmt::format(" (it may take {})", mebibytes(limits.memory));
  if (WIFSIGNALED(status)) {
    return fmt::format("{} crashed by signal {}, {}{}", reader.step, WTERMSIG(status), strsignal(WTERMSIG(status)),
                       memory);
  }
  return fmt::format("{} ended its process with exit code {}{}", reader.step, WEXITSTATUS(status), memory);
}

}  // namespace

void ChildOutput::write(char kind, std::initializer_list<std::string_view> parts) {
  std::string head(1, kind);
  uint64_t length = 0;
  for (const std::string_view part : parts) length += part.size();
  head.append(reinterpret_cast<const char*>(&length), sizeof length);
  const auto all = [&](std::string_view left) {
    while (!left.empty()) {
      const ssize_t written = ::write(file_, left.data(), left.size());
      if (written < 0 && errno != EINTR) _exit(1);
      if (written > 0) left.remove_prefix(static_cast<size_t>(written));
    }
  };
  all(head);
  for (const std::string_view part : parts) all(part);
}
void ChildOutput::limit_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const uint64_t peak = peak_bytes(usage), mapped = mapped_bytes();
  write(kResident, {std::string_view(reinterpret_cast<const char*>(&peak), sizeof peak)});
  if (mapped != 0) set_memory_limit(mapped + memory_);
}
void ChildOutput::step(std::string_view name) {
  limit_memory();
  write(kStep, {name});
}
void ChildOutput::own_step(std::string_view name) {
  set_memory_limit({});
  write(kOwnStep, {name});
}
// Then the process is killed: what the plugin printed goes out before.
void ChildOutput::answer(std::initializer_list<std::string_view> parts) {
  std::fflush(nullptr);
  write(kAnswer, parts);
}
void ChildOutput::exception(std::string_view what) {
  std::fflush(nullptr);
  write(kException, {what});
}

namespace {

// Whether the process has ended; it still waits to be waited for.
bool has_ended(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid == child;
}

}  // namespace

Expected<std::string> call_in_child(FunctionRef<void(ChildOutput&)> call, const Limits& limits) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return error(fmt::format("no pipe to a process of its own: {}", std::strerror(errno)), {}, {}, Fault::kInternal);
  std::fflush(nullptr);  // else the child's output would begin with ours
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    ChildOutput output(ends[1], limits);
    enter_child();
    try {
      call(output);
    } catch (const std::exception& exception) {
      output.exception(exception.what());
    } catch (...) {
      output.exception("of a type that is no std::exception");
    }
    _exit(0);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return error(fmt::format("no process of its own: {}", std::strerror(errno)), {}, {}, Fault::kInternal);
  }
  setpgid(child, child);  // the child does so too; the first of the two counts
  Reader reader;
  auto deadline = Clock::now() + limits.time;  // of the step
  bool late = false;
  std::array<char, 1 << 16> bytes;
  while (!reader.answer && !reader.too_long) {
    if (std::exchange(reader.has_begun, false)) deadline = Clock::now() + limits.time;
    constexpr int64_t kLongestWait = 100;
    int64_t wait_ms = kLongestWait;
    if (reader.is_limited) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      late = left <= 0;
      if (late) break;
      wait_ms = std::min<int64_t>(left, kLongestWait);
    }
    pollfd wait{.fd = ends[0], .events = POLLIN, .revents = 0};
    const int ready = poll(&wait, 1, static_cast<int>(wait_ms));
    if (ready > 0) {
      const ssize_t got = read(ends[0], bytes.data(), bytes.size());
      if (got == 0) break;
      if (got > 0) reader.append({bytes.data(), static_cast<size_t>(got)}, limits.memory);
      continue;
    }
    // A process that the child started may hold the pipe after the child has ended.
    if (ready == 0 && has_ended(child)) break;
  }
  close(ends[0]);
  const bool answered = reader.answer || reader.too_long;
  // A child may close the pipe and go on.
  while (!answered && !late && !has_ended(child)) {
    late = reader.is_limited && Clock::now() >= deadline;
    if (!late) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (answered || late) kill(-child, SIGKILL), kill(child, SIGKILL);
  siginfo_t ended{};
  while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  kill(-child, SIGKILL);  // what is left of its group, whose id is taken as long as the child was not waited for
  int status = 0;
  rusage usage{};
  while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  if (reader.answer) return *std::move(reader.answer);
  if (late) {
    return error(
        fmt::format("{} did not return within {} s", reader.step, static_cast<double>(limits.time.count()) / 1000),
        reader.step);
  }
  if (reader.too_long) {
    return error(fmt::format("{} returned more than the {} that it may take", reader.step, mebibytes(limits.memory)),
                 reader.step);
  }
  return error(describe_end(status, usage, reader, limits), reader.step);
}

}  // namespace tenon::compiler::plugin
