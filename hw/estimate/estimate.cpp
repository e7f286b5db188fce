#include "hw/estimate/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hw/estimate/features.h"
#include "hw/estimate/fit.h"
#include "hw/estimate/memories.h"
#include "support/try.h"

namespace tenon::estimate {
namespace {

constexpr size_t kFewestRows = 12;  // for an error that means something

std::vector<double> amounts(Family family, const spec::Config& config, double Feature::*amount) {
  std::vector<double> list;
  for (const Feature& feature : features(family, config)) list.push_back(feature.*amount);
  return list;
}

int64_t rounded(double value) { return static_cast<int64_t>(std::llround(value)); }

}  // namespace

Expected<Model> Model::create(Family family) {
  TENON_TRY_ASSIGN(rows, read_table(family));
  return create(family, *rows);
}

Expected<Model> Model::create(Family family, const std::vector<Row>& rows) {
  if (rows.size() < kFewestRows) {
    return error(fmt::format("{} configurations were synthesized for {}, at least {} are required", rows.size(),
                             name(family), kFewestRows),
                 {}, fmt::format("synthesize more: scripts/cells --target {} --record CONFIG...", name(family)));
  }
  std::vector<std::vector<double>> of_luts, of_ffs;
  std::vector<double> lut, ff;
  Model model;
  model.family_ = family;
  model.known_.rows = rows.size();
  for (const Row& row : rows) {
    of_luts.push_back(amounts(family, row.config, &Feature::luts));
    of_ffs.push_back(amounts(family, row.config, &Feature::ffs));
    lut.push_back(static_cast<double>(row.cells.lut));
    ff.push_back(static_cast<double>(row.cells.ff));
    if (row.mhz <= model.known_.mhz) continue;
    model.known_.mhz = row.mhz;
    model.known_.mhz_config = row.config.name;
  }
  const Fit luts = fit(of_luts, lut), ffs = fit(of_ffs, ff);
  model.known_.lut_error = luts.largest_error;
  model.known_.lut_mean_error = luts.mean_error;
  model.known_.ff_error = ffs.largest_error;
  model.known_.ff_mean_error = ffs.mean_error;
  model.lut_ = luts.coefficients;
  model.ff_ = ffs.coefficients;
  return model;
}

Estimate Model::operator()(const spec::Config& config) const {
  Estimate result = known_;
  result.cells.lut = rounded(Fit{.coefficients = lut_}(amounts(family_, config, &Feature::luts)));
  result.cells.ff = rounded(Fit{.coefficients = ff_}(amounts(family_, config, &Feature::ffs)));
  result.cells.dsp = multipliers(family_, config);
  for (const MemoryShape& memory : memories(config)) result.cells.ram += block_rams(family_, memory);
  return result;
}

std::vector<std::string> exceeded(const Cells& cells, const Capacity& capacity) {
  std::vector<std::string> list;
  const auto check = [&](std::string_view kind, double used, double available) {
    if (available > 0 && used > available) list.push_back(fmt::format("{} {} of {}", kind, used, available));
  };
  check("LUT", static_cast<double>(cells.lut), static_cast<double>(capacity.lut));
  check("FF", static_cast<double>(cells.ff), static_cast<double>(capacity.ff));
  check("DSP", static_cast<double>(cells.dsp), static_cast<double>(capacity.dsp));
  check("RAM", cells.ram, capacity.ram);
  return list;
}

}  // namespace tenon::estimate
