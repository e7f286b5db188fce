// How much of a chip a configuration takes, before anything is synthesized.
#pragma once

#include <string>
#include <vector>

#include "hw/estimate/table.h"

namespace tenon::estimate {

struct Estimate {
  Cells cells;
  double lut_error = 0, ff_error = 0;  // relative: largest of the table's rows, each predicted from the others
  double lut_mean_error = 0, ff_mean_error = 0;  // relative: mean of the same
  size_t rows = 0;                               // of the table
  double mhz = 0;                                // the fastest routed row; 0: none was routed
  std::string mhz_config;                        // that row's configuration
};

// The model of one family, fitted once.
class Model {
 public:
  static Expected<Model> create(Family family);
  static Expected<Model> create(Family family, const std::vector<Row>& rows);

  Estimate operator()(const spec::Config& config) const;

 private:
  Model() = default;

  Family family_ = Family::kEcp5;
  Estimate known_;  // all but the cells
  std::vector<double> lut_, ff_;
};

// Multipliers, in those of the family.
int64_t multipliers(Family family, const spec::Config& config);

// What a chip has; a value that is 0 is not limited.
struct Capacity {
  int64_t lut = 0, ff = 0, dsp = 0;
  double ram = 0;
};

// The kinds of cells of which more are required than there are, as "LUT 18935 of 7680"; empty: it fits.
std::vector<std::string> exceeded(const Cells& cells, const Capacity& capacity);

// A change of one member of the configuration, and what is required then.
struct Change {
  std::string text;  // "block_out 16 -> 8"
  Cells cells;
  bool fits = false;
};

// Valid changes that lessen what is exceeded, those that fit first, then those that save most.
std::vector<Change> changes(const Model& model, const spec::Config& config, const Capacity& capacity);

}  // namespace tenon::estimate
