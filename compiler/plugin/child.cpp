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

constexpr char kResident = 'm', kStep = 's', kAnswer = 'a', kException = 'x';

// Bytes of this process: all that is mapped, and what is in memory.
struct ProcessMemory {
  uint64_t mapped = 0, resident = 0;
};
ProcessMemory process_memory() {
  ProcessMemory memory;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    unsigned long long mapped = 0, resident = 0;
    if (std::fscanf(file, "%llu %llu", &mapped, &resident) == 2) {
      const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
      memory = {mapped * page, resident * page};
    }
    std::fclose(file);
  }
  return memory;
}

// In the child, before foreign code runs. The bytes that it has in memory.
uint64_t enter_child(const Limits& limits) {
  const ProcessMemory before = process_memory();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);  // so that its own children end with it
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGINT, SIGTERM, SIGPIPE})
    std::signal(signal, SIG_DFL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (!TENON_SANITIZED && before.mapped != 0) {
    const rlimit memory{before.mapped + limits.memory, before.mapped + limits.memory};
    setrlimit(RLIMIT_AS, &memory);
  }
  dup2(STDERR_FILENO, STDOUT_FILENO);  // results of the command are the parent's
  if (const int none = open("/dev/null", O_RDONLY | O_CLOEXEC); none >= 0) dup2(none, STDIN_FILENO);
  return before.resident;
}

// The messages of a child: a kind, a length of 8 bytes, and the bytes.
class Reader {
 public:
  std::string step = "the start";
  std::optional<std::string> answer, exception;
  bool too_long = false;
  uint64_t resident = 0;  // bytes that the child had in memory at its start

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
      case kStep: step = std::move(text); break;
      case kException: exception = std::move(text); break;
      default: answer = std::move(text);
    }
  }

  std::string head_, text_;  // of the message that is read
};

std::string mebibytes(uint64_t bytes) { return fmt::format("{} MiB", bytes >> 20); }

// How a child without an answer ended.
std::string describe_end(int status, const rusage& usage, const Reader& reader, const Limits& limits) {
  if (reader.exception) return fmt::format("{} threw an exception: {}", reader.step, *reader.exception);
  const uint64_t taken = static_cast<uint64_t>(usage.ru_maxrss) << 10;
  const bool took_all = taken >= reader.resident + limits.memory / 10 * 9;
  const std::string memory = took_all
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
void ChildOutput::resident(uint64_t bytes) {
  write(kResident, {std::string_view(reinterpret_cast<const char*>(&bytes), sizeof bytes)});
}
void ChildOutput::step(std::string_view name) { write(kStep, {name}); }
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
    ChildOutput output(ends[1]);
    output.resident(enter_child(limits));
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
  const auto deadline = Clock::now() + limits.time;
  bool late = false;
  std::array<char, 1 << 16> bytes;
  while (!reader.answer && !reader.too_long) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      late = true;
      break;
    }
    constexpr int64_t kLongestWait = 100;
    pollfd wait{.fd = ends[0], .events = POLLIN, .revents = 0};
    const int ready = poll(&wait, 1, static_cast<int>(std::min(left, kLongestWait)));
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
    late = Clock::now() >= deadline;
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
        fmt::format("{} did not return within {} s", reader.step, static_cast<double>(limits.time.count()) / 1000));
  }
  if (reader.too_long)
    return error(fmt::format("{} returned more than the {} that it may take", reader.step, mebibytes(limits.memory)));
  return error(describe_end(status, usage, reader, limits));
}

}  // namespace tenon::compiler::plugin
