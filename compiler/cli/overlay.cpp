// tenon hw overlay: the device tree's part for an accelerator on a Zynq board.
#include <fmt/format.h>

#include "compiler/cli/command.h"
#include "hw/generator/overlay.h"
#include "support/file.h"
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
    options.interrupt = static_cast<uint32_t>(interrupt);
    options.clock_mhz = static_cast<uint32_t>(clock);
    options.memory_bytes = memory << 20;
    TENON_TRY_ASSIGN(text, generator::overlay_text(*loaded, options));
    if (output.empty()) {
      print_stdout("{}", *text);
      return {};
    }
    return write_file(output, *text);
  }
};

}  // namespace

Action hw_overlay(Options& options) {
  auto command = std::make_shared<Overlay>();
  options.option(command->config, "-c,--config", "NAME", "a named configuration, or the path of a .json file");
  options.choice(command->family, "--family", {"zynq7000", "zynqmp"}, "the chip");
  options.option(command->options.address, "--address", "ADDRESS",
                 "address of the registers; 0: the first that Vivado assigns", {});
  options.option(command->interrupt, "--interrupt", "N", "interrupt of the device tree; 0: the first one of the PL",
                 {0, 987});
  options.option(command->clock, "--clock", "MHZ", "the accelerator's clock", {1, 1000});
  options.option(command->memory, "--memory", "MIB", "memory for the accelerator", {1, 2048});
  options.option(command->options.firmware, "--firmware", "NAME", "the bitstream in /lib/firmware");
  options.option(command->output, "-o,--output", "FILE", "the .dtso file; default: standard output");
  options.footer(
      "Example: tenon hw overlay --clock 125 -o tenon.dtso && dtc -@ -I dts -O dtb -o tenon.dtbo tenon.dtso");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
