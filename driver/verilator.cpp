// The transport verilator: -- the RTL, cycle-accurate, in this process.
#include "driver/open_simulated.h"
#include "driver/plugin.h"
#include "driver/verilated_options.h"
#include "sim/verilator/builder.h"

namespace tenon::driver {
namespace {

Expected<std::unique_ptr<Accelerator>> open_verilator(std::string_view target) {
  return open_simulated("verilator", target, true, verilated_options, sim::make_verilated);
}

}  // namespace
}  // namespace tenon::driver

bool tenon_driver_transport(const char* abi, tenon::driver::Transport* transport) {
  using namespace tenon;
  return tenon::driver::offer(
      abi, transport,
      {.scheme = "verilator",
       .doc = fmt::format("the RTL, cycle by cycle: verilator:CONFIG[?{}]", driver::kVerilatedOptionsDoc),
       .open = driver::open_verilator,
       .missing = sim::missing_verilator_tools});
}
