// The form of an executable's code that the machine runs: 32-bit words, an opcode and its operands one after another.
//
// The words of an instruction follow from its row of the table (runtime/executable/instructions.h). The first one has
// the opcode and above it the operands of a byte, or else the length of the first list. Then come, in their order, the
// operands that are one number, those of 64 bits in two words, and the lengths of further lists; then the elements of
// the lists. An operand that is a register has the last-use bit where the executable empties it right after the
// instruction: the instruction then takes the value and touches no count. Instructions of Form::kExecutable are an
// opcode and their index in Function::code.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/executable/compiled_code.h"
#include "runtime/executable/executable.h"

namespace tenon::runtime {

inline constexpr unsigned kOpcodeBits = 8;
inline constexpr uint32_t kLastUse = uint32_t{1} << 31;

struct Words {
  const Function* function = nullptr;
  uint32_t index = 0;  // of the function
  std::vector<uint32_t> code;
  std::vector<uint32_t> origin;  // by word: the instruction
  std::vector<uint32_t> start;   // by instruction: its first word
  tn_compiled_function compiled = nullptr;
};

// `fold_kills`: registers are emptied by last uses where possible; else each Kill is an instruction of its own. An
// error for an instruction of 2^24 operands or more. The executable has been verified.
Expected<std::vector<Words>> assemble(const Executable& executable, bool fold_kills);

}  // namespace tenon::runtime
