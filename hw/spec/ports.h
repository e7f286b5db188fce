// The bus ports of the accelerator, one row a signal: the AXI4-Lite slave s_axi_control and the AXI4 master m_axi_gmem.
// Port lists and connections in the RTL are generated from these rows.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/spec/config.h"

namespace tenon::spec {

struct Port {
  std::string name;  // "m_axi_gmem_awvalid"
  bool output = false;
  int bits = 1;
  std::string_view ignored;  // why the accelerator ignores this input, or a part of it; empty if it does not
};

std::vector<Port> control_ports();
std::vector<Port> memory_ports(const Config& config);

}  // namespace tenon::spec
