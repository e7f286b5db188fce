// The machine code of native kernels as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::compiler::native {

struct MachineInstruction {
  uint64_t address = 0, size = 0;  // in the object, in bytes
  std::string text;                // in the syntax of LLVM's assembler; "(unknown)" for bytes that are no instruction
};
// A function of an object: "KERNEL.LEVEL", and "KERNEL.LEVEL.taskN" for the body of a parallel loop.
struct MachineFunction {
  std::string symbol;
  std::vector<MachineInstruction> instructions;
};

// The functions of an ELF object for the processor of `triple`, in the order of their addresses; those alone whose
// symbol is `prefix` or continues it after a dot, or all where it is empty. Nothing of the object is executed. A
// damaged object is an error.
Expected<std::vector<MachineFunction>> disassemble(std::span<const std::byte> object, const std::string& triple,
                                                   std::string_view prefix);

}  // namespace tenon::compiler::native
