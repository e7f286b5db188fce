// The registers that a launch writes, as a kernel's arguments: the part of the register map that XRT and Vitis see.
// kernel.xml, xclbin files and callers of xrt::kernel share this one list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::spec {

struct Argument {
  std::string name;
  uint32_t offset = 0;   // byte offset of the argument's register
  bool pointer = false;  // 64 bits, an address in the memory of m_axi_gmem; else a 32-bit integer
  uint32_t bytes() const { return pointer ? 8 : 4; }
};

std::vector<Argument> arguments();

// The accelerator's name in Vitis: of the top module and of the kernel in an xclbin file.
inline constexpr char kKernelName[] = "tenon_kernel";
inline constexpr char kControlPort[] = "s_axi_control", kMemoryPort[] = "m_axi_gmem";

}  // namespace tenon::spec
