// The transport lockstep: -- the RTL and the behavioral simulator on the same program, compared write by write.
#include "sim/lockstep/lockstep.h"

#include "driver/behavioral.h"
#include "driver/plugin.h"
#include "driver/simulated.h"
#include "driver/verilated_options.h"
#include "sim/verilator/builder.h"

namespace tenon::driver {
namespace {

Expected<std::unique_ptr<Accelerator>> open_lockstep(std::string_view rest) {
  const std::string uri = fmt::format("lockstep:{}", rest);
  auto options = Options::parse(uri, rest);
  if (!options) return forward_error(options);
  const sim::VerilatedOptions verilated = verilated_options(*options);
  sim::BehavioralOptions behavioral = behavioral_options(*options);
  behavioral.memory_bytes = (verilated.memory_bytes + 4095) & ~uint64_t{4095};
  if (auto status = options->finish(); !status) return forward_error(status);
  auto config = spec::load_config(options->name().empty() ? "default" : options->name());
  if (!config) return forward_error(config);
  auto tested = sim::make_verilated(*config, verilated);
  if (!tested) return forward_error(tested);
  auto reference = sim::make_behavioral(*config, behavioral);
  if (!reference) return forward_error(reference);
  auto both = sim::Lockstep::make({"RTL", std::move(*tested)}, {"behavioral", std::move(*reference)});
  if (!both) return forward_error(both);
  return make_simulated(uri, std::move(*both), true);
}

}  // namespace
}  // namespace tenon::driver

extern "C" __attribute__((visibility("default"))) bool tenon_driver_transport(const char* abi,
                                                                              tenon::driver::Transport* transport) {
  using namespace tenon;
  if (std::string_view(abi) != driver::kPluginAbi) return false;
  *transport = {.scheme = "lockstep",
                .doc = fmt::format("the RTL beside the behavioral simulator, compared at every write: lockstep:CONFIG"
                                   "[?race=on&{}]",
                                   driver::kVerilatedOptionsDoc),
                .open = driver::open_lockstep,
                .missing = sim::missing_verilator_tools};
  return true;
}
