#include "compiler/quantize/histogram.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tenon::compiler {
namespace {

constexpr int kLevels = 256;  // of int8

// The fractions that a candidate cuts on each side; the first keeps everything.
constexpr double kTails[] = {0, 1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2};

// The cut with the least cost; of equal ones the widest.
template <class F>
Range least(const Histogram& histogram, const Range& range, F&& cost) {
  std::pair<double, Range> best{HUGE_VAL, range};
  for (const double tail : kTails) {
    const Range cut = tail == 0 ? range : histogram.cut(range, tail);
    if (cut.hi <= cut.lo) continue;
    if (const double found = cost(cut); found < best.first) best = {found, cut};
  }
  return best.second;
}

}  // namespace

void Histogram::add(float value, const Range& range) {
  ++bins_[bin_of(value, range)];
  ++total_;
}

size_t Histogram::bin_of(float value, const Range& range) {
  const float width = range.hi - range.lo;
  if (!(width > 0)) return 0;
  return static_cast<size_t>(std::clamp((value - range.lo) / width * kBins, 0.0f, float{kBins - 1}));
}

Range Histogram::cut(const Range& range, double tail) const {
  const auto edge = [&](bool low) {
    const auto allowed = static_cast<uint64_t>(tail * static_cast<double>(total_));
    uint64_t sum = 0;
    for (int i = 0; i < kBins; ++i) {
      const int bin = low ? i : kBins - 1 - i;
      sum += bins_[static_cast<size_t>(bin)];
      if (sum > allowed) return range.lo + (range.hi - range.lo) * static_cast<float>(low ? bin : bin + 1) / kBins;
    }
    return low ? range.lo : range.hi;
  };
  return {edge(true), edge(false), true};
}

Range Histogram::least_error(const Range& range) const {
  return least(*this, range, [&](const Range& cut) { return squared_error(range, cut); });
}

Range Histogram::least_divergence(const Range& range) const {
  return least(*this, range, [&](const Range& cut) { return divergence(range, cut); });
}

double Histogram::squared_error(const Range& observed, const Range& cut) const {
  const double step = (double{cut.hi} - cut.lo) / (kLevels - 1);
  double sum = 0;
  for (size_t bin = 0; bin < bins_.size(); ++bin) {
    if (bins_[bin] == 0) continue;
    const double value = center(observed, bin);
    const double level = std::clamp(std::nearbyint((value - cut.lo) / step), 0.0, double{kLevels - 1});
    const double rounding = value - (cut.lo + level * step);
    sum += rounding * rounding * static_cast<double>(bins_[bin]);
  }
  return sum;
}

double Histogram::divergence(const Range& observed, const Range& cut) const {
  // P: the bins inside the cut, what is outside added to the outermost ones. Q: within a level, the mass of the bins of
  // P without that addition, spread over those that are not empty.
  std::vector<double> inside(bins_.size()), clipped(bins_.size());
  std::vector<double> mass(kLevels);
  std::vector<int> filled(kLevels);
  std::vector<int> level(bins_.size(), -1);
  const double step = (double{cut.hi} - cut.lo) / kLevels;
  size_t first = bins_.size(), last = 0;
  for (size_t bin = 0; bin < bins_.size(); ++bin) {
    const double value = center(observed, bin);
    if (value < cut.lo || value > cut.hi) continue;
    first = std::min(first, bin), last = bin;
    level[bin] = std::clamp(static_cast<int>((value - cut.lo) / step), 0, kLevels - 1);
  }
  if (first == bins_.size()) return HUGE_VAL;
  // Zero has a level of its own in every range, so the zeros of a ReLU cost nothing: their bin counts as its neighbor.
  const size_t zero = bin_of(0, observed), neighbor = zero + 1 < bins_.size() ? zero + 1 : zero - 1;
  double total = static_cast<double>(total_);
  if (observed.lo <= 0 && observed.hi >= 0)
    total += static_cast<double>(bins_[neighbor]) - static_cast<double>(bins_[zero]);
  if (total <= 0) return cut.lo == observed.lo && cut.hi == observed.hi ? 0 : HUGE_VAL;
  for (size_t bin = 0; bin < bins_.size(); ++bin) {
    const bool is_zero = bin == zero && observed.lo <= 0 && observed.hi >= 0;
    const auto count = static_cast<double>(bins_[is_zero ? neighbor : bin]);
    clipped[std::clamp(bin, first, last)] += count;
    if (level[bin] < 0) continue;
    inside[bin] = count;
    mass[static_cast<size_t>(level[bin])] += count;
    filled[static_cast<size_t>(level[bin])] += count > 0 ? 1 : 0;
  }
  double within = 0, sum = 0;
  for (const double m : mass) within += m;
  if (within == 0) return HUGE_VAL;
  for (size_t bin = first; bin <= last; ++bin) {
    if (clipped[bin] == 0) continue;
    const auto l = static_cast<size_t>(level[bin]);
    const double p = clipped[bin] / total;
    // An empty bin that only received outliers has a mass that no level represents.
    const double q = filled[l] > 0 && inside[bin] > 0 ? mass[l] / filled[l] / within : 1e-9;
    sum += p * std::log(p / q);
  }
  return sum;
}

}  // namespace tenon::compiler
