// The transport verilator: -- the RTL, cycle-accurate, in this process.
#include "driver/plugin.h"
#include "driver/simulated.h"
#include "driver/verilated_options.h"
#include "sim/verilator/builder.h"

namespace tenon::driver {
namespace {

Expected<std::unique_ptr<Accelerator>> open_verilator(std::string_view rest) {
  const std::string uri = fmt::format("verilator:{}", rest);
  auto options = Options::parse(uri, rest);
  if (!options) return forward_error(options);
  const sim::VerilatedOptions read = verilated_options(*options);
  if (auto status = options->finish(); !status) return forward_error(status);
  auto config = spec::load_config(options->name().empty() ? "default" : options->name());
  if (!config) return forward_error(config);
  auto simulator = sim::make_verilated(*config, read);
  if (!simulator) return forward_error(simulator);
  return make_simulated(uri, std::move(*simulator), true);
}

}  // namespace
}  // namespace tenon::driver

extern "C" __attribute__((visibility("default"))) bool tenon_driver_transport(const char* abi,
                                                                              tenon::driver::Transport* transport) {
  using namespace tenon;
  if (std::string_view(abi) != driver::kPluginAbi) return false;
  *transport = {.scheme = "verilator",
                .doc = fmt::format("the RTL, cycle by cycle: verilator:CONFIG[?{}]", driver::kVerilatedOptionsDoc),
                .open = driver::open_verilator,
                .missing = sim::missing_verilator_tools};
  return true;
}
