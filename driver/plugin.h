// What a transport's shared library exports: one C function, by which the driver gets its Transport.
//
// The library is called tenon-driver-SCHEME.so and is made by the same build as the program that opens it, because a
// Transport holds C++ types; the function refuses any other (`abi` differs) and the transport then counts as absent.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/accelerator.h"

namespace tenon::driver {

inline constexpr char kPluginPrefix[] = "tenon-driver-";
inline constexpr char kPluginFunction[] = "tenon_driver_transport";
inline constexpr char kPluginAbi[] = "tenon-1 gcc-" __VERSION__;

// Where shared libraries of this kind lie: TENON_DRIVER_PATH, then beside the program (or library) that this code is
// linked into, in the build tree and in an installation.
std::vector<std::filesystem::path> plugin_directories();

// What the exported function does: gives out `made` if `abi`, the opener's, is this library's.
inline bool offer(std::string_view abi, Transport* transport, Transport made) {
  if (abi != kPluginAbi) return false;
  *transport = std::move(made);
  return true;
}

}  // namespace tenon::driver

// Defined by each library.
extern "C" __attribute__((visibility("default"))) bool tenon_driver_transport(const char* abi,
                                                                              tenon::driver::Transport* transport);
