// Measures the kernels of one operator's candidates interleaved, so that other load on the machine affects all of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/tune/candidates.h"

namespace tenon::compiler::tune {

class Bench {
 public:
  // Measures code for one level of this processor, on random inputs that are equal in each run.
  Bench(Context& context, const Module& kernels, const Task& task, const Machine& machine);
  Bench(Bench&&) noexcept;
  ~Bench();

  // Compiles these candidates together; they get the next indices. An internal error where the results of one differ in
  // a bit from those of candidate 0.
  Status add(const std::vector<kernels::KnobSettings>& settings_list);
  // Measures these candidates for `rounds` more rounds. CPU seconds of a call on one thread: medians over all rounds
  // since add().
  Expected<std::vector<double>> measure(const std::vector<size_t>& indices, int rounds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::compiler::tune
