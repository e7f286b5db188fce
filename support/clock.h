// Clocks and statistics of benchmarks: CPU time, which other programs on the machine hardly change, and the median of
// many runs.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

namespace tenon {

// The wall clock of durations and limits: it is monotonic.
using SteadyClock = std::chrono::steady_clock;

// The wall time since the construction.
class Stopwatch {
 public:
  std::chrono::nanoseconds elapsed() const { return SteadyClock::now() - begin_; }
  double seconds() const { return std::chrono::duration<double>(elapsed()).count(); }

 private:
  SteadyClock::time_point begin_ = SteadyClock::now();
};

// A limit on the wall time of a wait, from the construction on.
class Deadline {
 public:
  explicit Deadline(std::chrono::nanoseconds limit) : limit_(limit) {}
  std::chrono::nanoseconds remaining() const { return limit_ - stopwatch_.elapsed(); }  // negative after the deadline
  bool passed() const { return remaining().count() <= 0; }

 private:
  std::chrono::nanoseconds limit_;
  Stopwatch stopwatch_;
};

inline double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
// The CPU time of all threads of this process, and the CPU time of the calling thread.
inline double cpu_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }
inline double thread_cpu_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }
// The CPU time of all child processes that this process has waited for.
inline double child_cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// Requires at least one value. For an even count, the median is the upper of the two middle values.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace tenon
