// tenon hw overlay: the device tree's part for an accelerator on a Zynq board.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "compiler/cli/command.h"
#include "hw/generator/overlay.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct Overlay {
  std::string config = "default", family = "zynq7000", output;
  generator::OverlayOptions options;
  uint64_t interrupt = 0, clock = 100, memory = 64;

  Status run() {
    TENON_TRY_ASSIGN(loaded, spec::load_config(config));
    options.family = family == "zynqmp" ? generator::Family::kZynqMp : generator::Family::kZynq7000;
    // A value that is too large is refused, not truncated.
    options.interrupt = static_cast<uint32_t>(std::min<uint64_t>(interrupt, UINT32_MAX));
    options.clock_mhz = static_cast<uint32_t>(std::min<uint64_t>(clock, UINT32_MAX));
    options.memory_bytes = std::min<uint64_t>(memory, uint64_t{1} << 40) << 20;
    TENON_TRY_ASSIGN(text, generator::overlay_text(*loaded, options));
    if (output.empty()) {
      fmt::print("{}", *text);
      return {};
    }
    std::ofstream stream(output);
    stream << *text;
    stream.close();
    if (!stream) return error("cannot write the overlay", output);
    return {};
  }
};

}  // namespace

Action hw_overlay(Options& options) {
  auto command = std::make_shared<Overlay>();
  options.option(command->config, "-c,--config", "NAME", "a named configuration, or the path of a .json file");
  options.choice(command->family, "--family", {"zynq7000", "zynqmp"}, "the chip");
  options.option(command->options.address, "--address", "ADDRESS",
                 "address of the registers; 0: the first that Vivado assigns");
  options.option(command->interrupt, "--interrupt", "N", "interrupt of the device tree; 0: the first one of the PL");
  options.option(command->clock, "--clock", "MHZ", "the accelerator's clock");
  options.option(command->memory, "--memory", "MIB", "memory for the accelerator");
  options.option(command->options.firmware, "--firmware", "NAME", "the bitstream in /lib/firmware");
  options.option(command->output, "-o,--output", "FILE", "the .dtso file; default: standard output");
  options.footer(
      "Example: tenon hw overlay --clock 125 -o tenon.dtso && dtc -@ -I dts -O dtb -o tenon.dtbo tenon.dtso");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
