// A progress bar with an estimate on standard error; silent where that is no terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace tenon::cli {

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

}  // namespace tenon::cli
