// Compilation of the virtual machine's functions to native code, ahead of time. This header includes no LLVM header.
//
// Control flow, and what computes with scalars and moves them, becomes machine code on the registers of the frame;
// every other instruction is a call back into the machine (runtime/executable/compiled_code.h). An instruction that
// enters or leaves a frame ends the code, and the code of a function can begin after each of them: so the depth of
// calls is not that of the C stack, and compiled and interpreted functions call each other.
#pragma once

#include <string>

#include "runtime/executable/executable.h"

namespace tenon::compiler::native {

// The code of all functions of the executable, which verifies, for the oldest level of the triple (empty: this
// machine's). Errors: an unknown triple.
Expected<runtime::CompiledCode> compile_functions(const runtime::Executable& executable,
                                                  const std::string& triple = {});

}  // namespace tenon::compiler::native
