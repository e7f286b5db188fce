// Memory of lowered code: registers are emptied after their last use, and results of native kernels get slots in the
// arena of the function's frames. Both by the liveness of the code itself (runtime/executable/liveness.h), by which the
// loader checks them again.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/executable/executable.h"

namespace tenon::compiler {

// Adds a Kill after each register's last use on each path, or after the write of a register that nothing reads; what
// dies on one side of a jump is emptied where the other side begins.
void insert_kills(runtime::Function& function);

// By function: whether a frame of it may begin while another one waits for a call. A tail call ends its frame first,
// and a call of a closure may enter each function that is made a closure.
std::vector<bool> find_reentered(std::span<const runtime::Function> functions);

// The memory that a frame of a function takes by its plan.
struct FrameMemory {
  size_t placed = 0;          // results that are in the arena
  size_t in_place = 0;        // among these, results in the memory of an argument
  int64_t arena = 0;          // bytes
  int64_t peak = 0;           // the most bytes of it that are live at once
  int64_t total = 0;          // bytes of an arena without reuse
  size_t outside = 0;         // results of other calls, and results that escape: allocated when they are made
  int64_t outside_bytes = 0;  // of the native kernels' among these, at most
};

// Gives results of native kernels offsets in the arena, and the arena its size. Each call has a slot for each result
// with the most bytes that the result may have, or no slots; 0: the result is empty, or no bound is known, so that the
// result stays outside, as one that escapes the frame does. A result whose kernel may compute it in the memory of an
// argument that ends there is placed in it. The code has its kills; `natives`: the code of its kernels.
FrameMemory place_results(runtime::Function& function, std::span<const runtime::NativeCode> natives);
// Leaves all results outside.
void forget_slots(runtime::Function& function);

// Why a result of a call is outside of the arena.
enum class Outside : uint8_t { kEscapes, kUnbounded, kOtherKernel };
struct PlannedResult {
  uint32_t call = 0, result = 0;  // the instruction, and the index among its results
  uint32_t last_use = 0;          // of a native kernel's
  runtime::ArenaSlot slot = {};   // 0 bytes: outside
  bool in_place = false;          // the slot is that of an argument
  Outside outside = Outside::kUnbounded;
};
// The plan that the code has, in its order: the results of kernels and of accelerator programs.
std::vector<PlannedResult> planned_results(const runtime::Function& function,
                                           std::span<const runtime::NativeCode> natives);
FrameMemory frame_memory(const runtime::Function& function, std::span<const runtime::NativeCode> natives);

// "12 results in an arena of 4096 bytes (3584 live at once, 16384 without reuse); 2 outside, 512 bytes"
std::string str(const FrameMemory& memory);

}  // namespace tenon::compiler
