// How benchmarks count: CPU time, which other programs of the machine hardly change, and the median of many runs.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <vector>

namespace tenon {

inline double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
// Of all threads of this process; of the calling thread.
inline double cpu_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }
inline double thread_cpu_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }
// Of all processes that this one has started and waited for.
inline double child_cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// Of at least one value; of an even number the upper one of the two in the middle.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace tenon
