// What the table of the machine's instructions (instructions.h) says of an instruction and of its operands.
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon::runtime {

enum class Opcode : uint8_t;

// What an operand is to its instruction.
enum class Role : uint8_t {
  kRead,      // registers
  kReadSize,  // the registers that the programs of sizes among the next operands read by index
  kWrite,
  kErase,     // registers that become empty
  kTarget,    // instructions of this function
  kFunction,  // an index into the executable's functions, and so on
  kProgram,
  kNative,
  kKernel,  // of the native code that the operand before it names
  kConstant,
  kType,
  kValue,  // data
};

constexpr bool is_register(Role role) { return role <= Role::kErase; }

// Where the machine goes on after an instruction.
enum class Flow : uint8_t {
  kNext,
  kBranch,  // at the next instruction or at a target
  kJump,    // at a target
  kCall,    // in a frame of its own, and then at the next instruction
  kLeave,   // the frame ends
};

// The form in which runtime/vm executes an instruction.
enum class Form : uint8_t {
  kWords,       // its operands are words
  kExecutable,  // it computes for longer than its dispatch takes, and stays in the executable
};

// What may share memory with the values that an instruction reads.
enum class Aliasing : uint8_t {
  kNothing,
  kResults,   // a result may be one of them
  kAnything,  // they may be stored in objects or in another frame
};

struct InstructionFacts {
  Opcode opcode{};
  // For readers: operands are in braces; brackets enclose what is left out where the first operand in them is empty.
  std::string_view text;
  Flow flow = Flow::kNext;
  Form form = Form::kWords;
  Aliasing aliasing = Aliasing::kNothing;
};

}  // namespace tenon::runtime
