#include "driver/behavioral.h"

#include <fmt/format.h>

#include "driver/simulated.h"

namespace tenon::driver {

sim::BehavioralOptions behavioral_options(Options& options) {
  sim::BehavioralOptions read;
  read.memory_bytes = options.bytes("memory", read.memory_bytes, 8 << 10, uint64_t{64} << 30);
  read.detect_races = options.flag("race", read.detect_races);
  read.kernels = options.text("kernels", read.kernels);
  return read;
}

Transport behavioral_transport() {
  const auto open = [](std::string_view rest) -> Expected<std::unique_ptr<Accelerator>> {
    const std::string uri = fmt::format("behavioral:{}", rest);
    auto options = Options::parse(uri, rest);
    if (!options) return forward_error(options);
    const sim::BehavioralOptions read = behavioral_options(*options);
    if (auto status = options->finish(); !status) return forward_error(status);
    auto config = spec::load_config(options->name().empty() ? "default" : options->name());
    if (!config) return forward_error(config);
    auto simulator = sim::make_behavioral(*config, read);
    if (!simulator) return forward_error(simulator);
    return make_simulated(uri, std::move(*simulator), false);
  };
  return {.scheme = "behavioral",
          .doc =
              "the fast model in this process, with race detector: behavioral:CONFIG"
              "[?memory=256M&race=on&kernels=NAME]",
          .open = open,
          .missing = [] { return std::string(); }};
}

}  // namespace tenon::driver
