// Tokens are derived, never written by hand: which instruction must wait for which follows from what each reads and
// writes, and only from that.
//
// Semantics: the program order of the native instructions is the meaning of the program. derive_tokens() sets wait and
// signal masks such that every execution that respects queues and tokens orders each pair of conflicting accesses
// (read after write, write after read, write after write; scratchpad elements and DRAM bytes) as program order does.
// The result is transitively reduced: an instruction waits for another only where no chain of other waits and queues
// orders them already. Regions are intervals; an interval that covers more than is touched costs order, not truth.
//
// Why this cannot deadlock: waits point backwards in program order, so the earliest unfinished instruction can always
// run, with queues of any depth; counters stay below their limit because an edge that would overfill one is replaced
// by an edge from the producer's latest instruction.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hw/spec/config.h"
#include "hw/spec/isa.h"

namespace tenon::compiler::accel {

// An interval of one memory: elements of a scratchpad, or bytes behind base register `base` for DRAM.
struct Access {
  spec::Memory memory = spec::Memory::kDram;
  int base = 0;
  uint64_t begin = 0, end = 0;
  bool write = false;
};

// What a native instruction reads and writes; empty intervals are left out.
std::vector<Access> accesses(const spec::Config& config, const spec::Instruction& instruction);

// Bytes of DRAM that a MOVE really transfers.
int64_t dram_bytes(const spec::Config& config, const spec::native::Move& move);

// Sets the token masks of all instructions (which must be native and have none yet).
void derive_tokens(const spec::Config& config, std::span<spec::Instruction> program);

}  // namespace tenon::compiler::accel
