// What a device's registers and the program in its memory tell of a run, for people: the same on every transport.
#pragma once

#include <cstdint>
#include <string>

#include "driver/accelerator.h"

namespace tenon::driver {

// "instruction 12 (mac wait=ldi ...)" of the stream that was launched last; without the text where that cannot be read
// back or decoded.
Expected<std::string> explain_instruction(Accelerator& accelerator, uint32_t index);

// The engines whose heads wait, and the counters that hold tokens.
Expected<std::string> explain_tokens(Accelerator& accelerator);

// Of a run that is under way: how far the stream is decoded, bursts that memory owes, each engine's instruction and the
// length of its queue, the last instructions that were decoded. Several lines, each indented.
Expected<std::string> explain_progress(Accelerator& accelerator);

}  // namespace tenon::driver
