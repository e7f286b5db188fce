// The form of an executable's code that the machine runs: 32-bit words, an opcode and its operands one after another.
//
// An operand that is a register has the last-use bit where the executable empties it right after the instruction: the
// instruction then takes the value and touches no count. Instructions that compute for longer than their dispatch takes
// stay in the executable and are words that refer to it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/executable/compiled_code.h"
#include "runtime/executable/executable.h"

namespace tenon::runtime {

enum class Opcode : uint8_t {
  kOther,      // index of the instruction in Function::code
  kMove,       // to, from
  kKill,       // count in the opcode's word; registers
  kConstant,   // to, index
  kScalar,     // ScalarOp and dtype in the opcode's word; to, a, b
  kJump,       // word
  kBranch,     // condition, word
  kSwitch,     // count; value, type, words
  kConstruct,  // count; to, type, constructor, fields
  kField,      // to, from, index
  kClosure,    // count; to, function, captures
  kMakeReference,
  kReadReference,
  kWriteReference,
  kCall,       // count of arguments; function, count of results, arguments, results
  kTail,       // count; function, arguments
  kApply,      // count of arguments; closure, count of results, arguments, results
  kTailApply,  // count; closure, arguments
  kReturn,     // count; values
};
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
