#include "driver/behavioral.h"

#include "driver/open_simulated.h"

namespace tenon::driver {

sim::BehavioralOptions behavioral_options(Options& options) {
  sim::BehavioralOptions read;
  read.memory_bytes = options.bytes("memory", read.memory_bytes, 8 << 10, uint64_t{64} << 30);
  read.detect_races = options.flag("race", read.detect_races);
  read.kernels = options.text("kernels", read.kernels);
  return read;
}

Transport behavioral_transport() {
  const auto open = [](std::string_view target) -> Expected<std::unique_ptr<Accelerator>> {
    return open_simulated("behavioral", target, false, behavioral_options, sim::make_behavioral);
  };
  return {.scheme = "behavioral",
          .doc =
              "the fast model in this process, with race detector: behavioral:CONFIG"
              "[?memory=256M&race=on&kernels=NAME]",
          .open = open};
}

}  // namespace tenon::driver
