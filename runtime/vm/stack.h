// The frames of one run: registers, arenas, and the memory that they use. Calls nest here, not on the C++ stack.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/executable/executable.h"
#include "runtime/profile/profile.h"

namespace tenon::runtime {

// Idle arenas, by function: a session keeps them from run to run.
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

struct Frame {
  uint32_t function = 0;               // index into the executable's functions
  const Registers* results = nullptr;  // of the caller's call; nullptr for the entry
  std::vector<Tensor> registers;
  Storage arena;
  uint32_t next = 0;  // index of the next instruction

  Expected<Tensor> read(Register from) const;  // an empty register is an error of the executable
};

class Stack {
 public:
  // `max_registers`: of all frames, plus one a frame. The executable and the arenas outlive the stack.
  Stack(const Executable& executable, Arenas& arenas, uint64_t max_registers)
      : executable_(executable), arenas_(arenas), max_registers_(max_registers) {}

  Frame& top() { return frames_.back(); }
  // Invalidates references to frames. `results`: the caller's registers for the results; nullptr for the entry.
  Status enter(uint32_t function, std::span<const Tensor> args, const Registers* results);
  void leave();

  // Writes a register of the top frame; an empty tensor empties it.
  void write(Register to, Tensor value);
  // Counts the result of a call: a result in an arena, or one that shares an argument's buffer, has no memory of its
  // own.
  void count_result(const Tensor& result);

  const MemoryRecord& memory() const { return memory_; }  // without the caller's tensors and constants

 private:
  void grow(uint64_t bytes);
  void forget(Tensor& value);

  const Executable& executable_;
  Arenas& arenas_;
  uint64_t max_registers_, registers_ = 0;
  std::vector<Frame> frames_;
  MemoryRecord memory_;
  uint64_t live_bytes_ = 0;
};

}  // namespace tenon::runtime
