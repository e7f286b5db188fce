// The interface of a transport's shared library: one C function, from which the driver gets the Transport.
//
// The library is called tenon-driver-SCHEME.so and must belong to the same build as the program that opens it, because
// a Transport has C++ types; the function rejects any other program (`abi` differs), and the transport is then
// unusable.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "driver/accelerator.h"

namespace tenon::driver {

inline constexpr char kPluginPrefix[] = "tenon-driver-";
inline constexpr char kPluginFunction[] = "tenon_driver_transport";
inline constexpr char kPluginAbi[] = "tenon-1 gcc-" __VERSION__;

// The directories of such shared libraries: TENON_DRIVER_PATH, then those next to the program (or library) that this
// code is linked into, in the build tree and in an installation.
std::vector<std::filesystem::path> plugin_directories();

}  // namespace tenon::driver

// Defined by each library, by including plugin_export.h. False if `abi`, the opener's, is not the library's.
extern "C" __attribute__((visibility("default"))) bool tenon_driver_transport(const char* abi,
                                                                              tenon::driver::Transport* transport);
