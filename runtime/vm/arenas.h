// Arenas of frames: the memory in which a function's plan places results of native kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/executable/executable.h"

namespace tenon::runtime {

// Idle arenas, by function: they are kept from run to run.
class Arenas {
 public:
  explicit Arenas(const Executable& executable) : executable_(executable), idle_(executable.functions.size()) {}

  // Empty if the function has no arena.
  Expected<Storage> take(uint32_t function);
  void give_back(uint32_t function, Storage arena);

 private:
  const Executable& executable_;
  std::vector<std::vector<Storage>> idle_;
};

}  // namespace tenon::runtime
