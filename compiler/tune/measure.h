// Kernels of one operator's candidates, measured in turns: whatever else the machine does meets all of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/tune/candidates.h"

namespace tenon::compiler::tune {

class Bench {
 public:
  // Code for one level of this machine's processor; inputs are random, the same in each run.
  Bench(Context& context, const Module& kernels, const Task& task, std::string level);
  Bench(Bench&&) noexcept;
  ~Bench();

  // Compiles these, together; they get the next numbers. Each must compute what number 0 does, bit for bit: one that
  // does not is a fault of ours, and an error.
  Status add(const std::vector<kernels::Choice>& choices);
  // CPU seconds of a call on one thread, medians over all rounds since add(), after so many rounds more of these.
  Expected<std::vector<double>> measure(const std::vector<size_t>& numbers, int rounds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::compiler::tune
