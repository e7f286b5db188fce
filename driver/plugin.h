// What a transport's shared library exports: one C function, by which the driver gets its Transport.
//
// The library is called tenon-driver-SCHEME.so and is made by the same build as the program that opens it, because a
// Transport holds C++ types; the function refuses any other (`abi` differs) and the transport then counts as absent.
#pragma once

#include "driver/accelerator.h"

namespace tenon::driver {

inline constexpr char kPluginPrefix[] = "tenon-driver-";
inline constexpr char kPluginFunction[] = "tenon_driver_transport";
inline constexpr char kPluginAbi[] = "tenon-1 gcc-" __VERSION__;

// Fills in `transport` and returns true if `abi` is this library's.
using PluginFunction = bool (*)(const char* abi, Transport* transport);

}  // namespace tenon::driver
