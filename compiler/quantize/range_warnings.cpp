#include "compiler/quantize/range_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon::compiler {
namespace {

using runtime::DType;
using runtime::Tensor;

constexpr size_t kMostWarnings = 10;

bool equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return x.dtype() == y.dtype() && x.shape() == y.shape() && std::ranges::equal(x.bytes(), y.bytes());
  });
}

// The rows of all samples, along the first axis of their first input.
int64_t rows_of(const Samples& samples) {
  int64_t rows = 0;
  for (const auto& sample : samples) {
    const bool has_axis = !sample.empty() && !sample[0].shape().empty();
    rows += has_axis ? sample[0].shape()[0] : 1;
  }
  return rows;
}

// The bounds of an input's values without the one that is farthest from the others.
struct Outlier {
  float value = 0, lo = HUGE_VALF, hi = -HUGE_VALF;
};
Outlier outlier_of(const Samples& samples, size_t input, const Range& range) {
  Outlier above{.value = range.hi}, below{.value = range.lo};
  bool top = false, bottom = false;  // whether the outlier itself has been left out
  for (const auto& sample : samples) {
    for (const float value : sample[input].data<float>()) {
      if (value == range.hi && !top) top = true;
      else above.lo = std::min(above.lo, value), above.hi = std::max(above.hi, value);
      if (value == range.lo && !bottom) bottom = true;
      else below.lo = std::min(below.lo, value), below.hi = std::max(below.hi, value);
    }
  }
  return above.hi - above.lo < below.hi - below.lo ? above : below;
}

class RangeWarnings {
 public:
  RangeWarnings(const Context& context, const Module& module, Symbol entry, const Samples& samples,
                const Ranges& ranges)
      : context_(context), module_(module), entry_(entry), samples_(samples), ranges_(ranges) {}

  Expected<std::string> run() {
    if (const Status status = values(); !status) return std::unexpected(status.error());
    inputs();
    whole();
    std::string text;
    for (size_t i = 0; i < std::min(warnings_.size(), kMostWarnings); ++i) text += "warning: " + warnings_[i] + "\n";
    if (warnings_.size() > kMostWarnings)
      text += fmt::format("warning: and {} more such values\n", warnings_.size() - kMostWarnings);
    return text;
  }

 private:
  std::string describe(const Function& function, VarId var) const {
    const std::string origin = module_.span(function.info(var).span).str();
    return fmt::format("%{}{}", context_.name(function.info(var).name), origin.empty() ? "" : " (" + origin + ")");
  }

  Status values() {
    size_t observed = 0, zeros = 0;
    for (const auto& [name, ranges] : ranges_) {
      const Function* function = module_.function(name);
      for (size_t i = 0; function && i < ranges.size(); ++i) {
        observed += ranges[i].observed;
        zeros += ranges[i].observed && ranges[i].lo == 0 && ranges[i].hi == 0;
        if (!ranges[i].observed || ranges[i].lo != ranges[i].hi) continue;
        warnings_.push_back(fmt::format("{} was {} in all samples, whose range is no scale for other values",
                                        describe(*function, static_cast<VarId>(i)), ranges[i].lo));
      }
    }
    if (zeros < observed || observed == 0) return {};
    return error("each value of the model was 0 in all samples, so that there is no range to quantize by",
                 "calibration", "give data like the data that the model will see");
  }

  void inputs() {
    const Function& function = *module_.function(entry_);
    const std::vector<Range>& ranges = ranges_.at(entry_);
    constexpr float kShare = 100;  // of the range with the outlier in the range without it
    for (size_t i = 0; i < function.params.size(); ++i) {
      const Range& range = ranges[index(function.params[i])];
      if (!range.observed || !(range.hi > range.lo) || samples_[0][i].dtype() != DType::kF32) continue;
      const Outlier outlier = outlier_of(samples_, i, range);
      if (!(outlier.hi > outlier.lo) || (range.hi - range.lo) < kShare * (outlier.hi - outlier.lo)) continue;
      warnings_.push_back(
          fmt::format("one element, {}, takes most of the range {} .. {} of {}: all others are {} .. {}", outlier.value,
                      range.lo, range.hi, describe(function, function.params[i]), outlier.lo, outlier.hi));
    }
  }

  void whole() {
    constexpr int64_t kFew = 4;
    const bool same = std::ranges::all_of(samples_, [&](const auto& sample) { return equal(sample, samples_[0]); });
    if (same && samples_.size() > 1)
      warnings_.insert(warnings_.begin(), fmt::format("all {} samples of the calibration are equal", samples_.size()));
    if (const int64_t rows = rows_of(samples_); rows < kFew) {
      warnings_.insert(warnings_.begin(), fmt::format("the calibration has {} sample{}: some tens show the ranges of "
                                                      "rare values too",
                                                      rows, rows == 1 ? "" : "s"));
    }
  }

  const Context& context_;
  const Module& module_;
  Symbol entry_;
  const Samples& samples_;
  const Ranges& ranges_;
  std::vector<std::string> warnings_;
};

}  // namespace

Expected<std::string> range_warnings(const Context& context, const Module& module, Symbol entry, const Samples& samples,
                                     const Ranges& ranges) {
  return RangeWarnings(context, module, entry, samples, ranges).run();
}

}  // namespace tenon::compiler
