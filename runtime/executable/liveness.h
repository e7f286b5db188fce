// Liveness on the machine's code: which registers each instruction reads and writes, and from these the live ranges of
// registers and of native kernels' results.
//
// The only liveness analysis of lowered code: the compiler inserts its Kill instructions and makes its memory plan from
// it (compiler/lower/memory.h), and the loader checks a file's memory plan with it (verify_arena.h).
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/executable/executable.h"
#include "support/function_ref.h"

namespace tenon::runtime {

// Visits each register that the operation reads, in order; a register may come several times.
void for_each_read(const Operation& operation, FunctionRef<void(const Register&)> visit);
// Visits each register that the operation fills or empties.
void for_each_write(const Operation& operation, FunctionRef<void(const Register&)> visit);
// Replaces each register of the operation by what `rename` returns for it.
void rename_registers(Operation& operation, FunctionRef<Register(Register)> rename);

// Visits each instruction that may run next by a jump; the second may replace it.
void for_each_target(const Operation& operation, FunctionRef<void(uint32_t)> visit);
void for_each_target(Operation& operation, FunctionRef<void(uint32_t&)> visit);

// A set of registers, as bits.
class RegisterSet {
 public:
  explicit RegisterSet(size_t registers = 0) : words_((registers + 63) / 64) {}
  bool contains(Register r) const { return (words_[r / 64] >> (r % 64) & 1) != 0; }
  void insert(Register r) { words_[r / 64] |= uint64_t{1} << (r % 64); }
  void erase(Register r) { words_[r / 64] &= ~(uint64_t{1} << (r % 64)); }
  // Returns whether the set grew.
  bool insert(const RegisterSet& other) {
    uint64_t added = 0;
    for (size_t i = 0; i < words_.size(); ++i) {
      added |= other.words_[i] & ~words_[i];
      words_[i] |= other.words_[i];
    }
    return added != 0;
  }
  void for_each(auto&& visit) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t bits = words_[i]; bits != 0; bits &= bits - 1)
        visit(static_cast<Register>(i * 64 + static_cast<size_t>(std::countr_zero(bits))));
    }
  }

 private:
  std::vector<uint64_t> words_;
};

// The basic blocks of a function's code, and the registers that are live where each begins and ends.
struct LiveBlock {
  uint32_t begin = 0, end = 0;          // instructions
  std::vector<uint32_t> before, after;  // blocks
  RegisterSet live_in, live_out;
};
// By a work list over the reversed control-flow graph. The code's registers and targets have been checked.
std::vector<LiveBlock> live_blocks(const Function& function);

// The live range of one result of a native kernel: from instruction `call`, which makes it, to instruction `last_use`,
// the last one that may read it. A kernel of the reference or a function may return its arguments, so whatever they
// hold, its results may hold too.
struct ResultRange {
  uint32_t call = 0;
  uint32_t result = 0;  // index among the results of the call
  uint32_t last_use = 0;
  bool escapes = false;  // the result may outlive the frame, or code jumps back and its live range is unknown
  // The result of an earlier call, by its index in the list, that ends with this call and in whose memory the kernel
  // may compute this one.
  std::optional<uint32_t> replaces = {};
};

// Of code with any jumps and with its Kill instructions, in the order of the calls. The function's instructions have
// passed their own checks. `natives`: of the executable; without them no result replaces another.
std::vector<ResultRange> result_ranges(const Function& function, std::span<const NativeCode> natives = {});

}  // namespace tenon::runtime
