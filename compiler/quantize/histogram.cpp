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
  const float width = range.hi - range.lo;
  const auto bin = width > 0 ? static_cast<int>((value - range.lo) / width * kBins) : 0;
  ++bins_[static_cast<size_t>(std::clamp(bin, 0, kBins - 1))];
  ++total_;
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
  for (size_t bin = 0; bin < bins_.size(); ++bin) {
    const auto count = static_cast<double>(bins_[bin]);
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
    const double p = clipped[bin] / static_cast<double>(total_);
    // An empty bin that only received outliers has a mass that no level represents.
    const double q = filled[l] > 0 && inside[bin] > 0 ? mass[l] / filled[l] / within : 1e-9;
    sum += p * std::log(p / q);
  }
  return sum;
}

}  // namespace tenon::compiler
