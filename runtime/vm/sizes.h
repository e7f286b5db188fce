// Instructions on the sizes of tensors: they bind, compute and check them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/vm/run_state.h"

namespace tenon::runtime {

class Sizes {
 public:
  explicit Sizes(Frames& frames) : frames_(frames) {}

  Status execute(const BindSize& bind);
  Status execute(const ComputeSize& compute);
  Status execute(const CheckShape& check);
  Status execute(const CheckSize& check);

 private:
  // Reads the registers into values_.
  Status read(std::span<const Register> registers);

  Frames& frames_;
  std::vector<std::optional<int64_t>> values_;  // a member to save allocations
};

}  // namespace tenon::runtime
