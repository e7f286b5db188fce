// The messages of faults (tn_fault), which kernels of processors and of GPUs report by a site and two values.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::runtime {

std::string fault_message(uint32_t fault, int64_t found, int64_t expected);

}  // namespace tenon::runtime
