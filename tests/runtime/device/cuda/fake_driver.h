// Functions of the driver of the tests (fake_driver.cpp) by which a test gives it more memory and kernels.
#pragma once

#include <cstddef>

extern "C" {
// The GPU's memory from now on, 1 MiB at first.
void fake_set_memory(size_t bytes);
// Whether the host has pinned memory, and how much of it is in use.
void fake_set_pinned(bool available);
size_t fake_pinned_bytes();
// What launches of the entry of that name execute in all modules whose PTX has it; `arguments` as cuLaunchKernel has
// them. False: the launch fails. A null pointer removes the kernel.
void fake_set_kernel(const char* entry, bool (*run)(void* user, void** arguments), void* user);
// The lists of recorded launches that exist. The environment variable FAKE_NO_GRAPHS refuses to record any.
int fake_lists();
}
