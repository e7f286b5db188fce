// Derives the dependency tokens of a program from the memory accesses of its instructions alone.
//
// Semantics: the program order of the native instructions is the meaning of the program. derive_tokens() sets wait and
// signal masks such that every execution that respects queues and tokens orders each pair of conflicting accesses
// (read after write, write after read, write after write; scratchpad elements and DRAM bytes) as program order does.
// The result is transitively reduced: an instruction waits for another only where no chain of other waits and queues
// orders them already. Accesses are intervals; an interval that covers more than the instruction touches may add
// waits, but never loses one.
//
// Why this cannot deadlock: waits refer to earlier instructions in program order, so the earliest unfinished
// instruction can always run, with queues of any depth; counters stay below their limit because an edge that would
// overfill one is replaced by an edge from the producer's latest instruction.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hw/spec/config.h"
#include "hw/spec/isa.h"

namespace tenon::compiler::accel {

// An interval of one memory: elements of a scratchpad, or for DRAM byte offsets from base register `base`.
struct Access {
  spec::Memory memory = spec::Memory::kDram;
  int base = 0;
  uint64_t begin = 0, end = 0;
  bool write = false;
};

// The accesses of a native instruction; empty intervals are left out.
std::vector<Access> accesses(const spec::Config& config, const spec::Instruction& instruction);

// The bytes that a MOVE transfers between DRAM and the scratchpad, without padding.
int64_t dram_bytes(const spec::Config& config, const spec::native::Move& move);

// Sets the token masks of all instructions (which must be native and have none yet).
void derive_tokens(const spec::Config& config, std::span<spec::Instruction> program);

}  // namespace tenon::compiler::accel
