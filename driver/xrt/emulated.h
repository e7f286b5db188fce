// Constants that the transport and the emulated device share: the device's name, and its simulated time.
#pragma once

#include <cstdint>

namespace tenon::driver {

inline constexpr char kEmulatedName[] = "tenon_emulated";
// Cycles that are simulated after each read of a unit's control or status register.
inline constexpr uint64_t kEmulatedPollCycles = 64;

}  // namespace tenon::driver
