// What to change in a configuration that does not fit.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <tuple>

#include "hw/estimate/estimate.h"

namespace tenon::estimate {
namespace {

using spec::Config;

struct Candidate {
  std::string text;
  Config config;
};

// The integer `member` at `value`.
void add(std::vector<Candidate>& list, const Config& config, std::string_view key, int Config::*member, int value) {
  if (config.*member == value) return;
  Candidate candidate{fmt::format("{} {} -> {}", key, config.*member, value), config};
  candidate.config.*member = value;
  list.push_back(std::move(candidate));
}

void add(std::vector<Candidate>& list, const Config& config, std::string_view text, bool Config::*member, bool value) {
  if (config.*member == value) return;
  Candidate candidate{std::string(text), config};
  candidate.config.*member = value;
  list.push_back(std::move(candidate));
}

std::vector<Candidate> candidates(const Config& config) {
  std::vector<Candidate> list;
  add(list, config, "block_in", &Config::block_in, config.block_in / 2);
  add(list, config, "block_out", &Config::block_out, config.block_out / 2);
  add(list, config, "axi_data_bits", &Config::axi_data_bits, config.axi_data_bits / 2);
  add(list, config, "queue_depth", &Config::queue_depth, std::min(config.queue_depth, 16));
  add(list, config, "address_bits", &Config::address_bits, 32);
  add(list, config, "requantizer_passes", &Config::requantizer_passes, config.requantizer_passes * 2);
  if (config.base) {
    add(list, config, "alu_multiply_passes", &Config::alu_multiply_passes, 0);
    if (config.native) add(list, config, "alu_multiply_passes", &Config::alu_multiply_passes, 2);
  }
  add(list, config, "counters off", &Config::counters, false);
  add(list, config, "weight_engine off", &Config::weight_engine, false);
  if (config.base && config.native) {
    add(list, config, "profiles base alone", &Config::native, false);
    add(list, config, "profiles native alone", &Config::base, false);
  }
  for (size_t m = 0; m < config.bytes.size(); ++m) {
    const int64_t bytes = config.bytes[m];
    Candidate candidate{fmt::format("buffers.{} {} -> {}", spec::name(static_cast<spec::Memory>(m)), bytes, bytes / 2),
                        config};
    candidate.config.bytes[m] = bytes / 2;
    list.push_back(std::move(candidate));
  }
  return list;
}

// The sum of what is required beyond the chip, each kind relative to what there is.
double excess(const Cells& cells, const Capacity& capacity) {
  const auto part = [](double used, double available) {
    return available > 0 ? std::max(0.0, used / available - 1) : 0.0;
  };
  return part(static_cast<double>(cells.lut), static_cast<double>(capacity.lut)) +
         part(static_cast<double>(cells.ff), static_cast<double>(capacity.ff)) +
         part(static_cast<double>(cells.dsp), static_cast<double>(capacity.dsp)) + part(cells.ram, capacity.ram);
}

}  // namespace

std::vector<Change> changes(const Model& model, const Config& config, const Capacity& capacity) {
  const double now = excess(model(config).cells, capacity);
  std::vector<std::pair<double, Change>> found;
  for (Candidate& candidate : candidates(config)) {
    if (!spec::validate(candidate.config, candidate.config.name)) continue;
    const Cells cells = model(candidate.config).cells;
    const double left = excess(cells, capacity);
    if (left >= now) continue;
    found.emplace_back(left, Change{std::move(candidate.text), cells, exceeded(cells, capacity).empty()});
  }
  std::ranges::sort(found, {}, [](const auto& entry) { return std::tie(entry.first, entry.second.text); });
  std::vector<Change> list;
  for (auto& [left, change] : found) list.push_back(std::move(change));
  return list;
}

}  // namespace tenon::estimate
