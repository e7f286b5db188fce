// Accelerator programs as text, for the commands that print them.
#pragma once

#include <string>

#include "runtime/accelerator_program.h"
#include "support/diagnostic.h"

namespace tenon::cli {

// Prints the instructions, each with the tile operation and the operator of the model from which it was made.
Status print_program(const runtime::AcceleratorProgram& program, const std::string& where);

}  // namespace tenon::cli
