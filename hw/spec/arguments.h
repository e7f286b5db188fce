// The registers that a launch writes, as a kernel's arguments: what XRT and Vitis know of the register map. One list
// for kernel.xml, xclbin files and whoever calls the accelerator through xrt::kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::spec {

struct Argument {
  std::string name;
  uint32_t offset = 0;   // of its register
  bool pointer = false;  // 64 bits, an address in the memory of m_axi_gmem; else a number of 32 bits
  uint32_t bytes() const { return pointer ? 8 : 4; }
};

std::vector<Argument> arguments();

// What Vitis calls the accelerator: its top module there and the kernel in an xclbin file.
inline constexpr char kKernelName[] = "tenon_kernel";
inline constexpr char kControlPort[] = "s_axi_control", kMemoryPort[] = "m_axi_gmem";

}  // namespace tenon::spec
