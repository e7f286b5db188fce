#include "driver/behavioral.h"

#include "driver/open_simulated.h"

namespace tenon::driver {

spec::MemoryTiming memory_timing(Options& options) {
  spec::MemoryTiming memory;
  const auto read = [&](std::string_view key, int& value, int most) {
    value = static_cast<int>(options.integer(key, static_cast<uint64_t>(value), 1, static_cast<uint64_t>(most)));
  };
  read("latency", memory.read_latency, spec::kMaxMemoryLatency);
  read("write_latency", memory.write_latency, spec::kMaxMemoryLatency);
  read("outstanding", memory.outstanding, spec::kMaxOutstanding);
  return memory;
}

sim::BehavioralOptions behavioral_options(Options& options) {
  sim::BehavioralOptions read;
  read.memory_bytes = options.bytes("memory", read.memory_bytes, 8 << 10, uint64_t{64} << 30);
  read.detect_races = options.flag("race", read.detect_races);
  read.kernels = options.text("kernels", read.kernels);
  read.timing.memory = memory_timing(options);
  return read;
}

Transport behavioral_transport() {
  const auto open = [](std::string_view target) -> Expected<std::unique_ptr<Accelerator>> {
    return open_simulated("behavioral", target, false, behavioral_options, sim::make_behavioral);
  };
  return {.scheme = "behavioral",
          .doc =
              "the fast model in this process, with race detector: behavioral:CONFIG"
              "[?memory=256M&latency=60&write_latency=40&outstanding=16&race=on&kernels=NAME]",
          .open = open};
}

}  // namespace tenon::driver
