// The transport systemc: -- a virtual platform in SystemC with the accelerator as a TLM-2.0 model, or its RTL.
#include "driver/plugin_export.h"
#include "driver/simulated.h"
#include "driver/verilated_options.h"
#include "sim/systemc/platform.h"
#include "sim/verilator/builder.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

Expected<std::unique_ptr<Accelerator>> open_systemc(std::string_view target) {
  const std::string uri = fmt::format("systemc:{}", target);
  TENON_TRY_ASSIGN(options, Options::parse(uri, target));
  sim::SystemcOptions read;
  read.rtl = verilated_options(*options);
  read.memory_bytes = read.rtl.memory_bytes;
  read.timing.memory = read.rtl.memory_timing();
  read.dmi = options->flag("dmi", read.dmi);
  const std::string model = options->text("model", "tlm");
  TENON_TRY(options->finish());
  if (model != "tlm" && model != "rtl") {
    return error(fmt::format("option model is \"{}\", must be tlm or rtl", model), uri, {}, Fault::kUsage);
  }
  if (model == "rtl") read.model = sim::SystemcOptions::Model::kRtl;
  TENON_TRY_ASSIGN(config, spec::load_config(options->name().empty() ? "default" : options->name()));
  auto simulator = sim::make_systemc(*config, read);
  if (!simulator) {
    simulator.error().where = uri;
    return std::unexpected(std::move(simulator.error()));
  }
  return make_simulated(uri, std::move(*simulator), model == "rtl", read.timing.memory);
}

}  // namespace
}  // namespace tenon::driver

tenon::driver::Transport tenon::driver::transport() {
  return {.scheme = "systemc",
          .doc = fmt::format("a virtual platform in SystemC, one per process: systemc:CONFIG[?model=rtl&dmi=off&{}]",
                             kVerilatedOptionsDoc),
          .open = open_systemc};
}

// libsystemc has a main() that calls sc_main(), so linking requires a definition. It is never called.
extern "C" __attribute__((visibility("default"))) int sc_main(int, char**) { return 1; }
