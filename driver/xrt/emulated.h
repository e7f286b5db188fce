// What the transport knows of the emulated device: its name, and how time passes there.
#pragma once

#include <cstdint>

namespace tenon::driver {

inline constexpr char kEmulatedName[] = "tenon_emulated";
// Cycles behind each read of a unit's control or status register.
inline constexpr uint64_t kEmulatedPollCycles = 64;

}  // namespace tenon::driver
