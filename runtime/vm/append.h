// The instruction that makes a tensor longer, in place where it can.
#pragma once

#include "runtime/vm/call_operands.h"
#include "runtime/vm/run_state.h"

namespace tenon::runtime {

// `is_last_use`: the instruction ends the use of its first operand.
Status append(RunState& run, CallOperands& operands, const CallSite& site, const Append& call, bool is_last_use);
// The same on the arguments that are loaded, into memory without room.
Status append(CallOperands& operands, const CallSite& site, uint32_t axis);

}  // namespace tenon::runtime
