// Human-readable explanations of a run, from the device's registers and the program in its memory, on every transport.
#pragma once

#include <cstdint>
#include <string>

#include "driver/accelerator.h"

namespace tenon::driver {

// "instruction 12 (mac wait=ldi ...)" of the stream of the last launch; without the assembly where the instruction
// cannot be read back or decoded.
Expected<std::string> explain_instruction(Accelerator& accelerator, uint32_t index);

// The engines whose heads wait, and the counters with tokens.
Expected<std::string> explain_tokens(Accelerator& accelerator);

// The progress of a current run: decoded slots, outstanding bursts, each engine's instruction and the length of its
// queue, the last decoded instructions. Several lines, each indented.
Expected<std::string> explain_progress(Accelerator& accelerator);

}  // namespace tenon::driver
