// Opens a simulator by its URI, SCHEME:CONFIG?OPTIONS, for all simulators alike. Private to the transports.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "driver/behavioral.h"
#include "driver/simulated.h"
#include "driver/uri.h"
#include "hw/spec/config.h"
#include "support/try.h"

namespace tenon::driver {

// `read(options)` reads all of the simulator's options from the URI; `make(config, simulator_options)` builds the
// simulator. The options of its memory's timing, which `read` reads too, are the device's.
template <class Read, class Make>
Expected<std::unique_ptr<Accelerator>> open_simulated(std::string_view scheme, std::string_view target,
                                                      bool cycle_accurate, const Read& read, const Make& make) {
  const std::string uri = fmt::format("{}:{}", scheme, target);
  TENON_TRY_ASSIGN(options, Options::parse(uri, target));
  const auto simulator_options = read(*options);
  const spec::MemoryTiming memory = memory_timing(*options);
  TENON_TRY(options->finish());
  TENON_TRY_ASSIGN(config, spec::load_config(options->name().empty() ? "default" : options->name()));
  TENON_TRY_ASSIGN(simulator, make(*config, simulator_options));
  return make_simulated(uri, std::move(*simulator), cycle_accurate, memory);
}

}  // namespace tenon::driver
