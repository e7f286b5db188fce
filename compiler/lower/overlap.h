// Devices beside the processor: an accelerator program, or a kernel of a GPU, is started as soon as its inputs are
// there, and what does not depend on its results runs before they are waited for, as far as the same basic block has
// kernels of the CPU or of other devices, so several accelerators run concurrently.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/executable/executable.h"

namespace tenon::compiler {

// Adds a StartProgram or StartNative for each call of a device that other kernels can run beside, and moves the call
// and what depends on it after these; otherwise the order stays. `gpu_code`: the index of the native code for GPUs;
// `accelerators`: by program, an id that is equal for programs of one accelerator (the hash of its configuration). The
// code has no Kill instructions yet: values that a device reads live until its call, where they may die.
void overlap_devices(runtime::Function& function, uint32_t gpu_code, std::span<const uint64_t> accelerators);

}  // namespace tenon::compiler
