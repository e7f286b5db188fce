// Lists of the bus ports for the RTL, which reads them by `include`.
#include <fmt/format.h>

#include "hw/generator/generator.h"
#include "hw/spec/ports.h"

namespace tenon::generator {
namespace {

using spec::Port;

constexpr std::string_view kTitle = "// Generated from hw/spec/ports.cpp, not to be edited.\n";

std::string declaration(const Port& port, std::string_view direction, char end) {
  const std::string range = port.bits == 1 ? std::string() : fmt::format("[{}:0]", port.bits - 1);
  return fmt::format("  {}logic {:<7} {}{}", direction, range, port.name, end);
}

// The ports of a module on the accelerator's side of the buses, or on the other one.
std::string port_list(std::span<const Port> ports, bool accelerator) {
  std::string text;
  for (const Port& port : ports) {
    const bool ignored = accelerator && !port.ignored.empty();
    if (ignored) text += "  // verilator lint_off UNUSEDSIGNAL\n";
    text += declaration(port, port.output == accelerator ? "output " : "input  ", ',');
    if (ignored) text += fmt::format("  // {}\n  // verilator lint_on UNUSEDSIGNAL", port.ignored);
    text += '\n';
  }
  return text;
}

}  // namespace

std::vector<SourceText> generated_sources(const spec::Config& config) {
  const std::vector<Port> control = spec::control_ports(), memory = spec::memory_ports(config);
  std::string signals;
  for (const auto& ports : {control, memory}) {
    for (const Port& port : ports) signals += declaration(port, "", ';') + '\n';
  }
  return {{"tenon_pkg.sv", package_text(config)},
          {"tenon_ports.svh", std::string(kTitle) + port_list(control, true) + port_list(memory, true)},
          {"tenon_memory_ports.svh", std::string(kTitle) + port_list(memory, false)},
          {"tenon_signals.svh", std::string(kTitle) + signals}};
}

}  // namespace tenon::generator
