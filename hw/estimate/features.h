// What the look-up tables and registers of a configuration grow with.
#pragma once

#include <string_view>
#include <vector>

#include "hw/spec/config.h"

namespace tenon::estimate {

struct Feature {
  std::string_view name;
  double amount = 0;
};

// The same features in the same order for every configuration.
std::vector<Feature> features(const spec::Config& config);

}  // namespace tenon::estimate
