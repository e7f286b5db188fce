// A progress bar with an estimate on standard error; silent where that is no terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace tenon::cli {

inline constexpr std::string_view kClearLine = "\r\033[K";  // of a terminal

class Progress {
 public:
  Progress(std::string what, size_t total, bool quiet);
  ~Progress();  // erases the line
  void step();

 private:
  std::string what_;
  size_t total_, done_ = 0;
  bool shown_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_ = begin_;
};

// A line on standard error about what is being done, which the next one replaces; silent where that is no terminal.
class StageLine {
 public:
  explicit StageLine(bool quiet);
  ~StageLine();  // erases the line
  StageLine(const StageLine&) = delete;
  StageLine& operator=(const StageLine&) = delete;
  void show(std::string_view stage) const;

 private:
  bool shown_;
};

}  // namespace tenon::cli
