// Results of a quantized function beside those of the float one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "compiler/quantize/calibrate.h"
#include "compiler/quantize/runner.h"

namespace tenon::compiler {

constexpr size_t kMeasuredSamples = 8;  // more of them seldom change the order of methods, or of layers

using Results = std::vector<std::vector<runtime::Tensor>>;  // of each sample

// Of the first `count` samples.
Expected<Results> run_samples(const Runner& runner, const Module& module, Symbol entry, const Samples& samples,
                              size_t count);

// The float results' squared differences, relative to the squares of the expected ones.
class RelativeError {
 public:
  void add(std::span<const runtime::Tensor> found, std::span<const runtime::Tensor> expected);
  double value() const { return squares_ > 0 ? differences_ / squares_ : differences_; }

 private:
  double differences_ = 0, squares_ = 0;
};
double relative_error(const Results& found, const Results& expected);

// The mean cosine of the angle between the float results and the expected ones, over all samples and results; two
// results of zeros only agree, and one of them does not.
double mean_cosine(const Results& found, const Results& expected);

// The share of the rows of the last axis, over all samples and float results, whose largest element has the same index.
double top1_agreement(const Results& found, const Results& expected);

}  // namespace tenon::compiler
