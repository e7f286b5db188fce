// The code of the virtual machine as text: a line for each instruction, which states every operand of it.
#pragma once

#include <string>

#include "runtime/executable/executable.h"

namespace tenon::compiler {

// "r3 = native dense(r0, r1) at 0+4096". The names of functions, kernels and programs are those of the executable,
// whose indices the instruction has.
std::string text_of(const runtime::Executable& executable, const runtime::Operation& operation);

// The value of a postfix program as an expression: "4 * n + 1", "max(n, 8)"; "?" where the program is empty. `dims`:
// the names of the variables by index.
std::string text_of(const runtime::Size& size, const std::vector<std::string>& dims);

}  // namespace tenon::compiler
