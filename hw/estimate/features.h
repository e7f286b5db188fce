// What the look-up tables and registers of a configuration grow with.
#pragma once

#include <string_view>
#include <vector>

#include "hw/estimate/table.h"
#include "hw/spec/config.h"

namespace tenon::estimate {

// The amounts of what look-up tables, and registers, grow with.
struct Feature {
  std::string_view name;
  double luts = 0, ffs = luts;
};

// The same features in the same order for every configuration.
std::vector<Feature> features(Family family, const spec::Config& config);

}  // namespace tenon::estimate
