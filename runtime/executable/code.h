// The instructions of a function as bytes, in which a file stores them.
//
// Each instruction is its opcode, its operands in the order of the table (instructions.h) and the text of its layer.
// Numbers are little endian and have the size of their type, lists and texts begin with their length in 4 bytes, and an
// attribute's value begins with the index of its kind.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/executable/executable.h"

namespace tenon::runtime {

std::vector<std::byte> code_bytes(std::span<const Instruction> code);
// The bytes are not trusted: an error where they are not what code_bytes() makes. The instructions are not verified.
Expected<std::vector<Instruction>> read_code(std::span<const std::byte> bytes);

}  // namespace tenon::runtime
