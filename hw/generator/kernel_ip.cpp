#include "hw/generator/kernel_ip.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "hw/generator/generator.h"
#include "hw/spec/arguments.h"
#include "hw/spec/data_path.h"
#include "hw/spec/registers.h"
#include "support/try.h"

namespace tenon::generator {
namespace {

namespace fs = std::filesystem;
using spec::kControlPort;
using spec::kKernelName;
using spec::kMemoryPort;

// The headers, the sources in the order of files.f, and the kernel's top.
Expected<std::vector<fs::path>> ordered_sources(const fs::path& directory) {
  std::ifstream stream(directory / "files.f");
  std::vector<fs::path> sources;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == ".svh") sources.push_back(entry.path().filename());
  }
  std::ranges::sort(sources);
  const size_t headers = sources.size();
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line[0] != '#' && line[0] != '/') sources.emplace_back(line);
  }
  if (sources.size() == headers) return error("the list of RTL sources is empty", (directory / "files.f").string());
  sources.push_back(fs::path(kKernelName).replace_extension(".sv"));
  return sources;
}

Expected<fs::path> kernel_source() {
  const auto candidates = spec::data_path("hw/boards/vitis");
  for (const fs::path& candidate : candidates) {
    std::error_code ignored;
    const fs::path file = candidate / fs::path(kKernelName).replace_extension(".sv");
    if (fs::is_regular_file(file, ignored)) return file;
  }
  return error("the kernel's top module is missing", candidates.back().string(),
               "install Tenon again, or keep its source tree");
}

}  // namespace

Expected<KernelSources> generate_kernel(const spec::Config& config, const fs::path& directory) {
  TENON_TRY_ASSIGN(top, kernel_source());
  TENON_TRY_ASSIGN(written, generate(config, directory / "rtl"));
  std::error_code fault;
  written->push_back(directory / "rtl" / top->filename());
  fs::copy_file(*top, written->back(), fs::copy_options::overwrite_existing, fault);
  if (fault) return error(fmt::format("cannot copy {}: {}", top->string(), fault.message()), directory.string());
  TENON_TRY_ASSIGN(sources, ordered_sources(directory / "rtl"));
  return KernelSources{std::move(*written), std::move(*sources)};
}

std::string package_ip_tcl(const std::string& part, const std::vector<fs::path>& sources) {
  std::string text =
      "set here [file dirname [file normalize [info script]]]\n"
      "set packaged $here/build/packaged\n"
      "set sources [list \\\n";
  for (const fs::path& source : sources) text += fmt::format("  $here/rtl/{} \\\n", source.string());
  text += fmt::format(
      "]\n"
      "create_project -force {0} $here/build/project -part {1}\n"
      "add_files -norecurse $sources\n"
      "set_property top {0} [current_fileset]\n"
      "update_compile_order -fileset sources_1\n"
      "ipx::package_project -root_dir $packaged -vendor tenon -library kernel -taxonomy /KernelIP -import_files "
      "-set_current false\n"
      "ipx::unload_core $packaged/component.xml\n"
      "ipx::edit_ip_in_project -upgrade true -name edit -directory $packaged $packaged/component.xml\n"
      "set core [ipx::current_core]\n"
      "set_property name {0} $core\n"
      "set_property version 1.0 $core\n"
      "set_property core_revision 1 $core\n"
      "foreach parameter [ipx::get_user_parameters -of_objects $core] {{\n"
      "  ipx::remove_user_parameter [get_property NAME $parameter] $core\n"
      "}}\n"
      "ipx::associate_bus_interfaces -busif {2} -clock ap_clk $core\n"
      "ipx::associate_bus_interfaces -busif {3} -clock ap_clk $core\n"
      "ipx::infer_bus_interface interrupt xilinx.com:signal:interrupt_rtl:1.0 $core\n"
      "\n# The register map: control registers and the arguments of kernel.xml.\n"
      "set map [ipx::add_memory_map {2} $core]\n"
      "set_property slave_memory_map_ref {2} [ipx::get_bus_interfaces {2} -of_objects $core]\n"
      "set block [ipx::add_address_block reg0 $map]\n"
      "set_property range {4} $block\n"
      "proc register {{block name offset bits}} {{\n"
      "  set register [ipx::add_register $name $block]\n"
      "  set_property address_offset $offset $register\n"
      "  set_property size $bits $register\n"
      "  return $register\n"
      "}}\n",
      kKernelName, part, kControlPort, kMemoryPort, spec::kRegisterSpaceBytes);
  for (const auto& [name, offset] : {std::pair{"CTRL", spec::reg::kControl},
                                     {"GIER", spec::reg::kGlobalInterruptEnable},
                                     {"IP_IER", spec::reg::kInterruptEnable},
                                     {"IP_ISR", spec::reg::kInterruptStatus}}) {
    text += fmt::format("register $block {} {:#05x} 32\n", name, offset);
  }
  for (const spec::Argument& a : spec::arguments()) {
    if (!a.pointer) {
      text += fmt::format("register $block {} {:#05x} 32\n", a.name, a.offset);
      continue;
    }
    text += fmt::format(
        "set_property value {} [ipx::add_register_parameter ASSOCIATED_BUSIF [register $block {} {:#05x} 64]]\n",
        kMemoryPort, a.name, a.offset);
  }
  return text;
}

void make_executable(const fs::path& file) {
  std::error_code ignored;
  fs::permissions(file, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec, fs::perm_options::add,
                  ignored);
}

}  // namespace tenon::generator
