#include "compiler/quantize/results.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;
using Pair = std::function<void(const Tensor& found, const Tensor& expected)>;

void for_each_result(const Results& found, const Results& expected, const Pair& visit) {
  for (size_t i = 0; i < found.size(); ++i) {
    for (size_t k = 0; k < found[i].size(); ++k) {
      if (expected[i][k].dtype() == runtime::DType::kF32 && expected[i][k].size() > 0)
        visit(found[i][k], expected[i][k]);
    }
  }
}

}  // namespace

Expected<Results> run_samples(const Runner& runner, const Module& module, Symbol entry, const Samples& samples,
                              size_t count) {
  Results results;
  TENON_TRY_ASSIGN(run, runner(module, entry));
  for (size_t i = 0; i < std::min(samples.size(), count); ++i) {
    TENON_TRY_ASSIGN(found, (*run)(samples[i]));
    results.push_back(std::move(*found));
  }
  return results;
}

void RelativeError::add(std::span<const Tensor> found, std::span<const Tensor> expected) {
  for (size_t k = 0; k < found.size(); ++k) {
    if (expected[k].dtype() != runtime::DType::kF32) continue;
    const auto a = found[k].data<float>(), b = expected[k].data<float>();
    for (size_t e = 0; e < b.size(); ++e) {
      const double difference = double{a[e]} - b[e];
      differences_ += difference * difference;
      squares_ += double{b[e]} * b[e];
    }
  }
}

double relative_error(const Results& found, const Results& expected) {
  RelativeError sum;
  for (size_t i = 0; i < found.size(); ++i) sum.add(found[i], expected[i]);
  return sum.value();
}

double mean_cosine(const Results& found, const Results& expected) {
  double sum = 0;
  size_t count = 0;
  for_each_result(found, expected, [&](const Tensor& a, const Tensor& b) {
    double product = 0, left = 0, right = 0;
    const auto x = a.data<float>(), y = b.data<float>();
    for (size_t e = 0; e < y.size(); ++e) {
      product += double{x[e]} * y[e];
      left += double{x[e]} * x[e];
      right += double{y[e]} * y[e];
    }
    sum += left > 0 && right > 0 ? product / std::sqrt(left * right) : (left == right ? 1 : 0);
    ++count;
  });
  return count > 0 ? sum / static_cast<double>(count) : 1;
}

double top1_agreement(const Results& found, const Results& expected) {
  size_t equal = 0, count = 0;
  for_each_result(found, expected, [&](const Tensor& a, const Tensor& b) {
    const size_t row = b.shape().empty() ? 1 : static_cast<size_t>(b.shape().back());
    for (size_t at = 0; at < b.data<float>().size(); at += row, ++count) {
      const auto x = a.data<float>().subspan(at, row), y = b.data<float>().subspan(at, row);
      equal += std::ranges::max_element(x) - x.begin() == std::ranges::max_element(y) - y.begin();
    }
  });
  return count > 0 ? static_cast<double>(equal) / static_cast<double>(count) : 1;
}

}  // namespace tenon::compiler
