// Included by one file of each transport's shared library: defines its one exported function (plugin.h).
#pragma once

#include "driver/plugin.h"

namespace tenon::driver {

// Defined by that file: the transport of the library.
Transport transport();

}  // namespace tenon::driver

bool tenon_driver_transport(const char* abi, tenon::driver::Transport* transport) {
  if (std::string_view(abi) != tenon::driver::kPluginAbi) return false;
  *transport = tenon::driver::transport();
  return true;
}
