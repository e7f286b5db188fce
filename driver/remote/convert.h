// The driver's types and their messages of remote.proto.
#pragma once

#include <chrono>

#include "driver/accelerator.h"
#include "driver/remote/remote.pb.h"

namespace tenon::driver::remote {

wire::Failure to_wire(const Diagnostic& diagnostic);
Diagnostic from_wire(const wire::Failure& failure);

wire::Buffer to_wire(const Buffer& buffer);
Buffer from_wire(const wire::Buffer& buffer);

wire::Launch to_wire(const Launch& launch);
// An error where the message has more or fewer base addresses than this build's accelerators.
Expected<Launch> from_wire(const wire::Launch& launch);

wire::Counters to_wire(const Counters& counters);
Counters from_wire(const wire::Counters& counters);

// Limits that come from the other end: at most a year, so that sums of durations do not overflow.
std::chrono::nanoseconds limit_from_wire(uint64_t nanoseconds);
uint64_t to_wire(std::chrono::nanoseconds limit);

}  // namespace tenon::driver::remote
