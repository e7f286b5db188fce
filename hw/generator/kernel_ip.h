// The accelerator of one configuration as an IP core of Vivado: what the kernel for Vitis and the design around a
// Zynq's processor share.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hw/spec/config.h"
#include "support/diagnostic.h"

namespace tenon::generator {

struct KernelSources {
  std::vector<std::filesystem::path> written;  // files
  std::vector<std::filesystem::path> sources;  // relative to rtl/, in the order in which tools read them
};

// Writes rtl/ with the accelerator and its top module, whose ports are named as Vivado infers them.
Expected<KernelSources> generate_kernel(const spec::Config& config, const std::filesystem::path& directory);

// Tcl for Vivado: packages the RTL in rtl/ beside the script into build/packaged. Leaves the variables `here`,
// `packaged`, and `core`, which is neither checked nor saved.
std::string package_ip_tcl(const std::string& part, const std::vector<std::filesystem::path>& sources);

void make_executable(const std::filesystem::path& file);

}  // namespace tenon::generator
