// The transport verilator: -- the RTL, cycle-accurate, in this process.
#include "driver/open_simulated.h"
#include "driver/plugin_export.h"
#include "driver/verilated_options.h"
#include "sim/verilator/builder.h"

namespace tenon::driver {
namespace {

Expected<std::unique_ptr<Accelerator>> open_verilator(std::string_view target) {
  return open_simulated("verilator", target, true, verilated_options, sim::make_verilated);
}

}  // namespace
}  // namespace tenon::driver

tenon::driver::Transport tenon::driver::transport() {
  return {.scheme = "verilator",
          .doc = fmt::format("the RTL, cycle by cycle: verilator:CONFIG[?{}]", kVerilatedOptionsDoc),
          .open = open_verilator,
          .missing = sim::missing_verilator_tools};
}
