// The transport lockstep: -- the RTL and the behavioral simulator on the same program, compared write by write.
#include "sim/lockstep/lockstep.h"

#include "driver/behavioral.h"
#include "driver/open_simulated.h"
#include "driver/plugin_export.h"
#include "driver/verilated_options.h"
#include "sim/verilator/builder.h"
#include "support/pages.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

struct BothOptions {
  sim::VerilatedOptions tested;
  sim::BehavioralOptions reference;
};

BothOptions both_options(Options& options) {
  BothOptions read{verilated_options(options), behavioral_options(options)};
  read.reference.memory_bytes = whole_pages(read.tested.memory_bytes);
  return read;
}

Expected<std::unique_ptr<sim::Simulator>> make_both(const spec::Config& config, const BothOptions& options) {
  TENON_TRY_ASSIGN(tested, sim::make_verilated(config, options.tested));
  TENON_TRY_ASSIGN(reference, sim::make_behavioral(config, options.reference));
  return sim::Lockstep::make({"RTL", std::move(*tested)}, {"behavioral", std::move(*reference)});
}

Expected<std::unique_ptr<Accelerator>> open_lockstep(std::string_view target) {
  return open_simulated("lockstep", target, true, both_options, make_both);
}

}  // namespace
}  // namespace tenon::driver

tenon::driver::Transport tenon::driver::transport() {
  return {.scheme = "lockstep",
          .doc = fmt::format("the RTL and the behavioral simulator, compared at every write: lockstep:CONFIG"
                             "[?race=on&{}]",
                             kVerilatedOptionsDoc),
          .open = open_lockstep,
          .missing = sim::missing_verilator_tools};
}
