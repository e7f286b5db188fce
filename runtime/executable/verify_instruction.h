// The checks of one instruction: its registers, indices and targets exist, and the conditions between its operands
// hold.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/executable/executable.h"

namespace tenon::runtime {

// Empty if the instruction is sound, else its first fault. Adds the registers that it names to `mentions`.
std::string check_instruction(const Executable& executable, const Function& function, const Operation& operation,
                              uint64_t& mentions);

}  // namespace tenon::runtime
