// Opening a simulator by its URI, SCHEME:CONFIG?OPTIONS, the same way for each. Private to the transports.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "driver/simulated.h"
#include "driver/uri.h"
#include "hw/spec/config.h"

namespace tenon::driver {

// `read(options)` takes the simulator's options from the URI, all of them; `make(config, those)` builds it.
template <class Read, class Make>
Expected<std::unique_ptr<Accelerator>> open_simulated(std::string_view scheme, std::string_view rest,
                                                      bool cycle_accurate, const Read& read, const Make& make) {
  const std::string uri = fmt::format("{}:{}", scheme, rest);
  auto options = Options::parse(uri, rest);
  if (!options) return forward_error(options);
  const auto wanted = read(*options);
  if (auto status = options->finish(); !status) return forward_error(status);
  auto config = spec::load_config(options->name().empty() ? "default" : options->name());
  if (!config) return forward_error(config);
  auto simulator = make(*config, wanted);
  if (!simulator) return forward_error(simulator);
  return make_simulated(uri, std::move(*simulator), cycle_accurate);
}

}  // namespace tenon::driver
